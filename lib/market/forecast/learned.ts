/**
 * Price losses from a trained model: one batch before each decision, for all bids that it can ask about. Unanswered
 * bids get a reason each, and the empirical forecast (forecaster.ts) answers for them.
 * Lifecycle: one for the process; `losses` once per cycle. Instants ascend; when time goes back all features are
 * rebuilt from the history, as after a restart; when a past price comes late, those of its pool are.
 */
import type { PoolId } from '../../kernel/ids.ts';
import { epochMs, least, lt, raw, type EpochMs, type UsdPerHour } from '../../kernel/units.ts';
import type { LossModel } from '../../domain/forecast.ts';
import type { Bid, Pool } from '../../domain/pool.ts';
import { MarketFeatures, writeRow, type PoolView, type Unfit } from '../features/market-features.ts';
import { FEATURE_WIDTH } from '../features/names.ts';
import { WARM_UP_MS } from '../features/price-window.ts';
import type { PriceArrays } from '../price-steps.ts';
import { askModel, type ModelCurve } from './model-curves.ts';
import type { Asked } from './forecast-data.ts';

/** P(the price passes the bid); null for a bid that was not asked about, or lies below the price. */
export type PriceLosses = (pool: Pool, bid: Bid) => ModelCurve | null;

/** Public price history in [from, to), the price in force at `from` first. */
type History = (pool: PoolId, from: EpochMs, to: EpochMs) => PriceArrays;

export interface Question {
  readonly now: EpochMs;
  /** All pools that the market knows: neighbours say something of each other. */
  readonly pools: readonly Pool[];
  readonly asked: readonly Asked[];
  readonly history: History;
  /** Time until which prices are complete even without repetition; absent: a silence may be the reporter's. */
  readonly completeUntil?: EpochMs;
}

/** A pool that has features, and the rows of its bids in the batch, by USD per hour. */
interface AskedPool {
  readonly view: PoolView;
  readonly rows: Map<UsdPerHour, number>;
}

/** Reading position in the history of a pool. */
interface Reading {
  /** Instant of the last price that was read, ms since the epoch; -Infinity before any. */
  readMs: number;
  /** Fault of that price; null: none. */
  fault: 'zero' | 'not-a-price' | null;
}

export class LearnedLosses {
  readonly #model: LossModel;
  #features: MarketFeatures | null = null;
  #pools = '';
  #readings = new Map<PoolId, Reading>();
  #nowMs = epochMs(-Infinity);

  constructor(model: LossModel) {
    this.#model = model;
  }

  /** O(new prices + bids). A model that answers with a number outside [0, 1] is broken and answers nothing. */
  async losses(question: Question): Promise<PriceLosses> {
    const pools = this.#asked(this.#upTo(question), question);
    const lossAt = await askModel(this.#model, batchOf(pools.values()));
    return (pool, bid) => {
      const of = pools.get(pool.id);
      if (of === undefined || bid === 'uncapped') return null;
      if (typeof of === 'string') return { kind: 'none', why: of };
      const row = of.rows.get(bid);
      return row === undefined ? null : lossAt(row);
    };
  }

  /** The pools that are asked about, each bid once; or why a pool has no features. */
  #asked(features: MarketFeatures, { now, asked }: Pick<Question, 'now' | 'asked'>): Map<PoolId, AskedPool | string> {
    const pools = new Map<PoolId, AskedPool | string>();
    let count = 0;
    for (const { pool, bid } of asked) {
      if (pool.option !== 'spot' || bid === 'uncapped') continue;
      let of = pools.get(pool.id);
      if (of === undefined) {
        const view = this.#viewOf(features, pool.id, now);
        pools.set(pool.id, (of = typeof view === 'string' ? view : { view, rows: new Map() }));
      }
      if (typeof of === 'string' || raw(bid) < of.view.priced.window.usd || of.rows.has(bid)) continue;
      of.rows.set(bid, count++);
    }
    return pools;
  }

