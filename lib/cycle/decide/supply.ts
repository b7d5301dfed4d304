import type { PoolId } from '../../kernel/ids.ts';
import type { Purchase } from '../../domain/plan.ts';
import { capUsd, usdPerHourOf, vcpusOf, type Bid, type Pool, type PoolView } from '../../domain/pool.ts';
import type { Snapshot } from '../../domain/snapshot.ts';

/** A limit of a fraction of a vCPU is not missed by a rounding error. */
const EPSILON = 1e-6;

/** What may still be bought, within the vCPU limit and the reservations, besides the purchases so far. */
export class Supply {
  readonly #limit: number;
  #vcpus: number;
  readonly #taken = new Map<PoolId, number>();

  constructor({ instances, limits, pools }: Snapshot, purchases: readonly Purchase[]) {
    this.#limit = limits.vcpus;
    this.#vcpus = limits.vcpus + EPSILON;
    for (const { pool } of instances.values()) this.#vcpus -= vcpusOf(pool);
    const byId = new Map(pools.map(({ pool }) => [pool.id, pool]));
    for (const { pool: id, count } of purchases) {
      const pool = byId.get(id);
      if (pool !== undefined) this.take(pool, count);
    }
  }

  /** Why an instance of the pool cannot be bought now; null: it can. */
  notSold({ pool, quote, open, reservedLeft = Infinity }: PoolView, bid: Bid): string | null {
    if (!open || quote === null || (this.#taken.get(pool.id) ?? 0) >= reservedLeft)
      return `the pool ${pool.id} sells nothing now`;
    if (pool.option === 'spot' && capUsd(bid) < usdPerHourOf(pool, quote))
      return `its bid is below the price in ${pool.id}`;
    return vcpusOf(pool) > this.#vcpus ? `the limit of ${this.#limit} vCPUs leaves none for it` : null;
  }

  take(pool: Pool, count = 1): void {
    this.#vcpus -= count * vcpusOf(pool);
    this.#taken.set(pool.id, (this.#taken.get(pool.id) ?? 0) + count);
  }
}
