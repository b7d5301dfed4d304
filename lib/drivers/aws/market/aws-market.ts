import { epochMs, least, mib, raw, usdPerHour, type EpochMs, type UsdPerHour } from '../../../kernel/units.ts';
import type { PoolId } from '../../../kernel/ids.ts';
import type { InstanceType, Pool } from '../../../domain/pool.ts';
import { builtInCatalogue, type Catalogue } from '../../../market/catalogue.ts';
import { WARM_UP_MS } from '../../../market/features/price-window.ts';
import { priceAt, stepsKnown, traceOf, type SpotMarket } from '../../../market/price-steps.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { Market } from '../../../ports/market.ts';
import type { KnownMarket } from '../compose/deployment.ts';
import { sourceOf, type ListPrices, type ListSource } from './list-prices.ts';
import type { PriceBook } from './price-book.ts';

/**
 * Share of an instance's memory that the host's own system takes before ECS registers the rest: what Karpenter reckons
 * with (settings, `VM_MEMORY_OVERHEAD_PERCENT`, 0.075). A task that was promised more would never find room.
 */
const MEMORY_OVERHEAD = 0.075;

/**
 * Engine time that prices are read back: what forecasts from history look at, and what the features of a model need to
 * begin with.
 */
export const historyNeededS = (priceHistoryS: number): number => Math.max(priceHistoryS, WARM_UP_MS / 1000);

/** The type as ECS offers it to tasks. */
export const offeredType = (type: InstanceType): InstanceType => ({
  ...type,
  capacity: {
    ...type.capacity,
    memory: mib(Math.floor(raw(type.capacity.memory) * (1 - MEMORY_OVERHEAD))),
  },
});

/**
 * The Market port over a trace that ends at what is known: the newest price holds until another one is, and what came
 * after `now` is not shown to a process whose clock is behind. Pools that are not to be bought from quote no price:
 * instances there may be, from before, but no new ones.
 */
function marketOf(trace: MarketTrace, now: () => EpochMs, isOpen: (pool: Pool) => boolean): Market {
  const closed = new Set(trace.pools.filter((p) => !isOpen(p)).map((p) => p.id));
  const list = new Map(trace.pools.filter((p) => p.option !== 'spot').map((p) => [p.id, p.onDemandUsdPerHour]));
  return {
    pools: () => trace.pools,
    quote: (pool: PoolId, at: EpochMs): UsdPerHour | null => {
      if (closed.has(pool)) return null;
      const price = list.get(pool);
      if (price !== undefined) return price;
      const spot = priceAt(trace.prices(pool), least(at, now()));
      return spot === null ? null : usdPerHour(spot);
    },
    history: (pool, from, to) => stepsKnown(trace.prices(pool), from, to, now()),
  };
}

export interface AwsMarketParts {
  readonly book: PriceBook;
  readonly historyS: number;
  readonly zones: readonly string[];
  readonly types: readonly string[];
  readonly now: () => EpochMs;
  /** Which deployment this is: what an earlier one found not to be on offer is tried again. */
  readonly deployment?: string;
}

export interface AwsPrices extends KnownMarket {
  readonly trace: MarketTrace;
  readonly onDemand: ListSource;
}

/**
 * Pools and prices of a deployment, read anew when EC2 has been asked since. A pool is one whose type and zone have a
 * spot price: where EC2 sells a type at all, it sells it on demand and on spot. On-demand prices are the region's
 * (list-prices.ts), or the catalogue's until they are known.
 */
export class AwsMarket {
  readonly #parts: AwsMarketParts;
  readonly #catalogue: Catalogue = builtInCatalogue();
  /** With what it was made of. */
  #known: (AwsPrices & { readonly version: string }) | null = null;

  constructor(parts: AwsMarketParts) {
    this.#parts = parts;
  }

  async prices(): Promise<AwsPrices> {
    const { book, now, historyS, types, zones, deployment } = this.#parts;
    const { checkedMs, listedMs, closed } = await book.read(deployment);
    const known = this.#known;
    const version = `${checkedMs} ${listedMs} ${[...closed].sort().join()}`;
    if (known?.version === version) return known;
    const nowMs = raw(now());
    // What a clock that is ahead of this one has fetched is read all the same: it is shown when its time has come here,
    // too.
    const toMs = Math.max(nowMs, checkedMs ?? nowMs);
    const fromMs = nowMs - historyS * 1000;
    const [prices, list] = await Promise.all([
      checkedMs === null ? new Map<string, SpotMarket['prices']>() : book.prices({ fromMs, toMs, checkedMs }),
      listedMs === null ? null : book.list(),
    ]);
    const onDemand = sourceOf(list, types);
    const header = { name: nameOf(onDemand), startMs: epochMs(fromMs), endMs: epochMs(toMs) };
    const trace = traceOf(header, this.#markets(prices, list));
    this.#known = {
      trace,
      market: {
        ...marketOf(trace, now, (p) => types.includes(p.type.name) && zones.includes(p.zone) && !closed.has(p.id)),
        completeUntil: () => (checkedMs === null ? null : least(epochMs(checkedMs), now())),
      },
      checkedMs,
      version,
      onDemand,
    };
    return this.#known;
  }

  #markets(prices: ReadonlyMap<string, SpotMarket['prices']>, list: ListPrices | null): SpotMarket[] {
    return [...prices].flatMap(([key, steps]) => {
      const [type = '', zone = ''] = key.split('/');
      const entry = this.#catalogue.entry(type, this.#parts.now());
      if (entry === null) return [];
      return [
        {
          type: offeredType(entry.type),
          zone,
          onDemandUsdPerHour: list?.usdPerHour[type] ?? raw(entry.onDemandUsdPerHour),
          prices: steps,
          availability: null,
        },
      ];
    });
  }
}

/** Says whose on-demand prices these are, for they decide what counts as saved. */
const nameOf = (onDemand: ListSource): string =>
  `EC2, on demand as in ${onDemand.region}${onDemand.source === 'catalogue' ? ' (built in)' : ''}`;
