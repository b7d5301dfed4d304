import { epochMs, least, mib, raw, usdPerHour, type EpochMs, type UsdPerHour } from '../../../kernel/units.ts';
import { poolId, type PoolId } from '../../../kernel/ids.ts';
import { onDemandUsdOf, poolParts, type InstanceType, type Pool } from '../../../domain/pool.ts';
import { builtInCatalogue, type Catalogue } from '../../../market/catalogue.ts';
import { WARM_UP_MS } from '../../../market/features/price-window.ts';
import { priceAt, stepsKnown, traceOf, type SpotMarket } from '../../../market/price-steps.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { Market } from '../../../ports/market.ts';
import type { KnownMarket } from '../compose/deployment.ts';
import { sourceOf, type ListPrices, type ListSource } from './on-demand-prices.ts';
import { poolOf, reservedPrices, type ReservedPool } from './known-reservations.ts';
import type { PriceBook } from './price-book.ts';

/**
 * Share of an instance's memory that the host uses before ECS registers the rest, as in Karpenter (settings,
 * `VM_MEMORY_OVERHEAD_PERCENT`, 0.075). A task with a larger promise would never find room.
 */
const MEMORY_OVERHEAD = 0.075;

/** Seconds of price history to read: for forecasts from history and for features of a model. */
export const historyNeededS = (priceHistoryS: number): number => Math.max(priceHistoryS, WARM_UP_MS / 1000);

/** Instance type with the resources that ECS offers to tasks. */
export const offeredType = (type: InstanceType): InstanceType => ({
  ...type,
  capacity: {
    ...type.capacity,
    memory: mib(Math.floor(raw(type.capacity.memory) * (1 - MEMORY_OVERHEAD))),
  },
});

/**
 * The Market port over a trace that ends with the newest known price, which holds until the next one. Prices after
 * `now` stay hidden from a process whose clock is behind. Closed pools quote no price: earlier instances may run there,
 * but no new ones start.
 */
function marketOf(trace: MarketTrace, now: () => EpochMs, isOpen: (pool: Pool) => boolean): Market {
  const closed = new Set(trace.pools.filter((p) => !isOpen(p)).map((p) => p.id));
  const list = new Map(trace.pools.filter((p) => p.option === 'on-demand').map((p) => [p.id, p.onDemandUsdPerHour]));
  return {
    pools: () => trace.pools,
    quote: (pool: PoolId, at: EpochMs): UsdPerHour | null => {
      if (closed.has(pool)) return null;
      const price = list.get(pool);
      if (price !== undefined) return price;
      const known = priceAt(trace.prices(pool), least(at, now()));
      return known === null ? null : usdPerHour(known);
    },
    history: (pool, from, to) => stepsKnown(trace.prices(pool), from, to, now()),
  };
}

export interface AwsMarketParts {
  readonly book: PriceBook;
  readonly historyS: number;
  readonly zones: readonly string[];
  readonly types: readonly string[];
  /** Ids of capacity reservations; absent: none. */
  readonly reservations?: readonly string[];
  readonly now: () => EpochMs;
  /** Id of the deployment. A pool that an earlier deployment found not to be offered is tried again. */
  readonly deployment?: string;
}

export interface AwsPrices extends KnownMarket {
  readonly trace: MarketTrace;
  readonly onDemand: ListSource;
}

/**
 * Pools and prices of a deployment, read again after each fetch. Each type and zone with a spot price gives pools: EC2
 * sells such a type on demand too. On-demand prices are the region's (on-demand-prices.ts), or the catalogue's until
 * these are known. Reserved pools come from capacity reservations; one that accepts no instances now quotes no price.
 */
export class AwsMarket {
  readonly #parts: AwsMarketParts;
  readonly #catalogue: Catalogue = builtInCatalogue();
  /** Last read prices, with their version. */
  #known: (AwsPrices & { readonly version: string }) | null = null;

  constructor(parts: AwsMarketParts) {
    this.#parts = parts;
  }

