/**
 * The reference that costs are given "of on-demand": the cheapest of three ways that buy on-demand only and know
 * nothing of the future, computed event by event without any policy of ours.
 * - One each: every task gets an instance of its own as soon as it is ready, of the cheapest type that holds it.
 * - Packed: ready tasks, the largest first, go to the fullest live instance that has room; for the rest the type with
 *   the lowest price per unit of work that it takes is bought (work in the prices of one each), until none is left.
 * - Packed small: the same, but what is bought is the cheapest type that holds the next task.
 * All begin all work at once, so no other on-demand way is earlier. An instance is given back when it is empty, billed
 * by the hour at the end of the paid hour. Start-up is the mean; a failed try runs again in its place.
 */
import FlatQueue from 'flatqueue';
import { invariant } from '../../../kernel/errors.ts';
import { raw } from '../../../kernel/units.ts';
import type { InstanceType, Pool } from '../../../domain/pool.ts';
import { dominantShare, fits, plusResources, takeFrom, type Filling } from '../../../domain/resources.ts';
import { MINIMUM_MS, type BillingRules } from '../../../market/billing.ts';
import { kindKey, mayUse, type Needs, type StageNeed } from './needs.ts';
import { HOUR_MS } from './rates.ts';

export interface OnDemandInput {
  readonly needs: Needs;
  readonly pools: readonly Pool[];
  readonly billing: BillingRules['billing'];
  /** Start-up of an instance. */
  readonly startMs: number;
}

export interface OnDemandReference {
  /** The least of the three. */
  readonly usd: number;
  readonly oneEachUsd: number;
  readonly packedUsd: number;
  readonly packedSmallUsd: number;
}

type Way = 'one-each' | 'packed' | 'packed-small';

/** Null: some task fits no on-demand pool. O(tasks x (types + OPEN)). */
export function onDemandReference(input: OnDemandInput): OnDemandReference | null {
  const book = new PriceBook(input.pools);
  if (input.needs.stages.some((s) => book.offersFor(s).length === 0)) return null;
  const usdOf = (way: Way): number => new OnDemandRun(input, book, way).usd();
  const [oneEachUsd, packedUsd, packedSmallUsd] = [usdOf('one-each'), usdOf('packed'), usdOf('packed-small')];
  return { usd: Math.min(oneEachUsd, packedUsd, packedSmallUsd), oneEachUsd, packedUsd, packedSmallUsd };
}

interface TypeOffer {
  readonly type: InstanceType;
  readonly usdPerHour: number;
  readonly pool: Pool;
}

class PriceBook {
  readonly #pools: readonly Pool[];
  readonly #offers = new Map<string, readonly TypeOffer[]>();

  constructor(pools: readonly Pool[]) {
    this.#pools = pools.filter((p) => p.option === 'on-demand');
  }

  /** Types that hold a task of the stage, each in its cheapest zone, by price; none that is smaller and dearer. */
  offersFor(need: StageNeed): readonly TypeOffer[] {
    const key = kindKey(need);
    let known = this.#offers.get(key);
    if (known === undefined) {
      const cheapest = new Map<string, TypeOffer>();
      for (const pool of this.#pools) {
        const usdPerHour = raw(pool.onDemandUsdPerHour);
        if (!mayUse(need, pool) || usdPerHour >= (cheapest.get(pool.type.name)?.usdPerHour ?? Infinity)) continue;
        cheapest.set(pool.type.name, { type: pool.type, usdPerHour, pool });
      }
      const byPrice = [...cheapest.values()].sort(
        (a, b) => a.usdPerHour - b.usdPerHour || (a.pool.id < b.pool.id ? -1 : 1),
      );
      known = byPrice.reduce<TypeOffer[]>((kept, offer) => {
        if (!kept.some((k) => fits(offer.type.capacity, k.type.capacity))) kept.push(offer);
        return kept;
      }, []);
      this.#offers.set(key, known);
    }
    return known;
  }

  cheapestFor = (need: StageNeed): TypeOffer =>
    invariant(this.offersFor(need)[0], 'each task of a reference fits an on-demand type');
}

interface ReadyTask {
  readonly need: StageNeed;
  readonly workMs: number;
}

interface Machine {
  readonly offer: TypeOffer;
  readonly launchedMs: number;
  free: Filling;
  tasks: number;
  isGone: boolean;
}

/** Live instances that a packed task is tried on, the latest first. */
const OPEN = 200;

type Event =
  | { readonly ready: StageNeed }
  | { readonly done: ReadyTask; readonly on: Machine }
  | { readonly paid: Machine };

class OnDemandRun {
  readonly #input: OnDemandInput;
  readonly #book: PriceBook;
  readonly #way: Way;
  readonly #queue = new FlatQueue<Event>();
  readonly #waitsFor = new Map<StageNeed, number>();
  readonly #unfinished = new Map<StageNeed, number>();
  readonly #byJob: ReadonlyMap<number, readonly StageNeed[]>;
  /** Instances, those among them that were given back, and what these cost. */
  #open: Machine[] = [];
  #gone = 0;
  #usd = 0;

  constructor(input: OnDemandInput, book: PriceBook, way: Way) {
    this.#input = input;
    this.#book = book;
    this.#way = way;
    const { stages, submittedMs } = input.needs;
    this.#byJob = Map.groupBy(stages, (s) => s.job);
    for (const stage of stages) {
      this.#waitsFor.set(stage, stage.dependsOn.length);
      this.#unfinished.set(stage, stage.runtimeMs.length);
      if (stage.dependsOn.length === 0) this.#queue.push({ ready: stage }, submittedMs[stage.job] ?? 0);
    }
  }

