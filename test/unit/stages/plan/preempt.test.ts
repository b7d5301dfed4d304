import { describe, expect, it } from '@jest/globals';
import {
  EPSILON_SHARE,
  EPSILON_USD,
  preemptOptions,
  preemptible,
  slotsLeft,
} from '../../../../lib/stages/plan/preempt.ts';
import type { Preemptible } from '../../../../lib/stages/plan/preempt.ts';
import { HOUR_S, at, handmade, type Running } from '../../../support/handmade-plan.ts';

/** One task of a quarter of a machine at $0.20 per hour, an hour long. */
function appraised(over: Partial<Running> = {}, config = {}): readonly Preemptible[] {
  const running = { name: 'r', instance: 'i-1', tasks: 1, ...over };
  const input = handmade({ running: [running], config: { slotS: 600, startDelayMeanS: 100, restoreS: 20, ...config } });
  return [...input.snapshot.instances.values()].flatMap((view) =>
    view.attempts.flatMap((attempt) => preemptible(attempt, view, input) ?? []),
  );
}
const USD_PER_S = (0.2 * 0.25) / 3600;

describe('the cost of a stop', () => {
  it('is the worth of running on, the work and starts again, and a little more', () => {
    // 1,800 s done, of which 600 s are kept: 1,200 s again, 100 s of start-up and 20 s of restoring; 1,800 s are left.
    const [one] = appraised({ doneS: 1800, keptS: 600 });
    const again = (1200 + 100 + 20) * USD_PER_S;
    const little = EPSILON_USD + EPSILON_SHARE * 1800 * USD_PER_S;
    expect(one?.costUsd).toBeCloseTo(0.05 + again + little, 9);
    expect(one?.slots).toBe(3);
  });

  it('forgoes the worth at the time when it would end', () => {
    const points = [
      { atMs: at(0), usd: 1 },
      { atMs: at(HOUR_S), usd: 0 },
    ];
    const worth = { curve: { points }, taskDeadlineMs: null, latestSafeStartMs: null, reason: 'falls' };
    const [one] = appraised({ doneS: 1800, keptS: 1800, worth });
    expect(one?.costUsd).toBeCloseTo(0.5 + 120 * USD_PER_S + EPSILON_USD + EPSILON_SHARE * 1800 * USD_PER_S, 9);
  });

  it('is not asked of deadline work', () => {
    expect(appraised({ class: 'deadline' })).toEqual([]);
  });

  it('counts whole slots that are left, at least one, and no rounding for a slot', () => {
    expect([0, 1, 600, 600 + 1e-8, 601, 1200].map((s) => slotsLeft(s, 600))).toEqual([1, 1, 1, 1, 2, 2]);
  });
});

describe('options of alike attempts', () => {
  const [one] = appraised();
  const alike = (id: string, costUsd: number, equivalenceClass: string): readonly Preemptible[] =>
    one === undefined
      ? []
      : [
          {
            ...one,
            running: { ...one.running, attempt: { ...one.running.attempt, id: id as typeof one.running.attempt.id } },
            costUsd,
            equivalenceClass,
          },
        ];

  it('are ordered by class, the cheapest attempt first, then by its id, and cost the dearest', () => {
    const all = [
      ...alike('q', 1, 'z'),
      ...alike('c', 2, 'a'),
      ...alike('b', 3, 'a'),
      ...alike('d', 1, 'a'),
      ...alike('a', 2, 'a'),
    ];
    for (const order of [all, [...all].reverse()]) {
      expect(preemptOptions(order)).toMatchObject([
        { equivalenceClass: 'a', attempts: ['d', 'a', 'c', 'b'], costUsd: 3 },
        { equivalenceClass: 'z', attempts: ['q'], costUsd: 1 },
      ]);
    }
  });
});
