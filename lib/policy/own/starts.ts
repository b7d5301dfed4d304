/** Reads of starts, with and without room, from users' policies. Each throws `Unusable` (read.ts). */
import type { AttemptId, GroupId, InstanceId } from '../../kernel/ids.ts';
import { seconds } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { TaskRef } from '../../domain/job.ts';
import type { Placement } from '../../domain/plan.ts';
import { fits, minusResources, NO_RESOURCES, plusResources, type Resources } from '../../domain/resources.ts';
import { isStopping, type PendingGroup, type Snapshot } from '../../domain/snapshot.ts';
import { placeOf } from '../../domain/task-order.ts';
import type { Host, Leftover, OrderInput, Queued, QueueInput, Started, TaskToPlace } from '../contracts.ts';
import { poolsById, readOption, type Given } from './offers.ts';
import { amount, answerWith, fields, list, refuse, shown, whole } from './read.ts';
import { expectWithin, groupNamed, once, reasonOf, tasksByGroup, tasksIn, textOf } from './records.ts';

export function order(answer: unknown, { groups, hosts, snapshot, allotment, offers }: OrderInput): Started {
  const of = answerWith(answer, ['placements', 'reserved', 'leftovers', 'forSlotReuse', 'untold', 'needed']);
  const byId = new Map(hosts.map((h) => [h.on, h]));
  const most = tasksIn(groups.values());
  const placed = (name: 'placements' | 'reserved'): Placement[] =>
    list(of[name], { what: name, most }).map((given) => startOf(given, groups, byId));
  const [placements, reserved] = [placed('placements'), placed('reserved')];
  const both = [...placements, ...reserved];
  once(both, ({ task }) => textOf(task), 'it places');
  const needOf = ({ group }: Placement) => groups.get(group)?.need;
  expectRoom(placements, needOf, ({ free }) => free, byId);
  const stopped = new Set(allotment.preemptions.map((p) => p.attempt));
  expectRoom(both, needOf, (host) => plusResources(host.free, stoppingOn(host, snapshot, stopped)), byId);
  const options = new Set<unknown>([...allotment.starts, ...allotment.deferred].map((s) => s.option));
  const leftovers = leftoversOf(of['leftovers'], groups, { pools: poolsById(snapshot), offers, options });
  const forSlotReuse = tasksByGroup(of['forSlotReuse'], groups, 'forSlotReuse');
  const untold = tasksByGroup(of['untold'], groups, 'untold');
  expectWithin(
    [
      ...both.map(({ group }): [GroupId, number] => [group, 1]),
      ...leftovers.map(({ group, count }): [GroupId, number] => [group.id, count]),
      ...forSlotReuse,
      ...untold,
    ],
    groups,
    'it has an answer for',
  );
  return { placements, reserved, leftovers, forSlotReuse, untold, needed: neededOf(of['needed'], stopped) };
}

/** A start of a waiting task on a given instance. */
function startOf(
  given: unknown,
  groups: ReadonlyMap<GroupId, PendingGroup>,
  hosts: ReadonlyMap<InstanceId, Host>,
): Placement {
  const of = fields(given, 'a placement');
  const group = groupNamed(of['group'], groups);
  const { job, stage, index } = fields(of['task'], `a task of ${group.id}`);
  if (job !== group.job || stage !== group.stage.name || !isMember(index, group))
    return refuse(`${shown(job)}/${shown(stage)}/${shown(index)} is no task of the group ${group.id}`);
  const task: TaskRef = { job: group.job, stage, index };
  const host = hosts.get(of['on'] as InstanceId);
  if (host === undefined) return refuse(`there is no instance ${shown(of['on'])} for ${textOf(task)}`);
  if (brokenConstraint(group.stage.constraints, host.pool) !== null)
    return refuse(`${textOf(task)} may not run in ${host.pool.id}`);
  return { task, group: group.id, on: host.on, reason: reasonOf(of, `the placement of ${textOf(task)}`) };
}

function isMember(index: unknown, { members, count, stage }: PendingGroup): index is number {
  if ('indices' in members) return members.indices.includes(index as number);
  if (!Number.isSafeInteger(index) || (index as number) < 0 || (index as number) >= stage.tasks) return false;
  const nth = placeOf(members.order ?? null, index as number) - members.freshFrom;
  return nth >= 0 && nth < count;
}

/** Resources of tasks on an instance that stop, or that the plan stops. */
function stoppingOn({ on }: Host, snapshot: Snapshot, stopped: ReadonlySet<AttemptId>): Resources {
  return (snapshot.instances.get(on)?.attempts ?? []).reduce(
    (sum, r) => (isStopping(r) || stopped.has(r.attempt.id) ? plusResources(sum, r.attempt.resources) : sum),
    NO_RESOURCES,
  );
}

