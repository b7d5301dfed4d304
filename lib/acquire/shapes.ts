import { once } from '../kernel/once.ts';
import { brokenConstraint } from '../domain/constraints.ts';
import type { Offer } from '../domain/forecast.ts';
import type { Constraints, Preference } from '../domain/job.ts';
import type { Bid, Pool } from '../domain/pool.ts';
import { vector, type Resources } from '../domain/resources.ts';
import type { PoolBook, PricedPool } from './pools.ts';

/** A pool at a bid, as one shape of task sees it. */
export interface Place {
  readonly pool: Pool;
  readonly bid: Bid;
  readonly priceUsdPerHour: number;
  readonly share: number;
  readonly preferred: number;
  readonly opens: Offer['opens'] | undefined;
}

/** A pool as one shape of task sees it. */
export class ShapePool {
  readonly priced: PricedPool;
  /** Dominant share of one task. */
  readonly share: number;
  /** What matching preferences take off the price, as a fraction in [0, 1]. */
  readonly preferred: number;
  /** Of a pool that rests after refusals. */
  readonly opens: Offer['opens'] | undefined;
  #places: readonly Place[] | null = null;

  constructor({
    priced,
    share,
    preferred,
    opens,
  }: Pick<ShapePool, 'priced' | 'share' | 'preferred'> & Partial<Pick<ShapePool, 'opens'>>) {
    this.priced = priced;
    this.share = share;
    this.preferred = preferred;
    this.opens = opens;
  }

  /** For each bid of the pool: the same for all that is appraised there, whatever its running time. */
  get places(): readonly Place[] {
    const { priced, share, preferred, opens } = this;
    const { pool, priceUsdPerHour } = priced;
    return (this.#places ??= priced.bids.map(({ bid }) => ({ pool, bid, priceUsdPerHour, share, preferred, opens })));
  }
}

/** Tasks with the same need, constraints and preferences: pools are filtered once for all of them. */
export interface Shape {
  readonly id: number;
  /** The cheapest pools that are never interrupted. */
  readonly steady: readonly ShapePool[];
  /** Spot pools worth appraising, for work whose interruptions are refunded, or not. */
  readonly spot: (isRefunded: boolean) => Shortlist;
  /** Cheapest on-demand pool, US dollars per hour of one task's share; null when none fits. */
  readonly fallbackUsdPerHour: number | null;
  readonly excluded: readonly { readonly constraint: string; readonly pools: number }[];
}

/** Spot pools that enter the full appraisal, the others only where the first ones do not do. */
interface Shortlist {
  readonly cheapest: readonly ShapePool[];
  /** US dollars per hour of one task's share that `safest` cost at least, at the best price within the hour. */
  readonly safestFromUsd: number;
  /** Of what is left the safest. Asks for the risk of all that is left. */
  readonly safest: () => readonly ShapePool[];
}

/** Spot pools appraised in full per offer that is kept, by lowest price; and how many more by lowest risk. */
const CHEAPEST_PER_OFFER = 3;
const SAFEST = 6;
const STEADY = 3;
/**
 * Resting spot pools appraised where no other spot pool is open: waiting for one of them may be cheaper than on-demand, and of one
 * that rests there may be instances with room. These come first.
 */
const RESTING = 3;

/**
 * Shapes by content, made on first use. Filtering is O(pools) per distinct constraints for the constraints and O(pools)
 * per shape for the resources.
 */
export class ShapeBook {
  readonly #book: PoolBook;
  readonly #shapes = new Map<string, Shape>();
  readonly #passing = new Map<string, Passing>();

  constructor(book: PoolBook) {
    this.#book = book;
  }

  of(need: Resources, constraints: Constraints, preferences: readonly Preference[]): Shape {
    const constraintKey = JSON.stringify(constraints);
    const key = `${vector(need).join(',')} ${constraintKey} ${preferences.length === 0 ? '' : JSON.stringify(preferences)}`;
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      let passing = this.#passing.get(constraintKey);
      if (passing === undefined) {
        passing = passingPools(this.#book, constraints);
        this.#passing.set(constraintKey, passing);
      }
      shape = this.#make({ id: this.#shapes.size, need, preferences, passing });
      this.#shapes.set(key, shape);
    }
    return shape;
  }

