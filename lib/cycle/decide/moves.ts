/**
 * Course of moves. A move has a target: the task is stopped once an instance with room for it is up, and the next plan
 * starts it there before it decides about anything else. A move that would not end there does not begin. The choice of
 * moves is the move stage's judgement (lib/stages/move).
 */
import { invariant } from '../../kernel/errors.ts';
import { groupId, type GroupId, type InstanceId } from '../../kernel/ids.ts';
import { most, seconds, type Seconds } from '../../kernel/units.ts';
import { brokenConstraint, nonInterruptibleOnly, onlyPool } from '../../domain/constraints.ts';
import { isEnding, stageKey, type StageSpec } from '../../domain/job.ts';
import type { Allotment, NamedTarget, Placement } from '../../domain/plan.ts';
import type { Pool } from '../../domain/pool.ts';
import { fits, NO_RESOURCES, plusResources, type Resources } from '../../domain/resources.ts';
import {
  isStopping,
  liveBeside,
  memberOf,
  type PendingGroup,
  type RunningTask,
  type Snapshot,
} from '../../domain/snapshot.ts';
import type {
  AppraisedMoves,
  DecisionContext,
  Host,
  Leftover,
  Move,
  PlacePolicy,
  PlannedMove,
  StartOption,
  TaskToPlace,
} from '../../policy/contracts.ts';
import { afterPlacing } from '../../policy/hosts.ts';
import { moveGroup } from '../../policy/move-group.ts';
import { wrongMove } from '../../policy/targets.ts';
import { constraintsToMove, mayMoveTo } from '../neighbours/targets.ts';
import type { Neighbours } from '../neighbours/neighbours.ts';

/** Starts of tasks that arrive at the target of their move, and their groups. */
export interface Arrivals {
  readonly placements: readonly Placement[];
  readonly arrived: ReadonlySet<GroupId>;
}

/** Input for placing moves. */
export interface PlacingContext extends DecisionContext {
  readonly place: PlacePolicy;
  readonly leftOf: (running: RunningTask) => Seconds;
}

/**
 * The plan's moves, one of each attempt: the first one. Left out are moves to a side that the user's constraints
 * exclude, to a wrong target, and of copies, and restarts of tasks without a checkpoint for which nobody asked. An
 * attempt that stops keeps its target. `proposed`: the moves that the plan was given.
 */
export function movesOf(
  { moves: asked }: Pick<Allotment, 'moves'>,
  { worths, snapshot }: Pick<DecisionContext, 'worths' | 'snapshot'>,
  { proposed, neighbours }: { readonly proposed: readonly Move[]; readonly neighbours: Neighbours | null },
): readonly PlannedMove[] {
  const given = new Map(proposed.map((move) => [move.attempt, move]));
  const once = new Map(asked.toReversed().map((m) => [m.running.attempt.id, m]));
  const firsts = asked.filter((m) => once.get(m.running.attempt.id) === m && !isStopping(m.running));
  const moves = withoutCopies(firsts, snapshot);
  return moves.flatMap(({ running, reason, to }): PlannedMove[] => {
    const { restarts = false, savedUsd, riskUsd } = given.get(running.attempt.id) ?? {};
    if (running.stage.checkpoint === null && !restarts) return [];
    const expected = { ...(savedUsd === undefined ? {} : { savedUsd }), ...(riskUsd === undefined ? {} : { riskUsd }) };
    const worth = invariant(
      worths.ofRunning(running),
      `the plan moves attempt ${running.attempt.id}, which has no worth`,
    );
    if (to !== undefined && to !== 'spot') {
      const pool = poolOf(to, snapshot);
      if (pool === undefined || wrongMove({ running, to }, snapshot) !== null) return [];
      if (neighbours !== null && !mayMoveTo(running, { to, zone: pool.zone }, neighbours)) return [];
      const toSpot = pool.option === 'spot';
      return [
        { running, worth, reason, toSpot, to, constraints: onlyPool(running.stage.constraints, pool), ...expected },
      ];
    }
    const constraints = constraintsToMove(running, neighbours);
    if (constraints === null) return [];
    const toSpot = to === 'spot';
    const narrowed = toSpot ? constraints : nonInterruptibleOnly(constraints);
    return narrowed === null ? [] : [{ running, worth, reason, toSpot, constraints: narrowed, ...expected }];
  });
}

/**
 * Moves of the first live attempt of each task alone: it has got furthest, it has the checkpoint, and the others would
 * stop with it. A copy that moved would take the work of its original with it.
 */
