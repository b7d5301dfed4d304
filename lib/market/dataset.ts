/**
 * Training samples for a forecast of price losses: hypothetical bids at random instants of a price history, as in
 * Tributary, section 2.2.1, each with its life. Beside the paper's deltas some bids lie near the on-demand price: real
 * bids do too, and in pools that cost dollars they are far from the paper's.
 * Split by time, so that training never sees the future of a judged sample, and by pool: held-out pools are judged in
 * the last range and never trained on. A sample near the end of a range, whose outcome would reach into the next, is
 * left out.
 */
import TinyQueue from 'tinyqueue';
import { invariant } from '../kernel/errors.ts';
import { randomStream, type Uniform } from '../kernel/random.ts';

import { type Pool, onDemandUsdOf } from '../domain/pool.ts';
import {
  LONGEST_SILENCE_MS,
  MarketFeatures,
  writeRow,
  type FeaturePool,
  type Unfit,
} from './features/market-features.ts';
import { FEATURE_WIDTH } from './features/names.ts';
import { indexAt, type PriceArrays } from './price-steps.ts';
import { spanOf, type MarketTrace } from './trace.ts';

/** Longest horizon that labels are for, and so how long a bid is watched: a day. */
export const WATCHED_MS = 86_400_000;
/** Horizons that labels follow for, seconds: 5 and 15 minutes, 1, 3, 6 and 24 hours. */
export const LABEL_HORIZONS_S = [300, 900, 3600, 10_800, 21_600, 86_400] as const;

/** The paper's bids, USD per hour above the price; drawn evenly by their logarithm, for they span four decades. */
export const DELTA_USD = { least: 0.00001, most: 0.2 } as const;
/** Bids near on-demand, as shares of it. Every so many bids one is of this type. */
const ON_DEMAND_SHARE = { least: 0.5, most: 1.5 } as const;
const ON_DEMAND_EVERY = 4;

export const SPLITS = ['train', 'validation', 'test', 'unseen'] as const;
export type Split = (typeof SPLITS)[number];

export const BID_KINDS = ['delta', 'near-on-demand'] as const;
type BidKind = (typeof BID_KINDS)[number];

/**
 * Population of a "random point in the spot market history" (Tributary, section 2.2.1): time, or published prices, with
 * most questions about a pool when its price changes often.
 */
export type Points = 'times' | 'prices';

export interface SamplingPlan {
  readonly seed: number;
  /** Instants in all pools together; the same number in each, within one. */
  readonly instants: number;
  readonly bidsPerInstant: number;
  readonly points: Points;
  /** Shares of the trace's time for training and validation; the remaining time is for tests. */
  readonly shares: { readonly train: number; readonly validation: number };
  /** Share of the pools that are held out. */
  readonly unseenShare: number;
}

/** One hypothetical bid. The object and its row are reused for the next sample. */
export interface Sample {
  readonly pool: Pool;
  readonly split: Split;
  readonly bidKind: BidKind;
  readonly atMs: number;
  readonly bidUsd: number;
  readonly row: Float32Array;
  /** Seconds until the price is above the bid; Infinity when that was not seen while it was watched. */
  readonly lossS: number;
  /** Seconds watched, at most a day: less if the pool's history ends or falls silent. */
  readonly watchedS: number;
}

/** Instants that gave no sample, by reason. `unwatched`: the history ends before the shortest horizon does. */
export type LeftOut = Map<Unfit['kind'] | 'near-a-boundary' | 'held-out' | 'unwatched', number>;

export interface Sampling {
  /** Beginnings of validation and test, ms since the epoch. */
  readonly validationMs: number;
  readonly testMs: number;
  readonly unseen: readonly Pool[];
  readonly leftOut: LeftOut;
  /** In the order of time. For a single pass. */
  readonly samples: Iterable<Sample>;
}

/** O(prices log pools + instants x (neighbours + bids x changes of a day)). The same plan gives the same samples. */
export function sampleMarket(trace: MarketTrace, plan: SamplingPlan): Sampling {
  const pools = trace.pools.filter((pool) => pool.option === 'spot' && trace.prices(pool.id).atMs.length > 0);
  const { startMs, endMs } = spanOf(trace);
  const spanMs = endMs - startMs;
  const validationMs = startMs + plan.shares.train * spanMs;
  const testMs = startMs + (plan.shares.train + plan.shares.validation) * spanMs;
  const held = heldOut(pools, plan.unseenShare, randomStream(plan.seed, 'dataset/unseen'));
  const leftOut: LeftOut = new Map();
  const splitOf = (pool: Pool, atMs: number): Split | 'near-a-boundary' | 'held-out' => {
    if (held.has(pool)) return atMs >= testMs ? 'unseen' : 'held-out';
    const end = [validationMs, testMs, Infinity].findIndex((boundary) => atMs < boundary);
    const boundaryMs = [validationMs, testMs, Infinity][end] ?? Infinity;
    return atMs + WATCHED_MS > boundaryMs ? 'near-a-boundary' : (SPLITS[end] ?? 'test');
  };
  return {
    validationMs,
    testMs,
    unseen: [...held],
    leftOut,
    samples: samplesOf({ trace, plan, pools, splitOf, leftOut }),
  };
}

/** A random share of them. */
export function heldOut<T>(all: readonly T[], share: number, random: Uniform): ReadonlySet<T> {
  const drawn = all.map((of) => ({ of, at: random() })).sort((a, b) => a.at - b.at);
  return new Set(drawn.slice(0, Math.round(share * all.length)).map(({ of }) => of));
}

