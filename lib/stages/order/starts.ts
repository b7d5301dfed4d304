/**
 * Which instance takes what the plan starts. The plan counts room by pool, with what it stops counted as free; here it
 * becomes room on one instance.
 *
 * 1. Each start in the pool that the plan chose for it, where work that is stopping, or that the plan stops, counts as
 *    gone: that room is meant for these tasks and nobody else. What needs it waits for it (`reserved`).
 * 2. What found nothing there: wherever there is room now that nobody waits for. What was meant for capacity that stays
 *    goes to spot only where that is up and gives notice for longer than the task runs. What was meant for spot goes to
 *    on-demand only where it costs nothing: beside work that stays longer, or within an hour that is paid. Else it
 *    would keep an instance that could go, and the way back to spot (lib/stages/move/returns.ts) would undo the start
 *    at once.
 *    Of a gang that finds room for a part, this part is kept for it, and only the rest is bought.
 * 3. If then something waits that may be late for it (urgency.ts): from the beginning, but all that is urgent first,
 *    the earliest deadline before the others, on instances of its pool that are up.
 * What the plan stops is `needed` only where a start of the first kind needs the room, or where it empties an instance
 * for quota and something is left to buy for: stopping work for what then starts elsewhere, or cannot start at all,
 * would be undone and repeated by each of the next plans. Nor is a task preempted for another of its own stage,
 * whatever the plan says of their remaining times: both have to run, so nothing but the work done would be gained or
 * lost.
 */
import { invariant } from '../../kernel/errors.ts';
import { once } from '../../kernel/once.ts';
import type { AttemptId, GroupId, InstanceId, PoolId } from '../../kernel/ids.ts';
import {
  ZERO_S,
  add,
  between,
  gt,
  isPositive,
  lte,
  most,
  raw,
  scale,
  seconds,
  type Seconds,
} from '../../kernel/units.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import { quantileToDo } from '../../domain/work-to-do.ts';
import { NOTICE_S, startedHourEndMs } from '../../domain/instance.ts';
import type { Constraints, StageSpec, TaskRef } from '../../domain/job.ts';
import type { Allotment, Placement, StartOption } from '../../domain/plan.ts';
import { type Pool, isSpotPool } from '../../domain/pool.ts';
import {
  fits,
  leastOfEach,
  minusResources,
  mostOfEach,
  NO_RESOURCES,
  plusResources,
  type Resources,
} from '../../domain/resources.ts';
import {
  membersOf,
  runningNamed,
  runningParts,
  type PendingGroup,
  type RunningTask,
  type Snapshot,
} from '../../domain/snapshot.ts';
import type { Forecasts } from '../../domain/forecasts.ts';
import type {
  Host,
  OrderInput,
  OrderPolicy,
  Queued,
  QueueInput,
  Started,
  TaskToPlace,
} from '../../policy/contracts.ts';
import { FEATURES } from '../../policy/features.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import { afterPlacing, withFree } from '../../policy/hosts.ts';
import { longestLeft } from '../../policy/left-of.ts';
import { partsOfGangs } from './parts-of-gangs.ts';
import { urgentDeadlineMs } from './urgency.ts';

type Context = Omit<OrderInput, 'allotment' | 'hosts'>;

/** Rules for matching starts with live instances, beyond the user's constraints. */
export interface OrderRules {
  /** True: work that may be late begins before everything else. */
  readonly urgentFirst: boolean;
  /**
   * True: starts keep to the purchase option of the plan, spot or not. A start planned for spot then takes on-demand
   * only at no cost.
   */
  readonly keepsOption: boolean;
  /**
   * True: no task is preempted for another of its own stage, whatever the plan says of their remaining times. Both have
   * to run, so only the work done would be gained or lost.
   */
  readonly keepsStages: boolean;
  /**
   * True: where the pools of the plan have no room for all, all are packed anew in all pools that they may use, and the
   * packing with more tasks stands. Each pool's own work may need another mix of resources than its instances have.
   */
  readonly sharesPools: boolean;
}

