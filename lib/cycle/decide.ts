import {
  effectKey,
  groupId,
  instanceOf,
  type AttemptId,
  type GroupId,
  type InstanceId,
  type JobId,
  type PlanId,
} from '../kernel/ids.ts';
import { invariant } from '../kernel/errors.ts';
import { gt, raw, seconds, type EpochMs, type Seconds } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import { brokenConstraint } from '../domain/constraints.ts';
import type { Offer } from '../domain/forecast.ts';
import type { Constraints, Job, StageSpec, TaskRef } from '../domain/job.ts';
import type { Allotment, Effect, Placement, Plan, Purchase, Release, StartOption, Worth } from '../domain/plan.ts';
import type { Pool } from '../domain/pool.ts';
import {
  instanceParts,
  runningNamed,
  runningParts,
  workKeptS,
  type InstanceView,
  type PendingGroup,
  type RunningTask,
  type Snapshot,
} from '../domain/snapshot.ts';
import {
  withOffers,
  type Forecasts,
  type GroupOffers,
  type Host,
  type Leftover,
  type Stages,
  type TaskToPlace,
  type Worths,
} from '../domain/stages.ts';
import { begunBy } from '../domain/work-to-do.ts';
import { attemptName, taskKey } from './working-state.ts';
import { forecastAtPurchase } from './forecast-at-purchase.ts';
import { withoutExchanges } from './exchange.ts';
import { explain } from './explain.ts';
import { InstanceHost } from './hosts.ts';
import { isEnding } from './observe.ts';
import { appraiseAll, pendingAgain, runningGroups, runningOffersOf, type RunningOffers } from './running-offers.ts';
import { leftOfEach, longestLeft, type LeftOf } from './left-of.ts';
import { afterPlacing, placeStarts, type PlacingContext } from './starts.ts';
import { memberOf } from './snapshot.ts';

export interface DecideInput<S> {
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly stages: Stages<S>;
  readonly preset: string;
  readonly solver: S;
  readonly config: SchedulerConfig;
  readonly plan: PlanId;
  readonly token: number;
  /** Of the deliberation before this one; empty or absent at first. */
  readonly knownOffers?: RunningOffers;
  /** False where nobody reads explanations: none are made, nor what is appraised for them alone. The decision is the same. */
  readonly explains?: boolean;
}

/** What the stages answered, for explanations and tests. */
export interface Deliberation {
  readonly snapshot: Snapshot;
  readonly forecasts: Forecasts;
  readonly worths: Worths;
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
  readonly runningOffers: RunningOffers;
  readonly allotment: Allotment;
  readonly placements: readonly Placement[];
  /** Starts that wait for work to stop on their instance. */
  readonly reserved: readonly Placement[];
  /** Starts that wait for a place that other tasks have. */
  readonly inTurn: ReadonlyMap<GroupId, number>;
  readonly purchases: readonly Purchase[];
  readonly releases: readonly Release[];
}

/**
 * value -> appraise -> plan -> place on what is there -> queue for it -> acquire for the rest -> release what is not used.
 * Deciding acts on nothing: the result is a plan whose effects carry keys made from the plan's id.
 */
