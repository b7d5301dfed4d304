/**
 * Price losses from a trained model: for the bids that a decision can ask about, one batch before it decides. What the
 * model cannot answer is named, bid by bid, and the empirical forecast (forecaster.ts) takes its place.
 *
 * Lifecycle: one for the process; `losses` once per cycle. Instants ascend; when time goes back, or a price of the past comes
 * late, the features are made anew from the history, as after a restart.
 */
import type { PoolId } from '../../kernel/ids.ts';
import { epochMs, raw, type EpochMs } from '../../kernel/units.ts';
import type { Bid, Pool } from '../../domain/pool.ts';
import { MarketFeatures, writeRow, type PoolView, type Unfit } from '../features/market-features.ts';
import { FEATURE_WIDTH } from '../features/names.ts';
import { WARM_UP_MS } from '../features/price-window.ts';
import type { PriceArrays } from '../steps.ts';
import { HORIZONS_S } from './survival.ts';
import type { Asked } from './table.ts';

/** What is asked: rows of FEATURES in, P(the price passes the bid within each horizon) out, row by row. */
export interface LossModel {
  readonly version: string;
  /** Seconds, ascending. */
  readonly horizonsS: readonly number[];
  run(
    rows: Float32Array,
  ): Promise<
    { readonly kind: 'values'; readonly values: Float32Array } | { readonly kind: 'not-finite'; readonly row: number }
  >;
}

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
}

interface Row {
  readonly key: string;
  readonly view: PoolView;
  readonly bidUsd: number;
}

export class LearnedLosses {
  readonly #model: LossModel;
  #features: MarketFeatures | null = null;
  #pools = '';
  #seenMs = new Map<PoolId, number>();
  #nowMs = -Infinity;

  constructor(model: LossModel) {
    this.#model = model;
  }

  /** O(new prices + bids). A model that gives numbers that are none answers nothing at all: it is broken. */
  async losses({ now, pools, asked, history }: Question): Promise<PriceLosses> {
    const features = this.#upTo(
      now,
      pools.filter((pool) => pool.option === 'spot'),
      history,
    );
    const answers = new Map<string, PriceLoss>();
    const rows = this.#rows(features, { now, asked }, answers);
    const batch = new Float32Array(rows.length * FEATURE_WIDTH);
    rows.forEach(({ view, bidUsd }, i) => writeRow(view, bidUsd, batch, i * FEATURE_WIDTH));
    const answer = rows.length === 0 ? null : await this.#model.run(batch);
    rows.forEach(({ key }, i) => answers.set(key, this.#answerOf(answer, i)));
    return (pool, bid) => answers.get(keyOf(pool, bid)) ?? null;
  }

  #rows(
    features: MarketFeatures,
    { now, asked }: Pick<Question, 'now' | 'asked'>,
    answers: Map<string, PriceLoss>,
  ): Row[] {
    const views = new Map<PoolId, PoolView | Unfit>();
    const rows = new Map<string, Row>();
    for (const { pool, bid } of asked) {
      if (pool.option !== 'spot' || bid === 'uncapped') continue;
      const key = keyOf(pool, bid);
      let view = views.get(pool.id);
      if (view === undefined) views.set(pool.id, (view = features.view(pool.id, raw(now))));
      if (view.kind !== 'view') answers.set(key, { kind: 'none', why: reasonOf(view) });
      else if (raw(bid) >= view.priced.window.usd) rows.set(key, { key, view, bidUsd: raw(bid) });
    }
    return [...rows.values()];
  }

  #answerOf(answer: Awaited<ReturnType<LossModel['run']>> | null, row: number): PriceLoss {
    const { version, horizonsS } = this.#model;
    if (answer?.kind !== 'values') return { kind: 'none', why: `model ${version} gives numbers that are not finite` };
    const width = horizonsS.length;
    return { kind: 'curve', version, p: atHorizons(horizonsS, answer.values.subarray(row * width, (row + 1) * width)) };
  }

  #upTo(now: EpochMs, pools: readonly Pool[], history: History): MarketFeatures {
    const known = pools.map((pool) => pool.id).join(' ');
    let features = this.#features;
    if (features === null || this.#pools !== known || raw(now) < this.#nowMs || !this.#read(features, now, history)) {
      features = new MarketFeatures(
        pools.map(({ id, type, zone, onDemandUsdPerHour }) => ({
          id,
          type: type.name,
          family: type.family,
          zone,
          onDemandUsd: raw(onDemandUsdPerHour),
        })),
      );
      this.#features = features;
      this.#pools = known;
      this.#seenMs = new Map(pools.map((pool) => [pool.id, raw(now) - WARM_UP_MS]));
      this.#read(features, now, history);
    }
    this.#nowMs = raw(now);
    return features;
  }

  /** Takes in what is new of every pool; false when a price came late, so that the windows are past it. */
  #read(features: MarketFeatures, now: EpochMs, history: History): boolean {
    let isInOrder = true;
    for (const [pool, seenMs] of this.#seenMs) {
      const { atMs, usdPerHour } = history(pool, epochMs(seenMs), epochMs(raw(now) + 1));
      for (let i = 0; i < atMs.length; i++) {
        const at = atMs[i] ?? NaN;
        if (at > raw(now) || at <= features.seenMs(pool)) continue;
        if (features.take(pool, at, usdPerHour[i] ?? NaN) === 'clock-back') isInOrder = false;
      }
      this.#seenMs.set(pool, Math.max(seenMs, features.seenMs(pool)));
    }
    return isInOrder;
  }
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