/** Tasks of a group that the plan starts by one option. */
interface Wanted {
  readonly group: PendingGroup;
  readonly option: StartOption;
  readonly count: number;
  readonly runtimeS: Seconds;
  /**
   * Not meant for spot, but surely done within the notice that the market gives: spot that is up does not endanger
   * them.
   */
  readonly isBrief: boolean;
  readonly inPool: (pool: Pool) => boolean;
  /** Hosts in the pool of its option. */
  readonly chosen: Allowed;
  readonly tasks: readonly TaskToPlace[];
}

export const orderBy =
  (rules: OrderRules): OrderPolicy =>
  ({ allotment, hosts, ...context }) =>
    placeStarts(context, { allotment, hosts, rules });

function placeStarts(
  context: Context,
  { allotment, hosts, rules }: Pick<OrderInput, 'allotment' | 'hosts'> & { readonly rules: OrderRules },
): Started {
  const freeing = freeingOn(context.snapshot, allotment);
  const isUp = isUpIn(context.snapshot, freeing);
  const wanted = wantedStarts(context, { allotment, isUp, rules });
  if (wanted.length === 0) return { ...NOTHING_WAITS, placements: [], reserved: [], needed: new Set() };
  const urgent = rules.urgentFirst ? urgentOf(context, wanted) : [];
  const behind = new Map(allotment.waits.flatMap((w) => (w.why === 'capacity' ? [[w.group, w.count]] : [])));
  const started = placeWanted(context, { wanted, hosts, freeing, behind, begun: [], rules });
  if (urgent.length === 0 || begins(urgent, started.placements, isUp)) return started;
  const first = placeUrgent(context, urgent, { hosts, isUp });
  if (first.length === 0) return started;
  const begun = new Set<TaskRef>(first.map((p) => p.task));
  const waiting = wanted.map((w) => ({ ...w, tasks: w.tasks.filter((t) => !begun.has(t.task)) }));
  const tasks = allTasks(wanted);
  const others = placeWanted(context, {
    wanted: waiting,
    hosts: afterPlacing(hosts, tasks, first),
    freeing,
    behind,
    begun: first,
    rules,
  });
  return { ...others, placements: [...first, ...others.placements] };
}

/** True for an instance that is up and has nothing stopping on it. */
type IsUp = (instance: InstanceId) => boolean;

const isUpIn =
  ({ instances }: Snapshot, freeing: ReadonlyMap<InstanceId, Freeing>): IsUp =>
  (id) =>
    instances.get(id)?.instance.state === 'ready' && !freeing.has(id);

interface Urgent extends Wanted {
  readonly deadlineMs: number;
}

/**
 * Urgent starts, the earliest deadline first. Gangs are left to the packer, because all tasks of one must begin at
 * once.
 */
function urgentOf({ worths, forecasts, snapshot }: Context, wanted: readonly Wanted[]): readonly Urgent[] {
  const { nowMs } = snapshot;
  return wanted
    .flatMap((w): Urgent[] => {
      const { group } = w;
      if (group.stage.gang) return [];
      const of = { worth: worths.groups.get(group.id), forecast: forecastOf(group, forecasts), nowMs };
      const deadlineMs = urgentDeadlineMs(group, of);
      return deadlineMs === null ? [] : [{ ...w, deadlineMs }];
    })
    .sort((a, b) => a.deadlineMs - b.deadlineMs);
}

/** True if every urgent start begins; then the packer's choice stands. */
function begins(urgent: readonly Urgent[], placements: readonly Placement[], isUp: IsUp): boolean {
  const begun = new Set<TaskRef>(placements.flatMap((p) => (isUp(p.on) ? [p.task] : [])));
  return urgent.every((w) => w.tasks.every((t) => begun.has(t.task)));
}

