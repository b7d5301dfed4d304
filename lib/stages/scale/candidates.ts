/** Instances that may be bought for a runtime bin, each with the tasks that would fill it best. */
import { capUsd, vcpusOf, type Pool } from '../../domain/pool.ts';
import type { Offer } from '../../domain/forecast.ts';
import { KINDS, vector } from '../../domain/resources.ts';
import { BalancedFill, byProportion, openOf } from '../../policy/balanced-fill.ts';
import { resourceParts } from '../../policy/resource-parts.ts';
import type { Entry, PricedOffer } from './entries.ts';
import type { Footprint } from './footprint.ts';

/** One possible purchase: an instance, and how many tasks of each entry it takes. */
export interface Fill {
  readonly candidate: Candidate;
  /** Value of the tasks, at the best prices for all work, over the price of the instance: at most 1. */
  readonly worth: number;
  /** The same, less where one interruption would take much of a job. */
  readonly score: number;
  /** Price of the instance for these tasks, US dollars per hour. */
  readonly usdPerHour: number;
  readonly taken: readonly (readonly [entry: Entry, tasks: number])[];
}

/** A task may share an instance at its own bid or a higher one, which is interrupted no more and costs the same. */
class Taker {
  readonly entry: Entry;
  readonly offer: PricedOffer;
  readonly need: readonly number[];
  /** Value of a task over what it would pay here: 1 for work that belongs here. */
  fit = 1;
  /** Value of a task over the price of the instance. */
  value = 0;

  constructor(entry: Entry, offer: PricedOffer) {
    this.entry = entry;
    this.offer = offer;
    this.need = entry.need;
  }

  get left(): number {
    return this.entry.left;
  }
}

/** A pool at a bid. */
export class Candidate {
  readonly pool: Pool;
  readonly offer: Offer;
  readonly vcpus: number;
  readonly capacity: readonly number[];
  /** By the proportions of what they need: evenly spaced ones among them have all proportions. */
  readonly takers: readonly Taker[];
  /** Work that belongs here, and other work, each in the order of `takers`. */
  #belonging: Taker[] = [];
  #others: Taker[] = [];
  /** Proportions in which the resources of an instance are to be used. */
  readonly #target = new Float64Array(KINDS);
  /** The last fill; later ones are hardly better, for tasks only become fewer. */
  last: Fill | null = null;

  constructor({ pool, offer }: PricedOffer, takers: readonly Taker[]) {
    this.pool = pool;
    this.offer = offer;
    this.vcpus = vcpusOf(pool);
    const capacity: readonly number[] = vector(pool.type.capacity);
    this.capacity = capacity;
    this.takers = takers.toSorted(byProportion(capacity));
  }

  /**
   * Takes the prices of resources: a resource that bears a part of the price is to be used up, any other in proportion
   * to its load. `worthUsd` is what a task of an entry pays where it pays least.
   */
  aim({ loads, parts, worthUsd }: Aim): void {
    const most = loads.reduce((a, b) => Math.max(a, b), 0);
    for (let k = 0; k < KINDS; k++) {
      const load = most > 0 ? (loads[k] ?? 0) / most : 0;
      this.#target[k] = (parts[k] ?? 0) >= BEARS ? 1 : load;
    }
    this.last = null;
    const open = this.takers.filter(({ left }) => left > 0);
    for (const taker of open) {
      let share = 0;
      for (let k = 0; k < KINDS; k++) {
        const n = taker.need[k] ?? 0;
        if (n > 0) share += (n / (this.capacity[k] ?? 0)) * (parts[k] ?? 0);
      }
      taker.value = worthUsd(taker.entry) / taker.offer.usdPerHour;
      taker.fit = share > 0 ? taker.value / share : 1;
    }
    this.#belonging = open.filter(({ fit }) => fit >= BELONGS);
    this.#others = open.filter(({ fit }) => fit < BELONGS);
  }

  /** Expected part of an instance that survives what takes other pools of the footprint (Tributary eq. 2.6). */
  survives(footprint: Footprint): number {
    return Math.max(0.01, 1 - footprint.correlationPenalty(this.pool, this.vcpus));
  }

