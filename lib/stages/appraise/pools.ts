import { compareText } from '../../kernel/compare.ts';
import type { PoolId } from '../../kernel/ids.ts';
import { once } from '../../kernel/once.ts';
import { gt, plus, raw, rawOrNull, seconds, secondsBetween, usdPerHour, type EpochMs } from '../../kernel/units.ts';
import { pInterruptedWithin, type InterruptionCurve } from '../../domain/forecast.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { Doubles } from '../../domain/distribution.ts';
import { type Bid, type Pool, type PoolView, onDemandUsdOf } from '../../domain/pool.ts';
import { fits, KINDS, mostOfEach, NO_RESOURCES, SLACK, vector, type Resources } from '../../domain/resources.ts';
import type { Instance } from '../../domain/instance.ts';
import { instanceParts, type InstanceView, type Snapshot } from '../../domain/snapshot.ts';
import { paidForS } from '../../market/billing.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import { readCurve, tabulate, type CurvePoint, type CurveTable } from './curve-table.ts';

/**
 * A bid with its curve, tabulated once per cycle for all groups; bids of a pool in a row with equal curves share the
 * table.
 */
interface BidForecast {
  readonly bid: Bid;
  readonly curve: InterruptionCurve;
  readonly table: CurveTable;
}

const HOUR_S = 3600;

/**
 * The snapshot's pools by index. Prices and curves are computed on first use, because most pools never pass the
 * filters.
 */
export class PoolBook {
  readonly views: readonly PoolView[];
  /** Capacities, KINDS numbers per pool in the order of RESOURCE_KINDS. */
  readonly capacity: Float64Array;
  readonly market: MarketForecast;
  readonly nowMs: EpochMs;
  readonly config: SchedulerConfig;
  /** Buffers for the tables of its pools. */
  readonly doubles = new Doubles();
  readonly #snapshot: Snapshot;
  readonly #priced: (PricedPool | undefined)[] = [];
  readonly #lowUsd: (number | undefined)[] = [];
  readonly #standings: (Standing | undefined)[] = [];
  readonly #rooms = new Map<PoolId, RoomInPool | null>();

  constructor(snapshot: Snapshot, market: MarketForecast, config: SchedulerConfig) {
    // Ids order pools, so that the order in the snapshot does not matter.
    this.views = [...snapshot.pools].sort((a, b) => compareText(a.pool.id, b.pool.id));
    this.capacity = new Float64Array(this.views.length * KINDS);
    this.views.forEach((v, i) => this.capacity.set(vector(v.pool.type.capacity), i * KINDS));
    this.#snapshot = snapshot;
    this.market = market;
    this.nowMs = snapshot.nowMs;
    this.config = config;
  }

  /** True if it has a price that may be paid, and takes purchases. */
  isOpen(index: number): boolean {
    return this.standing(index) === 'open';
  }