  #make(of: { id: number; need: Resources; preferences: readonly Preference[]; passing: Passing }): Shape {
    const { views, capacity } = this.#book;
    const need = vector(of.need);
    const excluded = new Map(of.passing.excluded);
    const count = (reason: string): void => void excluded.set(reason, (excluded.get(reason) ?? 0) + 1);
    const pools: ShapePool[] = [];
    const resting: ShapePool[] = [];
    let fallback = Infinity;
    for (const index of of.passing.pools) {
      let share = 0;
      for (let k = 0; k < 4; k++) {
        const n = need[k] ?? 0;
        const c = capacity[index * 4 + k] ?? 0;
        // The tolerance of `fits` in lib/domain/resources.ts.
        if (n > c + 1e-6) share = Infinity;
        else if (n > 0) share = Math.max(share, n / c);
      }
      const view = views[index];
      if (share === Infinity) count('resources');
      else if (view === undefined || view.quote === null) count('no price');
      else if (!view.open) {
        count('closed');
        if (view.rest === undefined || view.pool.option !== 'spot') continue;
        const priced = this.#book.priced(index);
        const opens = { atMs: view.rest.untilMs, p: chanceAfter(view.rest.refusals) };
        resting.push(new ShapePool({ priced, share, preferred: preferredFraction(of.preferences, priced), opens }));
      } else {
        const priced = this.#book.priced(index);
        if (view.pool.option === 'on-demand') fallback = Math.min(fallback, priced.priceUsdPerHour * share);
        pools.push(new ShapePool({ priced, share, preferred: preferredFraction(of.preferences, priced) }));
      }
    }
    const byPrice = (p: ShapePool): Ranked => ({ p, usd: lowUsd(p) });
    const steady = pools.filter(({ priced }) => priced.pool.option !== 'spot').map(byPrice);
    const spot = pools.filter(({ priced }) => priced.pool.option === 'spot');
    const isHeld = ({ priced }: ShapePool): number => Number(this.#book.held.has(priced.pool.id));
    if (spot.length === 0) resting.sort((a, b) => isHeld(b) - isHeld(a) || lowUsd(a) - lowUsd(b));
    const listed = (isRefunded: boolean): Shortlist =>
      spot.length === 0 ? listOf(resting.slice(0, RESTING)) : this.#shortlist(spot, { fallback, isRefunded });
    const refunded = once(() => listed(true));
    const charged = once(() => listed(false));
    return {
      id: of.id,
      steady: calmest(steady.sort(cheaper)),
      spot: (isRefunded) => (isRefunded ? refunded() : charged()),
      fallbackUsdPerHour: fallback === Infinity ? null : fallback,
      excluded: [...excluded].map(([constraint, n]) => ({ constraint, pools: n })),
    };
  }

  /**
   * What enters the full appraisal: by price the cheapest spot pools at their best (now or in an hour, whichever is lower, less refunds and
   * preferences), by risk the safest ones that are still cheaper than on-demand. A pool left out is dearer than all kept
   * ones even if it were never interrupted, and riskier too.
   */
  #shortlist(spot: readonly ShapePool[], of: { readonly fallback: number; readonly isRefunded: boolean }): Shortlist {
    const ranked = spot
      .map((p): Ranked => ({ p, usd: lowUsd(p) * (of.isRefunded ? p.priced.leastCharged : 1) }))
      .sort(cheaper);
    const cheapest = CHEAPEST_PER_OFFER * this.#book.config.offersPerGroup;
    const rest = ranked.slice(cheapest).filter(({ usd }) => usd < of.fallback);
    return {
      cheapest: ranked.slice(0, cheapest).map(({ p }) => p),
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

const listOf = (cheapest: readonly ShapePool[]): Shortlist => ({
  cheapest,
  safestFromUsd: Infinity,
  safest: () => [],
});

/** Of pools that are never interrupted, the cheapest first. */
function calmest(steady: readonly Ranked[]): ShapePool[] {
  const onDemand = steady.findIndex(({ p }) => p.priced.pool.option === 'on-demand');
  return steady.filter((_, i) => i < STEADY || i === onDemand).map(({ p }) => p);
}

/** Chance that the next try succeeds after so many refusals in a row and no success between: Laplace's rule of succession. */
const chanceAfter = (refusals: number): number => 1 / (refusals + 2);

/** US dollars per hour of one task's share, at the best price within the hour, less preferences. */
const lowUsd = ({ priced, share, preferred }: ShapePool): number => priced.lowPriceUsdPerHour * share * (1 - preferred);

interface Ranked {
  readonly p: ShapePool;
  /** US dollars per hour of one task's share, at its best. */
  readonly usd: number;
}
/** Ties stay in the order of pool ids, in which pools are listed. */
const cheaper = (a: Ranked, b: Ranked): number => a.usd - b.usd;

interface Passing {
  readonly pools: readonly number[];
  readonly excluded: ReadonlyMap<string, number>;
}

/** Each excluded pool is counted under the first constraint that it breaks (lib/domain/constraints.ts has the order). */
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
