/**
 * Weights for censored data: rows with a known outcome stand for the unknown ones, each by the inverse of the chance
 * that it was still watched at its outcome. Graf, Schmoor, Sauerbrei, Schumacher, "Assessment and comparison of
 * prognostic classification schemes for survival data", Statistics in Medicine 18, 1999, section 3: the Brier score so
 * weighted has the mean of a full watch, if the end of watching is independent of the outcome.
 */
import { outcomeWithin, type DatasetRows } from './dataset-rows.ts';

/** Weight of a row at a horizon; 0: its outcome there is unknown. */
export type Weighing = (row: number, horizonS: number) => number;

export interface Watching {
  readonly weight: Weighing;
  /** P(watched for this many seconds). */
  readonly share: (s: number) => number;
}

/** Below this share watched a few rows would stand for all: such horizons are not judged. */
export const LEAST_WATCHED = 0.1;

/** Without censoring each known row counts once. O(rows log rows). */
export function watchingOf(rows: DatasetRows, asked: readonly number[]): Watching {
  if (rows.manifest.censored !== true) {
    return { weight: (row, h) => (outcomeWithin(rows, row, h) === 'unknown' ? 0 : 1), share: () => 1 };
  }
  const share = stillWatched(rows, asked);
  const weight: Weighing = (row, horizonS) => {
    const outcome = outcomeWithin(rows, row, horizonS);
    if (outcome === 'unknown') return 0;
    return 1 / share(outcome === 'lost' ? (rows.lossS[row] ?? NaN) : horizonS);
  };
  return { weight, share };
}

/** Kaplan and Meier's estimate of the watched time of rows, censored by losses. */
function stillWatched({ lossS, watchedS }: DatasetRows, asked: readonly number[]): (s: number) => number {
  const isLost = (row: number): boolean => (lossS[row] ?? Infinity) < Infinity;
  const untilS = (row: number): number => (isLost(row) ? lossS[row] : watchedS[row]) ?? 0;
  // At equal times a loss comes before an end of watching.
  const order = [...asked].sort((a, b) => untilS(a) - untilS(b) || Number(isLost(b)) - Number(isLost(a)));
  const times: number[] = [];
  const shares: number[] = [];
  let share = 1;
  order.forEach((row, i) => {
    if (isLost(row)) return;
    share *= 1 - 1 / (order.length - i);
    times.push(untilS(row));
    shares.push(share);
  });
  return (s) => {
    const ended = firstNotBelow(times, s);
    return ended === 0 ? 1 : (shares[ended - 1] ?? 0);
  };
}

/** Place of the first of ascending numbers that is `s` or more. */
function firstNotBelow(ascending: readonly number[], s: number): number {
  let [from, to] = [0, ascending.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((ascending[middle] ?? Infinity) < s) from = middle + 1;
    else to = middle;
  }
  return from;
}