export const withoutCopies = <M extends { readonly running: RunningTask }>(
  moves: readonly M[],
  snapshot: Snapshot,
): readonly M[] =>
  moves.filter(({ running }) =>
    liveBeside(snapshot, running).every((r) => r.attempt.number > running.attempt.number || isStopping(r)),
  );

/** Pool of a named target; undefined: it is not known. */
export const poolOf = (
  to: NamedTarget,
  { pools, instances }: Pick<Snapshot, 'pools' | 'instances'>,
): Pool | undefined =>
  to.instance === undefined ? pools.find((p) => p.pool.id === to.pool)?.pool : instances.get(to.instance)?.pool;

type Side = Required<Pick<TaskToPlace, 'allowed' | 'inPool'>>;

/**
 * Hosts on spot, or off spot, that a stage's constraints allow: one function per stage and side, so that the packer
 * asks it once.
 */
function sidesOf(): (stage: StageSpec, onSpot: boolean) => Side {
  const known = { spot: new Map<StageSpec, Side>(), nonInterruptible: new Map<StageSpec, Side>() };
  return (stage, onSpot) => {
    const of = onSpot ? known.spot : known.nonInterruptible;
    let side = of.get(stage);
    if (side === undefined) {
      const inPool = (pool: Pool): boolean =>
        (pool.option === 'spot') === onSpot && brokenConstraint(stage.constraints, pool) === null;
      of.set(stage, (side = { inPool, allowed: ({ pool }) => inPool(pool) }));
    }
    return side;
  };
}

/** Hosts of a named target, but for the one that the move leaves. */
function namedSide({ running: { attempt }, to, constraints }: PlannedMove & { readonly to: NamedTarget }): Side {
  const inPool = (pool: Pool): boolean =>
    brokenConstraint(constraints, pool) === null && (to.pool === undefined || to.pool === pool.id);
  const allowed = ({ on, pool }: Host): boolean =>
    on !== attempt.instance && inPool(pool) && (to.instance === undefined || to.instance === on);
  return { inPool, allowed };
}

/**
 * Reserves room for stopping attempts that go on elsewhere, on their target if they have one: otherwise their new
 * instance would be released first.
 */
export function placeReturning(context: PlacingContext, returning: readonly RunningTask[], hosts: readonly Host[]) {
  const sides = sidesOf();
  const tasks = returning.flatMap((r): TaskToPlace[] => {
    const job = context.snapshot.jobs.get(r.attempt.job);
    if (job === undefined || isEnding(job) || !waitsAgain(r, context.snapshot)) return [];
    const target = r.attempt.goesTo;
    const fromSpot = context.snapshot.instances.get(r.attempt.instance)?.pool.option === 'spot';
    return [
      {
        task: r.attempt,
        from: r.attempt.instance,
        group: groupId(`return/${r.attempt.id}`),
        need: r.attempt.resources,
        runtimeS: context.leftOf(r),
        gang: null,
        // Work that leaves spot must not return to it. Other work returns to spot, or stops for more urgent work; then
        // spot has hardly any room, and what there is may be reserved until the stop is over.
        ...(target === undefined ? sides(r.stage, !fromSpot) : { allowed: (host) => isOn(host, target) }),
      },
    ];
  });
  tasks.push(...stoppedFirst(context, returning));
  const placements = tasks.length === 0 ? [] : context.place(tasks, hosts, context);
  return { placements, hosts: afterPlacing(hosts, tasks, placements) };
}

/** Tasks of moving gangs that have stopped already: their targets keep room for them until the others have stopped. */
function stoppedFirst({ snapshot, leftOf }: PlacingContext, stopping: readonly RunningTask[]): readonly TaskToPlace[] {
  const gangs = new Map(
    stopping.filter((r) => r.stage.gang && r.attempt.goesTo !== undefined).map((r) => [stageKey(r.attempt), r]),
  );
  if (gangs.size === 0) return [];
  return snapshot.tasks.flatMap((task): TaskToPlace[] => {
    const mate = gangs.get(stageKey(task));
    const target = task.goesTo;
    if (mate === undefined || target === undefined) return [];
    return [
      {
        task,
        group: groupId(`return/${task.job}/${task.stage}/${task.index}`),
        need: mate.attempt.resources,
        runtimeS: leftOf(mate),
        gang: null,
        allowed: (host) => isOn(host, target),
      },
    ];
  });
}

/** Whether a task waits once this attempt has stopped; of several that stop, the first stands for all. */
const waitsAgain = (r: RunningTask, snapshot: Snapshot): boolean =>
  r.attempt.supersededBy === undefined &&
  liveBeside(snapshot, r).every((o) => isStopping(o) && o.attempt.number > r.attempt.number);

const isOn = ({ on }: Host, target: InstanceId): boolean => on === target;