export async function decide<S>(input: DecideInput<S>): Promise<{ plan: Plan; deliberation: Deliberation }> {
  const { snapshot, forecasts, stages, config, explains = true } = input;
  const worths = stages.value(snapshot, forecasts, config);
  const running = explains ? runningGroups(input, worths) : [];
  const offers = appraiseAll(input, { forecasts, worths, running });
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const planned = await stages.plan({ snapshot, forecasts, worths, offers, config }, input.solver);
  const allotment = withoutExchanges(planned, snapshot, groups);
  const stopping = new Set<AttemptId>(allotment.preemptions.map((p) => p.attempt));
  const appraised = appraiseMoves(input, forecasts, movesOf(allotment, worths));
  const { moves } = appraised;
  const placesAny = allotment.starts.length + moves.length + runningParts(snapshot).stopping.length > 0;
  const leftOf = leftOfEach({ snapshot, forecasts });
  const hosts = placesAny ? hostsThere(snapshot, leftOf, stopping) : [];
  const context: PlacingContext = { snapshot, forecasts, groups, stages, config, worths: worths.groups, leftOf };
  const returning = placeReturning(context, hosts);
  const moved = placeMoves(context, moves, returning.hosts);
  const started = placeStarts(context, allotment, moved.hosts);
  const stops = { ...allotment, preemptions: allotment.preemptions.filter((p) => started.needed.has(p.attempt)) };

  const leftovers = [...leftoversOf(appraised, moved.unplaced, context), ...started.leftovers];
  const purchases =
    leftovers.length === 0
      ? []
      : stages.acquire({
          snapshot,
          forecasts,
          worths: { groups: new Map([...worths.groups, ...appraised.worths]), ofRunning: worths.ofRunning },
          offers: new Map([...offers, ...appraised.offers]),
          leftovers,
          config,
        });

  const used = new Set<InstanceId>();
  for (const p of [...returning.placements, ...moved.placements, ...started.placements, ...started.reserved])
    if ('instance' in p.on) used.add(p.on.instance);
  const releases = stages.release({ snapshot, used, config });

  const effects = effectsOf(input, {
    stops: stopsOf(snapshot, stops, { moves, placed: moved.placements, bought: purchases.length > 0 }),
    purchases,
    placements: started.placements,
    releases,
  });
  const deliberation: Deliberation = {
    snapshot,
    forecasts,
    worths,
    offers,
    runningOffers: explains ? runningOffersOf(input, running, offers) : NO_OFFERS,
    allotment,
    placements: started.placements,
    reserved: started.reserved,
    inTurn: started.inTurn,
    purchases,
    releases,
  };
  const plan: Plan = {
    id: input.plan,
    token: input.token,
    atMs: snapshot.nowMs,
    preset: input.preset,
    ...(forecasts.market.origin === undefined ? {} : { forecast: forecasts.market.origin }),
    effects,
    explanations: explains ? explain(deliberation) : [],
    solve: allotment.solve,
  };
  return { plan, deliberation };
}

const NO_OFFERS: RunningOffers = new Map();

/** Instances that can take a task now or once they are up. Warned, releasing and soon-to-be-rebalanced ones take none. */
function hostsThere(snapshot: Snapshot, leftOf: LeftOf, stopping: ReadonlySet<AttemptId>): Host[] {
  const hosts: Host[] = [];
  const staying = ({ attempts, distinct }: InstanceView): readonly RunningTask[] =>
    stopping.size === 0 ? (distinct ?? attempts) : attempts.filter((r) => !stopping.has(r.attempt.id));
  const remainingOf = (view: InstanceView): Seconds => longestLeft(staying(view), leftOf);
  for (const there of instanceParts(snapshot).takingTasks.values()) {
    for (const view of there) hosts.push(new InstanceHost(view, remainingOf));
  }
  return hosts;
}

interface Move {
  readonly running: RunningTask;
  readonly reason: string;
  readonly worth: Worth;
  /** Where it may go: to spot, or to capacity that stays. */
  readonly toSpot: boolean;
}

const movesOf = ({ moves }: Allotment, worths: Worths): Move[] =>
  moves.map(({ running, reason, to }) => {
    const worth = invariant(
      worths.ofRunning(running),
      `the plan moves attempt ${running.attempt.id}, which has no worth`,
    );
    return { running, worth, reason, toSpot: to === 'spot' };
  });

const moveGroup = (m: Move): GroupId => groupId(`move/${m.running.attempt.id}`);

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

