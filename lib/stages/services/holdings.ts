/** What a service holds, by pool and bid, and what it is worth (Tributary, section 2.2.2). */
import { compareText } from '../../kernel/compare.ts';
import { seconds } from '../../kernel/units.ts';
import { pInterruptedWithin } from '../../domain/forecast.ts';
import { capUsd, type Bid, type Pool } from '../../domain/pool.ts';
import { correlationPenalty } from '../../policy/footprint/correlation-penalty.ts';
import { FootprintValue, type PoolChain } from '../../policy/footprint/footprint-value.ts';
import type { Part } from '../../policy/footprint/remaining.ts';
import type { FootprintContext, HeldInstance } from '../../policy/services/contracts.ts';
import { unitsHeld } from './units.ts';
import { lastsUntilReplaced } from './windows.ts';

/** Worth of a footprint: shares of requests in time, in expectation. */
export interface Worth {
  readonly utility: number;
  /** Beside so many vCPUs that are never lost. */
  readonly beside: (units: number) => number;
  /** With other instances of one pool in place of those held. */
  readonly having: (pool: Pool, held: readonly HeldInstance[]) => number;
}

export class Holdings {
  readonly #context: FootprintContext;
  readonly #lossHorizonS: number;
  readonly #pools: readonly Pool[];
  readonly #held = new Map<string, readonly HeldInstance[]>();
  readonly #losses = new Map<string, number>();

  /** `lossHorizonS`: time over which losses count, seconds. */
  constructor(context: FootprintContext, lossHorizonS: number) {
    this.#context = context;
    this.#lossHorizonS = lossHorizonS;
    const pools = [...context.pools.map((v) => v.pool), ...context.held.map((h) => h.pool)];
    this.#pools = [...new Map(pools.map((p) => [p.id, p])).values()].sort((a, b) => compareText(a.id, b.id));
    for (const [id, of] of Map.groupBy(context.held, (h) => h.pool.id)) {
      this.#held.set(id, of.filter((h) => lastsUntilReplaced(h, context)).sort(byBid));
    }
  }

  /** Instances of a pool that count, the lowest bid first. */
  of(pool: Pool): readonly HeldInstance[] {
    return this.#held.get(pool.id) ?? [];
  }

  all(): readonly HeldInstance[] {
    return this.#pools.flatMap((pool) => this.of(pool));
  }

  set(pool: Pool, held: readonly HeldInstance[]): void {
    this.#held.set(pool.id, [...held].sort(byBid));
  }

  /** Probability that the market takes an instance within so long. */
  pLost(pool: Pool, bid: Bid, overS: number): number {
    if (pool.option !== 'spot') return 0;
    const key = `${pool.id} ${capUsd(bid)} ${overS}`;
    let p = this.#losses.get(key);
    if (p === undefined) {
      p = pInterruptedWithin(this.#context.market.interruption(pool, bid), seconds(overS));
      this.#losses.set(key, p);
    }
    return p;
  }

  /** `mostMore`: vCPUs that what is asked about has more than what is held, at most. */
  worth(mostMore: number): Worth {
    const units = new Map(this.#pools.map((pool) => [pool, unitsHeld(this.of(pool))]));
    const chainOf = (pool: Pool, held: readonly HeldInstance[]): PoolChain => {
      const chain = this.#chain(pool, held);
      return { chain, lambda: this.#lambda(pool, chain, units) };
    };
    const chains = this.#pools.map((pool) => chainOf(pool, this.of(pool)));
    const value = new FootprintValue(chains, this.#context.demand.utility, mostMore);
    const place = new Map(this.#pools.map((pool, i) => [pool.id, i]));
    return {
      utility: value.utility,
      beside: (more) => value.beside(more),
      having: (pool, held) => value.withChain(place.get(pool.id) ?? -1, chainOf(pool, [...held].sort(byBid))),
    };
  }

  #chain(pool: Pool, held: readonly HeldInstance[]): readonly Part[] {
    const parts: Part[] = [];
    for (const alike of Map.groupBy(held, ({ bid }) => capUsd(bid)).values()) {
      const { bid } = alike[0] as HeldInstance;
      parts.push({ units: unitsHeld(alike), pLost: this.pLost(pool, bid, this.#lossHorizonS) });
    }
    return parts;
  }

  #lambda(pool: Pool, chain: readonly Part[], units: ReadonlyMap<Pool, number>): number {
    const { market, config } = this.#context;
    // Nothing is lost where nothing is held.
    if (pool.option !== 'spot' || chain.length === 0 || config.correlationPenalty === 0) return 0;
    const own = chain.reduce((sum, part) => sum + part.units, 0);
    const others = [...units].flatMap(([other, held]) =>
      held === 0 || other.id === pool.id || other.option !== 'spot'
        ? []
        : [{ units: held, correlation: market.correlation(pool, other) }],
    );
    return correlationPenalty(own, others, config.correlationPenalty);
  }
}

const byBid = (a: HeldInstance, b: HeldInstance): number =>
  a.bid === b.bid ? compareText(a.id, b.id) : capUsd(a.bid) - capUsd(b.bid);
