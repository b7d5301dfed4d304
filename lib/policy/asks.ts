/**
 * What a policy asks of the market's forecast, declared: a driver whose forecasts are made in another process makes
 * exactly these. A question that was not declared fails in every driver alike.
 */
import { EbbError } from '../kernel/errors.ts';
import type { PoolId } from '../kernel/ids.ts';
import { raw } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { MarketForecast } from '../domain/forecasts.ts';
import type { Bid, Pool } from '../domain/pool.ts';
import type { Snapshot } from '../domain/snapshot.ts';

export interface Asks {
  /** Bids whose risk is asked for in a spot pool that quotes a price; absent: none. */
  readonly bids?: (pool: Pool, priceUsdPerHour: number, config: SchedulerConfig) => readonly Bid[];
  /** What instances that are held risk, at their own bids. */
  readonly held?: true;
  /** Prices: expected and mean. */
  readonly prices?: true;
  /** Correlation of the prices of two pools. */
  readonly correlations?: true;
}

/** The part of a snapshot that bids follow from. */
export type Scene = Pick<Snapshot, 'nowMs' | 'pools' | 'instances'>;

/** A policy's declaration with the settings that it decides by. */
export interface BoundAsks {
  readonly policy: string;
  readonly asks: Asks;
  /** The deployment's settings with those of the policy in their place. */
  readonly configOf: (config: SchedulerConfig) => SchedulerConfig;
}

/** A pool at a bid. */
export interface AskedBid {
  readonly pool: Pool;
  readonly bid: Bid;
}

/**
 * Every bid that a decision asks about: those that policies declare in each pool with a price, without repetition, and
 * those of the instances that are held, which explanations ask about. O(pools x bids + instances).
 */
export function bidsAsked({ pools, instances }: Scene, all: readonly BoundAsks[], config: SchedulerConfig): AskedBid[] {
  const bidders = all.flatMap(({ asks, configOf }) =>
    asks.bids === undefined ? [] : [{ bids: asks.bids, of: configOf(config) }],
  );
  const asked = pools.flatMap(({ pool, quote }) => {
    if (quote === null) return [];
    const bids = bidders.flatMap(({ bids: of, of: settings }) => of(pool, raw(quote), settings));
    return [...new Map(bids.map((bid) => [keyOf(bid), bid])).values()].map((bid) => ({ pool, bid }));
  });
  const held = [...instances.values()].map(({ pool, instance }) => ({ pool, bid: instance.bid }));
  return [...asked, ...held];
}

const keyOf = (bid: Bid): number => (bid === 'uncapped' ? Infinity : raw(bid));

const WHOLE = Symbol('the forecast that nothing is left out of');
type Limited = MarketForecast & { readonly [WHOLE]?: MarketForecast };

/**
 * The forecast as one policy may ask it, also where it is given one that was limited for another policy. Throws
 * `internal` for what the policy did not declare. O(1) for each question.
 */
export function onlyAsked(
  given: Limited,
  { policy, asks }: Pick<BoundAsks, 'policy' | 'asks'>,
  { snapshot, config }: { readonly snapshot: Scene; readonly config: SchedulerConfig },
): MarketForecast {
  const market = given[WHOLE] ?? given;
  const mayAsk = bidChecker(asks, snapshot, config);
  const refuse = (what: string): never => {
    throw new EbbError('internal', {
      what: `the policy ${policy} asks for ${what}, which it does not declare`,
      next: 'declare it in the policy’s `asks`',
    });
  };
  const limited: Limited = {
    ...market,
    [WHOLE]: market,
    interruption: (pool, bid) => {
      if (pool.option === 'spot' && !mayAsk(pool, bid)) {
        return refuse(`the risk of ${pool.id} at a bid of ${bid === 'uncapped' ? bid : raw(bid)}`);
      }
      return market.interruption(pool, bid);
    },
    expectedPrice: (pool, at) =>
      asks.prices === true ? market.expectedPrice(pool, at) : refuse(`the expected price of ${pool.id}`),
    meanPrice: (pool) =>
      asks.prices === true ? (market.meanPrice?.(pool) ?? null) : refuse(`the mean price of ${pool.id}`),
    correlation: (a, b) =>
      asks.correlations === true ? market.correlation(a, b) : refuse(`the correlation of ${a.id} and ${b.id}`),
  };
  return limited;
}

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
    return new Set(quote === undefined ? [] : (asks.bids?.(pool, quote, config) ?? []).map(keyOf));
  };
  return (pool, bid) => {
    const key = keyOf(bid);
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
    if (of === undefined) held.set(pool.id, new Set([keyOf(instance.bid)]));
    else of.add(keyOf(instance.bid));
  }
  return held;
}
