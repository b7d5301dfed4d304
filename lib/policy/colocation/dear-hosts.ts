/**
 * Hosts on which work and its neighbours would slow one another down by so much that a new instance is the better place
 * for it.
 */
import { once } from '../../kernel/once.ts';
import { raw } from '../../kernel/units.ts';
import type { InstanceId } from '../../kernel/ids.ts';
import type { Offer } from '../../domain/forecast.ts';
import { usdPerHourOf, vcpusOf } from '../../domain/pool.ts';
import { countFits } from '../../domain/resources.ts';
import { quantileToDo } from '../../domain/work-to-do.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { DecisionContext, Host, TaskToPlace } from '../contracts.ts';
import { leftOfEach, type LeftOf } from '../left-of.ts';
import { vcpusLeft } from '../vcpus-left.ts';
import { countedNeighbours } from './counted-neighbours.ts';
import { longerTogether, lostS, sharersOf, type Sharer } from './lost-time.ts';
import type { NeighbourBelief } from './neighbour-belief.ts';
import { partIn } from './tenants.ts';
import { templateOf } from './together.ts';

/** A waiting group. */
interface Waiting extends Pick<Sharer, 'template' | 'isSlowed' | 'leftS'> {
  /** Expected cost of a task on a new instance. */
  readonly usd: number;
}

type Allowed = TaskToPlace['allowed'];

const HOUR_S = 3600;
/** Times the expected cost that a limit on money must have left: one that is nearly reached may refuse an instance. */
const AMPLE = 4;
/**
 * Part of the cost of a new instance that the time lost may cost: room that is there already is not free, for other
 * work would use it. Cost over that without knowledge, and late jobs (174 without), on twelve days of
 * `bench:neighbours --part tune`, 2016 and 2021: of 1, 0.946 and 92; of 0.4, 0.920 and 50; of 0.2, 0.898 and 52; of
 * 0.1, 0.899 and 44.
 */
const WORTH_ROOM = 0.2;

/**
 * The same tasks, kept off hosts where the time that they and their neighbours would lose costs more than WORTH_ROOM of
 * a new instance, if one can be bought. Work that nobody is known to slow down, beside such work, is free to
 * go anywhere, and so are gangs.
 * O(templates on the host squared) for each group and host that a packer asks about.
 */
export function offDearHosts(tasks: readonly TaskToPlace[], context: DecisionContext): readonly TaskToPlace[] {
  const belief = countedNeighbours(context);
  if (belief?.tellsAny() !== true) return tasks;
  const costs = new Costs(belief, context);
  const groups = new Map(context.snapshot.groups.map((g) => [g.id, g]));
  const known = new Map<string, Map<Allowed, Allowed>>();
  return tasks.map((task) => {
    const group = groups.get(task.group);
    if (group === undefined || task.gang !== null) return task;
    // Tasks that share a function go on sharing one: a packer asks once for all of them.
    let ofGroup = known.get(task.group);
    if (ofGroup === undefined) known.set(task.group, (ofGroup = new Map<Allowed, Allowed>()));
    let allowed = ofGroup.get(task.allowed);
    if (allowed === undefined) {
      const before = task.allowed;
      const waiting = once(() => costs.waiting(group));
      allowed = (host) => before(host) && !costs.areDear(group, waiting(), host);
      ofGroup.set(before, allowed);
    }
    return { ...task, allowed };
  });
}

class Costs {
  readonly #belief: NeighbourBelief;
  readonly #context: DecisionContext;
  readonly #leftOf: LeftOf;
  readonly #pools = once(() => new Map(this.#context.snapshot.pools.map((view) => [view.pool.id, view])));
  readonly #vcpusLeft = once(() => vcpusLeft(this.#context.snapshot));
  readonly #there = new Map<InstanceId, readonly Sharer[]>();

  constructor(belief: NeighbourBelief, context: DecisionContext) {
    this.#belief = belief;
    this.#context = context;
    this.#leftOf = leftOfEach(context);
  }

  /** Null: too little is known of it, or no new instance can be bought. */
  waiting(group: PendingGroup): Waiting | null {
    const { snapshot, forecasts, offers } = this.#context;
    const job = snapshot.jobs.get(group.job);
    const [best] = offers.get(group.id)?.offers ?? [];
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    if (job === undefined || best === undefined || forecast === undefined) return null;
    if (!this.#canBuy(group, best)) return null;
    const template = templateOf(job, group.stage);
    return {
      template,
      isSlowed: this.#belief.tells(template),
      leftS: raw(quantileToDo(forecast.runtime, group, 0.5)),
      usd: best.expectedCostUsd,
    };
  }

  /** False: limits on vCPUs or money leave nothing for one more, and where there is room is the only place to go. */
  #canBuy({ job, count }: PendingGroup, { pool: id, expectedCostUsd }: Offer): boolean {
    const { budgets, spendingLimits = [] } = this.#context.snapshot;
    const own = this.#pools().get(id);
    if (own === undefined || vcpusOf(own.pool) > this.#vcpusLeft()) return false;
    const usd = AMPLE * count * expectedCostUsd;
    const budget = budgets?.get(job);
    if (budget !== undefined && usd > budget.limitUsd - budget.spentUsd - budget.reservedUsd - budget.heldUsd)
      return false;
    return spendingLimits.every(({ limitUsd, spentUsd, committedUsd }) => usd <= limitUsd - spentUsd - committedUsd);
  }

  /** As many tasks of the group as the host has room for. */
  areDear({ need, count }: PendingGroup, waiting: Waiting | null, host: Host): boolean {
    if (waiting === null) return false;
    const there = this.#sharersOn(host);
    if (there.length === 0 || !(waiting.isSlowed || there.some((n) => n.isSlowed))) return false;
    const tasks = Math.max(1, Math.min(count, countFits(need, host.free)));
    const coming = { ...waiting, part: partIn(host, need), tasks };
    const lost = lostS(longerTogether(there, [coming], { belief: this.#belief, type: host.pool.type }));
    const usdPerHour = usdPerHourOf(host.pool, this.#pools().get(host.pool.id)?.quote ?? null);
    return (usdPerHour * lost) / HOUR_S > WORTH_ROOM * tasks * waiting.usd;
  }

  #sharersOn({ on, pool }: Host): readonly Sharer[] {
    let known = this.#there.get(on);
    if (known === undefined) {
      const { snapshot } = this.#context;
      const view = snapshot.instances.get(on);
      const of = { belief: this.#belief, type: pool.type, snapshot, leftOf: this.#leftOf };
      this.#there.set(on, (known = view === undefined ? [] : sharersOf(view, of)));
    }
    return known;
  }
}
