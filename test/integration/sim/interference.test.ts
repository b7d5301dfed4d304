import { describe, expect, it } from '@jest/globals';
import type { Interference } from '../../../lib/drivers/sim/interference/interference.ts';
import { NO_LOAD } from '../../../lib/domain/load.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { raw, seconds, type EpochMs, type Seconds } from '../../../lib/kernel/units.ts';
import type { LearningEvent } from '../../../lib/policy/learner.ts';
import { calmTrace } from '../../support/mixed-workload.ts';
import { resources } from '../../support/builders.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';

const MOST = { diskRead: 100, diskWritten: 100, netReceived: 10, netSent: 10 };

/** Beside another task it is half as fast, and the machine twice as busy. */
const halving: Interference = ({ neighbours }) => ({
  pace: 1 / (1 + neighbours.length),
  measured: {
    own: { ...NO_LOAD, cpu: 0.5 },
    machine: { load: { ...NO_LOAD, cpu: 0.25 * (1 + neighbours.length) }, most: MOST },
  },
});

async function run(runtimesS: readonly number[], over: Parameters<typeof simulatedJob>[3] = {}) {
  const told: LearningEvent[] = [];
  const noting = () => ({
    name: 'noting',
    about: '',
    source: 'test',
    prefix: 'noting/',
    learnsFrom: ['attempt-ended'] as const,
    observe: (event: LearningEvent) => {
      if (event.kind === 'attempt-ended') {
        const { attempt, neighbours, usage, runtimeS } = event;
        told.push({ attempt, neighbours, usage, runtimeS } as never);
      }
    },
    belief: () => null,
    takeDirty: () => new Map<string, string>(),
    restore: () => undefined,
  });
  const { ended } = await simulated([simulatedJob('j', 0, runtimesS, over)], {
    interference: halving,
    trace: calmTrace,
    market: (now) => replayMarket(calmTrace, now),
    setupS: seconds(0),
    learners: [noting],
  });
  expect(ended).toBe('done');
  return told as unknown as readonly {
    readonly attempt: { readonly index: number; readonly startedMs: EpochMs; readonly endedMs: EpochMs };
    readonly usage: {
      readonly own: { cpu: number };
      readonly machine: { load: { cpu: number } };
      readonly cpuS: Seconds;
    };
    readonly neighbours: readonly { readonly job: { readonly id: string } }[];
  }[];
}
const took = ({ attempt: { startedMs, endedMs } }: Awaited<ReturnType<typeof run>>[number]): number =>
  (raw(endedMs) - raw(startedMs)) / 1000;

describe('simulated interference', () => {
  it('slows tasks down while they are together, and tells what was measured of that time', async () => {
    const [first, second] = (await run([300, 1000], { stage: { resources: resources(2) } })).toSorted(
      (a, b) => a.attempt.index - b.attempt.index,
    );
    // 300 s of work take 600 s together; the other has done 300 by then, and 700 are left.
    expect([took(first!), took(second!)]).toEqual([600, 1300]);
    expect(first?.usage.machine.load.cpu).toBeCloseTo(0.5, 9);
    expect(second?.usage.machine.load.cpu).toBeCloseTo((600 * 0.5 + 700 * 0.25) / 1300, 9);
    expect(second?.usage.own.cpu).toBeCloseTo(0.5, 9);
    expect(raw(second!.usage.cpuS)).toBeCloseTo(0.5 * 2 * 1300, 6);
    expect(first?.neighbours).toHaveLength(1);
  });

  it('slows a gang down as one: its members share their work', async () => {
    // Two fit on an instance: the third is alone, and yet all end together.
    const all = await run([600, 600, 600], { stage: { resources: resources(2), gang: true } });
    const times = all.map(took);
    expect(new Set(times.map((s) => Math.round(s))).size).toBe(1);
    expect(times[0]).toBeCloseTo(600 / ((0.5 + 0.5 + 1) / 3), 0);
  });
});
