import { once } from '../../kernel/once.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { Constraints, Preference } from '../../domain/job.ts';
import { slowdownOn } from '../../domain/slowdown.ts';
import { milliCpuOf, type Bid, type Pool, type PoolView } from '../../domain/pool.ts';
import { vector, type Resources } from '../../domain/resources.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { OnNewInstances } from '../../policy/colocation/on-new-instances.ts';
import { NO_SLOWDOWN, type Slowdown } from '../../policy/colocation/slowdowns.ts';
import { Demand, type ClassDemand } from './demand.ts';
import type { Holding } from './holding.ts';
import { Lowest } from './lowest.ts';
import type { PoolBook, PricedPool } from './pools.ts';

/** A pool at a bid, for one request class. */
export interface Place {
  readonly pool: Pool;
  readonly bid: Bid;
  readonly priceUsdPerHour: number;
  readonly preferred: number;
  readonly slowdown: number;
  readonly beside: Slowdown;
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
  /** Running time there over that where all soft constraints are met, beside the usual neighbours. */
  readonly slowdown: number;
  /** Part of it that neighbours bear. */
  readonly beside: Slowdown;
  /** Next try of a pool in back-off. */
  readonly opens: Offer['opens'] | undefined;
  #places: readonly Place[] | null = null;

  constructor({
    priced,
    index,
    share,
    preferred,
    slowdown = 1,
    beside = NO_SLOWDOWN,
    opens,
  }: Pick<ClassPool, 'priced' | 'index' | 'share' | 'preferred'> &
    Partial<Pick<ClassPool, 'slowdown' | 'beside' | 'opens'>>) {
    this.priced = priced;
    this.index = index;
    this.share = share;
    this.preferred = preferred;
    this.slowdown = slowdown;
    this.beside = beside;
    this.opens = opens;
  }

  /** One per bid of the pool, shared by all equivalence classes. */
  get places(): readonly Place[] {
    const { priced, preferred, slowdown, beside, opens } = this;
    const { pool, priceUsdPerHour } = priced;
    return (this.#places ??= priced.bids.map(({ bid }) => ({
      pool,
      bid,
      priceUsdPerHour,
      preferred,
      slowdown,
      beside,
      opens,
    })));
  }
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

/** Shares and prices of one request class in all pools, by position. Made anew for each class that is asked about. */
class Table {
  readonly share: Float64Array;
  /** Lower bound of a task's price per hour, at the best price within the hour, whatever its running time. */
  readonly leastUsd: Float64Array;
  of: RequestClass | null = null;

  constructor(pools: number) {
    this.share = new Float64Array(pools);
    this.leastUsd = new Float64Array(pools);
  }
}

/**
 * Tasks with the same need, constraints and preferences: pools are filtered once for all of them. Lists are made on
 * first use, after all waiting tasks have been told. O(pools) for each list; only listed pools are kept, and not even
 * these once they are forgotten.
 */
export class RequestClass {
  readonly id: number;
  readonly demand: ClassDemand;
  readonly #need: Resources;
  readonly #passing: Passing;
  /** Effect of soft constraints by pool; null: there are none. */
  readonly #soft: Soft | null;
  readonly #all: Demand;
  readonly #book: PoolBook;
  readonly #scratch: Table;
  readonly #scanned = once(() => this.#scan());
  readonly #known = new Map<number, ClassPool>();
  readonly #shortlists = new Map<boolean, Shortlist>();

  constructor(of: {
    readonly id: number;
    readonly need: Resources;
    readonly passing: Passing;
    readonly soft: Soft | null;
    readonly all: Demand;
    readonly book: PoolBook;
    readonly scratch: Table;
  }) {
    this.id = of.id;
    this.#need = of.need;
    this.#passing = of.passing;
    this.#soft = of.soft;
    this.#all = of.all;
    this.#book = of.book;
    this.#scratch = of.scratch;
    this.demand = of.all.classOf({ need: vector(of.need), kind: of.passing });
  }

  get excluded(): readonly { readonly constraint: string; readonly pools: number }[] {
    return this.#scanned().excluded;
  }

  /** The cheapest pools that are never interrupted, by a task's price and by the whole instance, with on-demand. */
  nonInterruptible(): readonly ClassPool[] {
    return this.#scanned().nonInterruptible.map((index) => this.#poolAt(index));
  }