/** Pools in which urgent work begins before anything else: its own, or any other if it is done in no time. */
const beginsIn = ({ isBrief, option, group }: Wanted, pool: Pool): boolean =>
  isBrief ? brokenConstraint(group.stage.constraints, pool) === null : pool.id === option.offer.pool;

/** O(urgent groups x hosts with room in their pools). */
function placeUrgent(
  context: Context,
  urgent: readonly Urgent[],
  { hosts, isUp }: { readonly hosts: readonly Host[]; readonly isUp: IsUp },
): Placement[] {
  const asked = new Map<Pool, boolean>();
  const isAsked = (pool: Pool): boolean => {
    let known = asked.get(pool);
    if (known === undefined) asked.set(pool, (known = urgent.some((w) => beginsIn(w, pool))));
    return known;
  };
  const hasRoom = ({ free }: Host): boolean => isPositive(free.cpu);
  let up = hosts.filter((h) => hasRoom(h) && isUp(h.on) && isAsked(h.pool));
  const placements: Placement[] = [];
  for (const of of urgent) {
    if (up.length === 0) break;
    if (!up.some((h) => beginsIn(of, h.pool) && fits(of.group.need, h.free))) continue;
    const placed = context.stages.place(of.isBrief ? of.tasks : inChosenPool(of), up, context);
    if (placed.length > 0) up = afterPlacing(up, of.tasks, placed).filter(hasRoom);
    placements.push(...placed);
  }
  return placements;
}

interface Placing {
  readonly wanted: readonly Wanted[];
  readonly hosts: readonly Host[];
  readonly freeing: ReadonlyMap<InstanceId, Freeing>;
  /** Tasks of a group that the plan lets wait for room. */
  readonly behind: QueueInput['behind'];
  /** Placements so far. */
  readonly begun: readonly Placement[];
  readonly rules: OrderRules;
}

function placeWanted(context: Context, placing: Placing): Started {
  const { wanted, hosts, freeing, rules } = placing;
  if (freeing.size > 0) return placeWhereWorkStops(context, placing);
  // Starts with room have it now.
  const chosen = context.stages.place(wanted.flatMap(inChosenPool), hosts, context);
  const rest = (of: readonly Placement[]): ReturnType<typeof placeRest> =>
    placeRest(context, placing, { chosen: of, spare: (tasks) => afterPlacing(hosts, tasks, of) });
  const answer = (of: readonly Placement[], { elsewhere, ...waiting }: ReturnType<typeof placeRest>): Started => {
    const placements = [...of, ...elsewhere];
    const parts = partsOfGangs(context, {
      ...waiting,
      tasksOf: tasksIn(wanted),
      hosts: () => afterPlacing(hosts, allTasks(wanted), placements),
    });
    return { ...waiting, ...parts, placements, needed: new Set() };
  };
  const first = rest(chosen);
  if (rules.sharesPools && first.leftovers.length > 0 && hosts.length > 0) {
    const together = context.stages.place(allTasks(wanted), hosts, context);
    if (together.length > chosen.length + first.elsewhere.length) return answer(together, rest(together));
  }
  return answer(chosen, first);
}

const allTasks = (wanted: readonly Wanted[]): TaskToPlace[] => wanted.flatMap((w) => w.tasks);

/** Tasks of a group in the pool that the plan chose for it. */
function tasksIn(wanted: readonly Wanted[]): (group: PendingGroup) => readonly TaskToPlace[] | null {
  const of = once(() => new Map(wanted.map((w) => [w.group, w])));
  return (group) => {
    const asked = of().get(group);
    return asked === undefined ? null : inChosenPool(asked);
  };
}

