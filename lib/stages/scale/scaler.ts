import { capUsd, type Bid, type Pool } from '../../domain/pool.ts';
import { KINDS, RESOURCE_KINDS, countInVector } from '../../domain/resources.ts';
import type { AcquireInput, Leftover } from '../../policy/contracts.ts';
import { vcpusLeft } from '../../policy/vcpus-left.ts';
import { appraised, candidatesFor, type Candidate, type Fill } from './candidates.ts';
import { openPools } from './eligible.ts';
import { entriesOf, type Entry } from './entries.ts';
import { Footprint } from './footprint.ts';

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

/** Most instances bought in one step, as a part of what is left, so that diversification can react. */
const STEP = 8;
/** Lots with room that are tried per pool before a purchase: bounds the work if needs are very mixed. */
const MOST_EXAMINED = 64;
/** Tasks worth less of an instance's price than this are offered other sizes. */
const WELL_FILLED = 0.98;
/** With more classes left, no sizes are added: candidates would be made anew for each. */
const WIDENED_AT = 200;
/** Prices are worked out anew once no more than this part of the tasks is left. */
const RENEWED_AT = 0.75;

/**
 * Stratus' scaler (section 3.2.3) on classes of alike tasks, for several resources at once. Per runtime bin, longest
 * first: each pool and bid on offer is filled with tasks of the bin, and scored by
 *   value of the tasks / price of the instance.
 * Stratus counts the constraining resource alone. Here a task is worth what it pays at the prices of resources that
 * suit all that is left (lib/policy/resource-parts.ts), so that tasks of different proportions fill an instance
 * together. The price is the expected one of useful work (redone work and refunds in it), raised by the job's
 * concentration in the pool and by Tributary's correlation penalty, whose complement is the expected part that
 * survives (eq. 2.6). The best is bought, its tasks are assigned, and so on until all tasks have room or nothing may
 * be bought. What is too little for the instances on offer is offered further sizes, once few classes are left.
 *
 * What a longer bin's instances have left is filled by shorter tasks first (up-packing, 3.2.2), since the packer
 * will do so.
 *
 * Cost: identical instances are bought up to an eighth of the need at a time, and half of what their tasks allow, so
 * that classes take O(log count) fills until single instances remain; a fill looks at MOST_LOOKED_AT classes for each
 * of some 50 steps (lib/policy/balanced-fill.ts); prices are renewed O(log tasks) times, O(classes x offers) each.
 * bench/provision.ts, bench/appraise.ts.
 */
export class Scaler {
  readonly #footprint: Footprint;
  #vcpus: number;
  readonly #entries: readonly Entry[];
  /** Without a price of correlation all of a need may be bought at once. */
  readonly #step: number;
  readonly bought: Bought[] = [];
  /** Bought instances with room for the smallest task, by pool, newest last. */
  readonly #roomy = new Map<string, Bought[]>();
  readonly #least: readonly number[];

  constructor(input: AcquireInput, excluded: ReadonlySet<Leftover>) {
    const open = input.leftovers.filter((l) => !excluded.has(l));
    this.#footprint = new Footprint(input);
    this.#vcpus = vcpusLeft(input.snapshot);
    this.#entries = entriesOf(open, input, openPools(input));
    this.#step = input.config.correlationPenalty > 0 ? STEP : 1;
    this.#least = RESOURCE_KINDS.map((_, k) => this.#entries.reduce((m, e) => Math.min(m, e.need[k] ?? 0), Infinity));
  }

  /** Buys for all leftovers; returns those without room for all their tasks. */
  run(): readonly Leftover[] {
    for (const pass of this.#passes()) {
      for (const [, entries] of Map.groupBy(pass, (e) => runtimeBin(e.runtimeS))) this.#runBin(entries);
    }
    return this.#entries.flatMap((e) => e.short());
  }

  /** Order of service: if the vCPU limit will bind, work with a deadline comes before work without one. */
  #passes(): readonly (readonly Entry[])[] {
    const wanted = this.#entries.reduce((sum, e) => sum + ((e.need[0] ?? 0) / 1000) * e.left, 0);
    if (wanted <= this.#vcpus) return [this.#entries];
    return [this.#entries.filter((e) => e.isUrgent), this.#entries.filter((e) => !e.isUrgent)];
  }

  #runBin(entries: readonly Entry[]): void {
    for (const entry of entries) this.#upPack(entry);
    let list = entries.filter((e) => e.left > 0);
    if (list.length > 1) for (const entry of list) entry.widen('together');
    let candidates = candidatesFor(list);
    while (list.length > 0) {
      appraised(list, candidates);
      const until = RENEWED_AT * tasksOf(list);
      const end = this.#buyFrom(candidates, list, until);
      if (end === 'nothing') return;
      list = list.filter((e) => e.left > 0);
      if (end === 'widened') candidates = candidatesFor(list);
    }
  }

