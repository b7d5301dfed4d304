/**
 * Losses to the price as trained models forecast them at purchase, and as they came, by version: the guard of a model
 * in use. Evidence halves every week, as prices are read for a week: a version that was found wrong is asked again when
 * that has faded. Method: drift.ts.
 */
import { poolId, type PoolId } from '../../kernel/ids.ts';
import { raw, type EpochMs } from '../../kernel/units.ts';
import type { Instance } from '../../domain/instance.ts';
import { AT_ONCE_MS, expectedPriceLosses } from './drift.ts';
import { intervalOf } from './rate-interval.ts';

const KEY_PREFIX = 'price-drift/';
const HALF_LIFE_MS = 7 * 86_400_000;
/** Independent losses, or expected ones, below which nothing is said of a version. */
const LEAST_EVENTS = 5;
/**
 * Ratio of observed to expected, or its inverse, that the interval must lie beyond. Pools are bought where their
 * forecast is lowest, so a few more losses than expected come with any forecast.
 */
const TOLERATED = 1.5;

/** Faded sums of one version and pool. */
interface Sums {
  readonly expected: number;
  readonly sum: number;
  /** Squares of the numbers lost at once. */
  readonly squares: number;
  /** Time that the sums are faded to, ms since the epoch. */
  readonly atMs: number;
  /** Begin of the last time that instances were lost, and their number. */
  readonly lastMs: number;
  readonly lastCount: number;
}

const NONE: Sums = { expected: 0, sum: 0, squares: 0, atMs: 0, lastMs: -HALF_LIFE_MS, lastCount: 0 };
const FIELDS = Object.keys(NONE) as readonly (keyof Sums)[];

/** The drift as forecasts read it. */
export interface PriceDriftBelief {
  /** For people, why the version's forecasts are not to be used now; null: nothing speaks against them. */
  wrong(version: string, now: EpochMs): string | null;
}

/** Lifecycle: as that of CapacityEvidence (hazard.ts). Memory: O(versions x pools bought in). */
export class PriceDrift implements PriceDriftBelief {
  readonly prefix = KEY_PREFIX;
  readonly #versions = new Map<string, Map<PoolId, Sums>>();
  readonly #changed = new Map<string, Sums>();

  /** An instance that ended; ignored if no trained model forecast its price. O(1). */
  ended(instance: Instance, endedMs: EpochMs): void {
    const { forecast, pool } = instance;
    if (forecast === undefined || forecast.by === 'history') return;
    const expected = expectedPriceLosses(instance, endedMs);
    if (expected === null) return;
    const pools = this.#poolsOf(forecast.by);
    const before = faded(pools.get(pool) ?? NONE, raw(endedMs));
    const isLost = instance.endCause === 'interrupted' && instance.marketCause === 'price';
    const after = { ...(isLost ? withLoss(before, raw(endedMs)) : before), expected: before.expected + expected };
    pools.set(pool, after);
    this.#changed.set(`${KEY_PREFIX}${forecast.by}/${pool}`, after);
  }

  /** O(pools that the version forecast). */
  wrong(version: string, now: EpochMs): string | null {
    let [expected, sum, squares] = [0, 0, 0];
    for (const each of this.#versions.get(version)?.values() ?? []) {
      const of = faded(each, raw(now));
      expected += of.expected;
      sum += of.sum;
      squares += of.squares;
    }
    const times = squares === 0 ? 0 : sum ** 2 / squares;
    if (Math.max(times, expected) < LEAST_EVENTS) return null;
    const { low, high } = intervalOf({ sum, squares, most: sum === 0 ? 1 : Math.max(1, squares / sum) });
    if (low <= TOLERATED * expected && high >= expected / TOLERATED) return null;
    return `${version} expected ${expected.toPrecision(2)} losses of late, ${sum.toPrecision(2)} came`;
  }

  takeDirty(): ReadonlyMap<string, string> {
    const rows = new Map(this.#changed.entries().map(([key, sums]) => [key, JSON.stringify(sums)]));
    this.#changed.clear();
    return rows;
  }

  /** Rows that do not parse are ignored: they are evidence, and no more than that. */
  restore(rows: ReadonlyMap<string, string>): void {
    this.#versions.clear();
    this.#changed.clear();
    for (const [key, value] of rows) {
      const [version = '', ...pool] = key.slice(KEY_PREFIX.length).split('/');
      const sums = parsed(value);
      if (sums !== null) this.#poolsOf(version).set(poolId(pool.join('/')), sums);
    }
  }

  #poolsOf(version: string): Map<PoolId, Sums> {
    let pools = this.#versions.get(version);
    if (pools === undefined) this.#versions.set(version, (pools = new Map<PoolId, Sums>()));
    return pools;
  }
}

/** Instances of a pool that are lost at once share the cause, so they are one event of that size. */
function withLoss(before: Sums, endedMs: number): Sums {
  const isSame = endedMs - before.lastMs <= AT_ONCE_MS;
  const already = isSame ? before.lastCount : 0;
  return {
    ...before,
    sum: before.sum + 1,
    squares: before.squares + (already + 1) ** 2 - already ** 2,
    lastMs: isSame ? before.lastMs : endedMs,
    lastCount: already + 1,
  };
}

/** Old evidence counts as fewer events: squares fade like sums. */
function faded(sums: Sums, nowMs: number): Sums {
  if (nowMs <= sums.atMs) return sums;
  const kept = 0.5 ** ((nowMs - sums.atMs) / HALF_LIFE_MS);
  return {
    ...sums,
    expected: sums.expected * kept,
    sum: sums.sum * kept,
    squares: sums.squares * kept,
    atMs: nowMs,
  };
}

function parsed(text: string): Sums | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null) return null;
  const of = value as Record<string, unknown>;
  return FIELDS.every((field) => Number.isFinite(of[field])) ? (value as Sums) : null;
}
