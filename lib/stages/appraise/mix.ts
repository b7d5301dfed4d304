/** What a task pays of an instance that it shares with all the other work that waits. */
import { KINDS } from '../../domain/resources.ts';
import { resourceParts, undominated } from '../../policy/resource-parts.ts';
import type { PoolBook } from './pools.ts';

/** Pools that some constraints allow, by position. Classes with the same constraints share it. */
export interface Kind {
  readonly pools: readonly number[];
}

/** Waiting tasks of one request class. */
export interface MixedClass {
  readonly need: readonly number[];
  /** Tasks times their running time. */
  readonly amount: number;
  readonly kind: Kind;
}

/**
 * Parts of the price of each pool that its resources bear. Only pools that no other one beats per dollar take part; any
 * other has the parts of the one whose proportions are the nearest. O(classes x pools) at worst, once, then
 * O(resources) per question.
 */
export class Mix {
  readonly #book: Pick<PoolBook, 'capacity' | 'priced' | 'isOpen' | 'shareOf'>;
  readonly #asked: readonly number[];
  readonly #frontier: readonly number[];
  readonly #parts: Float64Array;
  /** Parts of the price per unit of each resource, by pool. */
  readonly #known: (Float64Array | null | undefined)[] = [];
  readonly #byKind = new Map<Kind, readonly number[]>();

  constructor(classes: readonly MixedClass[], book: Pick<PoolBook, 'capacity' | 'priced' | 'isOpen' | 'shareOf'>) {
    this.#book = book;
    this.#asked = Array.from({ length: KINDS }, (_, k) => k).filter((k) => classes.some((c) => (c.need[k] ?? 0) > 0));
    const usdOf = (pool: number): number => book.priced(pool).priceUsdPerHour;
    const fits = (need: readonly number[], pool: number): boolean => book.shareOf(need, pool) < Infinity;
    for (const [kind, of] of Map.groupBy(classes, (c) => c.kind)) {
      const usable = kind.pools.filter((pool) => book.isOpen(pool) && of.some(({ need }) => fits(need, pool)));
      this.#byKind.set(kind, undominated(usable, { capacities: book.capacity, usdOf, kinds: this.#asked }));
    }
    this.#frontier = [...new Set([...this.#byKind.values()].flat())].sort((a, b) => a - b);
    const position = new Map(this.#frontier.map((pool, i) => [pool, i]));
    const capacities = new Float64Array(this.#frontier.length * KINDS);
    this.#frontier.forEach((pool, i) =>
      capacities.set(book.capacity.subarray(pool * KINDS, (pool + 1) * KINDS), i * KINDS),
    );
    const work = classes.map(({ need, amount, kind }) => {
      const pools = this.poolsFor(kind).filter((pool) => fits(need, pool));
      return { need, amount, pools: pools.map((pool) => position.get(pool) ?? 0), usd: pools.map(usdOf) };
    });
    this.#parts = resourceParts(work, capacities).parts;
  }

  /** Pools that suit all work with these constraints together. */
  poolsFor(kind: Kind): readonly number[] {
    return this.#byKind.get(kind) ?? [];
  }

  /** Share of the price of an instance; at most the dominant share. Null: nothing is known of such pools. */
  shareIn(pool: number, need: readonly number[]): number | null {
    let perUnit = this.#known[pool];
    if (perUnit === undefined) this.#known[pool] = perUnit = this.#perUnit(pool);
    if (perUnit === null) return null;
    let share = 0;
    for (let k = 0; k < KINDS; k++) share += (need[k] ?? 0) * (perUnit[k] ?? 0);
    return share;
  }

  #perUnit(pool: number): Float64Array | null {
    const parts = this.#partsOf(pool);
    return parts === null
      ? null
      : parts.map((part, k) => {
          const capacity = this.#book.capacity[pool * KINDS + k] ?? 0;
          return capacity > 0 ? part / capacity : 0;
        });
  }

  #partsOf(pool: number): Float64Array | null {
    let nearest = -1;
    let least = Infinity;
    this.#frontier.forEach((other, i) => {
      const away = this.#distance(pool, other);
      const isUsed = this.#parts.subarray(i * KINDS, (i + 1) * KINDS).some((part) => part > 0);
      if (isUsed && away < least) [nearest, least] = [i, away];
    });
    return nearest < 0 ? null : this.#parts.subarray(nearest * KINDS, (nearest + 1) * KINDS);
  }

  /** Difference of the proportions of two pools; Infinity where one lacks a resource that the other has. */
  #distance(a: number, b: number): number {
    const [first = 0, ...others] = this.#asked;
    const per = (pool: number, k: number): number =>
      (this.#book.capacity[pool * KINDS + k] ?? 0) / (this.#book.capacity[pool * KINDS + first] ?? 0);
    return others.reduce((sum, k) => {
      const [x, y] = [per(a, k), per(b, k)];
      return x === y ? sum : x > 0 && y > 0 ? sum + Math.abs(Math.log(x / y)) : Infinity;
    }, 0);
  }
}
