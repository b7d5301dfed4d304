/** What a task pays of an instance that it shares with all the other work that waits. */
import { KINDS } from '../../domain/resources.ts';
import { resourceParts, undominated } from '../../policy/resource-parts.ts';

/** Waiting tasks of one request class. */
export interface MixedClass {
  readonly need: readonly number[];
  /** Tasks times their running time. */
  readonly amount: number;
  /** Pools that fit it, by position. */
  readonly pools: readonly number[];
  /** Classes with the same constraints share this. */
  readonly kind: object;
}

/**
 * Parts of the price of each pool that its resources bear. Only pools that no other one beats per dollar take part; any
 * other has the parts of the one whose proportions are the nearest. O(classes x pools that take part), once.
 */
export class Mix {
  readonly #capacities: Float64Array;
  readonly #asked: readonly number[];
  readonly #frontier: readonly number[];
  readonly #parts: Float64Array;
  readonly #known = new Map<number, Float64Array | null>();
  readonly #byKind = new Map<object, readonly number[]>();

  constructor(
    classes: readonly MixedClass[],
    of: { readonly capacities: Float64Array; readonly usdOf: (pool: number) => number },
  ) {
    this.#capacities = of.capacities;
    this.#asked = Array.from({ length: KINDS }, (_, k) => k).filter((k) => classes.some((c) => (c.need[k] ?? 0) > 0));
    const byKind = this.#byKind;
    for (const { kind, pools } of classes) if (pools.length > (byKind.get(kind)?.length ?? -1)) byKind.set(kind, pools);
    for (const [kind, pools] of byKind) byKind.set(kind, undominated(pools, { ...of, kinds: this.#asked }));
    this.#frontier = [...new Set([...byKind.values()].flat())].sort((a, b) => a - b);
    const position = new Map(this.#frontier.map((pool, i) => [pool, i]));
    const capacities = new Float64Array(this.#frontier.length * KINDS);
    this.#frontier.forEach((pool, i) =>
      capacities.set(of.capacities.subarray(pool * KINDS, (pool + 1) * KINDS), i * KINDS),
    );
    const work = classes.map(({ need, amount, kind }) => {
      const pools = (byKind.get(kind) ?? []).filter((pool) => this.#fits(need, pool));
      return { need, amount, pools: pools.map((pool) => position.get(pool) ?? 0), usd: pools.map(of.usdOf) };
    });
    this.#parts = resourceParts(work, capacities).parts;
  }

  /** Pools that suit all work with these constraints together. */
  poolsFor(kind: object): readonly number[] {
    return this.#byKind.get(kind) ?? [];
  }

  /** Share of the price of an instance; at most the dominant share. Null: nothing is known of such pools. */
  shareIn(pool: number, need: readonly number[]): number | null {
    let parts = this.#known.get(pool);
    if (parts === undefined) this.#known.set(pool, (parts = this.#partsOf(pool)));
    if (parts === null) return null;
    let share = 0;
    for (const k of this.#asked) {
      const n = need[k] ?? 0;
      if (n > 0) share += (n / (this.#capacities[pool * KINDS + k] ?? 0)) * (parts[k] ?? 0);
    }
    return share;
  }

  #fits(need: readonly number[], pool: number): boolean {
    for (let k = 0; k < KINDS; k++) if ((need[k] ?? 0) > (this.#capacities[pool * KINDS + k] ?? 0)) return false;
    return true;
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
      (this.#capacities[pool * KINDS + k] ?? 0) / (this.#capacities[pool * KINDS + first] ?? 0);
    return others.reduce((sum, k) => {
      const [x, y] = [per(a, k), per(b, k)];
      return x === y ? sum : x > 0 && y > 0 ? sum + Math.abs(Math.log(x / y)) : Infinity;
    }, 0);
  }
}
