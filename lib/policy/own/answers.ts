/**
 * Checks of answers from users' policies: the invariants of each stage's contract. Each returns null for a usable
 * answer, else the first fault in it, for people. Linear in the size of the answer and of the snapshot's lists.
 */
import type { AttemptId, GroupId, InstanceId, PoolId } from '../../kernel/ids.ts';
import { raw, type Quantity } from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Offer, RuntimeForecast } from '../../domain/forecast.ts';
import type { StageForecasts } from '../../domain/forecasts.ts';
import type { TaskRef } from '../../domain/job.ts';
import type {
  Allotment,
  EarliestStart,
  Placement,
  PlannedStart,
  Purchase,
  StartOption,
  Worth,
} from '../../domain/plan.ts';
import { isBid, type Bid, type Pool, type PoolView } from '../../domain/pool.ts';
import { fits, minusResources, type Resources } from '../../domain/resources.ts';
import type { PendingGroup, Snapshot } from '../../domain/snapshot.ts';
import type {
  AppraiseContext,
  AppraisedMoves,
  BeginInput,
  Copy,
  DecisionContext,
  GroupOffers,
  Host,
  Leftover,
  Move,
  OrderInput,
  PlanInput,
  Queued,
  QueueInput,
  ScaleInput,
  Scaling,
  Started,
  TaskToPlace,
  ValueContext,
  Worths,
} from '../contracts.ts';
import { wrongCopy } from '../copies.ts';
import { wrongMove } from '../targets.ts';
import type { RunningTask } from '../../domain/snapshot.ts';

type Fault = string | null;

/** The first fault among several, in their order. */
function firstOf<T>(items: Iterable<T>, fault: (item: T) => Fault): Fault {
  for (const item of items) {
    const why = fault(item);
    if (why !== null) return why;
  }
  return null;
}

const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);
const isMap = (value: unknown): boolean =>
  typeof (value as ReadonlyMap<unknown, unknown> | undefined)?.get === 'function' &&
  typeof (value as Iterable<unknown>)[Symbol.iterator] === 'function';
const isAmount = (value: Quantity<string>): boolean => Number.isFinite(raw(value)) && raw(value) >= 0;
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 1;
const isChance = (value: number): boolean => value >= 0 && value <= 1;

const twice = <T>(ids: Iterable<T>, what: string): Fault => {
  const seen = new Set<T>();
  for (const id of ids) {
    if (seen.has(id)) return `${what} ${String(id)} twice`;
    seen.add(id);
  }
  return null;
};

const poolsById = ({ pools }: Pick<Snapshot, 'pools'>): ReadonlyMap<PoolId, PoolView> =>
  new Map(pools.map((view) => [view.pool.id, view]));
const groupsById = ({ groups }: Pick<Snapshot, 'groups'>): ReadonlyMap<GroupId, PendingGroup> =>
  new Map(groups.map((group) => [group.id, group]));

export const bids = (answer: readonly Bid[]): Fault =>
  isList(answer) && answer.every(isBid) ? null : '`asks.bids` answers no list of bids';

export const buys = (answer: boolean): Fault =>
  typeof answer === 'boolean' ? null : '`buys` answers neither true nor false';

export const estimate = (made: StageForecasts): Fault =>
  typeof made.get === 'function' ? null : 'the answer has no `get`: it must be a map of forecasts by stage';

export function runtime(forecast: RuntimeForecast | undefined, key: string): Fault {
  if (forecast === undefined) return `no forecast for the stage ${key}`;
  const { atS, weight } = forecast.runtime;
  if (!(atS instanceof Float64Array) || !(weight instanceof Float64Array) || atS.length !== weight.length)
    return `the forecast for ${key} has no distribution: make one with kit.distribution`;
  const isWrong = (value: number): boolean => !Number.isFinite(value) || value < 0;
  if (atS.length === 0 || atS.some(isWrong) || weight.some(isWrong)) {
    return `the forecast for ${key} has a running time or weight that is no number of at least 0`;
  }
  return null;
}

