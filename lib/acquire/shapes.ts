import { brokenConstraint } from '../domain/constraints.ts';
import type { Offer } from '../domain/forecast.ts';
import type { Constraints, Preference } from '../domain/job.ts';
import { vector, type Resources } from '../domain/resources.ts';
import type { PoolBook, PricedPool } from './pools.ts';

/** A pool as one shape of task sees it. */
interface ShapePool {
  readonly priced: PricedPool;
  /** Dominant share of one task. */
  readonly share: number;
  /** What matching preferences take off the price, as a fraction in [0, 1]. */
  readonly preferred: number;
  /** Of a pool that rests after refusals. */
  readonly opens?: Offer['opens'];
}

/** Tasks with the same need, constraints and preferences: pools are filtered once for all of them. */
export interface Shape {
  readonly id: number;
  /** Worth appraising; see `shortlist`. */
  readonly pools: readonly ShapePool[];
  /** Cheapest on-demand pool, US dollars per hour of one task's share; null when none fits. */
  readonly fallbackUsdPerHour: number | null;
  readonly excluded: readonly { readonly constraint: string; readonly pools: number }[];
  /** Pools that fit and are open, of which `pools` is the shortlist. */
  readonly feasible: number;
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
        resting.push({ priced, share, preferred: preferredFraction(of.preferences, priced), opens });
      } else {
        const priced = this.#book.priced(index);
        if (view.pool.option === 'on-demand') fallback = Math.min(fallback, priced.priceUsdPerHour * share);
        pools.push({ priced, share, preferred: preferredFraction(of.preferences, priced) });
      }
    }
    const spotIsOpen = pools.some(({ priced }) => priced.pool.option === 'spot');
    const isHeld = ({ priced }: ShapePool): number => Number(this.#book.held.has(priced.pool.id));
    resting.sort((a, b) => isHeld(b) - isHeld(a) || restedUsd(a) - restedUsd(b));
    return {
      id: of.id,
      pools: [...this.#shortlist(pools, fallback), ...(spotIsOpen ? [] : resting.slice(0, RESTING))],
      fallbackUsdPerHour: fallback === Infinity ? null : fallback,
      excluded: [...excluded].map(([constraint, n]) => ({ constraint, pools: n })),
      feasible: pools.length,
    };
  }

  /**
   * What enters the full appraisal: by price the cheapest spot pools at their best (now or in an hour, whichever is lower, less refunds and
   * preferences), by risk the safest ones that are still cheaper than on-demand, and the cheapest pools that are never
   * interrupted. A pool left out is dearer than all kept ones even if it were never interrupted, and riskier too.
   */
  #shortlist(pools: readonly ShapePool[], fallback: number): ShapePool[] {
    const spot: Ranked[] = [];
    const steady: Ranked[] = [];
    for (const p of pools) {
      const { pool, lowPriceUsdPerHour, leastCharged } = p.priced;
      const usd = lowPriceUsdPerHour * p.share * (1 - p.preferred) * leastCharged;
      (pool.option === 'spot' ? spot : steady).push({ p, usd });
    }
    spot.sort(cheaper);
    steady.sort(cheaper);
    const cheapest = CHEAPEST_PER_OFFER * this.#book.config.offersPerGroup;
    const kept = spot.slice(0, cheapest);
    const safest = spot
      .slice(cheapest)
      .filter(({ usd }) => usd < fallback)
      .sort((a, b) => a.p.priced.hazard - b.p.priced.hazard || a.usd - b.usd)
      .slice(0, SAFEST);
    const onDemand = steady.findIndex(({ p }) => p.priced.pool.option === 'on-demand');
    const calm = steady.filter((_, i) => i < STEADY || i === onDemand);
    return [...kept, ...safest, ...calm].map(({ p }) => p);
  }
}

/** Chance that the next try succeeds after so many refusals in a row and no success between: Laplace's rule of succession. */
const chanceAfter = (refusals: number): number => 1 / (refusals + 2);

const restedUsd = ({ priced, share, preferred }: ShapePool): number =>
  priced.lowPriceUsdPerHour * share * (1 - preferred);

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
