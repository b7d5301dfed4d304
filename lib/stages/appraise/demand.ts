/**
 * Share of a new instance that one task pays for. A purchase costs the whole instance while it is held, less the part
 * that other known work will use (Stratus section 3.2.3: candidate groups). Waiting work counts if it may use the pool,
 * and only while the task itself runs: a long task alone on a large instance pays all of it, however many short tasks
 * wait beside it. Work that needs other resources than the task shares an instance with it at less than the task's
 * dominant share (mix.ts).
 */
import { Mix } from './mix.ts';
import type { PoolBook } from './pools.ts';

/** Exponential runtime bins (Stratus section 3.2.2), in seconds: [0, 1), [1, 2), [2, 4), ... */
const BINS = 40;
const binOf = (runtimeS: number): number =>
  runtimeS < 1 ? 0 : Math.min(BINS - 1, Math.floor(Math.log2(runtimeS)) + 1);

/** Waiting work per runtime bin: amount (tasks, or shares of an instance), and amount x running time. */
class Bins {
  readonly #amount = new Float64Array(BINS);
  readonly #time = new Float64Array(BINS);

  add(amount: number, runtimeS: number): void {
    const bin = binOf(runtimeS);
    this.#amount[bin] = (this.#amount[bin] ?? 0) + amount;
    this.#time[bin] = (this.#time[bin] ?? 0) + amount * runtimeS;
  }

  addScaled(other: Bins, factor: number): void {
    for (let bin = 0; bin < BINS; bin++) {
      const amount = other.#amount[bin] ?? 0;
      if (amount === 0) continue;
      this.#amount[bin] = (this.#amount[bin] ?? 0) + amount * factor;
      this.#time[bin] = (this.#time[bin] ?? 0) + (other.#time[bin] ?? 0) * factor;
    }
  }

  /** Amount times running time, of all. */
  get total(): number {
    return this.#time.reduce((sum, time) => sum + time, 0);
  }

  /** Amount over the next `runtimeS`; work that ends earlier counts for its own running time. */
  during(runtimeS: number): number {
    let sum = 0;
    for (let bin = 0; bin < BINS; bin++) {
      const amount = this.#amount[bin] ?? 0;
      if (amount > 0) sum += Math.min(amount, (this.#time[bin] ?? 0) / Math.max(runtimeS, 1e-9));
    }
    return sum;
  }
}

/** Pools that fit a request class, with the share of an instance that one task takes. */
export interface Fitting {
  readonly pools: readonly number[];
  readonly shares: readonly number[];
}

/** Running time of a task, and charged time of the instance that it holds, seconds. */
export interface HeldFor {
  readonly runtimeS: number;
  readonly chargedS: number;
}

/** Waiting tasks of one request class. */
export class ClassDemand {
  readonly tasks = new Bins();
  readonly need: readonly number[];
  readonly fitting: Fitting;
  /** Shared by classes with the same constraints. */
  readonly kind: object;

  constructor({ need, fitting, kind }: Pick<ClassDemand, 'need' | 'fitting' | 'kind'>) {
    this.need = need;
    this.fitting = fitting;
    this.kind = kind;
  }
}

/**
 * Waiting work by request class and by pool. All of it is added before the first question. O(tasks' groups) to add,
 * then O(request classes x pools x bins in use) once, O(bins) per question.
 */
export class Demand {
  readonly #book: PoolBook;
  readonly #requestClasses: ClassDemand[] = [];
  #byPool: readonly (Bins | undefined)[] | null = null;
  #mix: Mix | null = null;

  constructor(book: PoolBook) {
    this.#book = book;
  }

  classOf(of: Pick<ClassDemand, 'need' | 'fitting' | 'kind'>): ClassDemand {
    const requestClass = new ClassDemand(of);
    this.#requestClasses.push(requestClass);
    this.#byPool = null;
    this.#mix = null;
    return requestClass;
  }

  add(requestClass: ClassDemand, count: number, runtimeS: number): void {
    requestClass.tasks.add(count, runtimeS);
    this.#byPool = null;
    this.#mix = null;
  }

  /**
   * Paid share: cost of a new instance that the task bears, over its price times the running time. At least `share`, at
   * most charged over running time: all of a started hour, if no other work is known that could use its rest. No time
   * gives the least share for any running time.
   */
  paidShare(of: ClassDemand, at: { readonly pool: number; readonly share: number }, held: HeldFor): number {
    const { pool, share } = at;
    if (!(share > 0)) return share;
    const { runtimeS, chargedS } = held;
    const ran = chargedS > 0 ? Math.min(1, runtimeS / chargedS) : 1;
    const perInstance = Math.max(1, Math.floor(1 / share + 1e-9));
    const own = Math.max(ran, of.tasks.during(chargedS));
    const mixed = this.#shareIn(pool, of, share);
    const instances = Math.max(1, Math.ceil(own / perInstance - 1e-9));
    const others = Math.max(0, (this.#pools()[pool]?.during(chargedS) ?? 0) - own * mixed);
    const used = Math.min(1, (own * mixed + others) / instances);
    return Math.min(1 / ran, mixed / Math.max(mixed * ran, used));
  }

  /** Pools, by position, that suit all waiting work with the same constraints together. */
  poolsTogether({ kind }: ClassDemand): readonly number[] {
    return this.#mixed().poolsFor(kind);
  }

  /** Share of a full instance that a task pays, with the work that fills it beside the task. */
  #shareIn(pool: number, { need }: ClassDemand, share: number): number {
    return Math.min(share, this.#mixed().shareIn(pool, need) ?? share);
  }

  #mixed(): Mix {
    return (this.#mix ??= new Mix(
      this.#requestClasses.map(({ need, tasks, fitting, kind }) => ({
        need,
        amount: tasks.total,
        pools: fitting.pools,
        kind,
      })),
      { capacities: this.#book.capacity, usdOf: (index) => this.#book.priced(index).priceUsdPerHour },
    ));
  }

  #pools(): readonly (Bins | undefined)[] {
    return (this.#byPool ??= this.#summed());
  }

  #summed(): readonly (Bins | undefined)[] {
    const byPool: (Bins | undefined)[] = Array.from({ length: this.#book.views.length });
    for (const of of this.#requestClasses) {
      const { pools, shares } = of.fitting;
      pools.forEach((pool, i) => {
        (byPool[pool] ??= new Bins()).addScaled(of.tasks, this.#shareIn(pool, of, shares[i] ?? 0));
      });
    }
    return byPool;
  }
}
