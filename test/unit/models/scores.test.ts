import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  drawnScores,
  intervalOf,
  precisionRecall,
  reliability,
  RESAMPLES,
  scores,
} from '../../../lib/models/evaluation/scores.ts';

const PARAMS = { seed: 11, numRuns: 200 };
const one = (p: readonly number[], lost: readonly number[]) => scores({ p, lost, day: p.map(() => 0) });

/**
 * Average precision by its definition: at each distinct threshold the precision, weighted by the recall gained there.
 */
function averagePrecision(p: readonly number[], lost: readonly number[]): number {
  const losses = lost.filter((y) => y === 1).length;
  const thresholds = [...new Set(p)].sort((a, b) => b - a);
  let before = 0;
  return thresholds.reduce((sum, t) => {
    const said = p.flatMap((x, i) => (x >= t ? [lost[i] ?? 0] : []));
    const hits = said.filter((y) => y === 1).length;
    const gained = hits - before;
    before = hits;
    return sum + (gained / losses) * (hits / said.length);
  }, 0);
}

describe('scores of forecasts', () => {
  it('are those of a table counted by hand', () => {
    // Said lost: 0.9 (lost), 0.6 (lived). Said to live: 0.4 (lost), 0.1 (lived), 0.1 (lived).
    const found = one([0.9, 0.6, 0.4, 0.1, 0.1], [1, 0, 1, 0, 0]);
    expect(found.accuracy).toBeCloseTo(3 / 5, 12);
    expect(found.f1).toBeCloseTo(2 / (2 + 1 + 1), 12);
    expect(found.brier).toBeCloseTo((0.01 + 0.36 + 0.36 + 0.01 + 0.01) / 5, 12);
    expect(found.aucPr).toBeCloseTo((1 / 1 + 2 / 3) / 2, 12);
    // Bins: 0.9 against 1; 0.6 against 0; 0.4 against 1; 0.2 said of two that lived.
    expect(found.ece).toBeCloseTo((0.1 + 0.6 + 0.6 + 0.2) / 5, 12);
  });

  it('take equal probabilities as one threshold', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 1 })), { minLength: 1 }),
        (rows) => {
          const [p, lost] = [rows.map(([x]) => x / 6), rows.map(([, y]) => y)];
          fc.pre(lost.includes(1));
          expect(one(p, lost).aucPr).toBeCloseTo(averagePrecision(p, lost), 9);
        },
      ),
      PARAMS,
    );
  });

  it('have no average precision where nothing is lost, and no F1 where nothing is said either', () => {
    expect(one([0.1, 0.2], [0, 0])).toMatchObject({ accuracy: 1, f1: NaN, aucPr: NaN });
  });

  it('draw whole days: a day that is all right and one that is all wrong give 0, a half or 1', () => {
    const judged = { p: [0.9, 0.9, 0.9, 0.9], lost: [1, 1, 0, 0], day: [0, 0, 1, 1] };
    const { value, draws } = drawnScores(judged, 3);
    expect(value.accuracy).toBe(0.5);
    expect(draws).toHaveLength(RESAMPLES);
    const counts = Map.groupBy(draws, (d) => d.accuracy);
    expect([...counts.keys()].sort()).toEqual([0, 0.5, 1]);
    // Binomial(200, 1/2) within six standard deviations.
    expect(Math.abs((counts.get(0.5)?.length ?? 0) - 100)).toBeLessThan(43);
    expect(drawnScores(judged, 3).draws).toEqual(draws);
    const accuracy = draws.map((d) => d.accuracy);
    expect(intervalOf(value.accuracy, accuracy)).toEqual({ value: 0.5, low: 0, high: 1 });
  });

  it('give plots their points', () => {
    const p = [0.95, 0.91, 0.3, 0.3, 0.05];
    const lost = [1, 0, 1, 0, 0];
    expect(reliability({ p, lost })).toEqual([
      { said: 0.05, was: 0, share: 0.2 },
      { said: 0.3, was: 0.5, share: 0.4 },
      { said: (0.95 + 0.91) / 2, was: 0.5, share: 0.4 },
    ]);
    const curve = precisionRecall({ p, lost, day: [0, 0, 0, 0, 0] }, 100);
    expect(curve[0]).toEqual([0.5, 1]);
    expect(curve).toContainEqual([1, 0.5]);
    expect(curve.at(-1)).toEqual([1, 2 / 5]);
  });
});
