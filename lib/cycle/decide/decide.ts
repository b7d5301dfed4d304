import {
  effectKey,
  instanceOf,
  type AttemptId,
  type EffectKey,
  type GroupId,
  type InstanceId,
  type JobId,
  type PlanId,
} from '../../kernel/ids.ts';
import { EbbError, invariant } from '../../kernel/errors.ts';
import { gt, raw, seconds, type Seconds } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { Offer } from '../../domain/forecast.ts';
import { isLive } from '../../domain/instance.ts';
import type { Job, TaskRef } from '../../domain/job.ts';
import type { Allotment, Effect, Placement, Plan, Purchase, Release } from '../../domain/plan.ts';
import { fits, minusResources, NO_RESOURCES, plusResources, type Resources } from '../../domain/resources.ts';
import {
  instanceParts,
  runningNamed,
  runningParts,
  type InstanceView,
  type PendingGroup,
  type RunningTask,
  type Snapshot,
} from '../../domain/snapshot.ts';
import type { Forecasts, GroupOffers, Host, Leftover, Stages, Worths } from '../../domain/stages.ts';
import { quantileToDo } from '../../domain/work-to-do.ts';
import { attemptName, taskKey } from '../state/working-state.ts';
import { forecastAtPurchase } from './forecast-at-purchase.ts';
import { withoutExchanges } from './exchange.ts';
import { explain } from '../explain/explain.ts';
import { InstanceHost } from './hosts.ts';
import type { Lots } from '../money/lots.ts';
import { MOST_ROUNDS, Purse, type Short } from '../money/purse.ts';
import {
  appraiseMoves,
  leftoversOf,
  moveGroup,
  movesOf,
  placeMoved,
  placeMoves,
  placeReturning,
  type AppraisedMoves,
  type Move,
} from './moves.ts';
import { appraiseAll, runningGroups, runningOffersOf, type RunningOffers } from './running-offers.ts';
import { leftOfEach, longestLeft, type LeftOf } from './left-of.ts';
import { placeStarts, type PlacingContext, type Started } from './starts.ts';
import { memberOf } from '../state/snapshot.ts';

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
  /** Starts that wait for the first runs of their class. */
  readonly untold: ReadonlyMap<GroupId, number>;
  readonly purchases: readonly Purchase[];
  /** What each purchased instance is for. */
  readonly lots: Lots;
  /** Jobs of which something waits because their limit on money could be passed. */
  readonly short: ReadonlyMap<JobId, Short>;
  /** Jobs for which nothing is bought because a limit of the deployment could be passed, with the reason. */
  readonly heldUp: ReadonlyMap<JobId, string>;
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
  const leftOf = leftOfEach({ snapshot, forecasts });
  const context: PlacingContext = { snapshot, forecasts, groups, stages, config, worths: worths.groups, leftOf };
  const hasMoved = snapshot.groups.some((g) => g.goesTo !== undefined);
  const arriving = hasMoved ? placeMoved(context, hostsThere(snapshot, leftOf, NOTHING_STOPS)) : NOTHING_ARRIVES;
  const undecided = withoutArrivals(snapshot, arriving);
  const planned = await stages.plan({ snapshot: undecided, forecasts, worths, offers, config }, input.solver);
  const allotment = withoutExchanges(planned, snapshot, groups);
  const stopping = new Set<AttemptId>(allotment.preemptions.map((p) => p.attempt));
  const appraised = appraiseMoves(input, movesOf(allotment, worths));
  const { moves } = appraised;
  const placesAny = allotment.starts.length + moves.length + runningParts(snapshot).stopping.length > 0;
  const there = placesAny ? hostsThere(snapshot, leftOf, stopping) : [];
  const returning = placeReturning(context, placeMoved(context, there).hosts);
  const moved = placeMoves(context, moves, returning.hosts);
  const purse = new Purse({ snapshot, leftOf, config });
  const started = startsPaidFor({ context, allotment, hosts: moved.hosts, arriving: arriving.placements }, purse);
  const stops = { ...allotment, preemptions: allotment.preemptions.filter((p) => started.needed.has(p.attempt)) };

  const leftovers = [...leftoversOf(appraised, moved.unplaced, context), ...started.leftovers];
  const allWorths = { groups: new Map([...worths.groups, ...appraised.worths]), ofRunning: worths.ofRunning };
  const { purchases, lots } = purse.bought(leftovers, new Map([...offers, ...appraised.offers]), (asked, within) =>
    stages.acquire({ snapshot, forecasts, worths: allWorths, offers: within, leftovers: asked, config }),
  );
  expectUseful(purchases, snapshot, leftovers);

  const used = new Set<InstanceId>();
  const { placements } = started;
  for (const p of [...returning.placements, ...moved.placements, ...placements, ...started.reserved])
    if ('instance' in p.on) used.add(p.on.instance);
  const releases = stages.release({ snapshot, used, config });

  const effects = effectsOf(input, {
    stops: stopsOf(snapshot, stops, { appraised, placed: moved.placements, bought: purchases.length > 0 }),
    purchases,
    lots,
    placements,
    releases,
  });
  const deliberation: Deliberation = {
    snapshot,
    forecasts,
    worths,
    offers,
    runningOffers: explains ? runningOffersOf(input, running, offers) : NO_OFFERS,
    allotment,
    placements,
    reserved: started.reserved,
    inTurn: started.inTurn,
    untold: started.untold,
    purchases,
    lots,
    short: purse.short,
    heldUp: purse.heldUp,
    releases,
  };
  const plan: Plan = {
    id: input.plan,
    token: input.token,
    atMs: snapshot.nowMs,
    preset: input.preset,
    ...(forecasts.market.origin === undefined ? {} : { forecast: forecasts.market.origin }),
    effects,
    ...(purse.limitsReached.length === 0 ? {} : { limitsReached: purse.limitsReached }),
    explanations: explains ? explain(deliberation) : [],
    solve: allotment.solve,
  };
  return { plan, deliberation };
}

