/**
 * Starts on any instance that the constraints allow, in one packing: the packer alone decides, whatever pool the plan
 * had in mind. Room on stopping work counts as taken. A plan that preempts needs its own instances: then `orderBy`
 * answers, without rules of its own.
 */
import { invariant } from '../../kernel/errors.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { quantileToDo } from '../../domain/work-to-do.ts';
import type { StageSpec, TaskRef } from '../../domain/job.ts';
import type { StartOption } from '../../domain/plan.ts';
import type { Pool } from '../../domain/pool.ts';
import { membersOf, type PendingGroup } from '../../domain/snapshot.ts';
import type { GroupId } from '../../kernel/ids.ts';
import { scale, type Seconds } from '../../kernel/units.ts';
import type { OrderInput, OrderPolicy, QueueInput, TaskToPlace } from '../../policy/contracts.ts';
import { afterPlacing } from '../../policy/hosts.ts';
import { partsOfGangs } from './parts-of-gangs.ts';
import { orderBy } from './starts.ts';

const whereWorkStops = orderBy({ urgentFirst: false, keepsOption: false, keepsStages: false, sharesPools: false });

/** Tasks of a group that the plan starts by one option. */
interface Wanted {
  readonly group: PendingGroup;
  readonly option: StartOption;
  readonly runtimeS: Seconds;
  readonly inPool: (pool: Pool) => boolean;
  readonly tasks: readonly TaskToPlace[];
}

/** O(tasks) and one packing. */
export const anywhere: OrderPolicy = (input) => {
  const { allotment, hosts, ...context } = input;
  if (allotment.preemptions.length > 0) return whereWorkStops(input);
  const wanted = wantedAnywhere(input);
  const tasks = wanted.flatMap((w) => w.tasks);
  const placements = tasks.length === 0 ? [] : input.stages.place(tasks, hosts, context);
  const placed = new Set<TaskRef>(placements.map((p) => p.task));
  const leftovers = wanted.flatMap(({ tasks: own, ...of }) => {
    const count = own.reduce((n, t) => n + Number(!placed.has(t.task)), 0);
    return count === 0 ? [] : [{ ...of, count }];
  });
  const behind = new Map(allotment.waits.flatMap((w) => (w.why === 'capacity' ? [[w.group, w.count] as const] : [])));
  const queued: QueueInput = { ...context, placements, preempted: new Set(), behind, leftovers, unknownAs: () => null };
  const waiting = input.stages.queue(queued);
  const parts = partsOfGangs(context, {
    ...waiting,
    tasksOf: (group) => wanted.find((w) => w.group === group)?.tasks ?? null,
    hosts: () => afterPlacing(hosts, tasks, placements),
  });
  return { ...waiting, ...parts, placements, needed: new Set() };
};

/** Starts of a plan as tasks that may go wherever their constraints allow. */
export function wantedAnywhere({ allotment, groups, forecasts }: OrderInput): readonly Wanted[] {
  const taken = new Map<GroupId, number>();
  const where = new Map<string, Where>();
  return allotment.starts.map(({ option, count }) => {
    const group = invariant(groups.get(option.group), `the plan starts group ${option.group}, which does not wait`);
    const stageOf = `${group.job}/${group.stage.name}`;
    const forecast = invariant(forecasts.runtime.get(stageOf), `no runtime forecast for ${stageOf}`);
    const runtimeS = scale(quantileToDo(forecast.runtime, group, 0.5), option.offer.slowdown ?? 1);
    const from = taken.get(group.id) ?? 0;
    taken.set(group.id, from + count);
    const constraints = JSON.stringify(group.stage.constraints);
    const { inPool, allowed } = where.get(constraints) ?? whereAllowed(group.stage);
    where.set(constraints, { inPool, allowed });
    const tasks = membersOf(group, from, from + count).map((index): TaskToPlace => ({
      task: { job: group.job, stage: group.stage.name, index },
      group: group.id,
      need: group.need,
      runtimeS,
      gang: group.stage.gang ? group.id : null,
      allowed,
      inPool,
    }));
    return { group, option, runtimeS, inPool, tasks };
  });
}

type Where = Required<Pick<TaskToPlace, 'allowed' | 'inPool'>>;

/** Groups with equal constraints share it, so that a packer asks once for all of them. */
function whereAllowed({ constraints }: StageSpec): Where {
  const known = new Map<Pool, boolean>();
  const inPool = (pool: Pool): boolean => {
    let allowed = known.get(pool);
    if (allowed === undefined) known.set(pool, (allowed = brokenConstraint(constraints, pool) === null));
    return allowed;
  };
  return { inPool, allowed: ({ pool }) => inPool(pool) };
}
