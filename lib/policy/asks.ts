/**
 * Declared questions of a policy to the market's forecast. A driver whose forecasts are made in another process makes
 * exactly these; an undeclared question fails in every driver alike.
 */
import { EbbError } from '../kernel/errors.ts';
import type { PoolId } from '../kernel/ids.ts';
import { most, raw, seconds, type Seconds } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import { curveWithin, type CapacityCurve, type InterruptionCurve } from '../domain/forecast.ts';
import type { MarketForecast } from '../domain/forecasts.ts';
import { bidNumber, capUsd, type Bid, type Pool } from '../domain/pool.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import type { Stages } from './contracts.ts';

interface AsksPrices {
  /** Prices: expected and mean. */
  readonly prices?: true;
  /** Correlation of the prices of two pools. */
  readonly correlations?: true;
  /** Capacity's part in the risk of a pool. */
  readonly capacity?: true;
  /** Evidence behind the risk of a bid. */
  readonly drivers?: true;
}

interface AsksRisks extends AsksPrices {
  /** Bids whose risk it asks for in a spot pool with a price; absent: none. */
  readonly bids?: (pool: Pool, priceUsdPerHour: number, config: SchedulerConfig) => readonly Bid[];
  /** True: it also asks for the risk of held instances, at their own bids. */
  readonly held?: true;
  /** Longest time within which a risk is asked for; `any` where it follows from how long tasks run. */
  readonly horizon: Horizon;
}

interface AsksNoRisk extends AsksPrices {
  readonly bids?: never;
  readonly held?: never;
  readonly horizon?: never;
}

export type Horizon = Seconds | 'any';
export type Asks = AsksRisks | AsksNoRisk;

/** The part of a snapshot that bids follow from. */
export type Scene = Pick<Snapshot, 'nowMs' | 'pools' | 'instances' | 'services'>;

/** A policy's declaration with the settings that it decides by. */
export interface BoundAsks {
  readonly policy: string;
  readonly asks: Asks;
  /** The deployment's settings with those of the policy in their place. */
  readonly configOf: (config: SchedulerConfig) => SchedulerConfig;
  /** True: it asks only where there are services. Absent: always. */
  readonly isForServices?: true;
}

/** A pool at a bid, and within which time its risk is asked for. */
export interface AskedBid {
  readonly pool: Pool;
  readonly bid: Bid;
  readonly horizon: Horizon;
}

/**
 * Horizons recorded with each purchase (lib/cycle/decide/forecast-at-purchase.ts), seconds. Every instance keeps them,
 * so they are few: those of the trained models, from a quarter of an hour to a day.
 */
export const RECORDED_S = [900, 3600, 10_800, 21_600, 86_400] as const;
/** Shortest horizon of any bid: explanations ask for an hour. */
const LEAST_HORIZON = seconds(Math.max(...RECORDED_S));

const further = (a: Horizon, b: Horizon): Horizon => (a === 'any' || b === 'any' ? 'any' : most(a, b));

/**
 * Every bid that a decision asks about: those that policies declare in each pool with a price, without repetition, and
 * those of held instances, for explanations. Each with the longest horizon that a policy declares for it. O(pools x
 * bids + instances).
 */
export function bidsAsked(scene: Scene, every: readonly BoundAsks[], config: SchedulerConfig): AskedBid[] {
  const { pools, instances, services } = scene;
  const hasServices = services !== undefined && services.size > 0;
  const all = hasServices ? every : every.filter((of) => of.isForServices !== true);
  const bidders = all.flatMap(({ asks, configOf }) =>
    asks.bids === undefined ? [] : [{ bids: asks.bids, of: configOf(config), horizon: asks.horizon }],
  );
  const asked = pools.flatMap(({ pool, quote }) => {
    if (quote === null) return [];
    const byBid = new Map<number, AskedBid>();
    for (const { bids, of, horizon } of bidders) {
      for (const bid of bids(pool, raw(quote), of)) {
        const known = byBid.get(capUsd(bid))?.horizon ?? LEAST_HORIZON;
        byBid.set(capUsd(bid), { pool, bid, horizon: further(known, horizon) });
      }
    }
    return [...byBid.values()];
  });
  const ofHeld = all
    .flatMap(({ asks }) => (asks.held === true ? [asks.horizon] : []))
    .reduce(further, LEAST_HORIZON as Horizon);
  const held = [...instances.values()].map(({ pool, instance }) => ({ pool, bid: instance.bid, horizon: ofHeld }));
  return [...asked, ...held];
}

/**
 * Pools whose prices a decision asks about whatever its policies declare: those in which the preset may buy. A job is
 * given up only if not even the lowest of these prices is within its budget (lib/cycle/decide/endings.ts).
 */
export const poolsPriced = ({ pools }: Pick<Scene, 'pools'>, { buys }: Pick<Stages<unknown>, 'buys'>): Pool[] =>
  pools.flatMap(({ pool }) => (buys?.(pool) === false ? [] : [pool]));