function placeWhereWorkStops(context: Context, placing: Placing): Started {
  const { wanted, hosts, freeing, rules } = placing;
  const tasks = allTasks(wanted);
  const later = hosts.map((h) => withRoomMade(h, freeing));
  const chosen = context.stages.place(wanted.flatMap(inChosenPool), later, context);
  const { now, reserved: awaited } = roomNow(chosen, { hosts, tasks });
  const left = afterPlacing(hosts, tasks, now);
  const cleared = clearedBy(freeing, { snapshot: context.snapshot, chosen });
  const spare = (): Host[] => spareRoom(left, afterPlacing(later, tasks, chosen)).filter((h) => !cleared.has(h.on));
  const { elsewhere, ...without } = placeRest(context, placing, { chosen, spare });
  const parts = partsOfGangs(context, {
    ...without,
    tasksOf: tasksIn(wanted),
    hosts: () => afterPlacing(later, tasks, [...chosen, ...elsewhere]),
  });
  const waits = { ...without, leftovers: parts.leftovers };
  const { leftovers } = waits;
  const reserved = [...awaited, ...parts.reserved];

  const needed = new Set<AttemptId>();
  const free = new Map(
    left.flatMap((h) => {
      return freeing.has(h.on) ? [[h.on, h.free] as const] : [];
    }),
  );
  const needs = new Map<TaskRef, Resources>(tasks.map((t) => [t.task, t.need]));
  for (const [instance, there] of freeing) {
    const waiting = reserved.filter((p) => p.on === instance);
    const short = waiting.reduce((sum, p) => plusResources(sum, needs.get(p.task) ?? NO_RESOURCES), NO_RESOURCES);
    const isCleared = leftovers.length > 0 && cleared.has(instance);
    const beneficiaries = isCleared
      ? leftovers.map((l) => `${l.group.job}/${l.group.stage.name}`)
      : waiting.map((p) => stageOf(p.task));
    const mayStop = (r: RunningTask) => !rules.keepsStages || beneficiaries.some((s) => s !== stageOf(r.attempt));
    const stopped = there.stopped.filter(mayStop);
    const stops = isCleared ? stopped : stopsFor(short, free.get(instance) ?? NO_RESOURCES, { ...there, stopped });
    for (const r of stops) needed.add(r.attempt.id);
  }
  return { ...waits, placements: [...now, ...elsewhere], reserved, needed };
}

/**
 * Starts without room in their chosen pool: placed elsewhere, left for slot reuse, or left over. `spare`: remaining
 * hosts, computed only if something is to be placed.
 */
function placeRest(
  context: Context,
  { wanted, freeing, behind, begun }: Placing,
  of: {
    readonly chosen: readonly Placement[];
    readonly spare: (tasks: readonly TaskToPlace[]) => readonly Host[];
  },
): { readonly elsewhere: readonly Placement[] } & Queued {
  const tasks = allTasks(wanted);
  if (of.chosen.length === tasks.length) return { ...NOTHING_WAITS, elsewhere: [] };
  const placed = new Set<TaskRef>(of.chosen.map((p) => p.task));
  const rest = tasks.filter((t) => !placed.has(t.task));
  const elsewhere = context.stages.place(rest, of.spare(tasks), context);
  for (const p of elsewhere) placed.add(p.task);
  const leftovers = wanted.flatMap(({ tasks: own, group, option, runtimeS, inPool }) => {
    const count = own.reduce((n, t) => (placed.has(t.task) ? n : n + 1), 0);
    return count === 0 ? [] : [{ group, option, runtimeS, inPool, count }];
  });
  if (leftovers.length === 0) return { ...NOTHING_WAITS, elsewhere };
  const placements = [...begun, ...of.chosen, ...elsewhere];
  const preempted = new Set([...freeing.values()].flatMap(({ stopped }) => stopped.map((r) => r.attempt.id)));
  const unknownAs = unknownIn(context);
  const input: QueueInput = { ...context, placements, preempted, behind, leftovers, unknownAs };
  return { ...context.stages.queue(input), elsewhere };
}

const NOTHING_WAITS: Queued = { leftovers: [], forSlotReuse: new Map(), untold: new Map() };

/**
 * Class by owner and program: the broadest class for which a single run makes a forecast
 * (lib/stages/estimate/features.ts). Cached by stage.
 */
