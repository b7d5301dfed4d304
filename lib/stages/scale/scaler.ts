import { compareText } from '../../kernel/compare.ts';
import { descending, raw } from '../../kernel/units.ts';
import { capUsd, vcpusOf, type Bid, type Pool } from '../../domain/pool.ts';
import { KINDS, RESOURCE_KINDS, SLACK, countInVector, vector } from '../../domain/resources.ts';
import type { AcquireInput, Leftover } from '../../policy/contracts.ts';
import { effectiveUsdPerHour, eligibleOffers, openPools, vcpusLeft } from './eligible.ts';
import type { EligibleOffer } from './eligible.ts';
import { Footprint } from './footprint.ts';

/** Tasks that are alike and still need room. */
interface Pending {
  readonly leftover: Leftover;
  readonly bin: number;
  readonly need: readonly number[];
  /** Offers, ascending by pool id and bid; two bids of one pool are two offers. */
  readonly offers: readonly EligibleOffer[];
  left: number;
}

/** Instances bought alike: same pool, bid and load. */
export interface Bought {
  readonly pool: Pool;
  readonly bid: Bid;
  count: number;
  /** Free resources of each instance. */
  free: number[];
  /** Tasks on each instance. */
  tasks: number;
  /** For explanations. */
  readonly effectiveUsdPerHour: number;
  readonly pInterrupted: number;
}

/** One possible purchase: an instance and the first tasks of the list that fill it. */
interface Fill {
  readonly offer: EligibleOffer;
  readonly score: number;
  readonly usdPerHour: number;
  /** Tasks taken of each pending entry, in order. */
  readonly taken: readonly (readonly [pending: Pending, count: number])[];
}

/** Most instances bought in one step, as a part of the entry's remaining need, so that diversification can react. */
const STEP = 8;
/** Lots with room that are tried per pool before a purchase: bounds the work if needs are very mixed. */
const MOST_EXAMINED = 64;

/**
 * Stratus' scaler (section 3.2.3) on groups with counts. Per runtime bin, longest first: candidate groups are the first
 * i tasks in descending runtime; each is scored on each pool and bid offered to the longest of them by
 *   normalised used constraining resource / price,
 * where the price is the expected one of useful work (redone work and refunds in it), raised by the job's concentration
 * in the pool and by Tributary's correlation penalty, whose complement is the expected part that survives (eq. 2.6).
 * The best is bought, its tasks are assigned, and so on until all tasks have room or nothing may be bought.
 *
 * What a longer bin's instances have left is filled by shorter tasks first (up-packing, 3.2.2), since the packer will
 * do so.
 *
 * Cost: one step is O(offers x tasks of one instance x 4) plus O(offers x pools held); identical instances are bought
 * up to an eighth of the need at a time, so an entry takes O(log count) steps until single instances remain. 100,000
 * tasks in 2,000 groups: bench/appraise.ts.
 */
export class Scaler {
  readonly #input: AcquireInput;
  readonly #pools: ReadonlyMap<string, Pool>;
  readonly #footprint: Footprint;
  /** Resources of the smallest type on offer, each the unit of scores. */
  readonly #smallest: readonly number[];
  #vcpus: number;
  readonly #excluded: ReadonlySet<Leftover>;
  readonly #pending: readonly Pending[];
  readonly bought: Bought[] = [];
  /** Bought instances with room for the smallest task, by pool, newest last. */
  readonly #roomy = new Map<string, Bought[]>();
  readonly #least: readonly number[];

  constructor(input: AcquireInput, excluded: ReadonlySet<Leftover>) {
    this.#input = input;
    this.#excluded = excluded;
    this.#pools = openPools(input);
    this.#footprint = new Footprint(input);
    this.#vcpus = vcpusLeft(input);
    this.#pending = this.#list();
    this.#smallest = smallestOf(this.#pending);
    this.#least = RESOURCE_KINDS.map((_, k) => Math.min(...this.#pending.map((p) => p.need[k] ?? 0)));
  }

  /** Buys for all leftovers; returns those without room for all their tasks. */
  run(): readonly Leftover[] {
    for (const pass of this.#passes()) {
      for (const [, entries] of Map.groupBy(pass, (p) => p.bin)) this.#runBin(entries);
    }
    return this.#pending.filter((p) => p.left > 0).map((p) => p.leftover);
  }