  /** Buys the best until so many tasks are left, nothing can be bought, or sizes were added. */
  #buyFrom(candidates: readonly Candidate[], list: readonly Entry[], until: number): 'some' | 'nothing' | 'widened' {
    const queue = new Queue(candidates.filter((c) => c.vcpus <= this.#vcpus + 1e-9));
    let left = tasksOf(list);
    let end: 'some' | 'nothing' = 'nothing';
    while (left > 0 && (left > until || left <= LAST_TASKS)) {
      const fill = queue.best(this.#footprint, this.#vcpus);
      if (fill === null) return end;
      if (list.length <= WIDENED_AT && fill.worth < WELL_FILLED && widened(fill)) return 'widened';
      left -= this.#buy(fill, left);
      end = 'some';
    }
    return 'some';
  }

  /** Tasks that got room. */
  #buy({ candidate, taken, usdPerHour }: Fill, left: number): number {
    const { pool, offer, vcpus } = candidate;
    const whole = taken.reduce((n, [entry, tasks]) => Math.min(n, Math.floor(entry.left / tasks)), Infinity);
    // Half of what the rarest tasks allow, so that the proportions of what is left stay.
    const perInstance = taken.reduce((n, [, of]) => n + of, 0);
    const most = this.#step === 1 ? Infinity : Math.floor(left / perInstance / this.#step);
    const count = Math.max(1, Math.min(Math.floor(whole / 2), most, Math.floor((this.#vcpus + 1e-9) / vcpus)));
    const survives = candidate.survives(this.#footprint);
    const free = [...candidate.capacity];
    let tasks = 0;
    for (const [entry, n] of taken) {
      for (let k = 0; k < KINDS; k++) free[k] = (free[k] ?? 0) - (entry.need[k] ?? 0) * n;
      entry.give(n * count, pool, this.#footprint);
      tasks += n;
    }
    this.#vcpus -= vcpus * count;
    this.#footprint.buy(pool, vcpus * count);
    const { bid, pInterrupted } = offer;
    const effectiveUsdPerHour = usdPerHour / survives;
    this.#record({ pool, bid, count, free, tasks, effectiveUsdPerHour, pInterrupted });
    return tasks * count;
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
  #upPack(entry: Entry): void {
    for (const { pool, offer } of entry.offers) {
      const roomy = this.#roomy.get(pool.id) ?? [];
      for (const b of roomy.slice(-MOST_EXAMINED).reverse()) {
        if (entry.left === 0) return;
        const perInstance = capUsd(offer.bid) <= capUsd(b.bid) ? countInVector(entry.need, b.free) : 0;
        if (perInstance === 0) continue;
        const whole = Math.min(b.count, Math.floor(entry.left / perInstance));
        const split = whole < b.count ? entry.left - whole * perInstance : 0;
        if (whole > 0 && whole < b.count) this.#split(b, whole, { entry, tasks: perInstance });
        else if (whole > 0) this.#load(b, { entry, tasks: perInstance });
        if (split > 0) this.#split(b, 1, { entry, tasks: split });
      }
    }
  }

  /** Takes `count` of these instances apart and loads them. */
  #split(b: Bought, count: number, load: { readonly entry: Entry; readonly tasks: number }): void {
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
  #load(b: Bought, { entry, tasks }: { readonly entry: Entry; readonly tasks: number }): void {
    for (let k = 0; k < KINDS; k++) b.free[k] = (b.free[k] ?? 0) - (entry.need[k] ?? 0) * tasks;
    b.tasks += tasks;
    entry.give(tasks * b.count, b.pool, this.#footprint);
  }
}

/** So few tasks are not worth new prices. */
const LAST_TASKS = 16;

const tasksOf = (entries: readonly Entry[]): number => entries.reduce((n, e) => n + e.left, 0);

/** Adds sizes for all tasks of a fill. True if there is a new one. */
const widened = ({ taken }: Fill): boolean => taken.map(([entry]) => entry.widen('sizes')).some(Boolean);

/** Candidates by their last score. */
class Queue {
  #candidates: Candidate[];

  constructor(candidates: readonly Candidate[]) {
    this.#candidates = [...candidates];
  }

  /**
   * The best fill. Its score hardly grows while tasks become fewer, so that most candidates need not be filled again:
   * the first that is still the best with a new fill is taken. The part that survives changes with each purchase.
   */
  best(footprint: Footprint, vcpus: number): Fill | null {
    const fill = (c: Candidate): Fill | null => (c.vcpus > vcpus + 1e-9 ? null : c.fill(footprint));
    const fresh = new Set<Candidate>();
    for (const c of this.#candidates) {
      if (c.last !== null) continue;
      fresh.add(c);
      c.last = fill(c);
    }
    this.#candidates = this.#candidates.filter((c) => c.last !== null);
    const survives = this.#candidates.map((c) => c.survives(footprint));
    for (;;) {
      let top: Candidate | null = null;
      let most = -Infinity;
      for (let i = 0; i < this.#candidates.length; i++) {
        const c = this.#candidates[i] as Candidate;
        const score = (c.last?.score ?? -Infinity) * (survives[i] ?? 1);
        if (score > most) [top, most] = [c, score];
      }
      if (top === null || fresh.has(top)) return top?.last ?? null;
      fresh.add(top);
      top.last = fill(top);
    }
  }
}

/** Exponential bins [0, 1), [1, 2), [2, 4), ... by index from 0 (Stratus 3.2.2), in seconds. */
const runtimeBin = (runtimeS: number): number => (runtimeS < 1 ? 0 : Math.floor(Math.log2(runtimeS)) + 1);
