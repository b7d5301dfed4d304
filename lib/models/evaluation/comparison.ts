/**
 * The better of two forecasts, paired: both answer the same bids. Bids of one day share its spikes, so days are
 * resampled; fewer than a week of them allows no conclusion. In a censored data set known rows stand for the others
 * (censoring.ts).
 */
import { randomStream } from '../../kernel/random.ts';
import { LEAST_WATCHED, watchingOf, type Weighing } from './censoring.ts';
import type { Curves } from './curves.ts';
import { outcomeWithin, type DatasetRows } from './dataset-rows.ts';
import { intervalOf, type Interval } from './scores.ts';

const DAY_MS = 86_400_000;
const RESAMPLES = 2000;
export const LEAST_DAYS = 7;

export interface Difference extends Interval {
  readonly horizonsS: readonly number[];
  readonly bids: number;
  readonly days: number;
  /** By the whole interval; `undecided`: it holds 0, or there are too few days. */
  readonly verdict: 'better' | 'worse' | 'undecided';
}

/**
 * Brier score of `mine` less that of `other`: below 0 if mine is better. The squared errors of a bid are averaged over
 * the horizons that both forecast and at which its outcome is known, so that a bid counts once. Interval: 95 %,
 * bootstrap over days. `asked`: rows that both answered. O(rows log rows + rows x horizons + resamples x days).
 */
export function brierDifference(
  rows: DatasetRows,
  asked: readonly number[],
  [mine, other]: readonly [Curves, Curves],
  seed: number,
): Difference {
  const { weight, share } = watchingOf(rows, asked);
  const isCensored = rows.manifest.censored === true;
  const horizonsS = mine.horizonsS.filter((h) => other.horizonsS.includes(h) && share(h) >= LEAST_WATCHED);
  const sums = new Map<number, { sum: number; bids: number }>();
  for (const row of asked) {
    const difference = ofBid(rows, row, { mine, other, horizonsS, weight, isCensored });
    if (difference === null) continue;
    const date = Math.floor((rows.atMs[row] ?? 0) / DAY_MS);
    const before = sums.get(date) ?? { sum: 0, bids: 0 };
    sums.set(date, { sum: before.sum + difference, bids: before.bids + 1 });
  }
  const days = [...sums.values()];
  const mean = (of: readonly { readonly sum: number; readonly bids: number }[]): number =>
    of.reduce((s, d) => s + d.sum, 0) / of.reduce((n, d) => n + d.bids, 0);
  const random = randomStream(seed, 'models/comparison/days');
  const draw = (): (typeof days)[number] => days[Math.floor(random() * days.length)] ?? { sum: 0, bids: 0 };
  const draws = Array.from({ length: RESAMPLES }, () => mean(days.map(draw)));
  const interval = intervalOf(mean(days), draws);
  const bids = days.reduce((n, d) => n + d.bids, 0);
  return { ...interval, horizonsS, bids, days: days.length, verdict: verdictOf(interval, days.length) };
}

function verdictOf({ low, high }: Interval, days: number): Difference['verdict'] {
  if (days < LEAST_DAYS) return 'undecided';
  if (high < 0) return 'better';
  return low > 0 ? 'worse' : 'undecided';
}

interface Pair {
  readonly mine: Curves;
  readonly other: Curves;
  readonly horizonsS: readonly number[];
  readonly weight: Weighing;
  readonly isCensored: boolean;
}

/** Null if its outcome is known at no horizon; in a censored data set others stand for it there, and it counts as 0. */
function ofBid(rows: DatasetRows, row: number, { mine, other, horizonsS, weight, isCensored }: Pair): number | null {
  let sum = 0;
  let known = 0;
  for (const h of horizonsS) {
    const w = weight(row, h);
    if (w === 0) continue;
    const y = outcomeWithin(rows, row, h) === 'lost' ? 1 : 0;
    sum += w * ((at(mine, row, h) - y) ** 2 - (at(other, row, h) - y) ** 2);
    known++;
  }
  const of = isCensored ? horizonsS.length : known;
  return of === 0 ? null : sum / of;
}

const at = ({ p, horizonsS }: Curves, row: number, horizonS: number): number =>
  p[row * horizonsS.length + horizonsS.indexOf(horizonS)] ?? NaN;
