import { describe, expect, it } from '@jest/globals';
import { epochMs, raw, seconds } from '../../../lib/kernel/units.ts';
import type { RunConditions, TrueRuntime } from '../../../lib/drivers/sim/truth.ts';
import { simulated, simulatedJob } from '../../support/simulated.ts';
import { calmTrace, SAVES } from '../../support/mixed-workload.ts';
import { resources } from '../../support/builders.ts';
import { replayMarket } from '../../../lib/drivers/local/market/replay.ts';
import { Pacing } from '../../../lib/drivers/sim/pacing.ts';

/** Running times that depend on what a task runs as, on, and beside. */

const text = (events: readonly { readonly text: string; readonly atMs: unknown }[]) =>
  events.map((e) => `${String(e.atMs)} ${e.text}`);

/** Start and end of each attempt, seconds from the first start. */
async function runs(
  runtimesS: readonly number[],
  runtime: TrueRuntime,
  stage: Parameters<typeof simulatedJob>[3] = {},
) {
  const { events, ended } = await simulated([simulatedJob('j', 0, runtimesS, stage)], {
    runtime,
    setupS: seconds(10),
    trace: calmTrace,
    market: (now) => replayMarket(calmTrace, now),
  });
  expect(ended).toBe('done');
  const at = new Map<string, number>();
  for (const e of events) {
    const { attempt } = e.data as { attempt?: string };
    if (attempt !== undefined && e.type.startsWith('attempt-'))
      at.set(`${e.type} ${attempt.split('.').slice(2).join('.')}`, raw(e.atMs) / 1000);
  }
  return at;
}

describe('true running times', () => {
  it('are the numbers of the workload by default, event for event', async () => {
    const jobs = [
      simulatedJob('a', 0, [600, 900, 3000], { stage: { checkpoint: SAVES } }),
      simulatedJob('b', 30, [60, 60]),
    ];
    const plain = await simulated(jobs);
    const asked: RunConditions[] = [];
    const same = await simulated(jobs, {
      runtime: (of) => {
        asked.push(of);
        return of.runtimeS;
      },
    });
    expect(text(same.events)).toEqual(text(plain.events));
    expect(asked.length).toBeGreaterThan(5);
    expect(new Set(asked.map((of) => of.type.name))).toEqual(new Set(['c5.xlarge']));
    expect(asked.some((of) => of.neighbours.length > 0)).toBe(true);
  });

  it('may depend on the task, its attempt and the instance type', async () => {
    const seen: string[] = [];
    const at = await runs([600, 600], ({ task, role, type, runtimeS }) => {
      seen.push(`${task.index}.${task.number} ${role ?? 'original'} ${type.name}`);
      return seconds(
        raw(runtimeS) *
          (task.index === 1 ? 2 : 1) *
          (task.number === 1 ? 1.5 : 1) *
          (type.name === 'c5.xlarge' ? 2 : 1),
      );
    });
    expect(new Set(seen)).toEqual(new Set(['0.1 original c5.xlarge', '1.1 original c5.xlarge']));
    const [first, second] = [0, 1].map((i) => at.get(`attempt-succeeded ${i}.1`)!);
    // 600 x 1.5 x 2, and twice that; each set up for 10 s.
    expect(second! - first!).toBeCloseTo(1800, 3);
  });

  it('may depend on what runs beside it, for as long as it does', async () => {
    // Alone at full pace, beside the other at half of it. Whichever is short ends first, and the long one goes on
    // alone.
    const together: TrueRuntime = ({ neighbours, runtimeS }) => seconds(raw(runtimeS) * (1 + neighbours.length));
    const at = await runs([300, 1000], together, { stage: { resources: resources(2) } });
    const [first, second] = [0, 1].map((i) => at.get(`attempt-succeeded ${i}.1`)!);
    // 300 s of work take 600 s; of the other 300 are done by then and 700 are left.
    expect(second! - first!).toBeCloseTo(700, 3);
  });
});

describe('a pace that changes', () => {
  it('does the work of each stretch at its pace', () => {
    const pacing = new Pacing(epochMs(10_000), { pace: 1 });
    expect(pacing.whenMs(seconds(100))).toBe(epochMs(110_000));
    expect(pacing.change(epochMs(20_000), { pace: 0.5 })).toBe(true);
    expect(pacing.change(epochMs(30_000), { pace: 0.5 })).toBe(false);
    expect(pacing.workS(epochMs(9_000))).toBe(seconds(0));
    expect(pacing.workS(epochMs(40_000))).toBe(seconds(10 + 10));
    expect(pacing.whenMs(seconds(100))).toBe(epochMs(20_000 + 90_000 * 2));
    expect(pacing.change(epochMs(40_000), { pace: 2 })).toBe(true);
    expect(pacing.whenMs(seconds(100))).toBe(epochMs(80_000));
    // What it has done already is not taken back.
    expect(pacing.whenMs(seconds(5))).toBe(epochMs(40_000));
  });

  it('is that of its beginning where it changes before that', () => {
    const pacing = new Pacing(epochMs(10_000), { pace: 1 });
    pacing.change(epochMs(5_000), { pace: 4 });
    expect(pacing.whenMs(seconds(100))).toBe(epochMs(35_000));
  });
});
