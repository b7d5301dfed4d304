/**
 * Compares observed with forecast interruptions. Each instance has an expectation: the hazard of its forecast at
 * purchase, summed over the time it was held, whatever ended it (a release or a loss of another type only ends the
 * watch). Observed less expected then has mean 0 for correct forecasts: Andersen, Borgan, Gill, Keiding, "Statistical
 * Models Based on Counting Processes", 1993, II.4. Instances of a pool that are taken at once share the cause, so they
 * count as one event of that size for the interval. For capacity alone, the hazard of capacity is compared with
 * interruptions for lack of it; an interruption by the price then only ends the watch.
 */
import type { PoolId } from '../../kernel/ids.ts';
import { msBetween, raw, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { ForecastAtPurchase, Instance } from '../../domain/instance.ts';
import { rateInterval } from './rate-interval.ts';

export interface Drift {
  readonly instances: number;
  readonly hours: number;
  readonly expected: number;
  readonly observed: number;
  /** Observed by expected, with its 95 % interval; 1 where forecasts are right. Null where nothing was expected. */
  readonly ratio: { readonly value: number; readonly low: number; readonly high: number } | null;
}

export interface Drifts {
  readonly overall: Drift;
  /** By pool, the most expected interruptions first. */
  readonly pools: readonly { readonly pool: PoolId; readonly drift: Drift }[];
}

type Watched = Pick<Instance, 'pool' | 'forecast' | 'launchedMs' | 'endedMs' | 'endCause' | 'marketCause'>;

/** Compared interruptions: of any cause, or for lack of capacity. */
export type DriftRisk = 'any' | 'capacity';
export interface DriftQuestion {
  readonly risk: DriftRisk;
  /** Only instances with forecasts of this version, `history` or (of capacity) `observed`; null: all. */
  readonly by: string | null;
}
/** A forecast of certainty would expect infinitely many. */
const MOST_P = 1 - 1e-6;

/** Expected interruptions of an instance until its end, or now, by its forecast at purchase; null: it has none. */
export function expectedInterruptions(instance: Watched, now: EpochMs, { risk, by }: DriftQuestion): number | null {
  const { launchedMs, endedMs } = instance;
  const forecast = forecastOf(instance, risk);
  if (forecast === null || launchedMs === null || (by !== null && forecast.by !== by)) return null;
  return hazardWithin(forecast, Math.max(0, secondsBetween(launchedMs, endedMs ?? now)));
}

/** Null if this risk was not recorded. */
function forecastOf({ forecast }: Watched, risk: DriftRisk): Omit<ForecastAtPurchase, 'capacity'> | null {
  if (forecast === undefined) return null;
  if (risk === 'any') return forecast;
  const { horizonS, capacity } = forecast;
  return capacity === undefined ? null : { horizonS, ...capacity };
}

const isTaken = ({ endCause, marketCause }: Watched, risk: DriftRisk): boolean =>
  endCause === 'interrupted' && (risk === 'any' || marketCause === 'capacity');

/**
 * Expected losses to the price alone until the instance's end, by its forecast at purchase: the two risks compete, so
 * their hazards add up. Null without a forecast of both.
 */
export function expectedPriceLosses({ forecast, launchedMs }: Watched, endedMs: EpochMs): number | null {
  if (forecast?.capacity === undefined || launchedMs === null) return null;
  const heldS = Math.max(0, secondsBetween(launchedMs, endedMs));
  const { horizonS, capacity } = forecast;
  return Math.max(0, hazardWithin(forecast, heldS) - hazardWithin({ horizonS, ...capacity }, heldS));
}

/**
 * -log P(kept for `s`): the hazard is constant between horizons, and after the last one as from the beginning to there.
 */
function hazardWithin({ horizonS, pInterrupted }: Omit<ForecastAtPurchase, 'capacity'>, s: number): number {
  let [fromS, fromHazard] = [0, 0];
  for (const [i, toS] of horizonS.entries()) {
    const toHazard = -Math.log1p(-Math.min(MOST_P, pInterrupted[i] ?? 0));
    if (s <= toS) return fromHazard + ((toHazard - fromHazard) * (s - fromS)) / (toS - fromS);
    [fromS, fromHazard] = [toS, toHazard];
  }
  return fromS === 0 ? 0 : (fromHazard * s) / fromS;
}

/** O(instances). */
export function driftOf(instances: Iterable<Watched>, now: EpochMs, asked: DriftQuestion): Drifts {
  const sums = new Map<PoolId, Sum>();
  const overall = newSum();
  for (const instance of instances) {
    const { pool, launchedMs, endedMs } = instance;
    const expected = expectedInterruptions(instance, now, asked);
    if (expected === null || launchedMs === null) continue;
    const of = sums.get(pool) ?? newSum();
    sums.set(pool, of);
    for (const sum of [of, overall]) {
      sum.instances++;
      sum.hours += Math.max(0, msBetween(launchedMs, endedMs ?? now)) / 3_600_000;
      sum.expected += expected;
      if (isTaken(instance, asked.risk)) sum.observed++;
    }
    if (isTaken(instance, asked.risk) && endedMs !== null) of.takenMs.push(raw(endedMs));
  }
  const pools = [...sums].map(([pool, sum]) => ({ pool, drift: driftFrom(sum, takenAtOnce(sum)) }));
  const atOnce = [...sums.values()].flatMap(takenAtOnce);
  return { overall: driftFrom(overall, atOnce), pools: pools.sort((a, b) => b.drift.expected - a.drift.expected) };
}

interface Sum {
  instances: number;
  hours: number;
  expected: number;
  observed: number;
  /** Interruption times of the instances; of a pool alone. */
  readonly takenMs: number[];
}
const newSum = (): Sum => ({ instances: 0, hours: 0, expected: 0, observed: 0, takenMs: [] });

/** Width of one event, EC2's notice: all its instances are gone within it. */
export const AT_ONCE_MS = 120_000;

/** Instances of the pool taken in each event. */
function takenAtOnce({ takenMs }: Sum): number[] {
  const counts: number[] = [];
  let firstMs = -Infinity;
  for (const atMs of takenMs.toSorted((a, b) => a - b)) {
    if (atMs - firstMs > AT_ONCE_MS) {
      firstMs = atMs;
      counts.push(0);
    }
    counts.push((counts.pop() ?? 0) + 1);
  }
  return counts;
}

function driftFrom({ takenMs: _, ...sum }: Sum, atOnce: readonly number[]): Drift {
  const { expected, observed } = sum;
  if (expected <= 0) return { ...sum, ratio: null };
  const { low, high } = rateInterval(atOnce);
  return { ...sum, ratio: { value: observed / expected, low: low / expected, high: high / expected } };
}
