import { describe, expect, it } from '@jest/globals';
import { distribution } from '../../../../lib/domain/distribution.ts';
import { late, mantri, type StageSeen } from '../../../../lib/policy/speculation/copy-rules.ts';
import type { RunningTask } from '../../../../lib/domain/snapshot.ts';

const seen = (ranS: readonly number[], over: Partial<StageSeen> = {}): StageSeen => ({
  running: ranS.map((s) => ({ running: { name: `ran ${s}` } as unknown as RunningTask, ranS: s })),
  anew: distribution([
    [10, 3],
    [20, 1],
  ]),
  beta: 1.5,
  ...over,
});
const namesOf = (rule: typeof mantri, of: StageSeen) =>
  rule.stragglers(of).map(({ running }) => (running as unknown as { name: string }).name);

describe('Mantri’s rule', () => {
  it('copies where more than twice the time of a copy is left with probability above 0.25', () => {
    // P = 0.75 (e / (e + 20))^1.5 + 0.25 (e / (e + 40))^1.5: 0.24 at 15 s, 0.26 at 16 s.
    expect(namesOf(mantri, seen([5, 10, 15, 16, 100]))).toEqual(['ran 16', 'ran 100']);
  });

  it('copies nothing that has run for no longer than half of its siblings, whatever the tail', () => {
    expect(namesOf(mantri, seen([10], { beta: 0.1 }))).toEqual([]);
  });

  it('copies nothing where the tail is light', () => {
    expect(namesOf(mantri, seen([11, 15, 40], { beta: 50 }))).toEqual([]);
  });

  it('has finite figures for a tail without a mean, and none for tasks of no length', () => {
    const [one] = mantri.stragglers(seen([100], { beta: 0.9 }));
    expect(Number.isFinite(one?.leftS)).toBe(true);
    expect(one?.reason).not.toMatch(/NaN|Infinity/);
    expect(namesOf(mantri, seen([0, 1e7], { anew: distribution([[0, 1]]) }))).toEqual([]);
  });
});

describe('LATE', () => {
  it('copies the slowest quarter', () => {
    expect(namesOf(late, seen([5, 10, 11, 100]))).toEqual(['ran 11', 'ran 100']);
  });
});