export function value({ groups, ofRunning }: Worths, { snapshot }: ValueContext): Fault {
  if (!isMap(groups) || typeof ofRunning !== 'function') return 'the answer is not {groups, ofRunning}';
  return firstOf(snapshot.groups, ({ id }) => {
    const of = groups.get(id);
    return of === undefined ? `the group ${id} has no worth` : worth(of);
  });
}

export function worth({ curve, taskDeadlineMs, latestSafeStartMs }: Worth): Fault {
  if (!curve.points.every((p) => Number.isFinite(raw(p.atMs)) && Number.isFinite(p.usd)))
    return 'a worth has a point that is no number';
  const isInstant = (at: Worth['taskDeadlineMs']): boolean => at === null || Number.isFinite(raw(at));
  return isInstant(taskDeadlineMs) && isInstant(latestSafeStartMs) ? null : 'a worth has a limit that is no instant';
}

export function appraise(answer: ReadonlyMap<GroupId, GroupOffers>, { snapshot }: AppraiseContext): Fault {
  if (!isMap(answer)) return 'the answer is no map of offers by group';
  const pools = poolsById(snapshot);
  return firstOf(snapshot.groups, (group) => {
    const of = answer.get(group.id);
    if (of === undefined) return `the group ${group.id} has no list of offers`;
    if (!isList(of.offers) || !isList(of.excluded))
      return `offers of ${group.id} are not {offers, excluded, considered}`;
    return firstOf(of.offers, (o) => offer(o, group, pools));
  });
}

function offer(of: Offer, group: PendingGroup, pools: ReadonlyMap<PoolId, PoolView>): Fault {
  const wrong = usable(of.pool, group, pools);
  if (wrong !== null) return wrong;
  const at = `the offer of ${of.pool} to ${group.id}`;
  if (of.group !== group.id) return `${at} names the group ${of.group}`;
  if (!isBid(of.bid)) return `${at} has the bid ${raw(of.bid as never)}`;
  if (!isChance(of.pInterrupted) || !isChance(of.pLate)) return `${at} has a probability outside 0 to 1`;
  const amounts = [of.priceUsdPerHour, of.startDelayS, of.expectedLostS, of.expectedDurationS];
  const shares = [of.share, of.newShare, of.chargedShare];
  if (amounts.every(isAmount) && shares.every((s) => s > 0) && Number.isFinite(of.expectedCostUsd)) return null;
  return `${at} has an amount that is no number of at least 0`;
}

/** A pool that the group's own constraints allow and whose machines it fits on. */
function usable(id: PoolId, { id: group, stage, need }: PendingGroup, pools: ReadonlyMap<PoolId, PoolView>): Fault {
  const pool = pools.get(id)?.pool;
  if (pool === undefined) return `the pool ${id} does not exist`;
  const broken = brokenConstraint(stage.constraints, pool);
  if (broken !== null) return `${group} may not run in ${id}: its constraint ${broken} excludes that`;
  return fits(need, pool.type.capacity) ? null : `${group} does not fit on an instance of ${id}`;
}

export const considered = (list: GroupOffers['considered']): Fault =>
  isList(list) ? null : 'what was considered is no list';

const attemptsOf = (running: readonly RunningTask[]): ReadonlySet<AttemptId> =>
  new Set(running.map((r) => r.attempt.id));

export function movesProposed(moves: readonly Move[], { snapshot }: DecisionContext): Fault {
  if (!isList(moves)) return 'the answer is no list of moves';
  const running = attemptsOf(snapshot.running);
  const wrong = moves.find((m) => !running.has(m.attempt) || m.running.attempt.id !== m.attempt);
  if (wrong !== undefined) return `it moves ${wrong.attempt}, which does not run`;
  return (
    firstOf(moves, (m) => wrongMove(m, snapshot)) ??
    twice(
      moves.map((m) => m.attempt),
      'it moves',
    )
  );
}