  /** Spot pools worth appraising, for work whose interruptions are refunded, or not. */
  spot(isRefunded: boolean): Shortlist {
    let known = this.#shortlists.get(isRefunded);
    if (known === undefined) this.#shortlists.set(isRefunded, (known = this.#listed(isRefunded)));
    return known;
  }

  /** Lists are worked out anew when they are asked for again. */
  forget(): void {
    this.#known.clear();
    this.#shortlists.clear();
  }

  /** Pools that suit it together with all other work that waits under the same constraints. */
  together(): readonly ClassPool[] {
    const suiting = this.#all.poolsTogether(this.demand);
    const fitting = suiting.filter((index) => this.#book.shareOf(this.demand.need, index) < Infinity);
    return fitting.toSorted((a, b) => a - b).map((index) => this.#poolAt(index));
  }

  /**
   * The cheapest pools of each size of instance, spot or not: for what fills no instance of the others. Sizes double
   * from one to the next, by vCPUs.
   */
  sizes(): readonly ClassPool[] {
    const sides = [new Map<number, Lowest>(), new Map<number, Lowest>()] as const;
    this.#eachOpen((index, leastUsd) => {
      const { pool } = this.#book.priced(index);
      const side = sides[pool.option === 'spot' ? 0 : 1];
      const size = Math.round(Math.log2(milliCpuOf(pool)));
      let lowest = side.get(size);
      if (lowest === undefined) side.set(size, (lowest = new Lowest(PER_SIZE)));
      lowest.add(index, leastUsd);
    });
    const found = sides.flatMap((side) => [...side.values()].flatMap((of) => of.positions));
    return found.map((index) => this.#poolAt(index));
  }

  /** Shares of an instance that a task pays for. */
  shares({ index, share, priced }: ClassPool, holding: Holding): Shares {
    const { runtimeS, ofNewS, besideS, aloneS } = holding;
    const ofNew = this.#all.paidShare(this.demand, { pool: index, share }, { runtimeS, chargedS: ofNewS });
    const room = this.#book.roomFor(priced.pool.id, this.#need);
    if (room === null) return { own: share, ofNew, inRoom: null };
    const beside = room.usedPaidS === null ? Infinity : fraction(besideS(room.usedPaidS), runtimeS) * share;
    const alone = room.emptyPaidS === null ? Infinity : fraction(aloneS(room.emptyPaidS), runtimeS) * share;
    const inRoom = Math.max(LEAST_IN_ROOM * share, Math.min(beside, alone));
    return { own: share, ofNew, inRoom };
  }

  #poolAt(index: number): ClassPool {
    let known = this.#known.get(index);
    if (known === undefined) {
      const priced = this.#book.priced(index);
      const backOff = this.#book.isOpen(index) ? undefined : this.#book.views[index]?.backOff;
      const opens = backOff && { atMs: backOff.untilMs, p: chanceAfter(backOff.refusals) };
      const share = this.#book.shareOf(this.demand.need, index);
      known = new ClassPool({ priced, index, share, ...this.#softIn(index), opens });
      this.#known.set(index, known);
    }
    return known;
  }

  #softIn(index: number): SoftEffect {
    return this.#soft === null ? NO_EFFECT : this.#soft(index);
  }

  /** Price there over the price of a pool without preference and slowdown. */
  #feltPrice(index: number): number {
    const { preferred, slowdown } = this.#softIn(index);
    return (1 - preferred) * slowdown;
  }

  /** Pools that it may use now, in order, with the least price of a task. */
  #eachOpen(visit: (index: number, leastUsd: number) => void): void {
    const { share, leastUsd } = this.#table();
    for (const index of this.#passing.pools) {
      if ((share[index] ?? Infinity) < Infinity && this.#book.isOpen(index)) visit(index, leastUsd[index] ?? 0);
    }
  }

  /** Valid until another class asks for its own. O(pools). */
  #table(): Table {
    const table = this.#scratch;
    if (table.of === this) return table;
    table.of = this;
    const { pools } = this.#passing;
    for (const pool of pools) table.share[pool] = this.#book.shareOf(this.demand.need, pool);
    const paid = this.#all.leastShares(this.demand, pools, table.share);
    for (const pool of pools) {
      if (!this.#mayOpen(pool)) continue;
      table.leastUsd[pool] = this.#book.lowUsd(pool) * (paid[pool] ?? 0) * this.#feltPrice(pool);
    }
    return table;
  }

