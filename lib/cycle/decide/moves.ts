/**
 * Moves: running work that goes on elsewhere. A move has a target. The task is stopped once an instance with room for it is up, and
 * the next plan starts it there before it decides about anything else. A move that would not end there does not begin.
 *
 * - Off spot, to keep a deadline (lib/stages/plan/guard.ts): within the purchase options that the user allows, or not at all.
 * - To spot, because it pays (lib/stages/plan/returns.ts): only if the task, appraised as it would wait after the stop, may still be
 *   interrupted and costs less on spot; and only within the bounds on our own stops (`keepsProgress`).
 */
import { invariant } from '../../kernel/errors.ts';
import { groupId, type GroupId, type InstanceId } from '../../kernel/ids.ts';
import { seconds, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint, steadyOnly } from '../../domain/constraints.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { Constraints, StageSpec } from '../../domain/job.ts';
import type { Allotment, Placement, StartOption, Worth } from '../../domain/plan.ts';
import type { Pool } from '../../domain/pool.ts';
import { runningParts, workKeptS, type PendingGroup, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import {
  withOffers,
  type Forecasts,
  type GroupOffers,
  type Host,
  type Leftover,
  type Stages,
  type TaskToPlace,
  type Worths,
} from '../../domain/stages.ts';
import { begunBy } from '../../domain/work-to-do.ts';
import { fits, NO_RESOURCES, plusResources, type Resources } from '../../domain/resources.ts';
import { keepsProgress } from '../../stages/plan/own-stops.ts';
import { isEnding } from '../observe/observe.ts';
import { pendingAgain } from './running-offers.ts';
import { memberOf } from '../state/snapshot.ts';
import { afterPlacing, type PlacingContext } from './starts.ts';

export interface Move {
  readonly running: RunningTask;
  readonly reason: string;
  readonly worth: Worth;
  /** Where it may go: to spot, or to capacity that stays. */
  readonly toSpot: boolean;
  /** The stage's constraints, narrowed to that side. */
  readonly constraints: Constraints;
}

/** The plan's moves, less those whose side the user's constraints exclude. */
export function movesOf({ moves }: Allotment, worths: Worths): readonly Move[] {
  return moves.flatMap(({ running, reason, to }): Move[] => {
    const worth = invariant(
      worths.ofRunning(running),
      `the plan moves attempt ${running.attempt.id}, which has no worth`,
    );
    const toSpot = to === 'spot';
    const { constraints } = running.stage;
    const narrowed = toSpot ? constraints : steadyOnly(constraints);
    return narrowed === null ? [] : [{ running, worth, reason, toSpot, constraints: narrowed }];
  });
}

export const moveGroup = (m: Pick<Move, 'running'>): GroupId => groupId(`move/${m.running.attempt.id}`);

type Side = Required<Pick<TaskToPlace, 'allowed' | 'inPool'>>;

/** Hosts on spot, or not on spot, that a stage's constraints allow: one answer for all tasks of the stage, which the packer asks once. */
function sidesOf(): (stage: StageSpec, onSpot: boolean) => Side {
  const known = { spot: new Map<StageSpec, Side>(), steady: new Map<StageSpec, Side>() };
  return (stage, onSpot) => {
    const of = onSpot ? known.spot : known.steady;
    let side = of.get(stage);
    if (side === undefined) {
      const inPool = (pool: Pool): boolean =>
        (pool.option === 'spot') === onSpot && brokenConstraint(stage.constraints, pool) === null;
      of.set(stage, (side = { inPool, allowed: ({ pool }) => inPool(pool) }));
    }
    return side;
  };
}

/**
 * Keeps room for attempts that are stopping to go on elsewhere, on their target if they have one: without it their new instance would be
 * given back first.
 */
export function placeReturning(context: PlacingContext, hosts: readonly Host[]) {
  const sides = sidesOf();
  const tasks = runningParts(context.snapshot).stopping.flatMap((r): TaskToPlace[] => {
    const job = context.snapshot.jobs.get(r.attempt.job);
    if (job === undefined || isEnding(job)) return [];
    const target = r.attempt.goesTo;
    const fromSpot = context.snapshot.instances.get(r.attempt.instance)?.pool.option === 'spot';
    return [
      {
        task: r.attempt,
        group: groupId(`return/${r.attempt.id}`),
        need: r.attempt.resources,
        runtimeS: context.leftOf(r),
        gang: null,
        // Spot is left for being unsafe. Anything else is left for spot, or for somebody more urgent, and then there is
        // hardly room on spot: what there is may be kept for it until it has stopped.
        ...(target === undefined ? sides(r.stage, !fromSpot) : { allowed: (host) => isOn(host, target) }),
      },
    ];
  });
  const placements = tasks.length === 0 ? [] : context.stages.place(tasks, hosts);
  return { placements, hosts: afterPlacing(hosts, tasks, placements) };
}

const isOn = ({ on }: Host, target: InstanceId): boolean => 'instance' in on && on.instance === target;

/**
 * Starts of tasks that have stopped to go on elsewhere, on their target, in the order of their groups' ids. Groups whose target has no
 * room left wait like any other. O(groups + hosts).
 */
export function placeMoved({ snapshot }: Pick<PlacingContext, 'snapshot'>, hosts: readonly Host[]) {
  const groups = snapshot.groups.filter((g) => g.goesTo !== undefined).sort((a, b) => (a.id < b.id ? -1 : 1));
  const placements: Placement[] = [];
  const tasks: TaskToPlace[] = [];
  const arrived = new Set<GroupId>();
  if (groups.length === 0) return { placements, hosts, arrived };
  const byInstance = new Map(hosts.flatMap((h) => ('instance' in h.on ? [[h.on.instance, h] as const] : [])));
  const taken = new Map<InstanceId, Resources>();
  for (const group of groups) {
    const target = invariant(group.goesTo, 'the group has a target');
    const host = byInstance.get(target);
    if (host === undefined || group.count !== 1) continue;
    const needed = plusResources(taken.get(target) ?? NO_RESOURCES, group.need);
    if (!fits(needed, host.free)) continue;
    if (brokenConstraint(group.stage.constraints, host.pool) !== null) continue;
    taken.set(target, needed);
    const index = invariant(memberOf(group, 0), `group ${group.id} has no task`);
    const task = { job: group.job, stage: group.stage.name, index };
    tasks.push({ task, group: group.id, need: group.need, runtimeS: seconds(0), gang: null, allowed: () => true });
    placements.push({ task, group: group.id, on: host.on, reason: 'it stopped elsewhere to go on here' });
    arrived.add(group.id);
  }
  return { placements, hosts: afterPlacing(hosts, tasks, placements), arrived };
}

/** Reserves room for attempts that move, before anything else is placed: off spot, or on it for those that return. */
export function placeMoves(context: PlacingContext, moves: readonly Move[], hosts: readonly Host[]) {
  const sides = sidesOf();
  const tasks = moves.map((m): TaskToPlace => ({
    task: m.running.attempt,
    group: moveGroup(m),
    need: m.running.attempt.resources,
    runtimeS: context.leftOf(m.running),
    gang: null,
    ...sides(m.running.stage, m.toSpot),
  }));
  const placements = tasks.length === 0 ? [] : context.stages.place(tasks, hosts);
  const placed = new Set(placements.map((p) => p.group));
  return {
    placements,
    hosts: afterPlacing(hosts, tasks, placements),
    unplaced: moves.filter((m) => !placed.has(moveGroup(m))),
  };
}

/**
 * The work of a move as it would wait after the stop. A program with a checkpoint signal saves when it is told to stop, so that it goes
 * on from all it has done.
 */
function groupToMove(m: Move, nowMs: EpochMs): PendingGroup {
  const keptS = workKeptS(m.running, nowMs);
  const { keptS: doneS, ranS } = begunBy(m.running, nowMs);
  const saves = m.toSpot && m.running.stage.checkpoint !== null;
  return pendingAgain(m.running, {
    id: moveGroup(m),
    constraints: m.constraints,
    keptS: saves ? doneS : keptS,
    ranS,
  });
}

/** Moves with the offers for each, as if it waited for those alone. */
export interface AppraisedMoves {
  readonly moves: readonly Move[];
  readonly worths: ReadonlyMap<GroupId, Worth>;
  readonly groups: ReadonlyMap<GroupId, PendingGroup>;
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
}

interface MovesInput<S> {
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly stages: Pick<Stages<S>, 'value' | 'appraise'>;
  readonly config: SchedulerConfig;
}

/**
 * Appraises moves as work that waits, worth and last safe moment included: stopped work is appraised so by the next plan. A return to
 * spot that the next plan would not choose is not begun.
 */
export function appraiseMoves<S>(input: MovesInput<S>, moves: readonly Move[]): AppraisedMoves {
  const { snapshot, forecasts, config, stages } = input;
  if (moves.length === 0) return { moves, worths: new Map(), groups: new Map(), offers: new Map() };
  const groups = new Map(moves.map((m) => [moveGroup(m), groupToMove(m, snapshot.nowMs)]));
  const waiting = { ...snapshot, groups: [...groups.values()], instances: withoutLeft(snapshot, moves) };
  const valued = stages.value(waiting, forecasts, config);
  const worths = new Map(moves.map((m) => [moveGroup(m), valued.groups.get(moveGroup(m)) ?? m.worth]));
  const all = stages.appraise(waiting, forecasts, { groups: worths, ofRunning: () => undefined }, config);
  const offers = new Map<GroupId, GroupOffers>();
  for (const m of moves) {
    const of = all.get(moveGroup(m));
    if (of !== undefined) offers.set(moveGroup(m), withOffers(of, offersFor(m, of.offers, config)));
  }
  const begins = (m: Move): boolean =>
    keepsProgress(m.running, input) && (!m.toSpot || (offers.get(moveGroup(m))?.offers ?? []).length > 0);
  return { moves: moves.filter(begins), worths, groups, offers };
}

/** Instances less those that the moves leave: room there is no room to move to, and staying costs the whole instance. O(instances). */
function withoutLeft({ instances }: Snapshot, moves: readonly Move[]): Snapshot['instances'] {
  const left = new Set(moves.map((m) => m.running.attempt.instance));
  return new Map(
    [...instances.values()].flatMap((view) => (left.has(view.instance.id) ? [] : [[view.instance.id, view] as const])),
  );
}

/** What still needs a place is bought for like work that waits. */
export function leftoversOf(
  { groups, offers }: AppraisedMoves,
  unplaced: readonly Move[],
  context: PlacingContext,
): readonly Leftover[] {
  return unplaced.flatMap((move): Leftover[] => {
    const group = groups.get(moveGroup(move));
    const offer = offers.get(moveGroup(move))?.offers[0];
    if (group === undefined || offer === undefined) return [];
    const option: StartOption = {
      group: group.id,
      offer,
      slot: 0,
      startMs: context.snapshot.nowMs,
      worthUsd: 0,
      costUsd: offer.expectedCostUsd,
    };
    return [{ group, option, count: 1, runtimeS: context.leftOf(move.running) }];
  });
}

/**
 * Work that returns to spot needs a pool that can be had now, keeps its deadline safe enough, and costs less than what stays; what
 * leaves spot for its deadline takes anything that stays.
 */
function offersFor({ toSpot }: Move, offers: readonly Offer[], config: SchedulerConfig): readonly Offer[] {
  const staying = offers.filter((o) => !o.pool.endsWith('/spot'));
  if (!toSpot) return staying;
  const steadyUsd = staying.reduce((least, o) => Math.min(least, o.expectedCostUsd), Infinity);
  return offers.filter(
    (o) =>
      o.pool.endsWith('/spot') &&
      o.opens === undefined &&
      o.pLate <= config.maxLateProbability &&
      o.expectedCostUsd < steadyUsd,
  );
}