export function movesBegun(answer: AppraisedMoves, { moves }: BeginInput): Fault {
  if (!isList(answer.moves) || ![answer.worths, answer.groups, answer.offers].every(isMap))
    return 'the answer is not {moves, worths, groups, offers}';
  const kept = attemptsOf(moves.map((m) => m.running));
  const begun = answer.moves.map((m) => m.running.attempt.id);
  const wrong = begun.find((id) => !kept.has(id));
  return wrong === undefined
    ? twice(begun, 'it begins the move of')
    : `it begins a move of ${wrong}, which was not planned`;
}

export function returning(list: readonly RunningTask[], { snapshot }: DecisionContext): Fault {
  if (!isList(list)) return 'the answer is no list of running tasks';
  const running = attemptsOf(snapshot.running);
  const ids = list.map((r) => r.attempt.id);
  const wrong = ids.find((id) => !running.has(id));
  return wrong === undefined ? twice(ids, 'it returns') : `it returns ${wrong}, which does not run`;
}

export const vacated = (why: string | null): Fault =>
  why === null || typeof why === 'string' ? null : 'vacate answers neither a reason nor null';

export function plan(answer: Allotment, { snapshot, moves = [] }: PlanInput): Fault {
  const { starts, deferred, preemptions, moves: kept, waits, solve } = answer;
  if (![starts, deferred, preemptions, kept, waits].every(isList) || !Number.isFinite(solve.objective))
    return 'the answer is not {starts, deferred, preemptions, moves, waits, solve}';
  const groups = groupsById(snapshot);
  const pools = poolsById(snapshot);
  const running = attemptsOf(snapshot.running);
  const proposed = new Set(moves.map((m) => m.attempt));
  const stopped = preemptions.map((p) => p.attempt);
  const moved = kept.map((m) => m.running.attempt.id);
  return (
    firstOf([...starts, ...deferred], ({ option, count }) => planned(option, count, groups, pools)) ??
    counts(
      starts.map(({ option, count }) => [option.group, count]),
      groups,
      'it starts',
    ) ??
    firstOf(starts, ({ role = 'original' }) => (ROLES.has(role) ? null : `it starts tasks as ${role}`)) ??
    firstOf(answer.earliest ?? [], (of) => earliest(of, snapshot)) ??
    firstOf(stopped, (id) => (running.has(id) ? null : `it stops ${id}, which does not run`)) ??
    twice(stopped, 'it stops') ??
    firstOf(moved, (id) => (proposed.has(id) ? null : `it moves ${id}, which was not proposed`)) ??
    twice(moved, 'it moves') ??
    firstOf(kept, (m) => wrongMove(m, snapshot)) ??
    firstOf(waits, ({ group, count }) =>
      groups.has(group) && Number.isFinite(count) ? null : `${count} tasks of the group ${group} wait, which is none`,
    )
  );
}

function planned(
  option: StartOption,
  count: number,
  groups: ReadonlyMap<GroupId, PendingGroup>,
  pools: ReadonlyMap<PoolId, PoolView>,
): Fault {
  const group = groups.get(option.group);
  if (group === undefined) return `the group ${option.group} does not wait`;
  if (!isCount(count)) return `it starts ${count} tasks of ${option.group}`;
  const { worthUsd, costUsd, startMs } = option;
  if (![worthUsd, costUsd, raw(startMs)].every(Number.isFinite))
    return `a start of ${group.id} has a figure that is no number`;
  return offer(option.offer, group, pools);
}

const ROLES: ReadonlySet<string> = new Set<NonNullable<PlannedStart['role']>>(['original', 'pilot']);

function earliest({ job, stage, index, notBeforeMs }: EarliestStart, { jobs }: Snapshot): Fault {
  const of = jobs.get(job)?.spec.stages.find((s) => s.name === stage);
  if (of === undefined) return `it says when ${job}/${stage} may start, which does not exist`;
  if (index !== undefined && !(Number.isSafeInteger(index) && index >= 0 && index < of.tasks))
    return `it says when task ${index} of ${job}/${stage} may start, which does not exist`;
  return notBeforeMs === null || Number.isFinite(raw(notBeforeMs)) ? null : 'an earliest start is no instant';
}