  /** True if it can be bought, now or after its back-off. */
  #mayOpen(index: number): boolean {
    return this.#book.isOpen(index) || (this.#book.standing(index) === 'closed' && this.#isBackedOff(index));
  }

  #isBackedOff(index: number): boolean {
    const { pool, backOff } = this.#book.views[index] as PoolView;
    return backOff !== undefined && pool.option === 'spot';
  }

  /** Price of a whole instance, likewise; per hour of work. */
  #wholeUsd(index: number): number {
    return this.#book.lowUsd(index) * this.#feltPrice(index);
  }

  #scan(): Scanned {
    const { share, leastUsd } = this.#table();
    const byTask = new Lowest(NON_INTERRUPTIBLE_POOLS);
    const byInstance = new Lowest(CHEAPEST_WHOLE);
    const onDemand = new Lowest(1);
    const excluded = new Map(this.#passing.excluded);
    const backedOff: number[] = [];
    let hasSpot = false;
    for (const index of this.#passing.pools) {
      const standing = share[index] === Infinity ? 'resources' : this.#book.standing(index);
      if (standing !== 'open') excluded.set(standing, (excluded.get(standing) ?? 0) + 1);
      if (standing === 'closed' && this.#isBackedOff(index)) backedOff.push(index);
      if (standing !== 'open') continue;
      const { option } = this.#book.priced(index).pool;
      const usd = leastUsd[index] ?? 0;
      if (option === 'spot') hasSpot = true;
      else {
        byTask.add(index, usd);
        byInstance.add(index, this.#wholeUsd(index), usd);
      }
      if (option === 'on-demand') onDemand.add(index, usd);
    }
    const kept = new Set([...byTask.positions, ...onDemand.positions, ...byInstance.positions]);
    return {
      nonInterruptible: [...kept].toSorted((a, b) => (leastUsd[a] ?? 0) - (leastUsd[b] ?? 0) || a - b),
      fallbackUsd: onDemand.keys[0] ?? Infinity,
      hasSpot,
      backedOff,
      excluded: [...excluded].map(([constraint, pools]) => ({ constraint, pools })),
    };
  }

  #listed(isRefunded: boolean): Shortlist {
    const { hasSpot, backedOff } = this.#scanned();
    if (hasSpot) return this.#shortlist(isRefunded);
    const isHeld = ({ priced }: ClassPool): number => Number(this.#book.held.has(priced.pool.id));
    const { leastUsd } = this.#table();
    const usdOf = ({ index }: ClassPool): number => leastUsd[index] ?? 0;
    const waiting = backedOff.map((index) => this.#poolAt(index));
    waiting.sort((a, b) => isHeld(b) - isHeld(a) || usdOf(a) - usdOf(b));
    return { cheapest: waiting.slice(0, BACKED_OFF_POOLS), safestFromUsd: Infinity, safest: () => [] };
  }

  /**
   * Spot pools for the full appraisal. The cheapest at their best price (now or in an hour, whichever is lower, less
   * refunds and preferences), by a task's least price and by the whole instance; then the safest that are cheaper than
   * on-demand. A pool left out is dearer than all kept ones even if it were never interrupted, and riskier too.
   */
  #shortlist(isRefunded: boolean): Shortlist {
    const { fallbackUsd } = this.#scanned();
    const eachSpot = (visit: (index: number, usd: number) => void): void =>
      this.#eachOpen((index, leastUsd) => {
        const priced = this.#book.priced(index);
        if (priced.pool.option === 'spot') visit(index, leastUsd * (isRefunded ? priced.leastCharged : 1));
      });
    const most = CHEAPEST_PER_OFFER * this.#book.config.offersPerGroup;
    const byTask = new Lowest(most + CHEAPEST_WHOLE + 1);
    const byInstance = new Lowest(most + CHEAPEST_WHOLE);
    eachSpot((index, usd) => {
      byTask.add(index, usd);
      byInstance.add(index, this.#wholeUsd(index), usd);
    });
    const kept = new Set(byTask.positions.slice(0, most));
    const whole = byInstance.positions.filter((index) => !kept.has(index)).slice(0, CHEAPEST_WHOLE);
    for (const index of whole) kept.add(index);
    const next = byTask.keys.find((usd, i) => usd < fallbackUsd && !kept.has(byTask.positions[i] ?? -1));
    const safest = (): readonly ClassPool[] => {
      const byRisk = new Lowest(SAFEST);
      eachSpot((index, usd) => {
        if (usd < fallbackUsd && !kept.has(index)) byRisk.add(index, this.#book.priced(index).hazard, usd);
      });
      return byRisk.positions.map((index) => this.#poolAt(index));
    };
    return { cheapest: [...kept].map((index) => this.#poolAt(index)), safestFromUsd: next ?? Infinity, safest };
  }
}

const fraction = (part: number, all: number): number => (all > 0 ? part / all : 0);

/** Probability that the next try succeeds after this many refusals in a row: Laplace's rule of succession. */
const chanceAfter = (refusals: number): number => 1 / (refusals + 2);

/** Pools as positions in the book. */
interface Scanned {
  readonly nonInterruptible: readonly number[];
  /** Least price of a task on demand, US dollars per hour. */
  readonly fallbackUsd: number;
  readonly hasSpot: boolean;
  /** Spot pools in back-off. */
  readonly backedOff: readonly number[];
  readonly excluded: RequestClass['excluded'];
}

/** What soft constraints change in one pool. */
type SoftEffect = Pick<ClassPool, 'preferred' | 'slowdown' | 'beside'>;
const NO_EFFECT: SoftEffect = { preferred: 0, slowdown: 1, beside: NO_SLOWDOWN };
/** The same by the position of a pool. */
type Soft = (index: number) => SoftEffect;

/**
 * Request classes by content, made on first use. Filtering is O(pools) per distinct constraints, and O(pools) per
 * request class for its lists.
 */
export class RequestClassBook {
  readonly #book: PoolBook;
  readonly #demand: Demand;
  readonly #requestClasses = new Map<string, RequestClass>();
  readonly #passing = new Map<string, Passing>();
  readonly #soft = new Map<string, Soft>();
  readonly #scratch: Table;

  constructor(book: PoolBook) {
    this.#book = book;
    this.#scratch = new Table(book.views.length);
    this.#demand = new Demand(book);
  }

  /** Adds waiting tasks. All are added before the first list of any request class is read. */
  add({ demand }: RequestClass, count: number, runtimeS: number): void {
    this.#demand.add(demand, count, runtimeS);
  }

  of(
    { need, stage: { constraints, preferences } }: Pick<PendingGroup, 'need' | 'stage'>,
    neighbours: OnNewInstances | null,
  ): RequestClass {
    const constraintKey = JSON.stringify(constraints);
    const preferenceKey = preferences.length === 0 ? '' : JSON.stringify(preferences);
    const key = `${vector(need).join(',')} ${constraintKey} ${preferenceKey} ${neighbours?.key ?? ''}`;
    let requestClass = this.#requestClasses.get(key);
    if (requestClass === undefined) {
      const passing = known(this.#passing, constraintKey, () => passingPools(this.#book, constraints));
      const wishes =
        preferenceKey === '' ? null : known(this.#soft, preferenceKey, () => softIn(this.#book, preferences));
      const soft = neighbours === null ? wishes : besideIn(this.#book, neighbours, wishes);
      const [book, all, scratch] = [this.#book, this.#demand, this.#scratch];
      const id = this.#requestClasses.size;
      requestClass = new RequestClass({ id, need, passing, soft, all, book, scratch });
      this.#requestClasses.set(key, requestClass);
    }
    return requestClass;
  }
}

function known<T>(of: Map<string, T>, key: string, make: () => T): T {
  let value = of.get(key);
  if (value === undefined) of.set(key, (value = make()));
  return value;
}

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

/** Worked out for each pool on first use. */
function softIn(book: PoolBook, preferences: readonly Preference[]): Soft {
  const effects: (SoftEffect | undefined)[] = [];
  return (index) =>
    (effects[index] ??= {
      preferred: preferredFraction(preferences, book.priced(index)),
      slowdown: slowdownOn(preferences, book.priced(index).pool),
      beside: NO_SLOWDOWN,
    });
}

/** The same with slow-downs by neighbours. */
function besideIn(book: PoolBook, neighbours: OnNewInstances, wishes: Soft | null): Soft {
  return (index) => {
    const { preferred, slowdown } = wishes === null ? NO_EFFECT : wishes(index);
    const beside = neighbours.on(book.priced(index).pool.type);
    return { preferred, slowdown: slowdown * beside.factor, beside };
  };
}

function preferredFraction(preferences: readonly Preference[], { pool }: PricedPool): number {
  let sum = 0;
  for (const { prefer, weight } of preferences) if (brokenConstraint(prefer, pool) === null) sum += weight;
  return Math.min(1, Math.max(0, sum));
}