  /** Descending runtime, then names: the order of the input does not matter. */
  #list(): Pending[] {
    const pending = this.#input.leftovers
      .filter((l) => !this.#excluded.has(l) && l.count > 0)
      .map((leftover): Pending => ({
        leftover,
        bin: runtimeBin(raw(leftover.runtimeS)),
        need: vector(leftover.group.need),
        offers: [...eligibleOffers(leftover, this.#input, this.#pools)].sort(byPoolAndBid),
        left: leftover.count,
      }));
    return pending.sort(
      (a, b) => descending(a.leftover.runtimeS, b.leftover.runtimeS) || compareText(nameOf(a), nameOf(b)),
    );
  }

  /** Order of service: if the vCPU limit will bind, work with a deadline comes before work without one. */
  #passes(): readonly (readonly Pending[])[] {
    const wanted = this.#pending.reduce((sum, p) => sum + ((p.need[0] ?? 0) / 1000) * p.left, 0);
    if (wanted <= this.#vcpus) return [this.#pending];
    const urgent = (p: Pending): boolean => p.leftover.group.class === 'deadline';
    return [this.#pending.filter(urgent), this.#pending.filter((p) => !urgent(p))];
  }

  #runBin(entries: readonly Pending[]): void {
    for (const p of entries) this.#upPack(p);
    let list = entries.filter((p) => p.left > 0);
    while (list.length > 0) {
      const fill = this.#bestFill(list);
      if (fill === null) list = list.slice(1);
      else {
        this.#buy(fill);
        list = list.filter((p) => p.left > 0);
      }
    }
  }

  #bestFill(list: readonly Pending[]): Fill | null {
    const first = list[0];
    if (first === undefined) return null;
    let best: Fill | null = null;
    for (const offer of first.offers) {
      if (vcpusOf(offer.pool) > this.#vcpus + 1e-9) continue;
      const fill = this.#fill(offer, first, list);
      if (fill !== null && (best === null || fill.score > best.score)) best = fill;
    }
    return best;
  }

  /** The best prefix of the tasks that may go to this offer. */
  #fill(offer: EligibleOffer, first: Pending, list: readonly Pending[]): Fill | null {
    const usdPerHour = this.#price(offer, first);
    const capacity = vector(offer.pool.type.capacity);
    const used: number[] = RESOURCE_KINDS.map(() => 0);
    const taken: [Pending, number][] = [];
    let best = 0;
    /** The best prefix: all of the first entries and this many tasks of the last. */
    let bestEntries = 0;
    let bestLast = 0;
    for (const p of list) {
      if (p !== first && !mayUse(p, offer)) continue;
      let count = 0;
      while (count < p.left && fitsOnTop(used, p.need, capacity)) {
        for (let k = 0; k < KINDS; k++) used[k] = (used[k] ?? 0) + (p.need[k] ?? 0);
        count++;
        const score = this.#used(used, capacity) / usdPerHour;
        if (score > best) {
          best = score;
          bestEntries = taken.length + 1;
          bestLast = count;
        }
      }
      if (count > 0) taken.push([p, count]);
      if (count < p.left) break;
    }
    if (best <= 0) return null;
    const prefix = taken.slice(0, bestEntries).map(([p, n], i) => [p, i === bestEntries - 1 ? bestLast : n] as const);
    return { offer, score: best, usdPerHour, taken: prefix };
  }

  #price({ offer, pool }: EligibleOffer, first: Pending): number {
    const expected = effectiveUsdPerHour(offer, first.leftover, this.#input.config);
    const premium = 1 + this.#footprint.concentrationPremium(first.leftover, offer);
    const survives = Math.max(0.01, 1 - this.#footprint.correlationPenalty(pool, vcpusOf(pool)));
    return (expected * premium) / survives;
  }

  /** Normalised used constraining resource: the most used one, in units of the smallest type's amount. */
  #used(used: readonly number[], capacity: readonly number[]): number {
    let constraining = 0;
    let most = -1;
    for (let k = 0; k < KINDS; k++) {
      const c = capacity[k] ?? 0;
      const utilisation = c > 0 ? (used[k] ?? 0) / c : 0;
      if (utilisation > most + 1e-12) {
        most = utilisation;
        constraining = k;
      }
    }
    return (used[constraining] ?? 0) / (this.#smallest[constraining] ?? 1);
  }

  #buy(fill: Fill): void {
    const { pool, offer } = fill.offer;
    const vcpus = vcpusOf(pool);
    const [only, ...others] = fill.taken;
    let count = 1;
    if (others.length === 0 && only !== undefined) {
      const whole = Math.floor(only[0].left / only[1]);
      count = Math.max(1, Math.min(Math.floor(whole / STEP), Math.floor((this.#vcpus + 1e-9) / vcpus)));
    }
    const free = [...vector(pool.type.capacity)];
    let tasks = 0;
    for (const [p, n] of fill.taken) {
      for (let k = 0; k < KINDS; k++) free[k] = (free[k] ?? 0) - (p.need[k] ?? 0) * n;
      this.#give(p, pool, n * count);
      tasks += n;
    }
    this.#vcpus -= vcpus * count;
    this.#footprint.buy(pool, vcpus * count);
    this.#record({
      pool,
      bid: offer.bid,
      count,
      free,
      tasks,
      effectiveUsdPerHour: fill.usdPerHour,
      pInterrupted: offer.pInterrupted,
    });
  }

  #give(p: Pending, pool: Pool, tasks: number): void {
    p.left -= tasks;
    this.#footprint.give(p.leftover.group.job, pool, ((p.need[0] ?? 0) / 1000) * tasks);
  }

  #record(b: Bought): void {
    this.bought.push(b);
    if (!this.#least.every((n, k) => n <= (b.free[k] ?? 0) + 1e-6)) return;
    const roomy = this.#roomy.get(b.pool.id);
    if (roomy === undefined) this.#roomy.set(b.pool.id, [b]);
    else roomy.push(b);
  }

  /**
   * Fills room on instances bought for longer tasks, the newest first, whose tasks are the nearest in running time.
   * Equal instances stay together; changed ones split off.
   */
  #upPack(p: Pending): void {
    for (const { pool, offer } of p.offers) {
      const roomy = this.#roomy.get(pool.id) ?? [];
      for (const b of roomy.slice(-MOST_EXAMINED).reverse()) {
        if (p.left === 0) return;
        const perInstance = capUsd(offer.bid) <= capUsd(b.bid) ? countInVector(p.need, b.free) : 0;
        if (perInstance === 0) continue;
        const whole = Math.min(b.count, Math.floor(p.left / perInstance));
        const split = whole < b.count ? p.left - whole * perInstance : 0;
        if (whole > 0 && whole < b.count) this.#split(b, whole, { p, tasks: perInstance });
        else if (whole > 0) this.#load(b, { p, tasks: perInstance });
        if (split > 0) this.#split(b, 1, { p, tasks: split });
      }
    }
  }

  /** Takes `count` of these instances apart and loads them. */
  #split(b: Bought, count: number, load: { readonly p: Pending; readonly tasks: number }): void {
    if (count === b.count) {
      this.#load(b, load);
      return;
    }
    b.count -= count;
    const apart = { ...b, count, free: [...b.free] };
    this.#load(apart, load);
    this.#record(apart);
  }

