/** A row of features from a pool's window, its neighbours, the calendar and the bid. O(neighbours) per pool. */
import type { Calendar } from './calendar.ts';
import {
  BID_FEATURES,
  POOL_FEATURES,
  SEQUENCE_LENGTH,
  SHARED_WIDTH,
  type BidFeature,
  type PoolFeature,
} from './names.ts';
import { HOURS_KEPT, WINDOW, type PriceWindow } from './price-window.ts';

/** A pool's prices up to an instant, with its on-demand price, USD per hour and above 0. */
export interface PricedPool {
  readonly window: PriceWindow;
  readonly onDemandUsd: number;
}

/** Other pools with evidence on this one. */
export interface Neighbours {
  /** The same type in other zones. */
  readonly zones: readonly PricedPool[];
  /** Other sizes of the family in the same zone. */
  readonly family: readonly PricedPool[];
}

const { m2, m10, m30, h1, h24, d7 } = WINDOW;
const MS_PER_HOUR = 3_600_000;
/** Deltas are told apart down to a tenth of the least that the paper bids. */
const LEAST_DELTA_USD = 1e-6;
const LEAST_DELTA_RATIO = 1e-6;
/** Least range, relative to on-demand, as the divisor of a delta. */
const LEAST_RANGE_RATIO = 1e-4;
/**
 * Distances to past maxima are compressed beyond this share of on-demand: asinh is linear below it and logarithmic
 * above.
 */
const CLOSE_RATIO = 0.01;

/** Pool features and the sequence: the part of a row that all bids share. All windows stand at that instant. */
export function sharedValues(pool: PricedPool, neighbours: Neighbours, now: Calendar): Float32Array {
  const values = { ...priceValues(pool), ...calendarValues(now), ...neighbourValues(neighbours) };
  const shared = new Float32Array(SHARED_WIDTH);
  POOL_FEATURES.forEach((name, i) => (shared[i] = values[name]));
  for (let i = 0; i < SEQUENCE_LENGTH; i++) {
    const { usd, ageMs } = pool.window.recent(SEQUENCE_LENGTH - 1 - i);
    shared[POOL_FEATURES.length + 2 * i] = Math.log(usd / pool.window.usd);
    shared[POOL_FEATURES.length + 2 * i + 1] = Math.log1p(ageMs / 1000);
  }
  return shared;
}

/** Writes the features of a bid, USD per hour and not below the price, from `offset` on. */
export function writeBid(pool: PricedPool, bidUsd: number, rows: Float32Array, offset: number): void {
  const values = bidValues(pool, bidUsd);
  BID_FEATURES.forEach((name, i) => (rows[offset + i] = values[name]));
}

type CalendarFeature = Extract<PoolFeature, `${'weekday' | 'timeOfDay' | 'working'}${string}`>;
type NeighbourFeature = Extract<PoolFeature, `${'zones' | 'family'}${string}`>;
type PriceFeature = Exclude<PoolFeature, CalendarFeature | NeighbourFeature>;

function priceValues({ window, onDemandUsd }: PricedPool): Record<PriceFeature, number> {
  const range = (w: Parameters<PriceWindow['max']>[0]): number => window.max(w) - window.min(w);
  const ratioLog = (usd: number): number => Math.log(usd / onDemandUsd);
  return {
    priceUsd: window.usd,
    mean24hUsd: window.mean(h24),
    changes1h: window.changes(h1),
    range2mUsd: range(m2),
    range10mUsd: range(m10),
    range30mUsd: range(m30),
    onDemandUsdLog: Math.log(onDemandUsd),
    priceRatioLog: ratioLog(window.usd),
    mean1hRatioLog: ratioLog(window.mean(h1)),
    mean24hRatioLog: ratioLog(window.mean(h24)),
    mean7dRatioLog: ratioLog(window.mean(d7)),
    range1hRatioLog: Math.log1p(range(h1) / onDemandUsd),
    range24hRatioLog: Math.log1p(range(h24) / onDemandUsd),
    range7dRatioLog: Math.log1p(range(d7) / onDemandUsd),
    sinceChangeSLog: Math.log1p(Math.min(HOURS_KEPT * 3600, window.sinceChangeMs() / 1000)),
    changes24hLog: Math.log1p(window.changes(h24)),
    changes7dLog: Math.log1p(window.changes(d7)),
    knownHLog: Math.log1p(window.knownMs() / MS_PER_HOUR),
  };
}