  /**
   * Fills an instance: first with work that belongs here, then with any other, always with what keeps the use of the
   * resources in proportion, the larger first (lib/policy/balanced-fill.ts).
   */
  fill(footprint: Footprint): Fill | null {
    const filling = new BalancedFill<Taker>(this.capacity, this.#target);
    filling.add(openOf(this.#belonging));
    filling.add(openOf(this.#others));
    if (filling.taken.length === 0) return (this.last = null);
    let worth = 0;
    let score = 0;
    let usd = 0;
    let tasks = 0;
    for (const { of, tasks: n } of filling.taken) {
      const { entry, value, offer } = of;
      const premium = 1 + footprint.concentrationPremium(entry.next, offer.offer);
      worth += n * value;
      score += (n * value) / premium;
      usd += n * offer.usdPerHour * premium;
      tasks += n;
    }
    const taken = filling.taken.map(({ of: { entry }, tasks: n }) => [entry, n] as const);
    return (this.last = { candidate: this, worth, score, usdPerHour: usd / tasks, taken });
  }
}

interface Aim {
  readonly loads: Float64Array;
  readonly parts: Float64Array;
  readonly worthUsd: (entry: Entry) => number;
}

/** Least part of the price at which a resource is scarce. */
const BEARS = 0.02;
/** Least fit of work that belongs to a pool: the prices are near their optimum, not there. */
const BELONGS = 0.97;
/** Candidates for entries. Their order is by name. O(entries x offers). */
export function candidatesFor(entries: readonly Entry[]): readonly Candidate[] {
  const byName = new Map<string, PricedOffer>();
  const inPool = new Map<string, Map<Entry, PricedOffer[]>>();
  for (const entry of entries) {
    for (const offer of entry.offers) {
      const { id } = offer.pool;
      byName.set(`${id} ${capUsd(offer.offer.bid)}`, byName.get(`${id} ${capUsd(offer.offer.bid)}`) ?? offer);
      let takers = inPool.get(id);
      if (takers === undefined) inPool.set(id, (takers = new Map<Entry, PricedOffer[]>()));
      const own = takers.get(entry);
      if (own === undefined) takers.set(entry, [offer]);
      else own.push(offer);
    }
  }
  return [...byName.keys()].sort().map((name) => {
    const of = byName.get(name) as PricedOffer;
    const cap = capUsd(of.offer.bid);
    const takers = [...(inPool.get(of.pool.id) ?? [])].flatMap(([entry, own]): Taker[] => {
      const offer = own.findLast((o) => capUsd(o.offer.bid) <= cap);
      return offer === undefined ? [] : [new Taker(entry, offer)];
    });
    return new Candidate(of, takers);
  });
}

/** Values of tasks, and proportions of their resources, at the best prices for what is left. O(entries x offers). */
export function appraised(entries: readonly Entry[], candidates: readonly Candidate[]): void {
  const capacities = Float64Array.from(candidates.flatMap((c) => c.capacity));
  const position = new Map(entries.map((entry, i) => [entry, i]));
  const work = entries.map(({ need, left }) => ({ need, amount: left, pools: [] as number[], usd: [] as number[] }));
  candidates.forEach(({ takers }, c) => {
    for (const { entry, offer } of takers) {
      if (entry.left === 0) continue;
      const of = work[position.get(entry) ?? -1];
      of?.pools.push(c);
      of?.usd.push(offer.usdPerHour);
    }
  });
  const { parts, loads, usd } = resourceParts(work, capacities);
  const worthUsd = (entry: Entry): number => usd[position.get(entry) ?? -1] ?? 0;
  candidates.forEach((candidate, c) => {
    const at = c * KINDS;
    const [ofLoads, ofParts] = [loads.subarray(at, at + KINDS), parts.subarray(at, at + KINDS)];
    candidate.aim({ loads: ofLoads, parts: ofParts, worthUsd });
  });
}
