/**
 * Axes of the program's grid, in hours, and positions on them. Work left has at most 60 + MOST_WORK points, slack some
 * 40 to 110; with 5 places and 6 ages a program has 0.05 to 0.8 million values and is solved in 2 to 20 ms.
 */

/** Growth of the steps, as a share of the value, where they may be coarse. */
const WORK_GROWTH = 0.06;
const SLACK_GROWTH = 0.08;
/** Smallest step of work left: two minutes. */
const LEAST_WORK_H = 1 / 30;
/** Largest step of work left, hours: short against the spells. Very long work has MOST_WORK steps instead. */
const MOST_STEP_H = 0.5;
const MOST_WORK = 256;
/** Largest fine step of slack, six minutes, and the change-overs up to which slack is fine. */
const FINE_SLACK_H = 0.1;
const FINE_CHANGEOVERS = 2;

/** Steps are divided by it: 1, and more to measure the error. */
export type Fineness = number;

/** Work left: fine near the end, even further off. */
export function workAxis(mostH: number, fineness: Fineness): Float64Array {
  const most = Math.max(MOST_STEP_H, mostH / MOST_WORK);
  return axis(mostH, (at) => Math.min(most, Math.max(LEAST_WORK_H, WORK_GROWTH * at)) / fineness);
}

/**
 * Slack: steps of at most half a change-over and FINE_SLACK_H up to two change-overs, then growing. One point is a
 * change-over.
 */
export function slackAxis(mostH: number, changeoverH: number, fineness: Fineness): Float64Array {
  const fine = changeoverH / Math.max(2, Math.ceil(changeoverH / FINE_SLACK_H));
  let step = fine;
  return axis(mostH, (at) => {
    if (at > FINE_CHANGEOVERS * changeoverH + 1e-9) step = Math.max(fine, SLACK_GROWTH * at);
    return step / fineness;
  });
}

function axis(most: number, stepAt: (at: number) => number): Float64Array {
  const points = [0];
  for (let at = 0; at < most - 1e-9;) {
    at += stepAt(at);
    points.push(at);
  }
  return Float64Array.from(points);
}

/** Index of the last point at or before `at`, clamped so that one follows. O(log points). */
export function below(points: Float64Array, at: number): number {
  let low = 0;
  let high = points.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((points[middle] ?? 0) <= at) low = middle;
    else high = middle;
  }
  return low;
}

/** Share of the way from point `index` to the next, in [0, 1]. */
export function shareAt(points: Float64Array, index: number, at: number): number {
  const from = points[index] ?? 0;
  const to = points[index + 1] ?? from;
  return to > from ? Math.min(1, Math.max(0, (at - from) / (to - from))) : 0;
}

/** Position of each point less a constant: the index at or before it, -1 below the first, and the share after it. */
export interface Shift {
  readonly index: Int16Array;
  readonly share: Float64Array;
}

export function shifted(points: Float64Array, by: number): Shift {
  const isBelow = (at: number): boolean => at < by - 1e-9;
  const index = Int16Array.from(points, (at) => (isBelow(at) ? -1 : below(points, at - by + 1e-9)));
  const share = Float64Array.from(points, (at, i) => (isBelow(at) ? 0 : shareAt(points, index[i] ?? 0, at - by)));
  return { index, share };
}
