/**
 * Price losses from a trained model: for the bids that a decision can ask about, one batch before it decides. What the
 * model cannot answer is named, bid by bid, and the empirical forecast (forecaster.ts) takes its place.
 *
 * Lifecycle: one for the process; `losses` once per cycle. Instants ascend; when time goes back the features are made anew from
 * the history, as after a restart; when a price of the past comes late, those of its pool are.
 */
import type { PoolId } from '../../kernel/ids.ts';
import { epochMs, raw, type EpochMs } from '../../kernel/units.ts';
import type { LossModel } from '../../domain/forecast.ts';
import type { Bid, Pool } from '../../domain/pool.ts';
import { MarketFeatures, writeRow, type PoolView, type Unfit } from '../features/market-features.ts';
import { FEATURE_WIDTH } from '../features/names.ts';
import { WARM_UP_MS } from '../features/price-window.ts';
import type { PriceArrays } from '../steps.ts';
import { HORIZONS_S } from './survival.ts';
import type { Asked } from './table.ts';

/** P(the price passes the bid within HORIZONS_S), or why the model does not say. */
export type PriceLoss =
  | { readonly kind: 'curve'; readonly p: Float64Array; readonly version: string }
  | { readonly kind: 'none'; readonly why: string };

/** Null for a bid that was not asked about. */
export type PriceLosses = (pool: Pool, bid: Bid) => PriceLoss | null;

/** Public price history in [from, to), the price in force at `from` first. */
type History = (pool: PoolId, from: EpochMs, to: EpochMs) => PriceArrays;

export interface Question {
  readonly now: EpochMs;
  /** All pools that the market knows: neighbours say something of each other. */
  readonly pools: readonly Pool[];
  readonly asked: readonly Asked[];
  readonly history: History;
  /** Until when prices are known whether or not somebody repeated them; absent: a silence may be that of who reports. */
  readonly completeUntil?: EpochMs;
}

interface Row {
  readonly key: string;
  readonly view: PoolView;
  readonly bidUsd: number;
}

/** How far the history of a pool has been taken in. */
interface Reading {
  /** Instant of the last price that was read, ms since the epoch; -Infinity before any. */
  readMs: number;
  /** What is wrong with that price; null: nothing. */
  fault: 'zero' | 'not-a-price' | null;
}

export class LearnedLosses {
  readonly #model: LossModel;
  #features: MarketFeatures | null = null;
  #pools = '';
  #readings = new Map<PoolId, Reading>();
  #nowMs = -Infinity;

  constructor(model: LossModel) {
    this.#model = model;
  }

  /** O(new prices + bids). A model that gives a number that is no probability answers nothing at all: it is broken. */
  async losses(question: Question): Promise<PriceLosses> {
    const features = this.#upTo(question);
    const answers = new Map<string, PriceLoss>();
    const rows = this.#rows(features, question, answers);
    const batch = new Float32Array(rows.length * FEATURE_WIDTH);
    rows.forEach(({ view, bidUsd }, i) => writeRow(view, bidUsd, batch, i * FEATURE_WIDTH));
    const answer = rows.length === 0 ? null : await this.#run(batch);
    rows.forEach(({ key }, i) => answers.set(key, this.#answerOf(answer, i)));
    return (pool, bid) => answers.get(keyOf(pool, bid)) ?? null;
  }

  #rows(
    features: MarketFeatures,
    { now, asked }: Pick<Question, 'now' | 'asked'>,
    answers: Map<string, PriceLoss>,
  ): Row[] {
    const views = new Map<PoolId, PoolView | string>();
    const rows = new Map<string, Row>();
    for (const { pool, bid } of asked) {
      if (pool.option !== 'spot' || bid === 'uncapped') continue;
      const key = keyOf(pool, bid);
      let view = views.get(pool.id);
      if (view === undefined) views.set(pool.id, (view = this.#viewOf(features, pool.id, now)));
      if (typeof view === 'string') answers.set(key, { kind: 'none', why: view });
      else if (raw(bid) >= view.priced.window.usd) rows.set(key, { key, view, bidUsd: raw(bid) });
    }
    return [...rows.values()];
  }

  /** The pool now, or why it has no features. */
  #viewOf(features: MarketFeatures, pool: PoolId, now: EpochMs): PoolView | string {
    const fault = this.#readings.get(pool)?.fault ?? null;
    if (fault !== null) return `the last price is ${fault === 'zero' ? 'zero' : 'no number'}`;
    const view = features.view(pool, raw(now));
    return view.kind === 'view' ? view : reasonOf(view);
  }

  /** The model's numbers, or for people why there are none. */
  async #run(batch: Float32Array): Promise<Float32Array | string> {
    const answer = await this.#model.run(batch);
    const name = `model ${this.#model.version}`;
    if (answer.kind === 'failed') return `${name} cannot be run: ${answer.what}`;
    if (answer.kind === 'not-finite') return `${name} gives numbers that are not finite`;
    const isProbability = answer.values.every((p) => p >= 0 && p <= 1);
    return isProbability ? answer.values : `${name} gives numbers that are no probabilities`;
  }

  #answerOf(answer: Float32Array | string | null, row: number): PriceLoss {
    const { version, horizonsS } = this.#model;
    if (answer === null || typeof answer === 'string') return { kind: 'none', why: answer ?? 'it was not asked' };
    const width = horizonsS.length;
    return { kind: 'curve', version, p: atHorizons(horizonsS, answer.subarray(row * width, (row + 1) * width)) };
  }

  #upTo({ now, pools, history, completeUntil }: Question): MarketFeatures {
    const spot = pools.filter((pool) => pool.option === 'spot');
    const known = spot.map((pool) => pool.id).join(' ');
    let features = this.#features;
    if (features === null || this.#pools !== known || raw(now) < this.#nowMs) {
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
    this.#nowMs = raw(now);
    const until = { nowMs: raw(now), completeMs: Math.min(raw(completeUntil ?? epochMs(-Infinity)), raw(now)) };
    for (const [pool, reading] of this.#readings) readPool({ features, pool, history }, reading, until);
    return features;
  }
}

/** Takes in what is new of a pool; all of the last week where a price came late, so that its window is past it. */
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

/** False when a price lies before what its window has seen. */
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

const keyOf = (pool: Pool, bid: Bid): string => `${pool.id} ${bid === 'uncapped' ? bid : raw(bid)}`;

/** For people, after "model:". */
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

/** The curve at HORIZONS_S: the hazard is constant between the model's horizons, and goes on as in its last interval. */
function atHorizons(horizonsS: readonly number[], p: Float32Array): Float64Array {
  const cumulative = [0, ...p].map((lost) => -Math.log1p(-Math.min(lost, 1 - 1e-7)));
  const knots = [0, ...horizonsS];
  return HORIZONS_S.map((h) => {
    const found = knots.findIndex((knot) => knot >= h);
    const to = found < 1 ? knots.length - 1 : found;
    const [fromS = 0, toS = 1] = [knots[to - 1], knots[to]];
    const [low = 0, high = 0] = [cumulative[to - 1], cumulative[to]];
    return -Math.expm1(-(low + ((high - low) * (h - fromS)) / (toS - fromS)));
  });
}