function calendarValues({ working, ...circles }: Calendar): Record<CalendarFeature, number> {
  const [workingNewYork, workingLosAngeles, workingBerlin] = working;
  return { ...circles, workingNewYork, workingLosAngeles, workingBerlin };
}

function neighbourValues({ zones, family }: Neighbours): Record<NeighbourFeature, number> {
  const ofZones = summary(zones);
  const ofFamily = summary(family);
  return {
    zonesLog: ofZones.countLog,
    zonesPriceRatioLog: ofZones.priceRatioLog,
    zonesChanges1hLog: ofZones.changes1hLog,
    zonesRange1hRatioLog: ofZones.range1hRatioLog,
    familyLog: ofFamily.countLog,
    familyPriceRatioLog: ofFamily.priceRatioLog,
    familyChanges1hLog: ofFamily.changes1hLog,
    familyRange1hRatioLog: ofFamily.range1hRatioLog,
  };
}

/**
 * Mean price and mean number of changes, and the widest range, of the last hour; zeros and a count of 0 without
 * neighbours.
 */
function summary(
  pools: readonly PricedPool[],
): Record<'countLog' | 'priceRatioLog' | 'changes1hLog' | 'range1hRatioLog', number> {
  let price = 0;
  let changes = 0;
  let range = 0;
  for (const { window, onDemandUsd } of pools) {
    price += Math.log(window.usd / onDemandUsd);
    changes += Math.log1p(window.changes(h1));
    range = Math.max(range, (window.max(h1) - window.min(h1)) / onDemandUsd);
  }
  const count = Math.max(1, pools.length);
  return {
    countLog: Math.log1p(pools.length),
    priceRatioLog: price / count,
    changes1hLog: changes / count,
    range1hRatioLog: Math.log1p(range),
  };
}

function bidValues({ window, onDemandUsd }: PricedPool, bidUsd: number): Record<BidFeature, number> {
  const deltaUsd = bidUsd - window.usd;
  const deltaRatio = deltaUsd / onDemandUsd;
  const range24hRatio = (window.max(h24) - window.min(h24)) / onDemandUsd;
  const above = (w: Parameters<PriceWindow['max']>[0]): number =>
    Math.asinh((bidUsd - window.max(w)) / onDemandUsd / CLOSE_RATIO);
  return {
    bidDeltaUsd: deltaUsd,
    bidDeltaUsdLog: Math.log(Math.max(LEAST_DELTA_USD, deltaUsd)),
    bidDeltaRatioLog: Math.log(Math.max(LEAST_DELTA_RATIO, deltaRatio)),
    bidRatioLog: Math.log(bidUsd / onDemandUsd),
    bidDeltaRange24hLog: Math.log((Math.max(0, deltaRatio) + LEAST_RANGE_RATIO) / (range24hRatio + LEAST_RANGE_RATIO)),
    bidAboveMax1h: above(h1),
    bidAboveMax24h: above(h24),
    bidAboveMax7d: above(d7),
    bidSinceAboveHLog: Math.log1p(window.sinceAboveMs(bidUsd) / MS_PER_HOUR),
    bidCalm24h: calmShare(window, deltaUsd, 24),
    bidCalm7d: calmShare(window, deltaUsd, HOURS_KEPT),
  };
}

/** Half an hour that was calm and half a one that was not come on top: a short history claims nothing. */
function calmShare(window: PriceWindow, deltaUsd: number, hours: number): number {
  const { calm, known } = window.calmHours(deltaUsd, hours);
  return (calm + 0.5) / (known + 1);
}
