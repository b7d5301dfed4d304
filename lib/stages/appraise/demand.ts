/**
 * Share of a new instance that one task pays for. A purchase costs the whole instance while it is held, less the part
 * that other known work will use (Stratus section 3.2.3: candidate groups). Waiting work counts if it may use the pool,
 * and only while the task itself runs: a long task alone on a large instance pays all of it, however many short tasks
 * wait beside it. Work that needs other resources than the task shares an instance with it at less than the task's
 * dominant share (mix.ts).
 */
import { Mix, type Kind } from './mix.ts';
import type { PoolBook } from './pools.ts';

/** Exponential runtime bins (Stratus section 3.2.2), in seconds: [0, 1), [1, 2), [2, 4), ... */
const BINS = 40;
const binOf = (runtimeS: number): number =>
  runtimeS < 1 ? 0 : Math.min(BINS - 1, Math.floor(Math.log2(runtimeS)) + 1);

/** Waiting work per runtime bin: amount (tasks, or shares of an instance), and amount x running time. */
class Bins {
  readonly #amount = new Float64Array(BINS);
  readonly #time = new Float64Array(BINS);
  /** Bins with work. */
  readonly #used: number[] = [];

  add(amount: number, runtimeS: number): void {
    this.#put(binOf(runtimeS), amount, amount * runtimeS);
  }

  addScaled(other: Bins, factor: number): void {
    for (const bin of other.#used) {
      this.#put(bin, (other.#amount[bin] ?? 0) * factor, (other.#time[bin] ?? 0) * factor);
    }
  }

  #put(bin: number, amount: number, time: number): void {
    if (amount === 0) return;
    if (this.#amount[bin] === 0) this.#used.push(bin);
    this.#amount[bin] = (this.#amount[bin] ?? 0) + amount;
    this.#time[bin] = (this.#time[bin] ?? 0) + time;
  }

  /** Amount times running time, of all. */
  get total(): number {
    return this.#time.reduce((sum, time) => sum + time, 0);
  }

  /** Amount over the next `runtimeS`; work that ends earlier counts for its own running time. O(bins in use). */
  during(runtimeS: number): number {
    let sum = 0;
    for (const bin of this.#used) {
      sum += Math.min(this.#amount[bin] ?? 0, (this.#time[bin] ?? 0) / Math.max(runtimeS, 1e-9));
    }
    return sum;
  }
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
  readonly kind: Kind;

  constructor({ need, kind }: Pick<ClassDemand, 'need' | 'kind'>) {
    this.need = need;
    this.kind = kind;
  }
}

/** Waiting work by pool. */
interface ByPool {
  readonly work: readonly Bins[];
  /** What is there at once. */
  readonly atOnce: Float64Array;
}

/**
 * Waiting work by request class and by pool. All of it is added before the first question. O(tasks' groups) to add,
 * then O(request classes x pools x bins in use) once, O(bins in use) per question.
 */
export class Demand {
  readonly #book: PoolBook;
  readonly #requestClasses: ClassDemand[] = [];
  #byPool: ByPool | null = null;
  #mix: Mix | null = null;
  #least: Float64Array | null = null;

  constructor(book: PoolBook) {
    this.#book = book;
  }

  classOf(of: Pick<ClassDemand, 'need' | 'kind'>): ClassDemand {
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
    const own = Math.max(ran, of.tasks.during(chargedS));
    const all = this.#pools().work[pool]?.during(chargedS) ?? 0;
    return paid({ share, mixed: this.#shareIn(pool, of.need, share), own, ran, all });
  }

  /**
   * The least paid share for any running time, in pools where one task takes `shares`, of a class with so many tasks at
   * once. O(pools x resources).
   */
  leastShares(of: ClassDemand, pools: readonly number[], shares: Float64Array): Float64Array {
    const own = Math.max(1, of.tasks.during(0));
    const { atOnce } = this.#pools();
    const least = (this.#least ??= new Float64Array(this.#book.views.length));
    for (const pool of pools) {
      const share = shares[pool] ?? 0;
      if (share === Infinity) continue;
      const mixed = this.#shareIn(pool, of.need, share);
      least[pool] = share > 0 ? paid({ share, mixed, own, ran: 1, all: atOnce[pool] ?? 0 }) : share;
    }
    return least;
  }

  /** Pools, by position, that suit all waiting work with the same constraints together. */
  poolsTogether({ kind }: ClassDemand): readonly number[] {
    return this.#mixed().poolsFor(kind);
  }

  /** Share of a full instance that a task pays, with the work that fills it beside the task. */
  #shareIn(pool: number, need: readonly number[], share: number): number {
    return Math.min(share, this.#mixed().shareIn(pool, need) ?? share);
  }

  #mixed(): Mix {
    return (this.#mix ??= new Mix(
      this.#requestClasses.map(({ need, tasks, kind }) => ({ need, amount: tasks.total, kind })),
      this.#book,
    ));
  }

  #pools(): ByPool {
    return (this.#byPool ??= this.#summed());
  }

  #summed(): ByPool {
    const work = this.#book.views.map(() => new Bins());
    for (const of of this.#requestClasses) {
      for (const pool of of.kind.pools) {
        if (!this.#book.isOpen(pool)) continue;
        const share = this.#book.shareOf(of.need, pool);
        if (share < Infinity) work[pool]?.addScaled(of.tasks, this.#shareIn(pool, of.need, share));
      }
    }
    return { work, atOnce: Float64Array.from(work, (of) => of.during(0)) };
  }
}

/** Tasks of a class count for at least one; `all` is the work of all classes. */
function paid(of: {
  /** Dominant share of a task, and its share of a full instance. */
  readonly share: number;
  readonly mixed: number;
  readonly own: number;
  readonly ran: number;
  readonly all: number;
}): number {
  const { share, mixed, own, ran, all } = of;
  const perInstance = Math.max(1, Math.floor(1 / share + 1e-9));
  const instances = Math.max(1, Math.ceil(own / perInstance - 1e-9));
  const others = Math.max(0, all - own * mixed);
  const used = Math.min(1, (own * mixed + others) / instances);
  return Math.min(1 / ran, mixed / Math.max(mixed * ran, used));
}