function unknownIn({ snapshot: { jobs }, forecasts, memory }: Context): QueueInput['unknownAs'] {
  const features = memory.of(FEATURES);
  const known = new Map<StageSpec, string | null>();
  return ({ job: id, stage }) => {
    let found = known.get(stage);
    if (found === undefined) {
      const job = jobs.get(id);
      const isUnknown = job !== undefined && forecasts.runtime.get(`${id}/${stage.name}`)?.basis === 'prior';
      const of = isUnknown ? features.of(job.spec, stage, job.submittedMs) : null;
      found = of === null ? null : `${of.owner}\n${of.program}`;
      known.set(stage, found);
    }
    return found;
  };
}

const stageOf = ({ job, stage }: TaskRef): string => `${job}/${stage}`;

/** The first of the plan's stops on an instance that together make room for `short`. */
function stopsFor(short: Resources, free: Resources, { stopping, stopped }: Freeing): readonly RunningTask[] {
  let room = stopping.reduce((sum, r) => plusResources(sum, r.attempt.resources), free);
  let count = 0;
  while (count < stopped.length && !fits(short, room)) {
    room = plusResources(room, stopped[count]?.attempt.resources ?? NO_RESOURCES);
    count++;
  }
  return stopped.slice(0, count);
}

/** Stops on an instance: those under way, and those of the plan. */
interface Freeing {
  readonly stopping: readonly RunningTask[];
  readonly stopped: readonly RunningTask[];
}

function freeingOn(snapshot: Snapshot, { preemptions }: Allotment): ReadonlyMap<InstanceId, Freeing> {
  const preempted = new Set(preemptions.map((p) => p.attempt));
  const freeing = new Map<InstanceId, Freeing>();
  const touched = new Set<InstanceId>(runningParts(snapshot).stopping.map((r) => r.attempt.instance));
  for (const { attempt } of runningNamed(snapshot, preempted).values()) touched.add(attempt.instance);
  for (const id of touched) {
    const attempts = snapshot.instances.get(id)?.attempts ?? [];
    const stopping = attempts.filter((r) => r.attempt.state === 'stopping');
    const stopped = attempts.filter((r) => r.attempt.state !== 'stopping' && preempted.has(r.attempt.id));
    if (stopping.length + stopped.length > 0) freeing.set(id, { stopping, stopped });
  }
  return freeing;
}

/** The host as it will be when its stops are over. */
function withRoomMade(host: Host, freeing: ReadonlyMap<InstanceId, Freeing>): Host {
  const of = freeing.get(host.on);
  if (of === undefined) return host;
  const made = [...of.stopping, ...of.stopped].reduce(
    (sum, r) => plusResources(sum, r.attempt.resources),
    NO_RESOURCES,
  );
  return withFree(host, plusResources(host.free, made));
}

/** Instances that the plan empties for their quota, without starts of its own there: nothing else may move in. */
function clearedBy(
  freeing: ReadonlyMap<InstanceId, Freeing>,
  of: { readonly snapshot: Snapshot; readonly chosen: readonly Placement[] },
): ReadonlySet<InstanceId> {
  const taken = new Set(of.chosen.map((p) => p.on));
  const cleared = new Set<InstanceId>();
  for (const [id, { stopping, stopped }] of freeing) {
    const there = of.snapshot.instances.get(id)?.attempts.length ?? 0;
    if (stopped.length > 0 && stopping.length + stopped.length === there && !taken.has(id)) cleared.add(id);
  }
  return cleared;
}