/** A forecast that leaves something out. It knows the whole one, which nobody else can get from it. */
class Limited {
  readonly #whole: MarketForecast;

  private constructor(whole: MarketForecast) {
    this.#whole = whole;
  }

  static of(whole: MarketForecast, answers: MarketForecast): MarketForecast {
    return Object.freeze(Object.assign(new Limited(whole), answers));
  }

  static wholeOf(market: MarketForecast): MarketForecast {
    return #whole in market ? market.#whole : market;
  }
}

type ChangeCurve = <C extends InterruptionCurve | CapacityCurve>(curve: C) => C;

/** The same forecast, limited as it was, with other records of its curves. */
export const withCurves = (market: MarketForecast, change: ChangeCurve): MarketForecast =>
  Limited.of(Limited.wholeOf(market), {
    ...market,
    interruption: (pool, bid) => change(market.interruption(pool, bid)),
    capacity: (pool) => {
      const curve = market.capacity?.(pool) ?? null;
      return curve === null ? null : change(curve);
    },
  });

/**
 * Forecast limited to the declared questions of one policy, also if it was limited for another policy before. Throws
 * `internal` for an undeclared question. O(1) per question.
 */
export function onlyAsked(
  given: MarketForecast,
  { policy, asks }: Pick<BoundAsks, 'policy' | 'asks'>,
  { snapshot, config }: { readonly snapshot: Scene; readonly config: SchedulerConfig },
): MarketForecast {
  const market = Limited.wholeOf(given);
  const mayAsk = bidChecker(asks, snapshot, config);
  const refuse = (what: string): never => {
    throw new EbbError('internal', {
      what: `the policy ${policy} asks for ${what}, which it does not declare`,
      next: 'declare it in the policy’s `asks`',
    });
  };
  return Limited.of(market, {
    ...market,
    interruption: (pool, bid) => {
      if (pool.option !== 'spot') return market.interruption(pool, bid);
      if (!mayAsk(pool, bid)) {
        return refuse(`the risk of ${pool.id} at a bid of ${bidNumber(bid)}`);
      }
      return upTo(asks.horizon, policy, market.interruption(pool, bid));
    },
    expectedPrice: (pool, at) =>
      asks.prices === true ? market.expectedPrice(pool, at) : refuse(`the expected price of ${pool.id}`),
    meanPrice: (pool, over) =>
      asks.prices === true ? (market.meanPrice?.(pool, over) ?? null) : refuse(`the mean price of ${pool.id}`),
    correlation: (a, b) =>
      asks.correlations === true ? market.correlation(a, b) : refuse(`the correlation of ${a.id} and ${b.id}`),
    capacity: (pool) =>
      asks.capacity === true ? (market.capacity?.(pool) ?? null) : refuse(`the risk of the capacity of ${pool.id}`),
    drivers: (pool, bid) =>
      asks.drivers === true
        ? (market.drivers?.(pool, bid) ?? null)
        : refuse(`the evidence behind the risk of ${pool.id}`),
  });
}

/** The very same curve where any time may be asked about. */
const upTo = (horizon: Horizon | undefined, policy: string, curve: InterruptionCurve): InterruptionCurve =>
  horizon === undefined || horizon === 'any'
    ? curve
    : curveWithin(curve, { by: `the policy ${policy}`, horizonS: horizon });

/**
 * Bids of a pool are worked out when the pool is first asked about, those of held instances when a bid is none of
 * these.
 */
function bidChecker(asks: Asks, scene: Scene, config: SchedulerConfig): (pool: Pool, bid: Bid) => boolean {
  const declared = new Map<PoolId, ReadonlySet<number>>();
  let quotes: ReadonlyMap<PoolId, number> | null = null;
  let held: ReadonlyMap<PoolId, ReadonlySet<number>> | null = null;
  const declaredIn = (pool: Pool): ReadonlySet<number> => {
    quotes ??= new Map(scene.pools.flatMap((v) => (v.quote === null ? [] : [[v.pool.id, raw(v.quote)] as const])));
    const quote = quotes.get(pool.id);
    return new Set(quote === undefined ? [] : (asks.bids?.(pool, quote, config) ?? []).map(capUsd));
  };
  return (pool, bid) => {
    const key = capUsd(bid);
    let bids = declared.get(pool.id);
    if (bids === undefined) declared.set(pool.id, (bids = declaredIn(pool)));
    if (bids.has(key)) return true;
    if (asks.held !== true) return false;
    held ??= heldBids(scene);
    return held.get(pool.id)?.has(key) === true;
  };
}

function heldBids({ instances }: Scene): ReadonlyMap<PoolId, ReadonlySet<number>> {
  const held = new Map<PoolId, Set<number>>();
  for (const { pool, instance } of instances.values()) {
    const of = held.get(pool.id);
    if (of === undefined) held.set(pool.id, new Set([capUsd(instance.bid)]));
    else of.add(capUsd(instance.bid));
  }
  return held;
}
