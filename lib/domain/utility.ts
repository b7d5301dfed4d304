import { raw, type EpochMs } from '../kernel/units.ts';
import type { UtilityCurve } from './plan.ts';

/** Worth of finishing at `at`. */
export function worthAt(curve: UtilityCurve, at: EpochMs): number {
  const { points } = curve;
  const t = raw(at);
  let before = points[0];
  if (before === undefined || t <= raw(before.atMs)) return before?.usd ?? 0;
  for (const point of points) {
    if (t <= raw(point.atMs)) {
      const span = raw(point.atMs) - raw(before.atMs);
      return span <= 0 ? point.usd : before.usd + ((point.usd - before.usd) * (t - raw(before.atMs))) / span;
    }
    before = point;
  }
  return before.usd;
}