function neededOf(given: unknown, stopped: ReadonlySet<AttemptId>): ReadonlySet<AttemptId> {
  if (!(given instanceof Set)) return refuse('needed is no set');
  if (given.size > stopped.size) return refuse('needed has attempts that the plan does not stop');
  const needed = new Set(given as ReadonlySet<AttemptId>);
  for (const id of needed) if (!stopped.has(id)) return refuse(`${shown(id)} is needed, which the plan does not stop`);
  return needed;
}

function leftoversOf(answer: unknown, groups: ReadonlyMap<GroupId, PendingGroup>, known: Given): readonly Leftover[] {
  return list(answer, { what: 'leftovers', most: tasksIn(groups.values()) }).map((given): Leftover => {
    const of = fields(given, 'a leftover');
    const group = groupNamed(fields(of['group'], 'the group of a leftover')['id'], groups);
    if (of['group'] !== group) return refuse(`a leftover changes the group ${group.id} (hand back the very record)`);
    const at = `the leftover of ${group.id}`;
    return {
      group,
      option: readOption(of['option'], group, known),
      count: whole(of['count'], `count of ${at}`, 1),
      runtimeS: seconds(amount(of['runtimeS'], `runtimeS of ${at}`)),
    };
  });
}

/** No instance has more on it than has room. */
function expectRoom(
  placements: readonly Placement[],
  needOf: (placement: Placement) => Resources | undefined,
  roomOf: (host: Host) => Resources,
  hosts: ReadonlyMap<InstanceId, Host>,
): void {
  const free = new Map<InstanceId, Resources>();
  for (const placement of placements) {
    const { on, task } = placement;
    const host = hosts.get(on);
    const left = free.get(on) ?? (host && roomOf(host));
    const need = needOf(placement);
    if (left === undefined || need === undefined) return refuse(`there is no instance ${on} for ${textOf(task)}`);
    if (!fits(need, left)) return refuse(`${textOf(task)} does not fit into what is left of ${on}`);
    free.set(on, minusResources(left, need));
  }
}

export function place(answer: unknown, tasks: readonly TaskToPlace[], hosts: readonly Host[]): readonly Placement[] {
  const given = new Map<unknown, TaskToPlace>(tasks.map((t) => [t.task, t]));
  const byId = new Map(hosts.map((h) => [h.on, h]));
  const placements = list(answer, { what: 'the list of placements', most: tasks.length }).map((one): Placement => {
    const at = fields(one, 'a placement');
    const of = given.get(at['task']);
    if (of === undefined) return refuse('it places a task that was not given (hand back the very record)');
    const host = byId.get(at['on'] as InstanceId);
    const { task, group } = of;
    if (at['group'] !== group) return refuse(`${textOf(task)} is not of the group ${shown(at['group'])}`);
    if (host === undefined) return refuse(`there is no instance ${shown(at['on'])} for ${textOf(task)}`);
    if (!of.allowed(host)) return refuse(`${textOf(task)} may not go on ${host.on}`);
    return { task, group, on: host.on, reason: reasonOf(at, `the placement of ${textOf(task)}`) };
  });
  once(placements, ({ task }) => textOf(task), 'it places');
  const needOf = ({ task }: Placement) => given.get(task)?.need;
  expectRoom(placements, needOf, ({ free }) => free, byId);
  expectWholeGangs(placements, tasks);
  return placements;
}

function expectWholeGangs(placements: readonly Placement[], tasks: readonly TaskToPlace[]): void {
  const placed = new Set(placements.map((p) => p.task));
  const gangs = Map.groupBy(
    tasks.filter((t) => t.gang !== null),
    (t) => t.gang,
  );
  for (const [gang, all] of gangs) {
    const there = all.filter((t) => placed.has(t.task)).length;
    if (there > 0 && there < all.length) refuse(`it places ${there} of ${all.length} tasks of the gang ${gang}`);
  }
}

export function queue(answer: unknown, { leftovers: asked, snapshot }: QueueInput): Queued {
  const of = answerWith(answer, ['leftovers', 'forSlotReuse', 'untold']);
  const groups = new Map(asked.map(({ group }) => [group.id, group]));
  const counts = new Map<GroupId, { readonly count: number }>();
  for (const { group, count } of asked) {
    counts.set(group.id, { count: count + (counts.get(group.id)?.count ?? 0) });
  }
  const options = new Set<unknown>(asked.map((l) => l.option));
  const leftovers = leftoversOf(of['leftovers'], groups, { pools: poolsById(snapshot), options });
  const forSlotReuse = tasksByGroup(of['forSlotReuse'], groups, 'forSlotReuse');
  const untold = tasksByGroup(of['untold'], groups, 'untold');
  const toBuy = leftovers.map(({ group, count }): [GroupId, number] => [group.id, count]);
  expectWithin([...toBuy, ...forSlotReuse, ...untold], counts, 'it has an answer for');
  return { leftovers, forSlotReuse, untold };
}
