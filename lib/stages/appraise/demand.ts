/**
 * Share of a new instance that one task pays for. A purchase costs the whole instance while it is held, less the part
 * that other known work will use (Stratus section 3.2.3: candidate groups). Waiting work counts if it may use the pool,
 * and only while the task itself runs: a long task alone on a large instance pays all of it, however many short tasks
 * wait beside it.
 */
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
  readonly fitting: Fitting;

  constructor(fitting: Fitting) {
    this.fitting = fitting;
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

  constructor(book: PoolBook) {
    this.#book = book;
  }

  classOf(fitting: Fitting): ClassDemand {
    const requestClass = new ClassDemand(fitting);
    this.#requestClasses.push(requestClass);
    this.#byPool = null;
    return requestClass;
  }

  add(requestClass: ClassDemand, count: number, runtimeS: number): void {
    requestClass.tasks.add(count, runtimeS);
    this.#byPool = null;
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
    const instances = Math.max(1, Math.ceil(own / perInstance - 1e-9));
    const others = Math.max(0, (this.#pools()[pool]?.during(chargedS) ?? 0) - own * share);
    const used = Math.min(1, (own * share + others) / instances);
    return Math.min(1 / ran, share / Math.max(share * ran, used));
  }

  #pools(): readonly (Bins | undefined)[] {
    return (this.#byPool ??= this.#summed());
  }

  #summed(): readonly (Bins | undefined)[] {
    const byPool: (Bins | undefined)[] = Array.from({ length: this.#book.views.length });
    for (const { tasks, fitting } of this.#requestClasses) {
      fitting.pools.forEach((pool, i) => {
        (byPool[pool] ??= new Bins()).addScaled(tasks, fitting.shares[i] ?? 0);
      });
    }
    return byPool;
  }
}