  async prices(): Promise<AwsPrices> {
    const { book, now, historyS, types, zones, deployment } = this.#parts;
    const { checkedMs, listedMs, reservedMs, closed } = await book.read(deployment);
    const known = this.#known;
    const version = `${checkedMs} ${listedMs} ${reservedMs} ${[...closed].sort().join()}`;
    if (known?.version === version) return known;
    const nowMs = raw(now());
    // Prices from a clock ahead of this one are read too. They stay hidden until their time comes here.
    const toMs = Math.max(nowMs, checkedMs ?? nowMs);
    const fromMs = nowMs - historyS * 1000;
    const [prices, list, reserved] = await Promise.all([
      checkedMs === null ? new Map<string, SpotMarket['prices']>() : book.prices({ fromMs, toMs, checkedMs }),
      listedMs === null ? null : book.list(),
      reservedMs === null ? [] : book.reserved(),
    ]);
    const onDemand = sourceOf(list, types);
    const header = { name: nameOf(onDemand), startMs: epochMs(fromMs), endMs: epochMs(toMs) };
    const trace = withReserved(traceOf(header, this.#markets({ prices, list, reserved })), reserved);
    const full = this.#closedReservations(reserved);
    const isOpen = ({ id, type, zone }: Pool): boolean =>
      types.includes(type.name) && zones.includes(zone) && !closed.has(id) && !full.has(id);
    this.#known = {
      trace,
      market: {
        ...marketOf(trace, now, isOpen),
        completeUntil: () => (checkedMs === null ? null : least(epochMs(checkedMs), now())),
      },
      checkedMs,
      version,
      onDemand,
    };
    return this.#known;
  }

  /** Pools whose reservations accept no instances now, or are no longer named. */
  #closedReservations(reserved: readonly ReservedPool[]): ReadonlySet<PoolId> {
    const { reservations = [] } = this.#parts;
    return new Set(reserved.filter((p) => !p.ids.some((id) => reservations.includes(id))).map(poolOf));
  }

  #markets({ prices, list, reserved }: Known): SpotMarket[] {
    const instances = new Map(reserved.map((p) => [`${p.type}/${p.zone}`, p.instances]));
    return [...new Set([...prices.keys(), ...instances.keys()])].flatMap((key) => {
      const { type, zone } = poolParts(poolId(`${key}/spot`));
      const there = instances.get(key);
      const entry = this.#catalogue.entry(type, this.#parts.now());
      if (entry === null) return [];
      return [
        {
          type: offeredType(entry.type),
          zone,
          onDemandUsdPerHour: list?.usdPerHour[type] ?? onDemandUsdOf(entry),
          prices: prices.get(key) ?? NO_PRICES,
          availability: null,
          ...(there === undefined ? {} : { reserved: { instances: there, usdPerHour: 0 } }),
        },
      ];
    });
  }
}

interface Known {
  readonly prices: ReadonlyMap<string, SpotMarket['prices']>;
  readonly list: ListPrices | null;
  readonly reserved: readonly ReservedPool[];
}

const NO_PRICES: SpotMarket['prices'] = { atMs: new Float64Array(0), usdPerHour: new Float64Array(0) };

/** Trace with the prices of reserved pools. */
function withReserved(trace: MarketTrace, reserved: readonly ReservedPool[]): MarketTrace {
  if (reserved.length === 0) return trace;
  const onDemand = new Map(trace.pools.map((p) => [p.id, onDemandUsdOf(p)]));
  const prices = new Map(reserved.map((p) => [poolOf(p), reservedPrices(p, onDemand.get(poolOf(p)) ?? 0)] as const));
  return { ...trace, prices: (pool) => prices.get(pool) ?? trace.prices(pool) };
}

/** Name of the market, with the source of on-demand prices: these decide what counts as saved. */
const nameOf = (onDemand: ListSource): string =>
  `EC2, on demand as in ${onDemand.region}${onDemand.source === 'catalogue' ? ' (built in)' : ''}`;
