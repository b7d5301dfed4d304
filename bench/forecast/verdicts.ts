/**
 * Details behind F1 at the paper's threshold of one half. They are the best F1 of any threshold on the judged range,
 * and F1 by distance of the bid from the price. Both use hindsight, so they are not figures of a forecast. The paper
 * draws bids "with range [0.00001, 0.2]" without a distribution. Here they are drawn evenly by logarithm, and F1
 * depends on that.
 */
import type { Cell, Forecast } from '../../lib/models/evaluation/cells.ts';
import type { DatasetRows } from '../../lib/models/evaluation/dataset-rows.ts';

/** Lower ends of the decades of the bid above the price, USD per hour. */
export const DECADES_USD = [0.00001, 0.0001, 0.001, 0.01, 0.1] as const;

export interface Verdicts {
  readonly forecast: string;
  readonly best: { readonly f1: number; readonly threshold: number };
  /** F1 at one half, over bids as drawn, and weighted as if drawn evenly by delta. */
  readonly f1: number;
  readonly evenF1: number;
  /** Share lost, and F1 at one half, per decade. */
  readonly decades: readonly { readonly lost: number; readonly f1: number }[];
}

interface Called {
  readonly p: number;
  readonly lost: number;
  readonly deltaUsd: number;
}

const THRESHOLD = 0.5;

export function verdicts(rows: DatasetRows, cell: Cell, forecasts: readonly Forecast[]): Verdicts[] {
  const { features } = rows.manifest;
  const column = features.indexOf('bidDeltaUsd');
  return forecasts.map(({ name, p }) => {
    const called = cell.rows.map((row, i) => ({
      p: p[row] ?? NaN,
      lost: cell.lost[i] ?? 0,
      deltaUsd: rows.features[row * features.length + column] ?? NaN,
    }));
    return {
      forecast: name,
      best: best(called),
      f1: f1Of(called, () => 1),
      // Drawn evenly by logarithm, a delta has a density of one.
      evenF1: f1Of(called, ({ deltaUsd }) => deltaUsd),
      decades: DECADES_USD.map((leastUsd, d) => {
        const beyondUsd = DECADES_USD[d + 1] ?? Infinity;
        const of = called.filter(({ deltaUsd }) => deltaUsd >= leastUsd && deltaUsd < beyondUsd);
        return { lost: of.reduce((sum, c) => sum + c.lost, 0) / of.length, f1: f1Of(of, () => 1) };
      }),
    };
  });
}

function f1Of(called: readonly Called[], weight: (c: Called) => number): number {
  let [hits, alarms, losses] = [0, 0, 0];
  for (const c of called) {
    const w = weight(c);
    losses += w * c.lost;
    if (c.p < THRESHOLD) continue;
    alarms += w;
    hits += w * c.lost;
  }
  return (2 * hits) / (alarms + losses);
}

/** O(bids log bids). */
function best(called: readonly Called[]): { readonly f1: number; readonly threshold: number } {
  const sorted = called.toSorted((a, b) => b.p - a.p);
  const losses = called.reduce((sum, c) => sum + c.lost, 0);
  let found = { f1: 0, threshold: 1 };
  let hits = 0;
  for (const [i, { p, lost }] of sorted.entries()) {
    hits += lost;
    // Bids with equal probability get the same verdict.
    if (p === sorted[i + 1]?.p) continue;
    const f1 = (2 * hits) / (i + 1 + losses);
    if (f1 > found.f1) found = { f1, threshold: p };
  }
  return found;
}