interface Sampler {
  readonly trace: MarketTrace;
  readonly plan: SamplingPlan;
  readonly pools: readonly Pool[];
  readonly splitOf: (pool: Pool, atMs: number) => Split | 'near-a-boundary' | 'held-out';
  readonly leftOut: LeftOut;
}

function* samplesOf({ trace, plan, pools, splitOf, leftOut }: Sampler): Generator<Sample> {
  const features = new MarketFeatures(pools.map(featurePool));
  const stream = priceStream(trace, pools, features);
  const bids = new Map(pools.map((pool) => [pool, randomStream(plan.seed, `dataset/bids/${pool.id}`)]));
  const row = new Float32Array(FEATURE_WIDTH);
  const leave = (why: Parameters<LeftOut['get']>[0]): void => void leftOut.set(why, (leftOut.get(why) ?? 0) + 1);
  for (const { pool, atMs } of instantsOf(trace, pools, plan)) {
    const split = splitOf(pool, atMs);
    if (split === 'near-a-boundary' || split === 'held-out') {
      leave(split);
      continue;
    }
    stream(atMs);
    const view = features.view(pool.id, atMs);
    if (view.kind !== 'view') {
      leave(view.kind);
      continue;
    }
    // Dropped by the same rule for lost and surviving bids, else lost ones would be too frequent.
    if (outcomeOf(trace.prices(pool.id), atMs, Infinity).watchedS < LABEL_HORIZONS_S[0]) {
      leave('unwatched');
      continue;
    }
    const onDemandUsd = onDemandUsdOf(pool);
    const random = invariant(bids.get(pool), 'each pool has a stream of bids');
    for (let b = 0; b < plan.bidsPerInstant; b++) {
      const { bidUsd, bidKind } = drawBid(random, view.priced.window.usd, onDemandUsd);
      writeRow(view, bidUsd, row, 0);
      yield { pool, split, bidKind, atMs, bidUsd, row, ...outcomeOf(trace.prices(pool.id), atMs, bidUsd) };
    }
  }
}

export const featurePool = (pool: Pool): FeaturePool => ({
  id: pool.id,
  type: pool.type.name,
  family: pool.type.family,
  zone: pool.zone,
  onDemandUsd: onDemandUsdOf(pool),
});

/** Random instants of all pools in the order of time; as many in each pool, from its first to its last price. */
function instantsOf(
  trace: MarketTrace,
  pools: readonly Pool[],
  plan: SamplingPlan,
): readonly { readonly pool: Pool; readonly atMs: number }[] {
  const total = plan.instants;
  const instants = pools.flatMap((pool, i) => {
    const count = Math.floor(((i + 1) * total) / pools.length) - Math.floor((i * total) / pools.length);
    const random = randomStream(plan.seed, `dataset/instants/${pool.id}`);
    const { atMs } = trace.prices(pool.id);
    return Array.from({ length: count }, () => ({ pool, atMs: pointOf(atMs, plan.points, random()) }));
  });
  return instants.sort((a, b) => a.atMs - b.atMs);
}

function pointOf(atMs: Float64Array, points: Points, u: number): number {
  if (points === 'prices') return atMs[Math.floor(u * atMs.length)] ?? NaN;
  const [first = 0, last = 0] = [atMs[0], atMs.at(-1)];
  return Math.floor(first + u * (last - first));
}

/** Feeds the features every price of every pool up to an instant, in the order of time: instants must not descend. */
function priceStream(trace: MarketTrace, pools: readonly Pool[], features: MarketFeatures): (untilMs: number) => void {
  const heads = pools.map((pool) => ({ pool, prices: trace.prices(pool.id), next: 0 }));
  const atOf = ({ prices, next }: (typeof heads)[number]): number => prices.atMs[next] ?? Infinity;
  const queue = new TinyQueue(heads, (a, b) => atOf(a) - atOf(b));
  return (untilMs) => {
    for (let head = queue.peek(); head !== undefined && atOf(head) <= untilMs; head = queue.peek()) {
      queue.pop();
      features.take(head.pool.id, atOf(head), head.prices.usdPerHour[head.next] ?? NaN);
      head.next++;
      if (head.next < head.prices.atMs.length) queue.push(head);
    }
  };
}

function drawBid(random: Uniform, priceUsd: number, onDemandUsd: number): { bidUsd: number; bidKind: BidKind } {
  const [kind, u] = [random(), random()];
  const nearOnDemand = onDemandUsd * (ON_DEMAND_SHARE.least + u * (ON_DEMAND_SHARE.most - ON_DEMAND_SHARE.least));
  if (kind < 1 / ON_DEMAND_EVERY && nearOnDemand > priceUsd) return { bidUsd: nearOnDemand, bidKind: 'near-on-demand' };
  const deltaUsd = DELTA_USD.least * (DELTA_USD.most / DELTA_USD.least) ** u;
  return { bidUsd: priceUsd + deltaUsd, bidKind: 'delta' };
}

/** Time at which the price first rises above a bid, and the time for which that is known. */
export function outcomeOf(
  { atMs: changes, usdPerHour }: PriceArrays,
  atMs: number,
  bidUsd: number,
): { lossS: number; watchedS: number } {
  let reportMs = atMs;
  for (let i = indexAt(changes, atMs) + 1; i < changes.length; i++) {
    const changeMs = changes[i] ?? Infinity;
    if (changeMs - reportMs > LONGEST_SILENCE_MS) break;
    reportMs = changeMs;
    if (changeMs > atMs + WATCHED_MS) break;
    if ((usdPerHour[i] ?? 0) > bidUsd) {
      const lossS = (changeMs - atMs) / 1000;
      return { lossS, watchedS: lossS };
    }
  }
  return { lossS: Infinity, watchedS: Math.min(WATCHED_MS, reportMs - atMs) / 1000 };
}