/** No group has more tasks than wait in it. */
function counts(
  parts: readonly (readonly [GroupId, number])[],
  groups: ReadonlyMap<GroupId, Pick<PendingGroup, 'count'>>,
  what: string,
): Fault {
  const sums = new Map<GroupId, number>();
  for (const [group, count] of parts) sums.set(group, (sums.get(group) ?? 0) + count);
  return firstOf(sums, ([group, sum]) => {
    const there = groups.get(group)?.count ?? 0;
    return sum <= there ? null : `${what} ${sum} tasks of ${group}, of which ${there} wait`;
  });
}

const textOf = ({ job, stage, index }: TaskRef): string => `${job}/${stage}/${index}`;

export function order(answer: Started, { groups, hosts }: OrderInput): Fault {
  const { placements, reserved, leftovers, forSlotReuse, untold, needed } = answer;
  if (
    ![placements, reserved, leftovers].every(isList) ||
    ![forSlotReuse, untold].every(isMap) ||
    !(needed instanceof Set)
  )
    return 'the answer is not {placements, reserved, leftovers, forSlotReuse, untold, needed}';
  const both = [...placements, ...reserved];
  const byId = new Map(hosts.map((h) => [h.on, h]));
  return (
    firstOf(both, ({ task, group, on }) => {
      const of = groups.get(group);
      const host = byId.get(on);
      if (of === undefined) return `the group ${group} does not wait`;
      if (host === undefined) return `there is no instance ${on} for ${textOf(task)}`;
      return brokenConstraint(of.stage.constraints, host.pool) === null
        ? null
        : `${textOf(task)} may not run in ${host.pool.id}`;
    }) ??
    twice(
      both.map(({ task }) => textOf(task)),
      'it places',
    ) ??
    overfilled(placements, ({ group }) => groups.get(group)?.need, byId) ??
    leftoversFault(leftovers) ??
    counts(
      [
        ...both.map(({ group }): [GroupId, number] => [group, 1]),
        ...leftovers.map(({ group, count }): [GroupId, number] => [group.id, count]),
        ...forSlotReuse,
        ...untold,
      ],
      groups,
      'it has an answer for',
    )
  );
}

const leftoversFault = (leftovers: readonly Leftover[]): Fault =>
  firstOf(leftovers, ({ group, count, runtimeS }) =>
    isCount(count) && isAmount(runtimeS) ? null : `it leaves ${count} tasks of ${group.id} for ${raw(runtimeS)} s`,
  );

/** No instance has more on it than is free. */
function overfilled(
  placements: readonly Placement[],
  needOf: (placement: Placement) => Resources | undefined,
  hosts: ReadonlyMap<InstanceId, Host>,
): Fault {
  const free = new Map<InstanceId, Resources>();
  return firstOf(placements, (placement) => {
    const { on, task } = placement;
    const left = free.get(on) ?? hosts.get(on)?.free;
    const need = needOf(placement);
    if (left === undefined || need === undefined) return `there is no instance ${on} for ${textOf(task)}`;
    if (!fits(need, left)) return `${textOf(task)} does not fit into what is left of ${on}`;
    free.set(on, minusResources(left, need));
    return null;
  });
}

export function place(placements: readonly Placement[], tasks: readonly TaskToPlace[], hosts: readonly Host[]): Fault {
  if (!isList(placements)) return 'the answer is no list of placements';
  const given = new Map(tasks.map((t) => [t.task, t]));
  const byId = new Map(hosts.map((h) => [h.on, h]));
  return (
    firstOf(placements, ({ task, on }) => {
      const of = given.get(task);
      const host = byId.get(on);
      if (of === undefined) return `it places ${textOf(task)}, which was not given (hand back the very record)`;
      if (host === undefined) return `there is no instance ${on} for ${textOf(task)}`;
      return of.allowed(host) ? null : `${textOf(task)} may not go on ${on}`;
    }) ??
    twice(
      placements.map(({ task }) => textOf(task)),
      'it places',
    ) ??
    overfilled(placements, ({ task }) => given.get(task)?.need, byId) ??
    splitGang(placements, tasks)
  );
}

