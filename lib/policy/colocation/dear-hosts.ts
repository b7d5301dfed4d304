/**
 * Hosts on which work would cost more than on an instance of its own, because it and its neighbours would slow one
 * another down.
 */
import { once } from '../../kernel/once.ts';
import { raw } from '../../kernel/units.ts';
import type { InstanceId } from '../../kernel/ids.ts';
import { usdPerHourOf } from '../../domain/pool.ts';
import { countFits } from '../../domain/resources.ts';
import { quantileToDo } from '../../domain/work-to-do.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { DecisionContext, Host, TaskToPlace } from '../contracts.ts';
import { leftOfEach } from '../left-of.ts';
import { countedNeighbours } from './counted-neighbours.ts';
import type { NeighbourBelief } from './neighbour-belief.ts';
import { besideOneOf, partIn, stayingOn, tenantsOn } from './tenants.ts';
import { templateOf, type Tenant } from './together.ts';

/** Tasks of one template on a host. */
interface Neighbour extends Required<Tenant> {
  /** Longest remaining running time among them, seconds. */
  readonly leftS: number;
  readonly isSlowed: boolean;
}

/** A waiting group. */
interface Waiting {
  readonly template: string;
  readonly isSlowed: boolean;
  readonly runtimeS: number;
  /** Expected cost of a task on a new instance. */
  readonly usd: number;
}

type Allowed = TaskToPlace['allowed'];

const HOUR_S = 3600;

/**
 * The same tasks, kept off hosts where the time that they and their neighbours would lose costs more than they would on
 * a new instance. Work that nobody is known to slow down, beside such work, is free to go anywhere, and so are gangs.
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
  readonly #leftOf: ReturnType<typeof leftOfEach>;
  readonly #quotes = once(() => new Map(this.#context.snapshot.pools.map(({ pool, quote }) => [pool.id, quote])));
  readonly #neighbours = new Map<InstanceId, readonly Neighbour[]>();

  constructor(belief: NeighbourBelief, context: DecisionContext) {
    this.#belief = belief;
    this.#context = context;
    this.#leftOf = leftOfEach(context);
  }

  /** Null: too little is known of it. */
  waiting(group: PendingGroup): Waiting | null {
    const { snapshot, forecasts, offers } = this.#context;
    const job = snapshot.jobs.get(group.job);
    const [best] = offers.get(group.id)?.offers ?? [];
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    if (job === undefined || best === undefined || forecast === undefined) return null;
    const template = templateOf(job, group.stage);
    return {
      template,
      isSlowed: this.#belief.tells(template),
      runtimeS: raw(quantileToDo(forecast.runtime, group, 0.5)),
      usd: best.expectedCostUsd,
    };
  }

  /** As many tasks of the group as the host has room for. */
  areDear({ need, count }: PendingGroup, waiting: Waiting | null, host: Host): boolean {
    if (waiting === null) return false;
    const there = this.#neighboursOn(host);
    if (there.length === 0 || !(waiting.isSlowed || there.some((n) => n.isSlowed))) return false;
    const { template, runtimeS, usd } = waiting;
    const part = partIn(host, need);
    const tasks = Math.max(1, Math.min(count, countFits(need, host.free)));
    const mine = { template, part, tasks };
    const factor = (of: string, beside: readonly Tenant[]): number =>
      this.#belief.slowdown(of, beside, host.pool.type).factor;
    const meS = runtimeS * (factor(template, [...there, ...besideOneOf([mine], template)]) - 1);
    const othersS = there.reduce((sum, of) => {
      if (!of.isSlowed) return sum;
      const beside = besideOneOf(there, of.template);
      const longer = factor(of.template, [...beside, mine]) / factor(of.template, beside) - 1;
      return sum + of.tasks * of.part * Math.min(of.leftS, runtimeS) * longer;
    }, 0);
    const usdPerHour = usdPerHourOf(host.pool, this.#quotes().get(host.pool.id) ?? null);
    return (usdPerHour * (tasks * part * meS + othersS)) / HOUR_S > tasks * usd;
  }

  #neighboursOn(host: Host): readonly Neighbour[] {
    let known = this.#neighbours.get(host.on);
    if (known === undefined) this.#neighbours.set(host.on, (known = this.#running(host)));
    return known;
  }

  #running({ on }: Host): readonly Neighbour[] {
    const { snapshot } = this.#context;
    const view = snapshot.instances.get(on);
    if (view === undefined) return [];
    const leftS = new Map<string, number>();
    for (const [template, running] of stayingOn(view, snapshot))
      leftS.set(template, Math.max(leftS.get(template) ?? 0, raw(this.#leftOf(running))));
    return Array.from(tenantsOn(view, snapshot).values(), (tenant) => ({
      ...tenant,
      leftS: leftS.get(tenant.template) ?? 0,
      isSlowed: this.#belief.tells(tenant.template),
    }));
  }
}