  usd(): number {
    for (;;) {
      const nowMs = this.#queue.peekValue();
      if (nowMs === undefined) return this.#usd;
      const ready: ReadyTask[] = [];
      while (this.#queue.length > 0 && this.#queue.peekValue() === nowMs) {
        const event = this.#queue.pop();
        if (event === undefined) continue;
        if ('ready' in event) ready.push(...this.#tasksOf(event.ready));
        else if ('done' in event) this.#done(event.done, event.on, nowMs);
        else this.#paid(event.paid, nowMs);
      }
      if (ready.length > 0) this.#start(ready, nowMs);
    }
  }

  #tasksOf(need: StageNeed): ReadyTask[] {
    const { setupMs } = this.#input.needs;
    return Array.from(need.runtimeMs, (ms, i) => ({ need, workMs: (ms + setupMs) * (1 + (need.failures?.[i] ?? 0)) }));
  }

  #start(ready: readonly ReadyTask[], nowMs: number): void {
    if (this.#way === 'one-each') {
      for (const task of ready) this.#run(task, this.#launch(this.#book.cheapestFor(task.need), nowMs), nowMs);
      return;
    }
    const usd = ({ need }: ReadyTask): number => this.#book.cheapestFor(need).usdPerHour;
    let left = ready
      .toSorted((a, b) => usd(b) - usd(a))
      .filter((task) => {
        const machine = this.#fullestFor(task.need);
        if (machine !== null) this.#run(task, machine, nowMs);
        return machine === null;
      });
    while (left.length > 0) {
      const machine = this.#launch(this.#bestFor(left, usd), nowMs);
      left = left.filter((task) => {
        const takes = mayUse(task.need, machine.offer.pool) && fits(task.need.resources, machine.free);
        if (takes) this.#run(task, machine, nowMs);
        return !takes;
      });
    }
  }

  #fullestFor(need: StageNeed): Machine | null {
    let best: { readonly machine: Machine; readonly freeShare: number } | null = null;
    for (const machine of this.#open.slice(-OPEN)) {
      const { offer, free } = machine;
      if (machine.isGone || !fits(need.resources, free) || !mayUse(need, offer.pool)) continue;
      const freeShare = dominantShare(free, offer.type.capacity);
      if (best === null || freeShare < best.freeShare) best = { machine, freeShare };
    }
    return best?.machine ?? null;
  }

  /** Type with the lowest price for what it takes of the tasks, in their order; it takes the first of them. */
  #bestFor(left: readonly ReadyTask[], usd: (task: ReadyTask) => number): TypeOffer {
    const { need } = invariant(left[0], 'there are tasks to buy for');
    if (this.#way === 'packed-small') return this.#book.cheapestFor(need);
    const offers = this.#book.offersFor(need);
    const priced = offers.map((offer) => {
      const free: Filling = { ...offer.type.capacity };
      let worth = 0;
      for (const task of left.slice(0, OPEN)) {
        if (!fits(task.need.resources, free) || !mayUse(task.need, offer.pool)) continue;
        takeFrom(free, task.need.resources);
        worth += usd(task);
      }
      return { offer, price: offer.usdPerHour / worth };
    });
    return priced.reduce((a, b) => (b.price < a.price - 1e-12 ? b : a)).offer;
  }

  #launch(offer: TypeOffer, nowMs: number): Machine {
    const machine = { offer, launchedMs: nowMs, free: { ...offer.type.capacity }, tasks: 0, isGone: false };
    if (this.#way !== 'one-each') this.#open.push(machine);
    return machine;
  }

  #run(task: ReadyTask, on: Machine, nowMs: number): void {
    takeFrom(on.free, task.need.resources);
    on.tasks++;
    const readyMs = Math.max(nowMs, on.launchedMs + this.#input.startMs);
    this.#queue.push({ done: task, on }, readyMs + task.workMs);
  }

  #done({ need }: ReadyTask, on: Machine, nowMs: number): void {
    on.free = { ...plusResources(on.free, need.resources) };
    if (--on.tasks === 0) {
      if (this.#input.billing === 'per-second') this.#end(on, Math.max(MINIMUM_MS, nowMs - on.launchedMs));
      else this.#queue.push({ paid: on }, on.launchedMs + hoursMs(nowMs - on.launchedMs));
    }
    const left = (this.#unfinished.get(need) ?? 0) - 1;
    this.#unfinished.set(need, left);
    if (left > 0) return;
    for (const stage of this.#byJob.get(need.job) ?? []) {
      if (!stage.dependsOn.includes(need.name)) continue;
      const waits = (this.#waitsFor.get(stage) ?? 0) - 1;
      this.#waitsFor.set(stage, waits);
      if (waits === 0) this.#queue.push({ ready: stage }, nowMs);
    }
  }

  /** An hour is over: an empty instance goes, if it has not gone before. */
  #paid(on: Machine, nowMs: number): void {
    if (on.tasks === 0 && !on.isGone) this.#end(on, nowMs - on.launchedMs);
  }

  #end(on: Machine, chargedMs: number): void {
    this.#usd += (on.offer.usdPerHour * chargedMs) / HOUR_MS;
    on.isGone = true;
    // Seldom enough that it costs nothing by event.
    if (++this.#gone <= this.#open.length / 2) return;
    this.#open = this.#open.filter((m) => !m.isGone);
    this.#gone = 0;
  }
}

const hoursMs = (ms: number): number => Math.max(1, Math.ceil(ms / HOUR_MS)) * HOUR_MS;