/** Gangs are placed whole or not at all. */
function splitGang(placements: readonly Placement[], tasks: readonly TaskToPlace[]): Fault {
  const placed = new Set(placements.map((p) => p.task));
  const gangs = Map.groupBy(
    tasks.filter((t) => t.gang !== null),
    (t) => t.gang,
  );
  return firstOf(gangs, ([gang, all]) => {
    const there = all.filter((t) => placed.has(t.task)).length;
    return there === 0 || there === all.length ? null : `it places ${there} of ${all.length} tasks of the gang ${gang}`;
  });
}

export function queue({ leftovers, forSlotReuse, untold }: Queued, { leftovers: asked }: QueueInput): Fault {
  if (!isList(leftovers) || ![forSlotReuse, untold].every(isMap))
    return 'the answer is not {leftovers, forSlotReuse, untold}';
  const sums = new Map<GroupId, { readonly count: number }>();
  for (const { group, count } of asked) sums.set(group.id, { count: count + (sums.get(group.id)?.count ?? 0) });
  const bought = leftovers.map(({ group, count }): [GroupId, number] => [group.id, count]);
  return leftoversFault(leftovers) ?? counts([...bought, ...forSlotReuse, ...untold], sums, 'it has an answer for');
}

export function speculate(copies: readonly Copy[], { snapshot }: DecisionContext): Fault {
  return isList(copies) ? wrongCopy(copies, snapshot) : 'the answer is no list of copies';
}

export function scale({ purchases, releases }: Scaling, { snapshot, used, leftovers, later }: ScaleInput): Fault {
  if (!isList(purchases) || !isList(releases)) return 'the answer is not {purchases, releases}';
  const pools = poolsById(snapshot);
  const given = releases.map((r) => r.instance);
  return (
    firstOf(purchases, (purchase) => bought(purchase, pools, { leftovers, later })) ??
    tooMany(purchases, snapshot, pools) ??
    firstOf(given, (id) => {
      const view = snapshot.instances.get(id);
      if (view === undefined) return `it gives back ${id}, which is not held`;
      return used.has(id) || view.attempts.length > 0 ? `it gives back ${id}, on which there is work` : null;
    }) ??
    twice(given, 'it gives back')
  );
}

function bought(
  { pool: id, bid, count, serves: named }: Purchase,
  pools: ReadonlyMap<PoolId, PoolView>,
  { leftovers, later }: Pick<ScaleInput, 'leftovers' | 'later'>,
): Fault {
  const view = pools.get(id);
  if (view === undefined) return `the pool ${id} does not exist`;
  if (!view.open || view.quote === null) return `the pool ${id} sells nothing now`;
  if (!isCount(count)) return `it buys ${count} instances in ${id}`;
  if (!isBid(bid)) return `it bids ${raw(bid as never)} USD per hour in ${id}`;
  const ahead = named === undefined ? [] : later();
  const unknown = named?.find((group) => !ahead.some((l) => l.group.id === group));
  if (unknown !== undefined) return `it buys in ${id} for ${unknown}, which does not wait for later`;
  const demand = named === undefined ? leftovers : ahead.filter((l) => named.includes(l.group.id));
  const serves = demand.some((l) => usable(id, l.group, pools) === null);
  return serves ? null : `it buys in ${id}, where no task may run`;
}

/** Held and purchased vCPUs stay within the limit. */
function tooMany(purchases: readonly Purchase[], snapshot: Snapshot, pools: ReadonlyMap<PoolId, PoolView>): Fault {
  const vcpusOf = (pool: Pool | undefined): number => (pool === undefined ? 0 : raw(pool.type.capacity.cpu) / 1000);
  let held = 0;
  for (const { pool } of snapshot.instances.values()) held += vcpusOf(pool);
  let vcpus = held;
  for (const { pool, count } of purchases) vcpus += count * vcpusOf(pools.get(pool)?.pool);
  const { limits } = snapshot;
  if (purchases.length === 0 || vcpus <= limits.vcpus + 1e-6) return null;
  return `it would hold ${vcpus} vCPUs, ${held} of them now; the limit is ${limits.vcpus}`;
}
