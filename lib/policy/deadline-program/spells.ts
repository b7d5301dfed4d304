/**
 * Spells of spot capacity: how soon a pool that gives capacity stops doing so, and how soon one that refuses gives some
 * again, by the age of the spell. Both hazards fall with age: a pool that has been up for a day will hardly go in the
 * next minutes, and one that has refused for a day will hardly open.
 */

import { epochMs, least, raw, type EpochMs } from '../../kernel/units.ts';
import type { Pool, PoolView } from '../../domain/pool.ts';

/** Ages, in hours, from which each hazard holds. The last one holds without end. */
export const AGE_FROM_H: readonly number[] = [0, 1 / 6, 1 / 2, 3 / 2, 9 / 2, 27 / 2];
export const AGES = AGE_FROM_H.length;

/**
 * Hazards per hour by age: ends of spells over the time observed at that age, on the tuning part of the availability
 * series of 2022 and 2023 (bench/deadline-windows.ts; 997 ends of up spells, 998 of down spells). They are the prior of
 * every pool.
 */
export const UP_PER_HOUR: readonly number[] = [1.83, 1.04, 0.68, 0.33, 0.19, 0.12];
export const DOWN_PER_HOUR: readonly number[] = [2.4, 1.03, 0.84, 0.29, 0.19, 0.063];

/** Share of the time up on the same series that was of each age. */
const UP_SHARE: readonly number[] = [0.19, 0.06, 0.19, 0.23, 0.19, 0.14];

/** Ends of up spells per hour up on the same series: the level that UP_PER_HOUR stands for as a whole. */
const UP_LEVEL_PER_HOUR = 0.78;

/** The spot capacity that a task can use, as the program knows it. */
export interface Spells {
  /** Factor on UP_PER_HOUR. */
  readonly upFactor: number;
  /** Pools that suit the task, >= 1. */
  readonly pools: number;
}

/** Index of an age. */
export function ageIndex(hours: number): number {
  let k = 0;
  while (k + 1 < AGES && hours >= (AGE_FROM_H[k + 1] ?? 0)) k++;
  return k;
}

/** Probabilities of the ages of a spell. */
export type Ages = readonly number[];

/**
 * Ages of an up spell that is found at some time, at most `mostHours` old: longer spells are found more often. A pool
 * that has just refused has just come back, if it has.
 */
export function agesAtRandom(mostHours: number): Ages {
  const last = ageIndex(mostHours);
  const shares = UP_SHARE.slice(0, last + 1);
  const sum = shares.reduce((a, b) => a + b, 0);
  return shares.map((share) => share / sum);
}

/** Last refusal of pools that may be up; long ago where one of them never refused. */
export const lastRefusal = (views: readonly (Pick<PoolView, 'open' | 'refusedMs'> | undefined)[]): EpochMs =>
  views.reduce<EpochMs | null>((last, view) => {
    if (view?.open !== true) return last;
    const refusedMs = view.refusedMs ?? LONG_AGO;
    return last === null ? refusedMs : least(last, refusedMs);
  }, null) ?? LONG_AGO;
const LONG_AGO = epochMs(0);

/**
 * Factor on the up hazards of a pool, from the posterior of its interruptions (lib/market/forecast/hazard.ts: its own,
 * with its family in its zone as prior), in proportion to the level of the series. The series are of accelerators and
 * of whole machines of 64 vCPUs or more. Such a pool is taken to be like the series until it proves calmer than the
 * deployment expects of any, since a few hours of evidence cannot tell the two levels apart. Powers of 2, so that few
 * programs are solved.
 */
export function upFactor(perHour: number, { type }: Pick<Pool, 'type'>, priorPerHour: number): number {
  const ofLevel = perHour / UP_LEVEL_PER_HOUR;
  const isLikeSeries = type.capacity.gpus > 0 || raw(type.capacity.cpu) >= LARGE_MILLI_CPU;
  const factor = !isLikeSeries ? ofLevel : perHour < priorPerHour ? perHour / priorPerHour : Math.max(1, ofLevel);
  return 2 ** Math.round(Math.log2(Math.min(4, Math.max(isLikeSeries ? 1 / 8 : 1 / 64, factor))));
}
const LARGE_MILLI_CPU = 64_000;

/**
 * P(another pool gives capacity when one is lost). Half of the others did on the series of one region, so that none of
 * m - 1 does with 0.5^(m - 1): 0.88 for four pools (measured 0.82 to 0.96), 0.99 for eight (0.98).
 */
export const otherIsUp = ({ pools }: Spells): number => 1 - 0.5 ** (pools - 1);

/**
 * Factor on DOWN_PER_HOUR while all pools refuse. Less than their number, because pools fail together. Chosen on the
 * tuning part among 1, sqrt(m) and m.
 */
export const downFactor = ({ pools }: Spells): number => Math.sqrt(pools);