  standing(index: number): Standing {
    return (this.#standings[index] ??= standingOf(this.views[index], this.held));
  }

  /** Of a pool with a price: the lower of the price now and the one expected in an hour. */
  lowUsd(index: number): number {
    return (this.#lowUsd[index] ??= this.priced(index).lowPriceUsdPerHour);
  }

  /** Dominant share that a task takes of an instance; Infinity where it does not fit. */
  shareOf(need: readonly number[], index: number): number {
    let share = 0;
    for (let k = 0; k < KINDS; k++) {
      const n = need[k] ?? 0;
      if (n === 0) continue;
      const c = this.capacity[index * KINDS + k] ?? 0;
      if (n > c + SLACK) return Infinity;
      if (n / c > share) share = n / c;
    }
    return share;
  }

  /** Pools with an instance that takes tasks. */
  get held(): Pick<ReadonlySet<PoolId>, 'has'> {
    return instanceParts(this.#snapshot).takingTasks;
  }

  /**
   * Instances of the pool that may have room for a task. Null: none can, by the largest free amount of each resource.
   */
  roomFor(pool: PoolId, need: Resources): RoomInPool | null {
    let room = this.#rooms.get(pool);
    if (room === undefined) this.#rooms.set(pool, (room = this.#roomIn(pool)));
    return room !== null && fits(need, room.mostFree) ? room : null;
  }

  #roomIn(pool: PoolId): RoomInPool | null {
    const there = instanceParts(this.#snapshot).takingTasks.get(pool);
    if (there === undefined) return null;
    const paid = (of: readonly InstanceView[]): number | null =>
      of.length === 0 ? null : of.reduce((most, { instance }) => Math.max(most, this.#paidForS(instance)), 0);
    const [empty = [], used = []] = [true, false].map((isEmpty) =>
      there.filter(({ attempts }) => (attempts.length === 0) === isEmpty),
    );
    return {
      mostFree: there.reduce((free, view) => mostOfEach(free, view.free), NO_RESOURCES),
      emptyPaidS: paid(empty),
      usedPaidS: paid(used),
    };
  }

  #paidForS({ launchedMs }: Instance): number {
    return launchedMs === null ? 0 : paidForS(Math.max(0, secondsBetween(launchedMs, this.nowMs)), this.config);
  }

  /** A pool with a quote. */
  priced(index: number): PricedPool {
    return (this.#priced[index] ??= this.#price(index));
  }

  #price(index: number): PricedPool {
    const view = this.views[index];
    if (view === undefined || view.quote === null) throw new RangeError(`pool ${index} has no price`);
    return new PricedPool(view.pool, raw(view.quote), this);
  }
}

/** Whether a pool may be used now, or why not. */
export type Standing = 'open' | 'no price' | 'price above on-demand' | 'closed';

function standingOf(view: PoolView | undefined, held: Pick<ReadonlySet<PoolId>, 'has'>): Standing {
  if (view === undefined || view.quote === null) return 'no price';
  if (isAboveOnDemand(view)) return 'price above on-demand';
  return view.open || isUsedUp(view, held) ? 'open' : 'closed';
}

/** True for a reservation whose instances all live: they take tasks, now or when others end. */
const isUsedUp = ({ pool, backOff, reservedLeft }: PoolView, held: Pick<ReadonlySet<PoolId>, 'has'>): boolean =>
  reservedLeft !== undefined && reservedLeft <= 0 && backOff === undefined && held.has(pool.id);

/**
 * True for spot that costs more than on-demand now: never worth buying. Work that may only use spot waits for the price
 * to fall. EC2 has the same default: the maximum price of a Spot request is the on-demand price (EC2 User Guide, "Spot
 * Instances", maximum price).
 */
export const isAboveOnDemand = ({ pool, quote }: PoolView): boolean =>
  pool.option === 'spot' && quote !== null && gt(quote, pool.onDemandUsdPerHour);

/** Room on the instances of a pool that take tasks. */
export interface RoomInPool {
  /** Largest free amount of each resource. */
  readonly mostFree: Resources;
  /** Longest time that is paid already, seconds: of instances without tasks, and of the others. Null: there is none. */
  readonly emptyPaidS: number | null;
  readonly usedPaidS: number | null;
}

/** Inputs to the prices of all pools of a cycle. */
type PricedIn = Pick<PoolBook, 'market' | 'nowMs' | 'config' | 'doubles'>;

/** A pool that is open for purchases. Everything but its price is computed on first use: most pools are never asked. */
export class PricedPool {
  readonly pool: Pool;
  readonly priceUsdPerHour: number;
  readonly #of: PricedIn;
  #lowPriceUsdPerHour: number | null = null;
  readonly #bidding = once(() => {
    const bids = this.#forecastBids();
    const lost = bids.map(({ curve }) => pInterruptedWithin(curve, seconds(HOUR_S)));
    const leastCharged = Math.min(1, ...bids.map(({ table }) => chargedInFirstHour(table)));
    return { bids, leastCharged, hazard: Math.min(1, ...lost), highestHazard: Math.max(0, ...lost) };
  });

  constructor(pool: Pool, priceUsdPerHour: number, of: PricedIn) {
    this.pool = pool;
    this.priceUsdPerHour = priceUsdPerHour;
    this.#of = of;
  }

  /** Expected mean price of the next seconds under an uncapped bid. */
  meanUsdPerHour(overS: number): number | null {
    return rawOrNull(this.#of.market.meanPrice?.(this.pool, seconds(overS)) ?? null);
  }

  /** The lower of the price now and the one expected in an hour. */
  get lowPriceUsdPerHour(): number {
    return (this.#lowPriceUsdPerHour ??= this.lowestBy(plus(this.#of.nowMs, seconds(HOUR_S))));
  }

  /** The lower of the price now and the one expected at a later time. */
  lowestBy(at: EpochMs): number {
    return Math.min(this.priceUsdPerHour, this.expectedUsdPerHour(at));
  }

  /** Expected price at an instant; the present price without a price forecast. */
  expectedUsdPerHour(at: EpochMs): number {
    const expected = this.pool.option === 'spot' ? this.#of.market.expectedPrice(this.pool, at) : null;
    return rawOrNull(expected) ?? this.priceUsdPerHour;
  }

  get bids(): readonly BidForecast[] {
    return this.#bidding().bids;
  }

  /**
   * Least fraction of running time that is charged over its bids, where first hours are refunded: below 1 where that is
   * likely.
   */
  get leastCharged(): number {
    return this.#bidding().leastCharged;
  }

  /** P(interrupted within an hour) of its safest bid. */
  get hazard(): number {
    return this.#bidding().hazard;
  }

  /** The same of its riskiest bid. */
  get highestHazard(): number {
    return this.#bidding().highestHazard;
  }

  #forecastBids(): readonly BidForecast[] {
    const { market, config, doubles } = this.#of;
    const bids: BidForecast[] = [];
    for (const bid of bidsFor(this.pool, this.priceUsdPerHour, config)) {
      const curve = market.interruption(this.pool, bid);
      const lower = bids.at(-1);
      const table = lower !== undefined && isSameCurve(lower.curve, curve) ? lower.table : tabulate(curve, doubles);
      bids.push({ bid, curve, table });
    }
    return bids;
  }
}

/** Bids that no price of the known past lies between are lost alike. */
const isSameCurve = (a: InterruptionCurve, b: InterruptionCurve): boolean =>
  a === b || (isSame(a.pInterrupted, b.pInterrupted) && isSame(a.horizonS, b.horizonS));

export function isSame(a: Float64Array, b: Float64Array): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * Bids tried in a pool: market price + each delta (Tributary 2.2.3), the on-demand price (the usual bid, Stratus
 * 3.2.3), and none at all. Ascending; a delta that reaches the on-demand price is left out; so is an on-demand price
 * below the market.
 */
export function bidsFor(pool: Pool, price: number, config: Pick<SchedulerConfig, 'bidDeltas'>): readonly Bid[] {
  if (pool.option !== 'spot') return ['uncapped'];
  const onDemand = onDemandUsdOf(pool);
  const bids = config.bidDeltas.map((delta) => price + delta).filter((bid) => bid < onDemand || price >= onDemand);
  if (onDemand >= price) bids.push(onDemand);
  bids.sort((a, b) => a - b);
  const distinct = bids.filter((bid, i) => i === 0 || bid - (bids[i - 1] ?? 0) > 1e-9);
  return [...distinct.map(usdPerHour), 'uncapped'];
}

/**
 * Share of the first hour's running time that is paid for when interruptions within it are free (Tributary eq. 2.2).
 */
function chargedInFirstHour(table: CurveTable): number {
  const point: CurvePoint = { lost: 0, aliveS: 0 };
  readCurve(table, HOUR_S, point);
  return point.aliveS <= 0 ? 1 : (HOUR_S * (1 - point.lost)) / point.aliveS;
}
