import { lte, msBetween, type EpochMs } from '../kernel/units.ts';
import type { UtilityCurve } from './plan.ts';

/** Worth of finishing at `at`. */
export function worthAt(curve: UtilityCurve, at: EpochMs): number {
  const { points } = curve;
  let before = points[0];
  if (before === undefined || lte(at, before.atMs)) return before?.usd ?? 0;
  for (const point of points) {
    if (lte(at, point.atMs)) {
      const span = msBetween(before.atMs, point.atMs);
      return span <= 0 ? point.usd : before.usd + ((point.usd - before.usd) * msBetween(before.atMs, at)) / span;
    }
    before = point;
  }
  return before.usd;
}