const NO_OFFERS: RunningOffers = new Map();
const NOTHING_STOPS: ReadonlySet<AttemptId> = new Set();
const NOTHING_ARRIVES = { placements: [] as readonly Placement[], arrived: new Set<GroupId>() };

/**
 * Starts that have room and that their jobs' limits pay for. Room of a start that is refused goes to others: without that, instances that
 * were bought for them would be given back and bought again. O(starts) per round, one round where nothing is refused.
 */
function startsPaidFor(
  of: {
    readonly context: PlacingContext;
    readonly allotment: Allotment;
    readonly hosts: readonly Host[];
    readonly arriving: readonly Placement[];
  },
  purse: Purse,
): Started {
  const { context, hosts, arriving } = of;
  let allotment = of.allotment;
  for (let round = 1; ; round++) {
    const wanted = placeStarts(context, allotment, hosts);
    const giveBack = purse.remembered();
    const placing = [...arriving, ...wanted.placements];
    const placements = purse.placed(placing, (group) => medianToDo(group, context.forecasts));
    if (placements.length === placing.length || round >= MOST_ROUNDS) return { ...wanted, placements };
    const kept = new Set(placements);
    const refused = new Map<GroupId, number>();
    for (const p of placing) if (!kept.has(p)) refused.set(p.group, (refused.get(p.group) ?? 0) + 1);
    giveBack(new Set([...refused.keys()].flatMap((id) => context.groups.get(id)?.job ?? [])));
    allotment = { ...allotment, starts: startsWithout(allotment.starts, refused) };
  }
}

/** Fewer starts of some groups. */
function startsWithout(starts: Allotment['starts'], fewer: ReadonlyMap<GroupId, number>): Allotment['starts'] {
  const left = new Map(fewer);
  return starts.flatMap((s) => {
    const less = Math.min(s.count, left.get(s.option.group) ?? 0);
    left.set(s.option.group, (left.get(s.option.group) ?? 0) - less);
    return less === 0 ? [s] : less === s.count ? [] : [{ ...s, count: s.count - less }];
  });
}

/**
 * The snapshot that is left to plan for: without the tasks that start on the target of their move, and without the room that they take.
 * The same snapshot where there are none; O(instances) else.
 */
function withoutArrivals(snapshot: Snapshot, { placements, arrived }: typeof NOTHING_ARRIVES): Snapshot {
  if (arrived.size === 0) return snapshot;
  const needs = new Map(snapshot.groups.map((g) => [g.id, g.need]));
  const taken = new Map<InstanceId, Resources>();
  for (const { group, on } of placements) {
    if (!('instance' in on)) continue;
    const need = invariant(needs.get(group), `a task of group ${group} is placed, which does not wait`);
    taken.set(on.instance, plusResources(taken.get(on.instance) ?? NO_RESOURCES, need));
  }
  const instances = new Map<InstanceId, InstanceView>();
  for (const view of snapshot.instances.values()) {
    const need = taken.get(view.instance.id);
    instances.set(view.instance.id, need === undefined ? view : { ...view, free: minusResources(view.free, need) });
  }
  return { ...snapshot, instances, groups: snapshot.groups.filter((g) => !arrived.has(g.id)) };
}

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

/**
 * Invariant of every preset: each purchase has room for a task that it may be used for, by the user's own constraints. Throws `internal`.
 * O(purchases x leftovers) at most, and O(purchases) where the first leftover may use them.
 */