  /** Puts `tasks` of an entry on each of these instances. */
  #load(b: Bought, { p, tasks }: { readonly p: Pending; readonly tasks: number }): void {
    for (let k = 0; k < KINDS; k++) b.free[k] = (b.free[k] ?? 0) - (p.need[k] ?? 0) * tasks;
    b.tasks += tasks;
    this.#give(p, b.pool, tasks * b.count);
  }
}

/** Exponential bins [0, 1), [1, 2), [2, 4), ... by index from 0 (Stratus 3.2.2), in seconds. */
const runtimeBin = (runtimeS: number): number => (runtimeS < 1 ? 0 : Math.floor(Math.log2(runtimeS)) + 1);

/** A task may share an instance at its own bid or a higher one, which is interrupted no more and costs the same. */
const mayUse = (p: Pending, { pool, offer }: EligibleOffer): boolean =>
  p.offers.some((o) => o.pool.id === pool.id && capUsd(o.offer.bid) <= capUsd(offer.bid));

const fitsOnTop = (used: readonly number[], need: readonly number[], capacity: readonly number[]): boolean =>
  used.every((u, k) => u + (need[k] ?? 0) <= (capacity[k] ?? 0) + SLACK);

function smallestOf(pending: readonly Pending[]): readonly number[] {
  const smallest: number[] = RESOURCE_KINDS.map(() => Infinity);
  for (const pool of new Set(pending.flatMap((p) => p.offers.map((o) => o.pool)))) {
    vector(pool.type.capacity).forEach((c, k) => {
      if (c > 0) smallest[k] = Math.min(smallest[k] ?? Infinity, c);
    });
  }
  return smallest;
}

const nameOf = (p: Pending): string =>
  `${p.leftover.group.id} ${p.leftover.option.offer.pool} ${capUsd(p.leftover.option.offer.bid)}`;
const byPoolAndBid = (a: EligibleOffer, b: EligibleOffer): number =>
  compareText(a.pool.id, b.pool.id) || capUsd(a.offer.bid) - capUsd(b.offer.bid) || 0;
