import { describe, expect, it } from '@jest/globals';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { NO_LOAD, type Transfers } from '../../../lib/domain/load.ts';
import type { TaskLoad } from '../../../lib/drivers/sim/interference/contention.ts';
import { byContention, type Interference } from '../../../lib/drivers/sim/interference/interference.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { plus, raw, seconds, type EpochMs, type Seconds } from '../../../lib/kernel/units.ts';
import type { LearningEvent } from '../../../lib/policy/learner.ts';
import { defaultMarket } from '../../../lib/market/default-market.ts';
import type { WorkloadJob } from '../../../lib/workload/workload.ts';
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

const MB = 1e6;
const moving = (diskRead: number): Transfers => ({ diskRead, diskWritten: 0, netReceived: 0, netSent: 0 });
const READER: TaskLoad = {
  vcpus: 0.2,
  transfers: moving(80 * MB),
  memory: 0,
  bound: { cpu: 0.1, disk: 0.85, net: 0, memory: 0 },
};
const CRUNCHER: TaskLoad = {
  vcpus: 1,
  transfers: moving(0),
  memory: 0,
  bound: { cpu: 0.9, disk: 0, net: 0, memory: 0 },
};
/** One disk of 100 MB/s, however large the machine. */
const oneDisk = byContention(
  ({ command }) => (command[0] === 'reader' ? READER : CRUNCHER),
  ({ capacity }) => ({
    vcpus: raw(capacity.cpu) / 1000,
    most: { diskRead: 100 * MB, diskWritten: 100 * MB, netReceived: 100 * MB, netSent: 100 * MB },
    seek: 0,
  }),
);

/** Readers and crunchers by turns, a job of some tasks every five minutes. */
const mixed = (jobs: number): readonly WorkloadJob[] =>
  Array.from({ length: jobs }, (_, n) => {
    const program = n % 2 === 0 ? 'reader' : 'cruncher';
    const runtimesS = Array.from({ length: 1 + (n % 3) }, (__, i) => 600 + 10 * i);
    const job = simulatedJob(`${program}-${n}`, 300 * n, runtimesS, {
      stage: { command: [program], resources: resources(1), expectedRuntimeS: null },
    });
    return { ...job, spec: { ...job.spec, name: program } };
  });

describe('a day of mixed work', () => {
  const trace = defaultMarket(3);
  const day = (neighbours: boolean) =>
    simulated(mixed(60), {
      trace,
      market: (now) => replayMarket(trace, now),
      fromMs: plus(trace.startMs, seconds(86_400)),
      toMs: plus(trace.startMs, seconds(3 * 86_400)),
      interference: oneDisk,
      config: schedulerConfig.parse({ neighbours }),
    });

  it('tells of noisy neighbours, once it has learned who they are', async () => {
    const { events, ended } = await day(true);
    expect(ended).toBe('done');
    const noisy = events.filter((e) => e.type === 'noisy-neighbour');
    expect(noisy.length).toBeGreaterThan(0);
    // At most one for each task of a reader.
    expect(noisy.length).toBeLessThanOrEqual(60);
    for (const { text, data, job } of noisy) {
      expect(job).not.toBeNull();
      expect(text).toMatch(/^(main\[\d+\]|\d+ tasks of main) ran (up to )?\d\.\dx longer beside .*\/reader\//);
      expect(data['factor']).toBeGreaterThanOrEqual(1.3);
    }
  });

  it('costs no more, and keeps readers apart', async () => {
    const [aware, unaware] = [await day(true), await day(false)];
    const noisy = (of: typeof aware): number => of.events.filter((e) => e.type === 'noisy-neighbour').length;
    expect(noisy(aware)).toBeLessThan(noisy(unaware));
    const billed = ({ collected }: typeof aware): number => Object.values(collected.usd).reduce((a, b) => a + b, 0);
    expect(billed(aware)).toBeLessThan(billed(unaware));
  });
});