/** Chosen starts that have room without the coming stops: gangs whole or not at all, other tasks one by one. */
function roomNow(
  chosen: readonly Placement[],
  { hosts, tasks }: { readonly hosts: readonly Host[]; readonly tasks: readonly TaskToPlace[] },
): { readonly now: readonly Placement[]; readonly reserved: readonly Placement[] } {
  if (chosen.length === 0) return { now: [], reserved: [] };
  const taken = new Set(chosen.map((p) => p.on));
  const free = new Map<InstanceId, Resources>();
  for (const h of hosts) if (taken.has(h.on)) free.set(h.on, h.free);
  const of = new Map<TaskRef, TaskToPlace>(tasks.map((t) => [t.task, t]));
  const unitOf = (p: Placement): string | TaskRef => of.get(p.task)?.gang ?? p.task;
  const needOf = (p: Placement): Resources => of.get(p.task)?.need ?? NO_RESOURCES;
  const now: Placement[] = [];
  const reserved: Placement[] = [];
  for (const unit of Map.groupBy(chosen, unitOf).values()) {
    const before = new Map(unit.map((p) => [p.on, free.get(p.on) ?? NO_RESOURCES]));
    const hasRoom = unit.every((p) => {
      const left = free.get(p.on) ?? NO_RESOURCES;
      if (!fits(needOf(p), left)) return false;
      free.set(p.on, minusResources(left, needOf(p)));
      return true;
    });
    if (hasRoom) now.push(...unit);
    else {
      for (const [id, left] of before) free.set(id, left);
      reserved.push(...unit);
    }
  }
  return { now, reserved };
}

/** Room now, less the reserved room: at most the room free now, and at most the room free later. */
function spareRoom(free: readonly Host[], stays: readonly Host[]): Host[] {
  return free.map((host, i) => {
    const later = stays[i] ?? host;
    if (later === host) return host;
    return withFree(host, mostOfEach(NO_RESOURCES, leastOfEach(host.free, later.free)));
  });
}

function wantedStarts(
  context: Context,
  { allotment, isUp, rules }: { readonly allotment: Allotment; readonly isUp: IsUp; readonly rules: OrderRules },
): readonly Wanted[] {
  const { safetyQuantile, restoreS } = context.config;
  const taken = new Map<GroupId, number>();
  const hosts = new AllowedHosts({ rules, isUp, freeTime: freeTimeOf(context, allotment) });
  return allotment.starts.map(({ option, count }) => {
    const group = invariant(
      context.groups.get(option.group),
      `the plan starts group ${option.group}, which does not wait`,
    );
    const slowdown = option.offer.slowdown ?? 1;
    const runtimeS = scale(runtimeOf(group, context.forecasts), slowdown);
    const from = taken.get(group.id) ?? 0;
    taken.set(group.id, from + count);
    const isForSpot = isSpotPool(option.offer.pool);
    const longestS = (): Seconds =>
      scale(quantileToDo(forecastOf(group, context.forecasts).runtime, group, safetyQuantile), slowdown);
    const readS = isPositive(group.keptS) ? seconds(restoreS) : ZERO_S;
    const isBrief = !isForSpot && lte(add(longestS(), readS), NOTICE_S);
    const anywhere = hosts.of({ constraints: group.stage.constraints, isForSpot, isBrief, runtimeS });
    const tasks = membersOf(group, from, from + count).map((index): TaskToPlace => ({
      task: { job: group.job, stage: group.stage.name, index },
      group: group.id,
      need: group.need,
      runtimeS,
      gang: group.stage.gang ? group.id : null,
      ...anywhere,
    }));
    const chosen = hosts.inPool(anywhere, option.offer.pool);
    return { group, option, count, runtimeS, isBrief, inPool: anywhere.inPool, chosen, tasks };
  });
}

/** Hosts that tasks may have. Alike tasks share one, so that a packer asks once for all of them. */
type Allowed = Required<Pick<TaskToPlace, 'allowed' | 'inPool'>>;

interface Demanding extends Pick<Wanted, 'isBrief' | 'runtimeS'> {
  readonly constraints: Constraints;
  readonly isForSpot: boolean;
}

