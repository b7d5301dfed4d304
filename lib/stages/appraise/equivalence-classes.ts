import { once } from '../../kernel/once.ts';
import { plus, seconds, type EpochMs } from '../../kernel/units.ts';
import type { Distribution } from '../../domain/distribution.ts';
import type { GroupOffers } from '../../policy/contracts.ts';
import type { CurveTable } from './curve-table.ts';
import { holdingOf, type Holding } from './holding.ts';
import { unhurriedOutcome, type Terms, type Unhurried } from './outcome.ts';
import { isSame, type PoolBook } from './pools.ts';
import type { Place, RequestClass, ClassPool, Shares } from './request-classes.ts';
import { slowed } from '../../domain/slowdown.ts';
import { capUsd } from '../../domain/pool.ts';

const HOUR_S = 3600;

/** Remaining work that the tasks of one equivalence class share. */
export interface ClassWork {
  /** Remaining running time, with the checkpoint read first. */
  readonly runtime: Distribution;
  readonly meanS: number;
  readonly terms: Pick<Terms, 'lossS' | 'restoreS' | 'startMeanS' | 'startMaxS'>;
}

/** Bids of a pool, with the outcome of each without a deadline. */
export interface Options {
  readonly places: readonly Place[];
  /** One per bid. Bids with equal price and risk share a record: their outcome is the same. */
  readonly appraised: readonly Appraised[];
  readonly shares: Shares;
  /** Shares of tasks with a deadline, which start together: none waits for a slot that another one has paid for. */
  readonly hurriedShares: Shares;
  readonly rates: Omit<Rates, 'rate'>;
  /** Running time there over that where all soft constraints are met, beside the usual neighbours. */
  readonly slowdown: number;
  /** The same with one standard deviation of what neighbours do: for lateness. */
  readonly safeSlowdown: number;
}
/** Outcome without a deadline, and its inputs. */
export interface Appraised extends Unhurried, Pick<Rates, 'rate'> {
  readonly table: CurveTable;
}
type Rates = Pick<Terms, 'rate' | 'fallbackRate' | 'freeBeforeS'>;

/** Lower bound of a cost, preferences taken off. */
export interface AtLeast {
  readonly leastUsd: number;
}
/** Part of a class's spot pools, by their lower bound; computed on first use. */
export interface SpotPools extends AtLeast {
  readonly pools: () => readonly SpotPool[];
}
export interface SpotPool extends AtLeast {
  readonly options: () => Options;
}

/** Lists of options, each made on first use. */
class Lists {
  readonly nonInterruptible: () => readonly Options[];
  /** Shortlisted spot pools: the cheapest, then the safest. */
  readonly spot: () => readonly SpotPools[];
  readonly together: () => readonly Options[];
  readonly sizes: () => readonly Options[];

  constructor(of: RequestClass, options: (pool: ClassPool) => Options, spot: () => readonly SpotPools[]) {
    this.nonInterruptible = once(() => of.nonInterruptible().map(options));
    this.spot = once(spot);
    this.together = once(() => of.together().map(options));
    this.sizes = once(() => of.sizes().map(options));
  }
}

/**
 * Tasks with one request class and one remaining running time. Outcomes without a deadline are computed once, pool by
 * pool on first use, and again after they were forgotten.
 */
export class EquivalenceClass {
  readonly offersByDeadline = new Map<string, GroupOffers>();
  readonly #requestClass: RequestClass;
  readonly #work: ClassWork;
  readonly #book: PoolBook;
  readonly #holding: Holding;
  readonly #onUse: (used: EquivalenceClass) => void;
  #lists: Lists | null = null;

  constructor(
    requestClass: RequestClass,
    work: ClassWork,
    { book, onUse }: { readonly book: PoolBook; readonly onUse: (used: EquivalenceClass) => void },
  ) {
    this.#requestClass = requestClass;
    this.#onUse = onUse;
    this.#work = work;
    this.#book = book;
    this.#holding = holdingOf(work.runtime, work.meanS, book.config);
  }

