import type { Doubles } from '../../domain/distribution.ts';
import { expectUnlimited, type InterruptionCurve } from '../../domain/forecast.ts';

/**
 * An interruption curve with its integral, for closed forms: F(t) = P(interrupted within t) and alive(t) = the integral
 * of 1 - F from 0 to t, the expected time that an instance lives within t. The expected time of the interruptions
 * within t follows: E[T; T <= t] = alive(t) - t (1 - F(t)).
 */
export interface CurveTable {
  /** Knots, seconds, from 0. */
  readonly atS: Float64Array;
  readonly lost: Float64Array;
  readonly aliveS: Float64Array;
}

/** F and alive at one time. */
export interface CurvePoint {
  lost: number;
  aliveS: number;
}

/**
 * Same reading of the curve as pInterruptedWithin: linear between horizons, constant hazard beyond the last. Throws
 * `internal` for a curve that may not be asked about any time. O(horizons).
 */
export function tabulate(curve: InterruptionCurve, doubles: Doubles): CurveTable {
  expectUnlimited(curve);
  const n = curve.horizonS.length;
  const atS = doubles.take(n + 1);
  const lost = doubles.take(n + 1);
  const aliveS = doubles.take(n + 1);
  for (let i = 0; i < n; i++) {
    const to = curve.horizonS[i] ?? 0;
    const p = curve.pInterrupted[i] ?? 0;
    const span = to - (atS[i] ?? 0);
    atS[i + 1] = to;
    lost[i + 1] = p;
    aliveS[i + 1] = (aliveS[i] ?? 0) + span * (1 - (p + (lost[i] ?? 0)) / 2);
  }
  return { atS, lost, aliveS };
}

/**
 * Reads the table at `s` into `out`. `from`: a knot that this function returned for a time that was no later, 1 for
 * none. Returns the knot that it stopped at, so that ascending times cost O(knots) together.
 */
export function readCurve(table: CurveTable, s: number, out: CurvePoint, from = 1): number {
  const { atS, lost, aliveS } = table;
  const last = atS.length - 1;
  let i = from;
  while (i < last && s > (atS[i] ?? 0)) i++;
  const to = atS[i] ?? 0;
  const p1 = lost[i] ?? 0;
  if (s <= to) {
    const fromS = atS[i - 1] ?? 0;
    const p0 = lost[i - 1] ?? 0;
    const p = s <= 0 ? 0 : p0 + ((p1 - p0) * (s - fromS)) / (to - fromS);
    out.lost = p;
    out.aliveS = (aliveS[i - 1] ?? 0) + Math.max(0, s - fromS) * (1 - (p0 + p) / 2);
    return i;
  }
  const survived = 1 - p1;
  const before = aliveS[i] ?? 0;
  if (survived <= 0) {
    out.lost = 1;
    out.aliveS = before;
  } else if (survived >= 1) {
    out.lost = 0;
    out.aliveS = before + s - to;
  } else {
    const alive = survived ** (s / to);
    out.lost = 1 - alive;
    out.aliveS = before + ((alive - survived) * to) / Math.log(survived);
  }
  return i;
}