/** Hosts by what tasks ask for. */
class AllowedHosts {
  readonly #of: {
    readonly rules: OrderRules;
    readonly isUp: IsUp;
    readonly freeTime: (host: Host) => Seconds;
  };
  readonly #known = new Map<string, Allowed>();
  readonly #texts = new Map<Constraints, string>();
  readonly #inPools = new Map<Allowed, Map<PoolId, Allowed>>();

  constructor(of: { readonly rules: OrderRules; readonly isUp: IsUp; readonly freeTime: (host: Host) => Seconds }) {
    this.#of = of;
  }

  of(tasks: Demanding): Allowed {
    let text = this.#texts.get(tasks.constraints);
    if (text === undefined) this.#texts.set(tasks.constraints, (text = JSON.stringify(tasks.constraints)));
    const key = `${raw(tasks.runtimeS)} ${tasks.isForSpot} ${tasks.isBrief} ${text}`;
    let allowed = this.#known.get(key);
    if (allowed === undefined) this.#known.set(key, (allowed = this.#allowed(tasks)));
    return allowed;
  }

  /** The same, in one pool alone. */
  inPool(of: Allowed, id: PoolId): Allowed {
    let pools = this.#inPools.get(of);
    if (pools === undefined) this.#inPools.set(of, (pools = new Map<PoolId, Allowed>()));
    let there = pools.get(id);
    if (there === undefined) {
      const inPool = (pool: Pool): boolean => pool.id === id;
      pools.set(id, (there = { inPool, allowed: (host) => inPool(host.pool) && of.allowed(host) }));
    }
    return there;
  }

  #allowed({ constraints, isForSpot, isBrief, runtimeS }: Demanding): Allowed {
    const { rules, isUp, freeTime } = this.#of;
    const suits = (host: Host): boolean =>
      !rules.keepsOption ||
      (isForSpot
        ? host.pool.option !== 'on-demand' || !gt(runtimeS, freeTime(host))
        : host.pool.option !== 'spot' || (isBrief && isUp(host.on)));
    const inPool = (pool: Pool): boolean =>
      (!rules.keepsOption || isForSpot || isBrief || pool.option !== 'spot') &&
      brokenConstraint(constraints, pool) === null;
    return { inPool, allowed: (host) => suits(host) && inPool(host.pool) };
  }
}

/**
 * Time for which an instance stays and is paid, whatever else is put on it: until its last task is done that neither
 * stops nor leaves for spot, or until the end of the charged hour. Cached per instance; O(its tasks) on first use.
 */
function freeTimeOf({ snapshot, leftOf, config }: Context, { moves }: Allotment): (host: Host) => Seconds {
  const leaving = new Set(moves.map((m) => m.running.attempt.id));
  const known = new Map<InstanceId, Seconds>();
  const timeOn = (id: InstanceId): Seconds => {
    const view = snapshot.instances.get(id);
    if (view === undefined) return ZERO_S;
    const staying = view.attempts.filter((r) => r.attempt.state !== 'stopping' && !leaving.has(r.attempt.id));
    const { launchedMs } = view.instance;
    return most(
      longestLeft(staying, leftOf),
      config.billing === 'per-hour' && launchedMs !== null
        ? between(snapshot.nowMs, startedHourEndMs(launchedMs, snapshot.nowMs))
        : ZERO_S,
    );
  };
  return (host) => {
    const id = host.on;
    let time = known.get(id);
    if (time === undefined) known.set(id, (time = timeOn(id)));
    return time;
  };
}

/** Tasks of one start, in the pool of its option only. */
const inChosenPool = ({ chosen, tasks }: Wanted): TaskToPlace[] => tasks.map((t) => ({ ...t, ...chosen }));

/** A task's own running time still to come, as one number for packing: the median. */
function runtimeOf(group: PendingGroup, forecasts: Forecasts): Seconds {
  return quantileToDo(forecastOf(group, forecasts).runtime, group, 0.5);
}

const forecastOf = ({ job, stage }: PendingGroup, forecasts: Forecasts): RuntimeForecast =>
  invariant(forecasts.runtime.get(`${job}/${stage.name}`), `no runtime forecast for ${job}/${stage.name}`);
