import type { RunOutcome } from './outcome.ts';

/** The preset that knows the future: others are held against it, and nobody can choose it. */
export const ORACLE = 'oracle';

/**
 * Runs of a comparison, with what an oracle knows besides: how every other preset of the comparison would have fared in
 * the same cell. Where one leaves less undone or missed, or as much at a lower cost, the oracle does as that one did.
 * So it is never dearer than a preset that it is compared with. O(runs).
 */
export function inHindsight(runs: readonly RunOutcome[]): readonly RunOutcome[] {
  const cells = Map.groupBy(runs, (r) => `${r.fromMs}/${r.seed}`);
  return runs.map((run) => {
    if (run.preset !== ORACLE || run.ended === 'aborted') return run;
    const best = (cells.get(`${run.fromMs}/${run.seed}`) ?? []).reduce(
      (kept, other) => (isBetter(other, kept) ? other : kept),
      run,
    );
    return best === run ? run : { ...best, preset: ORACLE };
  });
}

function isBetter(other: RunOutcome, than: RunOutcome): boolean {
  const [a, b] = [other.totals, than.totals];
  if (other.ended === 'aborted' || a.jobs !== b.jobs || a.refused !== b.refused) return false;
  const left = (t: typeof a): number => t.missed + t.unfinished + t.failed;
  return left(a) < left(b) || (left(a) === left(b) && a.billedUsd < b.billedUsd);
}
