/**
 * Hosts on which work would cost more than on an instance of its own, because it and its neighbours would slow one
 * another down.
 */
import { once } from '../../kernel/once.ts';
import { raw } from '../../kernel/units.ts';
import type { InstanceId } from '../../kernel/ids.ts';
import { usdPerHourOf } from '../../domain/pool.ts';
import { countFits, dominantShare } from '../../domain/resources.ts';
import { quantileToDo } from '../../domain/work-to-do.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { DecisionContext, Host, TaskToPlace } from '../contracts.ts';
import { leftOfEach } from '../left-of.ts';
import { neighbourLearner, type NeighbourBelief } from './neighbour-learner.ts';
import { templateOf, type Tenant } from './together.ts';

/** A task that runs on a host. */
interface Neighbour extends Tenant {
  readonly leftS: number;
}

const HOUR_S = 3600;

/**
 * The same tasks, kept off hosts where the time that they and their neighbours would lose costs more than they would on
 * a new instance. Work that nobody is known to slow down, and its neighbours, are free to go anywhere. O(tenants) for
 * each group and host with neighbours, once.
 */
export function offDearHosts(tasks: readonly TaskToPlace[], context: DecisionContext): readonly TaskToPlace[] {
  if (!context.config.neighbours) return tasks;
  const belief = context.beliefs.of(neighbourLearner);
  if (!belief.tellsAny()) return tasks;
  const groups = new Map(context.snapshot.groups.map((g) => [g.id, g]));
  const costs = new Costs(belief, context);
  const known = new Map<string, TaskToPlace['allowed']>();
  return tasks.map((task) => {
    const group = groups.get(task.group);
    if (group === undefined || task.gang !== null) return task;
    let allowed = known.get(task.group);
    if (allowed === undefined) {
      const before = task.allowed;
      known.set(task.group, (allowed = (host) => before(host) && !costs.isDear(group, host)));
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

  isDear(group: PendingGroup, host: Host): boolean {
    const { snapshot, forecasts, offers } = this.#context;
    const template = snapshot.jobs.get(group.job)?.template;
    const there = this.#neighboursOn(host);
    if (template === undefined || there.length === 0) return false;
    const key = templateOf({ template }, group.stage);
    const belief = this.#belief;
    if (!belief.tells(key) && !there.some((n) => belief.tells(n.template))) return false;
    const [best] = offers.get(group.id)?.offers ?? [];
    const forecast = forecasts.runtime.get(`${group.job}/${group.stage.name}`);
    if (best === undefined || forecast === undefined) return false;
    const part = Math.min(1, dominantShare(group.need, host.capacity));
    const tasks = Math.max(1, Math.min(group.count, countFits(group.need, host.free)));
    const mine: Tenant = { template: key, part };
    const { type } = host.pool;
    const others = Array.from({ length: tasks - 1 }, () => mine);
    const factor = (of: string, beside: readonly Tenant[]): number => belief.slowdown(of, beside, type).factor;
    const runtimeS = raw(quantileToDo(forecast.runtime, group, 0.5));
    let lostS = tasks * part * runtimeS * (factor(key, [...there, ...others]) - 1);
    for (const of of there) {
      const beside = there.filter((n) => n !== of);
      const longer = factor(of.template, [...beside, mine, ...others]) / factor(of.template, beside) - 1;
      lostS += of.part * Math.min(of.leftS, runtimeS) * longer;
    }
    const usdPerHour = usdPerHourOf(host.pool, this.#quotes().get(host.pool.id) ?? null);
    return (usdPerHour * lostS) / HOUR_S > tasks * best.expectedCostUsd;
  }

  #neighboursOn(host: Host): readonly Neighbour[] {
    let known = this.#neighbours.get(host.on);
    if (known === undefined) this.#neighbours.set(host.on, (known = this.#running(host)));
    return known;
  }

  #running({ on, capacity }: Host): readonly Neighbour[] {
    const { instances, jobs } = this.#context.snapshot;
    return (instances.get(on)?.attempts ?? []).flatMap((r): Neighbour[] => {
      const template = jobs.get(r.attempt.job)?.template;
      if (template === undefined || r.attempt.state === 'stopping') return [];
      const part = Math.min(1, dominantShare(r.attempt.resources, capacity));
      return [{ template: templateOf({ template }, r.stage), part, leftS: raw(this.#leftOf(r)) }];
    });
  }
}