function expectUseful(
  purchases: readonly Purchase[],
  { pools }: Pick<Snapshot, 'pools'>,
  leftovers: readonly Leftover[],
): void {
  if (purchases.length === 0) return;
  const byId = new Map(pools.map(({ pool }) => [pool.id, pool]));
  for (const { pool: id } of purchases) {
    const pool = invariant(byId.get(id), `the plan buys in ${id}, which is no pool of the market`);
    const isUseful = leftovers.some(
      ({ group }) => brokenConstraint(group.stage.constraints, pool) === null && fits(group.need, pool.type.capacity),
    );
    if (!isUseful) throw new EbbError('internal', { what: 'the plan buys an instance that no task may use', got: id });
  }
}

interface Stop {
  readonly attempt: AttemptId;
  readonly why: 'preempted' | 'cancelled';
  readonly reason: string;
  /** Target of a move. */
  readonly to?: InstanceId;
}

function stopsOf(
  snapshot: Snapshot,
  allotment: Allotment,
  moving: {
    readonly appraised: AppraisedMoves;
    readonly placed: readonly Placement[];
    readonly bought: boolean;
  },
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
  const { moves, offers } = moving.appraised;
  const going = new Set(moves.map((m) => m.running.attempt.id));
  for (const m of moves) {
    const on = placed.get(moveGroup(m))?.on;
    const host = on !== undefined && 'instance' in on ? snapshot.instances.get(on.instance) : undefined;
    if (host !== undefined && host.instance.state === 'ready') {
      stop(m.running, {
        why: 'preempted',
        reason: `${m.reason}; ${host.instance.id} (${host.pool.id}) is ready to take it`,
        // A gang begins again as a whole, wherever there is room for all of it.
        ...(m.running.stage.gang ? {} : { to: host.instance.id }),
      });
    } else if (
      host === undefined &&
      !m.toSpot &&
      !moving.bought &&
      lacksVcpus(snapshot, offers.get(moveGroup(m))?.offers ?? []) &&
      emptiesInstance(snapshot, m, going)
    ) {
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

/** The vCPU limit leaves no room for an instance of any offer; false where there is no offer. Money or a pause may refuse one as well. */
function lacksVcpus(snapshot: Snapshot, offers: readonly Offer[]): boolean {
  if (offers.length === 0) return false;
  const offered = new Set(offers.map((o) => o.pool));
  const smallest = snapshot.pools.reduce(
    (least, { pool }) => (offered.has(pool.id) ? Math.min(least, raw(pool.type.capacity.cpu)) : least),
    Infinity,
  );
  const live = snapshot.instances
    .values()
    .reduce((sum, { instance, pool }) => (isLive(instance) ? sum + raw(pool.type.capacity.cpu) : sum), 0);
  return live + smallest > snapshot.limits.vcpus * 1000;
}

/** Stopping one attempt first makes room under the vCPU limit only if nothing else keeps its instance. */
function emptiesInstance(snapshot: Snapshot, move: Move, going: ReadonlySet<AttemptId>): boolean {
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
    readonly lots: Lots;
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
    const allocation = allocationKey(plan, i);
    const forecast = forecastAtPurchase(snapshot, input.forecasts.market, p);
    for (let n = 0; n < p.count; n++) {
      const { boughtFor = [], expectedS } = what.lots[i]?.[n] ?? {};
      effects.push({
        kind: 'launch',
        key: effectKey(`${allocation}/${n}`),
        instance: instanceOf(allocation, n),
        allocation,
        pool: p.pool,
        bid: p.bid,
        reason: p.reason,
        ...(boughtFor.length === 0 ? {} : { boughtFor }),
        ...(expectedS === undefined ? {} : { expectedS }),
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

/** Names what the nth purchase of a plan brings. */
export const allocationKey = (plan: PlanId, purchase: number): EffectKey => effectKey(`${plan}/launch/${purchase}`);

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

/** A task's own running time still to come, seconds: the median. */
function medianToDo(group: PendingGroup, { runtime }: Forecasts): number {
  const forecast = runtime.get(`${group.job}/${group.stage.name}`);
  return forecast === undefined ? 0 : raw(quantileToDo(forecast.runtime, group, 0.5));
}

/** Budget left to the next decision: the earliest of the cycle's period and the end of a pause, in engine time. */
export function nextDecisionS(snapshot: Snapshot, config: SchedulerConfig): Seconds {
  const untils = snapshot.blocked.flatMap((b) =>
    b.untilMs !== null && gt(b.untilMs, snapshot.nowMs) ? [(raw(b.untilMs) - raw(snapshot.nowMs)) / 1000] : [],
  );
  return seconds(Math.min(config.cyclePeriodS, ...untils));
}
