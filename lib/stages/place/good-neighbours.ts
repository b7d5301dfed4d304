/**
 * Places tasks where they and those that run there slow one another down least, by what was learned
 * (lib/policy/colocation). Ours, after Hugo, which chooses the job; here its machine is chosen. Nothing waits for a
 * better place: what finds none among good neighbours goes wherever there is room. Where nothing is known, the packer
 * answers as it does without this.
 */
import type { InstanceId, JobId } from '../../kernel/ids.ts';
import type { Pool } from '../../domain/pool.ts';
import { dominantShare, fits, times, type Resources } from '../../domain/resources.ts';
import {
  neighbourLearner,
  templateOf,
  type NeighbourBelief,
  type Tenant,
} from '../../policy/colocation/neighbour-learner.ts';
import type { DecisionContext, Host, PlacePolicy, TaskToPlace } from '../../policy/contracts.ts';
import type { Placement } from '../../domain/plan.ts';
import { afterPlacing, upTo } from '../../policy/hosts.ts';

/** Time lost over the task's own, for it and its neighbours together: tried in this order, then any. */
const LIMITS = [0.05, 0.15, 0.4];

/** O(groups x hosts x neighbours) for each limit, beside as many packings; as without it where nothing is known. */
export const amongGoodNeighbours =
  (place: PlacePolicy): PlacePolicy =>
  (tasks, hosts, context) => {
    const harms = new Harms(context);
    if (!harms.any(tasks)) return place(tasks, hosts, context);
    let left = hosts;
    const placements: Placement[] = [];
    for (const unit of Map.groupBy(tasks, (t) => t.gang ?? t.group).values()) {
      let open = unit;
      for (const limit of [...LIMITS, Infinity]) {
        const shown = left.flatMap((host) => harms.shown(host, open[0], limit) ?? []);
        const placed = place(open, shown, context);
        if (placed.length === 0) continue;
        left = afterPlacing(left, open, placed);
        placements.push(...placed);
        const done = new Set(placed.map((p) => p.task));
        open = open.filter((t) => !done.has(t.task));
        if (open.length === 0) break;
      }
    }
    return placements;
  };

/** What tasks cost one another in time, in one decision. */
class Harms {
  readonly #context: DecisionContext;
  readonly #belief: NeighbourBelief;
  readonly #there = new Map<InstanceId, readonly Tenant[]>();

  constructor(context: DecisionContext) {
    this.#context = context;
    this.#belief = context.beliefs.of(neighbourLearner);
  }

  /** True if some task is of a program whose slow-down beside others is known. */
  any(tasks: readonly TaskToPlace[]): boolean {
    const known = new Set<string | null>();
    for (const { task } of tasks) known.add(this.#templateOf(task.job, task.stage));
    return [...known].some((t) => t !== null && this.#belief.isSlowed(t));
  }

  /** The host with as much room as tasks like this may take within the limit; null: none may. */
  shown(host: Host, task: TaskToPlace | undefined, limit: number): Host | null {
    if (task === undefined || !fits(task.need, host.free)) return null;
    if (limit === Infinity) return host;
    const template = this.#templateOf(task.task.job, task.task.stage);
    if (template === null) return host;
    const own: Tenant = { template, part: partOf(task.need, host.pool) };
    const there = [...this.#tenants(host.on), ...this.#given(host)];
    if (this.#harm(own, there) > limit) return null;
    const isAlone = this.#harm(own, [...there, own]) > limit;
    return isAlone ? upTo(host, times(task.need, 1)) : host;
  }

  /** Time lost by it and by the others, in parts of the machine, over its own part. */
  #harm(own: Tenant, others: readonly Tenant[]): number {
    if (others.length === 0) return 0;
    const lost = own.part * (this.#belief.slowdown(own.template, others).factor - 1);
    const theirs = others.reduce((sum, of, i) => {
      const beside = others.filter((_, j) => j !== i);
      const before = this.#belief.slowdown(of.template, beside).factor;
      return sum + of.part * (this.#belief.slowdown(of.template, [...beside, own]).factor / before - 1);
    }, 0);
    return (lost + theirs) / own.part;
  }

  #tenants(on: InstanceId): readonly Tenant[] {
    let known = this.#there.get(on);
    if (known !== undefined) return known;
    const view = this.#context.snapshot.instances.get(on);
    known = (view?.attempts ?? []).flatMap(({ attempt, stage }): Tenant[] => {
      const template = this.#templateOf(attempt.job, stage.name);
      return view === undefined || template === null ? [] : [{ template, part: partOf(attempt.resources, view.pool) }];
    });
    this.#there.set(on, known);
    return known;
  }

  #given({ given = [], pool }: Host): readonly Tenant[] {
    return given.flatMap(({ task }): Tenant[] => {
      const job = this.#context.snapshot.jobs.get(task.job);
      const stage = job?.spec.stages.find((s) => s.name === task.stage);
      if (job === undefined || stage === undefined) return [];
      return [{ template: templateOf(job, stage), part: partOf(stage.resources, pool) }];
    });
  }

  #templateOf(job: JobId, stage: string): string | null {
    const of = this.#context.snapshot.jobs.get(job);
    return of === undefined ? null : templateOf(of, { name: stage });
  }
}

const partOf = (need: Resources, { type }: Pool): number =>
  Math.max(1e-6, Math.min(1, dominantShare(need, type.capacity)));
