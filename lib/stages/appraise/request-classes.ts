import { once } from '../../kernel/once.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { Constraints, Preference } from '../../domain/job.ts';
import { gt } from '../../kernel/units.ts';
import { milliCpuOf, type Bid, type Pool, type PoolView } from '../../domain/pool.ts';
import { KINDS, SLACK, vector, type Resources } from '../../domain/resources.ts';
import { Demand, type ClassDemand } from './demand.ts';
import { LEAST_HELD, type Holding } from './holding.ts';
import type { PoolBook, PricedPool } from './pools.ts';

/** A pool at a bid, for one request class. */
export interface Place {
  readonly pool: Pool;
  readonly bid: Bid;
  readonly priceUsdPerHour: number;
  readonly preferred: number;
  readonly opens: Offer['opens'] | undefined;
}

/** A pool, for one request class. */
export class ClassPool {
  readonly priced: PricedPool;
  /** Position of the pool in the book. */
  readonly index: number;
  /** Dominant share of one task. */
  readonly share: number;
  /** Price reduction for matched preferences, a fraction in [0, 1]. */
  readonly preferred: number;
  /** Next try of a pool in back-off. */
  readonly opens: Offer['opens'] | undefined;
  #places: readonly Place[] | null = null;

  constructor({
    priced,
    index,
    share,
    preferred,
    opens,
  }: Pick<ClassPool, 'priced' | 'index' | 'share' | 'preferred'> & Partial<Pick<ClassPool, 'opens'>>) {
    this.priced = priced;
    this.index = index;
    this.share = share;
    this.preferred = preferred;
    this.opens = opens;
  }

  /** One per bid of the pool, shared by all equivalence classes. */
  get places(): readonly Place[] {
    const { priced, preferred, opens } = this;
    const { pool, priceUsdPerHour } = priced;
    return (this.#places ??= priced.bids.map(({ bid }) => ({ pool, bid, priceUsdPerHour, preferred, opens })));
  }
}

/** Tasks with the same need, constraints and preferences: pools are filtered once for all of them. */
export interface RequestClass {
  readonly id: number;
  /** Its waiting tasks: told before any list is asked for. */
  readonly demand: ClassDemand;
  /** The cheapest pools that are never interrupted. */
  readonly nonInterruptible: () => readonly ClassPool[];
  /** Spot pools worth appraising, for work whose interruptions are refunded, or not. */
  readonly spot: (isRefunded: boolean) => Shortlist;
  /** Pools that suit it together with all other work that waits under the same constraints. */
  readonly together: () => readonly ClassPool[];
  /** The cheapest pools of each size of instance, spot or not: for what fills no instance of the others. */
  readonly sizes: () => readonly ClassPool[];
  /** Shares of an instance that a task pays for. */
  readonly shares: (pool: ClassPool, holding: Holding) => Shares;
  readonly excluded: readonly { readonly constraint: string; readonly pools: number }[];
}

/**
 * Cost of a task over the price of the instance times the running time. Above 0; above 1 where more time is charged.
 */
export interface Shares {
  /** Dominant share of the task. */
  readonly own: number;
  /** On a new instance. */
  readonly ofNew: number;
  /** In room on an instance of the pool. Null: none has room now. */
  readonly inRoom: number | null;
}

/**
 * Least part of its own share that a task pays in room whose time is paid anyway: other work could use it, and a tie
 * goes to the cheaper pool.
 */
const LEAST_IN_ROOM = 0.05;

/** Spot pools that enter the full appraisal, the others only where the first ones do not do. */
interface Shortlist {
  readonly cheapest: readonly ClassPool[];
  /** US dollars per hour that a task pays in `safest` at least, at the best price within the hour. */
  readonly safestFromUsd: number;
  /** Safest of the remaining pools. Reads the risk of all of them. */
  readonly safest: () => readonly ClassPool[];
}

/** Spot pools appraised in full per offer that is kept, by lowest price; and how many more by lowest risk. */
const CHEAPEST_PER_OFFER = 3;
const SAFEST = 6;
const NON_INTERRUPTIBLE_POOLS = 3;
/**
 * Pools with the lowest price of a whole instance, which a task without company pays. So many of spot, and of
 * non-interruptible capacity, are always appraised.
 */
const CHEAPEST_WHOLE = 3;
/** Pools of each size that what fills no other instance is offered. */
const PER_SIZE = 2;
/**
 * Spot pools in back-off, appraised if no other spot pool is open: waiting for one may be cheaper than on-demand. Pools
 * whose instances may have room come first.
 */
const BACKED_OFF_POOLS = 3;

/**
 * Request classes by content, made on first use. Filtering is O(pools) per distinct constraints for the constraints and
 * O(pools) per request class for the resources.
 */
export class RequestClassBook {
  readonly #book: PoolBook;
  readonly #demand: Demand;
  readonly #requestClasses = new Map<string, RequestClass>();
  readonly #passing = new Map<string, Passing>();

