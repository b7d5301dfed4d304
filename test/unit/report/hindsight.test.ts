import { describe, expect, it } from '@jest/globals';
import { compare } from '../../../lib/report/comparison.ts';
import { inHindsight } from '../../../lib/report/hindsight.ts';
import type { RunOutcome, Totals } from '../../../lib/report/outcome.ts';
import { outcome } from './outcomes.ts';

const DAY_MS = 86_400_000;
const run = (preset: string, window: number, totals: Partial<Totals>, over: Partial<RunOutcome> = {}): RunOutcome =>
  outcome({ preset, fromMs: window * DAY_MS, totals: { jobs: 9, succeeded: 9, ...totals }, ...over });
const usd = (runs: readonly RunOutcome[]): readonly number[] =>
  runs.filter((r) => r.preset === 'oracle').map((r) => r.totals.billedUsd);

describe('an oracle in hindsight', () => {
  it('does as the cheapest preset of its cell did, where that is cheaper', () => {
    const runs = [
      run('a', 1, { billedUsd: 4 }),
      run('oracle', 1, { billedUsd: 5 }),
      run('b', 1, { billedUsd: 3 }),
      run('a', 2, { billedUsd: 9 }),
      run('oracle', 2, { billedUsd: 5 }),
    ];
    const seen = inHindsight(runs);
    expect(usd(seen)).toEqual([3, 5]);
    expect(seen.filter((r) => r.preset !== 'oracle')).toEqual(runs.filter((r) => r.preset !== 'oracle'));
    expect(compare(seen).presets.find((p) => p.preset === 'a')?.toOracle?.value).toBe(13 / 8);
  });

  it('takes fewer missed deadlines and less unfinished work before a lower cost', () => {
    const late = run('oracle', 1, { billedUsd: 1, missed: 1 });
    expect(usd(inHindsight([late, run('a', 1, { billedUsd: 7 })]))).toEqual([7]);
    expect(usd(inHindsight([late, run('a', 1, { billedUsd: 0.5, missed: 1, unfinished: 1 })]))).toEqual([1]);
  });

  it('leaves runs of other work, and aborted ones, alone', () => {
    const own = run('oracle', 1, { billedUsd: 5 });
    expect(usd(inHindsight([own, run('a', 1, { billedUsd: 1, jobs: 8 })]))).toEqual([5]);
    expect(usd(inHindsight([own, run('a', 1, { billedUsd: 1 }, { ended: 'aborted' })]))).toEqual([5]);
    expect(usd(inHindsight([own, run('a', 1, { billedUsd: 1 }, { seed: 2 })]))).toEqual([5]);
  });
});