  /** The pool now, or why it has no features. */
  #viewOf(features: MarketFeatures, pool: PoolId, now: EpochMs): PoolView | string {
    const fault = this.#readings.get(pool)?.fault ?? null;
    if (fault !== null) return `the last price is ${fault === 'zero' ? 'zero' : 'no number'}`;
    const view = features.view(pool, raw(now));
    return view.kind === 'view' ? view : reasonOf(view);
  }

  #upTo({ now, pools, history, completeUntil }: Question): MarketFeatures {
    const spot = pools.filter((pool) => pool.option === 'spot');
    const known = spot.map((pool) => pool.id).join(' ');
    let features = this.#features;
    if (features === null || this.#pools !== known || lt(now, this.#nowMs)) {
      features = new MarketFeatures(
        spot.map(({ id, type, zone, onDemandUsdPerHour }) => ({
          id,
          type: type.name,
          family: type.family,
          zone,
          onDemandUsd: raw(onDemandUsdPerHour),
        })),
      );
      this.#features = features;
      this.#pools = known;
      this.#readings = new Map(spot.map((pool) => [pool.id, { readMs: -Infinity, fault: null }]));
    }
    this.#nowMs = now;
    const until = {
      nowMs: raw(now),
      completeMs: completeUntil === undefined ? -Infinity : raw(least(completeUntil, now)),
    };
    for (const [pool, reading] of this.#readings) readPool({ features, pool, history }, reading, until);
    return features;
  }
}

/** Reads new prices of a pool; all of the last week after a late price, because its window is past it. */
function readPool(
  of: { readonly features: MarketFeatures; readonly pool: PoolId; readonly history: History },
  reading: Reading,
  until: { readonly nowMs: number; readonly completeMs: number },
): void {
  const isInOrder = readNew(of, reading, until.nowMs);
  if (!isInOrder) {
    of.features.renew(of.pool);
    reading.readMs = -Infinity;
    readNew(of, reading, until.nowMs);
  }
  of.features.holds(of.pool, until.completeMs);
}

/** False if a price lies before the last one of its window. */
function readNew(
  { features, pool, history }: { readonly features: MarketFeatures; readonly pool: PoolId; readonly history: History },
  reading: Reading,
  nowMs: number,
): boolean {
  let isInOrder = true;
  const { atMs, usdPerHour } = history(pool, epochMs(Math.max(reading.readMs, nowMs - WARM_UP_MS)), epochMs(nowMs + 1));
  for (let i = 0; i < atMs.length; i++) {
    const at = atMs[i] ?? NaN;
    if (at > nowMs || at <= reading.readMs) continue;
    const taken = features.take(pool, at, usdPerHour[i] ?? NaN);
    if (taken === 'clock-back') isInOrder = false;
    reading.readMs = at;
    reading.fault = taken === 'zero' || taken === 'not-a-price' ? taken : null;
  }
  return isInOrder;
}

function batchOf(pools: Iterable<AskedPool | string>): Float32Array {
  const asked = [...pools].filter((of) => typeof of !== 'string');
  const batch = new Float32Array(asked.reduce((sum, { rows }) => sum + rows.size, 0) * FEATURE_WIDTH);
  for (const { view, rows } of asked) {
    for (const [bid, row] of rows) writeRow(view, raw(bid), batch, row * FEATURE_WIDTH);
  }
  return batch;
}

/** Sentence for people, after "model:". */
function reasonOf(unfit: Unfit): string {
  switch (unfit.kind) {
    case 'unknown-pool':
      return 'the market does not know the pool';
    case 'no-price':
      return 'there is no price yet';
    case 'price-gap':
      return `the price was last reported ${(unfit.silentS / 3600).toFixed(0)} h ago`;
    case 'no-on-demand-price':
      return 'there is no on-demand price to compare with';
    case 'clock-back':
      return 'the clock went back';
  }
}