/**
 * Starts of tasks that have stopped to go on elsewhere, on their targets, in the order of their groups' ids. Groups
 * whose targets lack room for all of their tasks wait like any other. O(groups + their tasks + hosts).
 */
export function placeMoved({ groups: all }: Pick<Snapshot, 'groups'>, hosts: readonly Host[]) {
  const groups = all.filter((g) => g.goesTo !== undefined).sort((a, b) => (a.id < b.id ? -1 : 1));
  const placements: Placement[] = [];
  const tasks: TaskToPlace[] = [];
  const arrived = new Set<GroupId>();
  if (groups.length === 0) return { placements, hosts, arrived };
  const room = new TargetRoom(hosts);
  for (const group of groups) {
    const targets = room.take(group);
    if (targets === null) continue;
    targets.forEach((on, nth) => {
      const index = invariant(memberOf(group, nth), `group ${group.id} has no task ${nth}`);
      const task = { job: group.job, stage: group.stage.name, index };
      tasks.push({ task, group: group.id, need: group.need, runtimeS: seconds(0), gang: null, allowed: () => true });
      placements.push({ task, group: group.id, on, reason: 'it stopped elsewhere to go on here' });
    });
    arrived.add(group.id);
  }
  return { placements, hosts: afterPlacing(hosts, tasks, placements), arrived };
}

/** Room of targets, less what groups have taken. */
class TargetRoom {
  readonly #hosts: ReadonlyMap<InstanceId, Host>;
  readonly #taken = new Map<InstanceId, Resources>();

  constructor(hosts: readonly Host[]) {
    this.#hosts = new Map(hosts.map((h) => [h.on, h]));
  }

  /** The targets of a group, if each has room for its tasks and satisfies the constraints; else nothing is taken. */
  take({ goesTo = [], count, need, stage }: PendingGroup): readonly InstanceId[] | null {
    if (goesTo.length !== count) return null;
    const needed = new Map<InstanceId, Resources>();
    for (const on of goesTo) {
      const host = this.#hosts.get(on);
      const sum = plusResources(needed.get(on) ?? this.#taken.get(on) ?? NO_RESOURCES, need);
      if (host === undefined || !fits(sum, host.free)) return null;
      if (brokenConstraint(stage.constraints, host.pool) !== null) return null;
      needed.set(on, sum);
    }
    for (const [on, sum] of needed) this.#taken.set(on, sum);
    return goesTo;
  }
}

/** Reserves room for attempts that move, before anything else is placed: where their targets are. */
export function placeMoves(context: PlacingContext, moves: readonly PlannedMove[], hosts: readonly Host[]) {
  const sides = sidesOf();
  const tasks = moves.map((m): TaskToPlace => ({
    task: m.running.attempt,
    from: m.running.attempt.instance,
    group: moveGroup(m),
    need: m.running.attempt.resources,
    runtimeS: context.leftOf(m.running),
    gang: null,
    ...(m.to === undefined ? sides(m.running.stage, m.toSpot) : namedSide({ ...m, to: m.to })),
  }));
  const placements = tasks.length === 0 ? [] : context.place(tasks, hosts, context);
  const placed = new Set(placements.map((p) => p.group));
  return {
    placements,
    hosts: afterPlacing(hosts, tasks, placements),
    unplaced: moves.filter((m) => !placed.has(moveGroup(m))),
  };
}

/**
 * Moves without room join the demand for purchases of their group, those of a gang as one, so that room is bought for
 * all of them or for none.
 */
export function leftoversOf(
  { groups, offers }: AppraisedMoves,
  unplaced: readonly PlannedMove[],
  context: Pick<PlacingContext, 'snapshot' | 'leftOf'>,
): readonly Leftover[] {
  const together = Map.groupBy(unplaced, (m) =>
    m.running.stage.gang ? stageKey(m.running.attempt) : m.running.attempt.id,
  );
  return [...together.values()].flatMap((moves): Leftover[] => {
    const first = invariant(moves[0], 'there is a move');
    const group = groups.get(moveGroup(first));
    const offer = offers.get(moveGroup(first))?.offers[0];
    if (group === undefined || offer === undefined) return [];
    const option: StartOption = {
      group: group.id,
      offer,
      slot: 0,
      startMs: context.snapshot.nowMs,
      worthUsd: 0,
      costUsd: offer.expectedCostUsd,
    };
    const indices = moves.map((m) => m.running.attempt.index).sort((a, b) => a - b);
    const runtimeS = moves.map((m) => context.leftOf(m.running)).reduce((a, b) => most(a, b));
    return [{ group: { ...group, count: moves.length, members: { indices } }, option, count: moves.length, runtimeS }];
  });
}