/** Keeps room for attempts that are stopping to go on elsewhere: without it their new instance would be given back first. */
function placeReturning(context: PlacingContext, hosts: readonly Host[]) {
  const sides = sidesOf();
  const tasks = runningParts(context.snapshot).stopping.flatMap((r): TaskToPlace[] => {
    const job = context.snapshot.jobs.get(r.attempt.job);
    if (job === undefined || isEnding(job)) return [];
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
        ...sides(r.stage, !fromSpot),
      },
    ];
  });
  const placements = tasks.length === 0 ? [] : context.stages.place(tasks, hosts);
  return { placements, hosts: afterPlacing(hosts, tasks, placements) };
}

/** Reserves room for attempts that move, before anything else is placed: off spot, or on it for those that return. */
function placeMoves(context: PlacingContext, moves: readonly Move[], hosts: readonly Host[]) {
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
 * What returns to spot is appraised with all its pools: that it can flee to on-demand again is part of its risk. A program with a
 * checkpoint signal saves when it is told to stop, so that it goes on from all it has done.
 */
function groupToMove(m: Move, nowMs: EpochMs): PendingGroup {
  const { constraints, checkpoint } = m.running.stage;
  const keptS = workKeptS(m.running, nowMs);
  const { keptS: doneS, ranS } = begunBy(m.running, nowMs);
  const id = moveGroup(m);
  if (!m.toSpot) {
    const staying: Constraints = { ...constraints, purchaseOptions: ['on-demand', 'reserved'] };
    return pendingAgain(m.running, { id, keptS, ranS, constraints: staying });
  }
  return pendingAgain(m.running, {
    id,
    constraints,
    keptS: checkpoint === null ? keptS : doneS,
    ranS,
  });
}

/** Moves with what each may go to: as if it waited for that alone. */
interface AppraisedMoves {
  readonly moves: readonly Move[];
  readonly worths: ReadonlyMap<GroupId, Worth>;
  readonly groups: ReadonlyMap<GroupId, PendingGroup>;
  readonly offers: ReadonlyMap<GroupId, GroupOffers>;
}

/**
 * Work that has stopped is appraised as work that waits, so a return to spot that such an appraisal would not choose is
 * not begun: it would be undone at once, and begun again.
 */
function appraiseMoves<S>(input: DecideInput<S>, forecasts: Forecasts, moves: readonly Move[]): AppraisedMoves {
  const { snapshot, config, stages } = input;
  if (moves.length === 0) return { moves, worths: new Map(), groups: new Map(), offers: new Map() };
  const groups = new Map(moves.map((m) => [moveGroup(m), groupToMove(m, snapshot.nowMs)]));
  const worths = new Map(moves.map((m) => [moveGroup(m), m.worth]));
  const waiting = { ...snapshot, groups: [...groups.values()] };
  const all = stages.appraise(waiting, forecasts, { groups: worths, ofRunning: () => undefined }, config);
  const offers = new Map<GroupId, GroupOffers>();
  for (const m of moves) {
    const of = all.get(moveGroup(m));
    if (of !== undefined) offers.set(moveGroup(m), withOffers(of, offersFor(m, of.offers, config)));
  }
  const pays = (m: Move): boolean => !m.toSpot || (offers.get(moveGroup(m))?.offers ?? []).length > 0;
  return { moves: moves.filter(pays), worths, groups, offers };
}

/** What still needs a place is bought for like work that waits. */
function leftoversOf(
  { groups, offers }: AppraisedMoves,
  unplaced: readonly Move[],
  context: PlacingContext,
): Leftover[] {
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

interface Stop {
  readonly attempt: AttemptId;
  readonly why: 'preempted' | 'cancelled';
  readonly reason: string;
}

function stopsOf(
  snapshot: Snapshot,
  allotment: Allotment,
  moving: { readonly moves: readonly Move[]; readonly placed: readonly Placement[]; readonly bought: boolean },
): Stop[] {
  const stops = new Map<AttemptId, Stop>();
  const stop = ({ attempt }: RunningTask, why: Omit<Stop, 'attempt'>): void => {
    if (attempt.state === 'stopping' || stops.has(attempt.id)) return;
    stops.set(attempt.id, { attempt: attempt.id, ...why });
  };
  const endings = new Map<JobId, string>();
  let hasGang = false;
  for (const job of snapshot.jobs.values()) {
    const why = whyEnding(job);
    if (why !== null) endings.set(job.id, why);
    hasGang ||= job.spec.stages.some((s) => s.gang);
  }
  const mayStop = endings.size > 0 || hasGang;
  for (const r of mayStop ? snapshot.running : []) {
    const ending = endings.size === 0 ? undefined : endings.get(r.attempt.job);
    if (ending !== undefined) stop(r, { why: 'cancelled', reason: ending });
    else if (r.stage.gang && brokenGang(snapshot, r))
      stop(r, { why: 'preempted', reason: 'its gang is no longer complete' });
  }
  const { preemptions } = allotment;
  const preempted = runningNamed(
    snapshot,
    preemptions.map((p) => p.attempt),
  );
  for (const { attempt, reason } of preemptions) {
    const running = preempted.get(attempt);
    if (running !== undefined) stop(running, { why: 'preempted', reason });
  }
  const placed = new Map(moving.placed.map((p) => [p.group, p]));
  for (const m of moving.moves) {
    const on = placed.get(moveGroup(m))?.on;
    const host = on !== undefined && 'instance' in on ? snapshot.instances.get(on.instance) : undefined;
    if (host !== undefined && host.instance.state === 'ready') {
      stop(m.running, {
        why: 'preempted',
        reason: `${m.reason}; ${host.instance.id} (${host.pool.id}) is ready to take it`,
      });
    } else if (host === undefined && !m.toSpot && !moving.bought && emptiesInstance(snapshot, m, moving.moves)) {
      stop(m.running, {
        why: 'preempted',
        reason: `${m.reason}; it stops first to make room under the vCPU limit`,
      });
    }
  }
  return [...stops.values()];
}

function whyEnding(job: Job): string | null {
  if (job.cancelRequested) return 'the job was cancelled';
  return job.stages.some((s) => s.failed > 0) ? 'a task of the job failed with no retries left' : job.stateReason;
}

/** Stopping one attempt first makes room under the vCPU limit only if nothing else keeps its instance. */
function emptiesInstance(snapshot: Snapshot, move: Move, moves: readonly Move[]): boolean {
  const going = new Set(moves.map((m) => m.running.attempt.id));
  const on = snapshot.instances.get(move.running.attempt.instance)?.attempts ?? [];
  return on.every((r) => going.has(r.attempt.id) || r.attempt.state === 'stopping');
}

/** A gang of which some run and some wait can make no progress. */
function brokenGang(snapshot: Snapshot, r: RunningTask): boolean {
  const stage = snapshot.jobs.get(r.attempt.job)?.stages.find((s) => s.name === r.attempt.stage);
  return stage !== undefined && (stage.waiting > 0 || stage.nextFresh < stage.tasks);
}

function effectsOf<S>(
  input: DecideInput<S>,
  what: {
    readonly stops: readonly Stop[];
    readonly purchases: readonly Purchase[];
    readonly placements: readonly Placement[];
    readonly releases: readonly Release[];
  },
): Effect[] {
  const { snapshot, plan } = input;
  const starts = readyPlacements(snapshot, what.placements);
  const tried = attemptsSoFar(snapshot, starts);
  const effects: Effect[] = [];
  for (const s of what.stops) effects.push({ kind: 'stop', key: effectKey(`${plan}/stop/${s.attempt}`), ...s });
  what.purchases.forEach((p, i) => {
    const allocation = effectKey(`${plan}/launch/${i}`);
    const forecast = forecastAtPurchase(snapshot, input.forecasts.market, p);
    for (let n = 0; n < p.count; n++) {
      effects.push({
        kind: 'launch',
        key: effectKey(`${allocation}/${n}`),
        instance: instanceOf(allocation, n),
        allocation,
        pool: p.pool,
        bid: p.bid,
        reason: p.reason,
        ...(forecast === null ? {} : { forecast }),
      });
    }
  });
  for (const p of starts) {
    const attempt = attemptName(p.task, (p.fresh ? 0 : (tried.get(taskKey(p.task)) ?? 0)) + 1);
    effects.push({
      kind: 'start',
      key: effectKey(`start/${attempt}`),
      attempt,
      task: p.task,
      instance: p.instance,
      reason: p.reason,
    });
  }
  for (const r of what.releases) {
    effects.push({ kind: 'release', key: effectKey(`release/${r.instance}`), instance: r.instance, reason: r.reason });
  }
  return effects;
}

/** Attempts of each task that was tried among these; others of the same index may be there too. */
function attemptsSoFar(snapshot: Snapshot, starts: readonly ReadyStart[]): ReadonlyMap<string, number> {
  const tried = new Map<string, number>();
  const again = starts.filter((s) => !s.fresh);
  if (again.length === 0) return tried;
  const indices = new Map<JobId, Set<number>>();
  for (const { task } of again) {
    const { job, index } = task;
    const of = indices.get(job);
    if (of === undefined) indices.set(job, new Set([index]));
    else of.add(index);
  }
  for (const t of snapshot.tasks) if (indices.get(t.job)?.has(t.index) === true) tried.set(taskKey(t), t.attempts);
  return tried;
}

interface ReadyStart {
  readonly task: TaskRef;
  readonly instance: InstanceId;
  readonly reason: string;
  /** Of a group whose tasks were never tried. */
  readonly fresh: boolean;
}

/** Placements that can start now. A gang starts only when all of it is on instances that are up. */
function readyPlacements(snapshot: Snapshot, placements: readonly Placement[]): ReadyStart[] {
  const ready = (p: Placement): boolean =>
    'instance' in p.on && snapshot.instances.get(p.on.instance)?.instance.state === 'ready';
  const gangs = new Set(snapshot.groups.filter((g) => g.stage.gang).map((g) => g.id));
  const held = new Set(placements.filter((p) => gangs.has(p.group) && !ready(p)).map((p) => p.group));
  const placed = new Map<GroupId, number>();
  if (gangs.size > 0) for (const p of placements) placed.set(p.group, (placed.get(p.group) ?? 0) + 1);
  for (const g of snapshot.groups) {
    if (g.stage.gang && (placed.get(g.id) ?? 0) < g.count) held.add(g.id);
  }
  // Tasks of a group are alike, so those that start now are its first ones: fresh tasks begin in the order of their index,
  // which is all that is remembered of them (StageProgress). Going by the packer would skip those whose host is not up.
  const groups = new Map(snapshot.groups.map((g) => [g.id, g]));
  const started = new Map<GroupId, number>();
  return placements.flatMap((p) => {
    if (!ready(p) || held.has(p.group) || !('instance' in p.on)) return [];
    const group = invariant(groups.get(p.group), `a task of group ${p.group} is placed, which does not wait`);
    const nth = started.get(p.group) ?? 0;
    started.set(p.group, nth + 1);
    const index = invariant(memberOf(group, nth), `group ${p.group} has no task ${nth}`);
    const task: TaskRef = { job: p.task.job, stage: p.task.stage, index };
    return [{ task, instance: p.on.instance, reason: p.reason, fresh: 'freshFrom' in group.members }];
  });
}

/** Budget left to the next decision: the earliest of the cycle's period and the end of a pause, in engine time. */
export function nextDecisionS(snapshot: Snapshot, config: SchedulerConfig): Seconds {
  const untils = snapshot.blocked.flatMap((b) =>
    b.untilMs !== null && gt(b.untilMs, snapshot.nowMs) ? [(raw(b.untilMs) - raw(snapshot.nowMs)) / 1000] : [],
  );
  return seconds(Math.min(config.cyclePeriodS, ...untils));
}