  get #kept(): Lists {
    this.#onUse(this);
    return (this.#lists ??= new Lists(
      this.#requestClass,
      (pool) => this.#options(pool),
      () => this.#listed(),
    ));
  }

  forget(): void {
    this.#lists = null;
    this.#requestClass.forget();
  }

  /** Options in non-interruptible pools. */
  get nonInterruptible(): readonly Options[] {
    return this.#kept.nonInterruptible();
  }

  /** Shortlisted spot pools: the cheapest, then the safest. */
  get spot(): readonly SpotPools[] {
    return this.#kept.spot();
  }

  /** Options in pools that suit it together with other work. */
  together(): readonly Options[] {
    return this.#kept.together();
  }

  /** Options of each size of instance, for what fills no other. */
  sizes(): readonly Options[] {
    return this.#kept.sizes();
  }

  #listed(): readonly SpotPools[] {
    const { lossS } = this.#work.terms;
    const isRefunded = this.#book.config.refundRule === 'first-hour' && Number.isFinite(lossS);
    const { cheapest, safest, safestFromUsd } = this.#requestClass.spot(isRefunded);
    const ascending = (pools: readonly ClassPool[]): readonly SpotPool[] =>
      pools.map((pool) => this.#spotPool(pool, isRefunded)).sort((a, b) => a.leastUsd - b.leastUsd);
    return [
      { leastUsd: 0, pools: once(() => ascending(cheapest)) },
      { leastUsd: (safestFromUsd * this.#work.meanS) / HOUR_S, pools: once(() => ascending(safest())) },
    ];
  }

  /**
   * Lower bound of the cost, from the closed forms of outcome.ts. Interruptions make work longer, and fleeing is no
   * cheaper than `fallback`, so only a refund can push the cost below the price of the running time. That holds only
   * for saved work: refunded work that is lost has to run again. The refund of a try is at most the cost of
   * interruptions within the first hour.
   */
  #spotPool(pool: ClassPool, isRefunded: boolean): SpotPool {
    const { meanS } = this.#work;
    const { priced, preferred, slowdown } = pool;
    const { ofNew: share } = this.#requestClass.shares(pool, this.#holding);
    const rate = (priced.lowestBy(this.#halfway) * share) / HOUR_S;
    const kept = isRefunded ? 1 - priced.highestHazard : 1;
    const leastUsd = Math.min(rate * slowdown, this.#fallbackRate ?? Infinity) * meanS * kept * (1 - preferred);
    return { leastUsd, options: once(() => this.#options(pool)) };
  }

  get #halfway(): EpochMs {
    const { startDelayMeanS } = this.#book.config;
    return plus(this.#book.nowMs, seconds(startDelayMeanS + this.#work.meanS / 2));
  }

  #fallback: { readonly usdPerS: number | null } | null = null;

  /** Cheapest on-demand pool, US dollars per second of its work that the task pays there; null when none fits. */
  get #fallbackRate(): number | null {
    return (this.#fallback ??= { usdPerS: this.#cheapestOnDemand() }).usdPerS;
  }

  #cheapestOnDemand(): number | null {
    const rates = this.#requestClass
      .nonInterruptible()
      .filter(({ priced }) => priced.pool.option === 'on-demand')
      .map((p) => (p.priced.priceUsdPerHour * p.slowdown * this.#requestClass.shares(p, this.#holding).ofNew) / HOUR_S);
    return rates.length === 0 ? null : Math.min(...rates);
  }

  #options(pool: ClassPool): Options {
    const { priced, places, slowdown, beside } = pool;
    const shares = this.#requestClass.shares(pool, this.#holding);
    const spot = priced.pool.option === 'spot';
    const price = priced.expectedUsdPerHour(this.#halfway);
    const freeBeforeS = spot && this.#book.config.refundRule === 'first-hour' ? HOUR_S : 0;
    const fallback = this.#fallbackRate;
    // The outcome counts in seconds on this pool.
    const rates = { fallbackRate: fallback === null ? null : fallback / slowdown, freeBeforeS };
    const { terms } = this.#work;
    const runtime = slowed(this.#work.runtime, slowdown);
    let last: Appraised | null = null;
    const appraised = priced.bids.map(({ bid, table }): Appraised => {
      // A capped bid never pays more than the bid; an uncapped one also pays the spikes, which the mean holds.
      const paid =
        bid === 'uncapped'
          ? spot
            ? Math.max(price, priced.meanUsdPerHour(this.#work.meanS) ?? 0)
            : price
          : Math.min(price, capUsd(bid));
      const rate = (paid * shares.ofNew) / HOUR_S;
      if (last !== null && last.table === table && last.rate === rate) return last;
      const { outcome, safeFromS } = unhurriedOutcome(runtime, table, { ...terms, ...rates, rate });
      return (last = { outcome, safeFromS, table, rate });
    });
    const { runtimeS, ofNewS } = this.#holding;
    const alone = runtimeS > 0 ? (shares.own * ofNewS) / runtimeS : 0;
    const hurriedShares = { ...shares, ofNew: Math.max(shares.ofNew, alone) };
    const safeSlowdown = slowdown * Math.exp(beside.sd);
    return { places, appraised, shares, hurriedShares, rates, slowdown, safeSlowdown };
  }
}

/** Equivalence classes whose lists are kept: each has some ten kilobytes. */
const MOST_KEPT = 1000;

/** Equivalence classes by content, made on first use. The lists of those used last are kept. */
export class EquivalenceClassBook {
  readonly #book: PoolBook;
  /** Running times that differ, by their mean: few have the same. */
  readonly #runtimes = new Map<number, NumberedRuntime[]>();
  #runtimeCount = 0;
  readonly #equivalenceClasses = new Map<string, EquivalenceClass>();
  /** The one used last comes last. */
  readonly #used = new Set<EquivalenceClass>();
  #last: EquivalenceClass | null = null;

  constructor(book: PoolBook) {
    this.#book = book;
  }

  of(requestClass: RequestClass, work: ClassWork): EquivalenceClass {
    const key = `${requestClass.id} ${this.#numberOf(work)} ${work.terms.lossS} ${work.terms.restoreS}`;
    let equivalenceClass = this.#equivalenceClasses.get(key);
    if (equivalenceClass === undefined) {
      equivalenceClass = new EquivalenceClass(requestClass, work, { book: this.#book, onUse: this.#onUse });
      this.#equivalenceClasses.set(key, equivalenceClass);
    }
    return equivalenceClass;
  }

  readonly #onUse = (used: EquivalenceClass): void => {
    if (used === this.#last) return;
    this.#last = used;
    this.#used.delete(used);
    this.#used.add(used);
    if (this.#used.size <= MOST_KEPT) return;
    const [oldest] = this.#used;
    if (oldest === undefined) return;
    this.#used.delete(oldest);
    oldest.forget();
  };

  #numberOf({ runtime, meanS }: ClassWork): number {
    let alike = this.#runtimes.get(meanS);
    if (alike === undefined) this.#runtimes.set(meanS, (alike = []));
    const known = alike.find((of) => isSameDistribution(of.runtime, runtime));
    if (known !== undefined) return known.number;
    const number = this.#runtimeCount++;
    alike.push({ runtime, number });
    return number;
  }
}

interface NumberedRuntime {
  readonly runtime: Distribution;
  readonly number: number;
}

const isSameDistribution = (a: Distribution, b: Distribution): boolean =>
  a === b || (isSame(a.atS, b.atS) && isSame(a.weight, b.weight));
