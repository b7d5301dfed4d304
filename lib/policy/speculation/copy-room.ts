/** Where a copy could run: on room there is, on a machine of a fixed cluster that is not up, or on a bought one. */
import type { InstanceId } from '../../kernel/ids.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { StageSpec } from '../../domain/job.ts';
import type { NamedTarget } from '../../domain/plan.ts';
import { onDemandUsdOf, usdPerHourOf, type Pool, type PoolView } from '../../domain/pool.ts';
import { fits } from '../../domain/resources.ts';
import { liveBeside, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import { usdPerHour } from '../../kernel/units.ts';

/** Instances with room that are remembered for a stage: one more than a task has attempts. */
const ENOUGH = 4;

/** What one stage finds. O(instances + pools), once per stage. */
interface Found {
  /** Instances with room, at most ENOUGH. */
  readonly instances: readonly { readonly id: InstanceId; readonly pool: Pool }[];
  /** The first pool of a fixed cluster with a machine that is not up. */
  readonly own: PoolView | null;
  /** The pool whose instance costs the least, of those that are charged for. */
  readonly cheapest: PoolView | null;
}

/** An instance that would be asked for. */
interface Machine {
  readonly to: NamedTarget;
  readonly pool: Pool;
}

/** Room for copies in one snapshot. */
export class CopyRoom {
  readonly #snapshot: Snapshot;
  readonly #found = new Map<StageSpec, Found>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  /** Pool of an instance with room, on which no attempt of the task lives; null: there is none. */
  there(running: RunningTask): Pool | null {
    const taken = new Set([running, ...liveBeside(this.#snapshot, running)].map((r) => r.attempt.instance));
    return this.#of(running).instances.find(({ id }) => !taken.has(id))?.pool ?? null;
  }

  /** A machine of a fixed cluster that is not up: it costs nothing more. */
  own(running: RunningTask): Machine | null {
    const { own } = this.#of(running);
    return own === null ? null : { to: { pool: own.pool.id, bid: 'uncapped' }, pool: own.pool };
  }

  /** The cheapest instance that could be bought, with its price per hour; spot at no more than the on-demand price. */
  bought(running: RunningTask): (Machine & { readonly usd: number }) | null {
    const { cheapest } = this.#of(running);
    if (cheapest === null) return null;
    const { pool, quote } = cheapest;
    const bid = pool.option === 'spot' ? usdPerHour(onDemandUsdOf(pool)) : 'uncapped';
    return { to: { pool: pool.id, bid }, pool, usd: usdPerHourOf(pool, quote) };
  }

  #of({ stage }: RunningTask): Found {
    let found = this.#found.get(stage);
    if (found === undefined) this.#found.set(stage, (found = this.#search(stage)));
    return found;
  }

  #search({ constraints, resources }: StageSpec): Found {
    const { instances, pools } = this.#snapshot;
    const mayBe = (pool: Pool): boolean =>
      brokenConstraint(constraints, pool) === null && fits(resources, pool.type.capacity);
    const withRoom: { id: InstanceId; pool: Pool }[] = [];
    for (const { instance, pool, free } of instances.values()) {
      if (instance.state !== 'ready' && instance.state !== 'starting' && instance.state !== 'requested') continue;
      if (fits(resources, free) && mayBe(pool)) withRoom.push({ id: instance.id, pool });
      if (withRoom.length >= ENOUGH) break;
    }
    const buyable = pools.filter(({ pool, open, quote }) => open && quote !== null && mayBe(pool));
    const isOwn = ({ reservedLeft }: PoolView): boolean => reservedLeft !== undefined;
    const usdOf = ({ pool, quote }: PoolView): number => usdPerHourOf(pool, quote);
    const cheapest = buyable
      .filter((view) => !isOwn(view))
      .reduce<PoolView | null>((least, v) => (least === null || usdOf(v) < usdOf(least) ? v : least), null);
    return { instances: withRoom, own: buyable.find(({ reservedLeft = 0 }) => reservedLeft > 0) ?? null, cheapest };
  }
}