  constructor(book: PoolBook) {
    this.#book = book;
    this.#demand = new Demand(book);
  }

  /** Adds waiting tasks. All are added before the first list of any request class is read. */
  add({ demand }: RequestClass, count: number, runtimeS: number): void {
    this.#demand.add(demand, count, runtimeS);
  }

  of(need: Resources, constraints: Constraints, preferences: readonly Preference[]): RequestClass {
    const constraintKey = JSON.stringify(constraints);
    const key = `${vector(need).join(',')} ${constraintKey} ${preferences.length === 0 ? '' : JSON.stringify(preferences)}`;
    let requestClass = this.#requestClasses.get(key);
    if (requestClass === undefined) {
      let passing = this.#passing.get(constraintKey);
      if (passing === undefined) {
        passing = passingPools(this.#book, constraints);
        this.#passing.set(constraintKey, passing);
      }
      requestClass = this.#make({ id: this.#requestClasses.size, need, preferences, passing });
      this.#requestClasses.set(key, requestClass);
    }
    return requestClass;
  }

  #make(of: { id: number; need: Resources; preferences: readonly Preference[]; passing: Passing }): RequestClass {
    const { views, capacity } = this.#book;
    const need = vector(of.need);
    const excluded = new Map(of.passing.excluded);
    const count = (reason: string): void => void excluded.set(reason, (excluded.get(reason) ?? 0) + 1);
    const pools: ClassPool[] = [];
    const backedOff: ClassPool[] = [];
    const fitting = { pools: [] as number[], shares: [] as number[] };
    for (const index of of.passing.pools) {
      let share = 0;
      for (let k = 0; k < KINDS; k++) {
        const n = need[k] ?? 0;
        const c = capacity[index * KINDS + k] ?? 0;
        if (n > c + SLACK) share = Infinity;
        else if (n > 0) share = Math.max(share, n / c);
      }
      const view = views[index];
      if (share === Infinity) count('resources');
      else if (view === undefined || view.quote === null) count('no price');
      else if (isAboveOnDemand(view)) count('price above on-demand');
      else if (!view.open) {
        count('closed');
        if (view.backOff === undefined || view.pool.option !== 'spot') continue;
        const priced = this.#book.priced(index);
        const opens = { atMs: view.backOff.untilMs, p: chanceAfter(view.backOff.refusals) };
        backedOff.push(
          new ClassPool({ priced, index, share, preferred: preferredFraction(of.preferences, priced), opens }),
        );
      } else {
        const priced = this.#book.priced(index);
        fitting.pools.push(index);
        fitting.shares.push(share);
        pools.push(new ClassPool({ priced, index, share, preferred: preferredFraction(of.preferences, priced) }));
      }
    }
    const demand = this.#demand.classOf({ need, fitting, kind: of.passing });
    const shares = (pool: ClassPool, holding: Holding): Shares => this.#shares(of.need, { demand, pool, holding });
    const lowUsd = ({ priced, preferred }: ClassPool, share: number): number =>
      priced.lowPriceUsdPerHour * share * (1 - preferred);
    // Lower bound of a task's price, whatever its running time.
    const leastUsd = (p: ClassPool): number => lowUsd(p, shares(p, LEAST_HELD).ofNew);
    const wholeUsd = (p: ClassPool): number => lowUsd(p, 1);
    const nonInterruptible = pools.filter(({ priced }) => priced.pool.option !== 'spot');
    const spot = pools.filter(({ priced }) => priced.pool.option === 'spot');
    const isHeld = ({ priced }: ClassPool): number => Number(this.#book.held.has(priced.pool.id));
    const listed = (isRefunded: boolean): Shortlist => {
      if (spot.length > 0) return this.#shortlist(spot, { leastUsd, wholeUsd, isRefunded, fallback: fallback() });
      backedOff.sort((a, b) => isHeld(b) - isHeld(a) || leastUsd(a) - leastUsd(b));
      return listOf(backedOff.slice(0, BACKED_OFF_POOLS));
    };
    const fallback = once(() =>
      nonInterruptible.reduce(
        (least, p) => (p.priced.pool.option === 'on-demand' ? Math.min(least, leastUsd(p)) : least),
        Infinity,
      ),
    );
    const refunded = once(() => listed(true));
    const charged = once(() => listed(false));
    return {
      id: of.id,
      demand,
      nonInterruptible: once(() => calmest(nonInterruptible, { leastUsd, wholeUsd })),
      spot: (isRefunded) => (isRefunded ? refunded() : charged()),
      together: () => {
        const suiting = new Set(this.#demand.poolsTogether(demand));
        return pools.filter(({ index }) => suiting.has(index));
      },
      sizes: () => [spot, nonInterruptible].flatMap((side) => cheapestOfSizes(side, leastUsd)),
      shares,
      excluded: [...excluded].map(([constraint, n]) => ({ constraint, pools: n })),
    };
  }

  #shares(
    need: Resources,
    of: { readonly demand: ClassDemand; readonly pool: ClassPool; readonly holding: Holding },
  ): Shares {
    const { index, share, priced } = of.pool;
    const { runtimeS, ofNewS, besideS, aloneS } = of.holding;
    const paid = (chargedS: number): number =>
      this.#demand.paidShare(of.demand, { pool: index, share }, { runtimeS, chargedS });
    const ofNew = paid(ofNewS);
    const room = this.#book.roomFor(priced.pool.id, need);
    if (room === null) return { own: share, ofNew, inRoom: null };
    const beside = room.usedPaidS === null ? Infinity : fraction(besideS(room.usedPaidS), runtimeS) * share;
    const alone = room.emptyPaidS === null ? Infinity : fraction(aloneS(room.emptyPaidS), runtimeS) * share;
    const inRoom = Math.max(LEAST_IN_ROOM * share, Math.min(beside, alone));
    return { own: share, ofNew, inRoom };
  }

  /**
   * Spot pools for the full appraisal. The cheapest at their best price (now or in an hour, whichever is lower, less
   * refunds and preferences), by a task's least price and by the whole instance; then the safest that are cheaper than
   * on-demand. A pool left out is dearer than all kept ones even if it were never interrupted, and riskier too.
   */
  #shortlist(
    spot: readonly ClassPool[],
    of: Prices & { readonly fallback: number; readonly isRefunded: boolean },
  ): Shortlist {
    const charged = ({ priced }: ClassPool): number => (of.isRefunded ? priced.leastCharged : 1);
    const ranked = spot.map((p): Ranked => ({ p, usd: of.leastUsd(p) * charged(p) })).sort(cheaper);
    const cheapest = CHEAPEST_PER_OFFER * this.#book.config.offersPerGroup;
    const kept = ranked.slice(0, cheapest);
    const whole = cheapestWhole(ranked.slice(cheapest), of);
    const rest = ranked.slice(cheapest).filter((r) => r.usd < of.fallback && !whole.includes(r));
    return {
      cheapest: [...kept, ...whole].map(({ p }) => p),
      safestFromUsd: rest[0]?.usd ?? Infinity,
      safest: () =>
        rest
          .map(({ p, usd }) => ({ p, usd, hazard: p.priced.hazard }))
          .sort((a, b) => a.hazard - b.hazard || a.usd - b.usd)
          .slice(0, SAFEST)
          .map(({ p }) => p),
    };
  }
}

const fraction = (part: number, all: number): number => (all > 0 ? part / all : 0);

const listOf = (cheapest: readonly ClassPool[]): Shortlist => ({
  cheapest,
  safestFromUsd: Infinity,
  safest: () => [],
});

/** US dollars per hour at the best price within the hour, less preferences. */
interface Prices {
  /** Least price that a task pays. */
  readonly leastUsd: (p: ClassPool) => number;
  /** Price of a whole instance. */
  readonly wholeUsd: (p: ClassPool) => number;
}

/**
 * Non-interruptible pools: the cheapest by a task's price, and by the whole instance, with on-demand among them.
 * Cheapest first.
 */
function calmest(nonInterruptible: readonly ClassPool[], prices: Prices): readonly ClassPool[] {
  const ranked = nonInterruptible.map((p): Ranked => ({ p, usd: prices.leastUsd(p) })).sort(cheaper);
  const onDemand = ranked.findIndex(({ p }) => p.priced.pool.option === 'on-demand');
  const whole = cheapestWhole(ranked, prices);
  return ranked.filter((r, i) => i < NON_INTERRUPTIBLE_POOLS || i === onDemand || whole.includes(r)).map(({ p }) => p);
}

const cheapestWhole = (of: readonly Ranked[], { wholeUsd }: Prices): readonly Ranked[] =>
  [...of].sort((a, b) => wholeUsd(a.p) - wholeUsd(b.p)).slice(0, CHEAPEST_WHOLE);

/** Sizes double from one to the next, by vCPUs. */
function cheapestOfSizes(pools: readonly ClassPool[], leastUsd: Prices['leastUsd']): readonly ClassPool[] {
  const sizes = new Map<number, Ranked[]>();
  for (const p of pools) {
    const size = Math.round(Math.log2(milliCpuOf(p.priced.pool)));
    const ranked = { p, usd: leastUsd(p) };
    const of = sizes.get(size);
    if (of === undefined) sizes.set(size, [ranked]);
    else of.push(ranked);
  }
  return [...sizes.values()].flatMap((of) =>
    of
      .sort(cheaper)
      .slice(0, PER_SIZE)
      .map(({ p }) => p),
  );
}

/**
 * True for spot that costs more than on-demand now: never worth buying. Work that may only use spot waits for the price
 * to fall. EC2 has the same default: the maximum price of a Spot request is the on-demand price (EC2 User Guide, "Spot
 * Instances", maximum price).
 */
export const isAboveOnDemand = ({ pool, quote }: PoolView): boolean =>
  pool.option === 'spot' && quote !== null && gt(quote, pool.onDemandUsdPerHour);

/** Probability that the next try succeeds after this many refusals in a row: Laplace's rule of succession. */
const chanceAfter = (refusals: number): number => 1 / (refusals + 2);

interface Ranked {
  readonly p: ClassPool;
  /** US dollars per hour that a task pays, at its best. */
  readonly usd: number;
}
/** Ties keep the order of the pool list, by pool id. */
const cheaper = (a: Ranked, b: Ranked): number => a.usd - b.usd;

interface Passing {
  readonly pools: readonly number[];
  readonly excluded: ReadonlyMap<string, number>;
}

/**
 * Each excluded pool is counted under the first constraint that it breaks (lib/domain/constraints.ts has the order).
 */
function passingPools(book: PoolBook, constraints: Constraints): Passing {
  const pools: number[] = [];
  const excluded = new Map<string, number>();
  book.views.forEach(({ pool }, index) => {
    const broken = brokenConstraint(constraints, pool);
    if (broken === null) pools.push(index);
    else excluded.set(broken, (excluded.get(broken) ?? 0) + 1);
  });
  return { pools, excluded };
}

function preferredFraction(preferences: readonly Preference[], { pool }: PricedPool): number {
  let sum = 0;
  for (const { prefer, weight } of preferences) if (brokenConstraint(prefer, pool) === null) sum += weight;
  return Math.min(1, Math.max(0, sum));
}
