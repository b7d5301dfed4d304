import { instanceId, type GroupId, type InstanceId, type JobId, type PoolId } from '../../kernel/ids.ts';

import { plus, raw, seconds, type EpochMs, type UsdPerHour } from '../../kernel/units.ts';
import { quantile } from '../../domain/distribution.ts';
import type { Job } from '../../domain/job.ts';
import { bidNumber, type Bid, type Pool, onDemandUsdOf, rateText } from '../../domain/pool.ts';
import type { Explanation, ForecastSeen, Placement, WaitReason } from '../../domain/plan.ts';
import { pInterruptedWithin, type Offer } from '../../domain/forecast.ts';
import {
  runningByJob,
  type InstanceView,
  type PendingGroup,
  type RunningTask,
  type SetAside,
} from '../../domain/snapshot.ts';
import { templateOf } from '../../policy/colocation/together.ts';
import type { Deliberation } from '../decide/deliberation.ts';
import { copiesAskedFor, copiesOf, standsForTask } from './copies.ts';
import { expectedStarts } from './expected-start.ts';
import { movesByJob, movesSeen } from './moves.ts';
import { slowedText } from './slowed.ts';

import { headline, diskHeadline, whatEndsWait, whatWouldChange } from './headlines.ts';

type Waiting = Explanation['waiting'][number];
type Placed = Explanation['placed'][number];

/**
 * Forecasts kept in one job's record, which is written each cycle and is paid for by the KiB: the others are among
 * `considered`.
 */
const MAX_SEEN = 1;
/** Running tasks of a job that are examined for its instances: a thousand tasks are mostly on a few instances. */
const MOST_EXAMINED = 64;
const HOUR = seconds(3600);
/** Offers kept in one job's record. */
const MAX_CONSIDERED = 12;

/**
 * Explanation of each active job from the answers of the stages. Waiting work: reason, remedy, expected start. Running
 * or starting work: the pool and why it was chosen. One record per job is stored, and every view is rendered from it.
 */
export function explain(d: Deliberation): Explanation[] {
  const index = indexByJob(d);
  const decided = [...d.snapshot.jobs.values()].map((job) => explainJob(d, job, index));
  const aside = (d.snapshot.setAside ?? []).map((of) => explainSetAside(d, of, index));
  return [...decided, ...aside];
}

interface Index {
  readonly groups: ReadonlyMap<JobId, readonly PendingGroup[]>;
  readonly placedOn: ReadonlyMap<GroupId, ReadonlyMap<string, number>>;
  /** Tasks for which room is reserved, by group and instance. */
  readonly reservedOn: ReadonlyMap<GroupId, ReadonlyMap<string, number>>;
  readonly waits: ReadonlyMap<GroupId, Deliberation['allotment']['waits'][number]>;
  readonly deferred: ReadonlyMap<GroupId, readonly Deliberation['allotment']['deferred'][number][]>;
  readonly starts: ReadonlyMap<GroupId, readonly Deliberation['allotment']['starts'][number][]>;
  readonly running: ReadonlyMap<JobId, Deliberation['snapshot']['running']>;
  readonly blocked: ReadonlyMap<JobId, Deliberation['snapshot']['blocked']>;
  readonly quotes: ReadonlyMap<PoolId, UsdPerHour | null>;
  readonly pools: ReadonlyMap<PoolId, Pool>;
  readonly instances: Deliberation['snapshot']['instances'];
  /** Price and risk of spot instances in words, by pool and bid: built once for all equal purchases. */
  readonly terms: Map<PoolId, Map<Bid, string>>;
  /** Forecasts by pool and bid, alike for all jobs. */
  readonly seen: Map<string, ForecastSeen>;
  /** Seconds from now until groups that wait for room are expected to start. */
  readonly startsInS: ReadonlyMap<GroupId, number>;
  /** Tasks for which this decision buys instances. */
  readonly boughtTasks: ReadonlyMap<GroupId, number>;
  readonly copies: ReturnType<typeof copiesAskedFor>;
  readonly moves: ReturnType<typeof movesByJob>;
}

function indexByJob(d: Deliberation): Index {
  return {
    groups: Map.groupBy(d.snapshot.groups, (g) => g.job),
    placedOn: tasksByPlace(d.placements),
    reservedOn: tasksByPlace(d.reserved),
    waits: new Map(d.allotment.waits.map((w) => [w.group, w])),
    deferred: Map.groupBy(d.allotment.deferred, (x) => x.option.group),
    starts: Map.groupBy(d.allotment.starts, (s) => s.option.group),
    running: runningByJob(d.snapshot),
    blocked: Map.groupBy(d.snapshot.blocked, (b) => b.job),
    quotes: new Map(d.snapshot.pools.map((p) => [p.pool.id, p.quote])),
    pools: new Map(d.snapshot.pools.map((p) => [p.pool.id, p.pool])),
    instances: d.snapshot.instances,
    terms: new Map(),
    seen: new Map(),
    startsInS: expectedStarts(d),
    boughtTasks: d.short.size + d.heldUp.size === 0 ? new Map() : tasksBoughtFor(d),
    copies: copiesAskedFor(d),
    moves: movesByJob(d),
  };
}

function tasksBoughtFor({ lots }: Deliberation): Map<GroupId, number> {
  const counts = new Map<GroupId, number>();
  for (const { leftover, tasks } of lots.flat().flatMap((lot) => lot.taken)) {
    counts.set(leftover.group.id, (counts.get(leftover.group.id) ?? 0) + tasks);
  }
  return counts;
}

function tasksByPlace(placements: readonly Placement[]): Map<GroupId, Map<string, number>> {
  const places = new Map<GroupId, Map<string, number>>();
  for (const p of placements) {
    const counts = places.get(p.group) ?? new Map<string, number>();
    const { on } = p;
    counts.set(on, (counts.get(on) ?? 0) + 1);
    places.set(p.group, counts);
  }
  return places;
}

/** Asks no policy: the fault for which a job is set aside may strike in any of them. */
function explainSetAside(d: Deliberation, { job, why, detail }: SetAside, index: Index): Explanation {
  const placed = (index.running.get(job.id) ?? []).flatMap(({ attempt, stage }): Placed[] => {
    const view = index.instances.get(attempt.instance);
    return view === undefined
      ? []
      : [{ stage: stage.name, tasks: 1, pool: view.pool.id, why: `runs on ${attempt.instance}, to its end` }];
  });
  const reason = why === 'undecided' ? 'capacity' : why;
  const waiting = job.stages.flatMap((s): Waiting[] => {
    const tasks = s.waiting + s.tasks - s.nextFresh;
    const wouldChange =
      why === 'undecided' ? 'nothing: it is decided on in a later cycle' : whatWouldChange(why, d.snapshot.limits);
    return tasks === 0 ? [] : [{ stage: s.name, tasks, why: reason, detail, wouldChange, expectedStartMs: null }];
  });
  return {
    job: job.id,
    atMs: d.snapshot.nowMs,
    headline: why === 'disk' ? diskHeadline(job, waiting, placed) : detail,
    waiting,
    placed: mergedPlaces(placed),
    considered: [],
    excluded: [],
    runtime: null,
  };
}

function mergedPlaces(placed: readonly Placed[]): Placed[] {
  const alike = Map.groupBy(placed, (p) => `${p.stage}|${p.why}`);
  return [...alike.values()].flatMap(([first, ...more]) =>
    first === undefined ? [] : [{ ...first, tasks: more.reduce((n, p) => n + p.tasks, first.tasks) }],
  );
}

function explainJob(d: Deliberation, job: Job, index: Index): Explanation {
  const groups = index.groups.get(job.id) ?? [];
  const waiting: Waiting[] = (index.blocked.get(job.id) ?? []).map((b) => ({
    stage: b.stage ?? job.spec.stages[0]?.name ?? '',
    tasks: b.tasks ?? pendingTasks(job, b.stage),
    why: b.why,
    detail: b.detail,
    wouldChange: whatWouldChange(b.why, d.snapshot.limits),
    expectedStartMs: b.untilMs,
  }));
  const running = index.running.get(job.id) ?? [];
  const placed: Placed[] = runningPlaces(
    d,
    running.filter((r) => standsForTask(d, r)),
    index,
  );
  for (const group of groups) explainGroup(d, group, index, { waiting, placed });
  // Array.sort is stable: causes of one rank keep the order of the stages.
  waiting.sort((a, b) => CAUSES.indexOf(a.why) - CAUSES.indexOf(b.why));
  const first = groups[0];
  const offers = first === undefined ? d.runningOffers.get(job.id)?.offers : d.offers.get(first.id);
  const considered = (offers?.considered ?? []).slice(0, MAX_CONSIDERED);
  const excluded = offers?.excluded ?? [];
  const stage = groups[0]?.stage ?? running[0]?.stage ?? job.spec.stages[0];
  const forecast = stage === undefined ? undefined : d.forecasts.runtime.get(`${job.id}/${stage.name}`);
  return {
    job: job.id,
    atMs: d.snapshot.nowMs,
    headline: headline(job, waiting, placed),
    waiting: merged(waiting),
    placed,
    ...copiesOf(d, running, index.copies.get(job.id)),
    ...movesSeen(index.moves.get(job.id)),
    considered,
    excluded,
    ...forecastSeen(d, index, { running, offers: offers?.offers ?? [] }),
    runtime:
      forecast === undefined
        ? null
        : { medianS: quantile(forecast.runtime, 0.5), p90S: quantile(forecast.runtime, 0.9), basis: forecast.reason },
  };
}

/**
 * Causes of waiting, those with a remedy first. A stage that waits for another stage comes last, because the other
 * one's cause is the real one.
 */
const CAUSES: readonly WaitReason[] = [
  'cancelling',
  'disk',
  'constraint',
  'placement',
  'budget',
  'gang',
  'capacity',
  'price',
  'cheaper-later',
  'backoff',
  'not-before',
  'starting-instance',
  'dependency',
];

/** Tasks that wait for the same thing as one line, however different the work is that they have kept. */
function merged(waiting: readonly Waiting[]): Waiting[] {
  const alike = Map.groupBy(
    waiting,
    (w) => `${w.stage}|${w.why}|${w.detail}|${w.expectedStartMs === null ? '' : raw(w.expectedStartMs)}`,
  );
  return [...alike.values()].flatMap(([first, ...more]) =>
    first === undefined ? [] : [{ ...first, tasks: more.reduce((n, w) => n + w.tasks, first.tasks) }],
  );
}

function pendingTasks(job: Job, stage: string | null): number {
  return job.stages
    .filter((s) => stage === null || s.name === stage)
    .reduce((n, s) => n + s.waiting + s.tasks - s.nextFresh, 0);
}

function runningPlaces(d: Deliberation, running: Deliberation['snapshot']['running'], index: Index): Placed[] {
  type Count = {
    readonly stage: string;
    readonly template: string;
    readonly view: InstanceView;
    tasks: number;
    arrived: number;
  };
  type Counts = Map<InstanceId, Count>;
  const counts = new Map<string, Counts>();
  const inOrder: Count[] = [];
  for (const { stage, attempt } of running) {
    let there = counts.get(stage.name);
    if (there === undefined) counts.set(stage.name, (there = new Map() as Counts));
    const known = there.get(attempt.instance);
    const arrived = Number(attempt.movedFrom !== undefined);
    if (known !== undefined) {
      known.tasks++;
      known.arrived += arrived;
      continue;
    }
    const view = d.snapshot.instances.get(attempt.instance);
    if (view === undefined) continue;
    const job = d.snapshot.jobs.get(attempt.job);
    const template = job === undefined ? '' : templateOf(job, stage);
    const first = { stage: stage.name, template, view, tasks: 1, arrived };
    there.set(attempt.instance, first);
    inOrder.push(first);
  }
  return inOrder.map(({ stage, template, view, tasks, arrived }) => {
    const why = `${whyThere(d, view, index)}${arrivedText(arrived, tasks)}${slowedText(d, template, view)}`;
    return { stage, tasks, pool: view.pool.id, why };
  });
}

const arrivedText = (arrived: number, tasks: number): string =>
  arrived === 0 ? '' : `; ${tasks === 1 ? 'it' : `${arrived} of them`} moved here from another instance`;

function whyThere(d: Deliberation, view: InstanceView, index: Index): string {
  const { instance, pool } = view;
  if (pool.option !== 'spot') return `runs on ${instance.id}: ${pool.option} capacity, which the market does not take`;
  const { bid, state, id } = instance;
  let byBid = index.terms.get(pool.id);
  if (byBid === undefined) index.terms.set(pool.id, (byBid = new Map<Bid, string>()));
  let terms = byBid.get(bid);
  if (terms === undefined) byBid.set(bid, (terms = spotTerms(d, pool, bid, index.quotes.get(pool.id) ?? null)));
  return `runs on ${id}${terms}${state === 'warned' ? '; the market is taking it back' : ''}`;
}

function spotTerms({ forecasts: { market } }: Deliberation, pool: Pool, bid: Bid, price: UsdPerHour | null): string {
  const hour = pInterruptedWithin(market.interruption(pool, bid), HOUR);
  const at = price === null ? '' : ` at ${rateText(price)} USD/h (on-demand ${onDemandUsdOf(pool).toFixed(4)})`;
  const { refused = null, capacity } = market.origin ?? {};
  const instead = (why: string | null, by: string): string => (why === null ? '' : ` (${why}; ${by})`);
  const refusals = `${instead(refused, 'from history')}${instead(capacity?.refused ?? null, 'from observed interruptions')}`;
  return `${at}, P(interrupted within an hour) ${(hour * 100).toFixed(1)} %${refusals}`;
}

/**
 * The forecasts of the pools that a job runs in, or else of the best that it could: few, since all else is among
 * `considered`.
 */
function forecastSeen(
  { forecasts: { market } }: Deliberation,
  index: Index,
  of: { readonly running: readonly RunningTask[]; readonly offers: readonly Pick<Offer, 'pool' | 'bid'>[] },
): Pick<Explanation, 'forecast'> {
  const running = of.running.slice(0, MOST_EXAMINED);
  const held = running.flatMap(({ attempt }) => index.instances.get(attempt.instance)?.instance ?? []);
  const seen = new Map<string, ForecastSeen>();
  for (const { pool: id, bid } of held.length > 0 ? held : of.offers) {
    const pool = index.pools.get(id);
    if (pool?.option !== 'spot') continue;
    if (seen.size >= MAX_SEEN) break;
    const key = `${id} ${bidNumber(bid)}`;
    let one = index.seen.get(key);
    if (one === undefined) {
      const curve = market.interruption(pool, bid);
      const drivers = market.drivers?.(pool, bid) ?? null;
      one = {
        pool: id,
        bid,
        pWithinHour: Number(pInterruptedWithin(curve, HOUR).toFixed(4)),
        reason: curve.reason,
        drivers,
      };
      index.seen.set(key, one);
    }
    seen.set(key, one);
  }
  return seen.size === 0 ? {} : { forecast: [...seen.values()] };
}

interface Said {
  readonly waiting: Waiting[];
  readonly placed: Placed[];
}

/** Explains one group: some tasks start, some wait for a coming instance, the others wait. */
function explainGroup(d: Deliberation, group: PendingGroup, index: Index, out: Said): void {
  const onPlaces = explainPlaced(d, group, index, out) + explainRoom(d, group, index, out);
  explainBought(d, group, { index, accounted: onPlaces }, out);
  explainWaits(d, group, index, out);
}

/** Tasks that have a place on an instance. Returns how many. */
function explainPlaced(d: Deliberation, group: PendingGroup, index: Index, out: Said): number {
  let accounted = 0;
  for (const [on, tasks] of index.placedOn.get(group.id) ?? []) {
    accounted += tasks;
    const view = d.snapshot.instances.get(instanceId(on));
    if (view === undefined) continue;
    if (view.instance.state === 'ready') {
      out.placed.push({
        stage: group.stage.name,
        tasks,
        pool: view.pool.id,
        why: `starts now on ${on}, which has room`,
      });
    } else {
      out.waiting.push({
        stage: group.stage.name,
        tasks,
        why: 'starting-instance',
        detail: `instance ${on} in ${view.pool.id} was bought for it and is starting`,
        wouldChange: 'nothing: it starts when the instance is up',
        expectedStartMs: view.instance.readyMs,
      });
    }
  }
  return accounted;
}

/** Tasks whose room is promised, or that wait for a place of other tasks. Returns how many. */
function explainRoom(d: Deliberation, group: PendingGroup, index: Index, out: Said): number {
  let accounted = 0;
  const waitsForRoom = (tasks: number, why: Pick<Waiting, 'detail' | 'wouldChange' | 'expectedStartMs'>): void => {
    if (tasks === 0) return;
    accounted += tasks;
    out.waiting.push({ stage: group.stage.name, tasks, why: 'capacity', ...why });
  };
  for (const [on, tasks] of index.reservedOn.get(group.id) ?? []) {
    waitsForRoom(tasks, {
      detail: `room is being made for it on ${on}, where other work stops first`,
      wouldChange: 'nothing: it starts when that work has saved and stopped',
      expectedStartMs: d.snapshot.nowMs,
    });
  }
  waitsForRoom(d.forSlotReuse.get(group.id) ?? 0, {
    detail: 'it waits to reuse a slot of other short tasks, which run, start or are bought',
    wouldChange: 'nothing: it starts when one of these slots comes free',
    expectedStartMs: null,
  });
  waitsForRoom(d.untold.get(group.id) ?? 0, {
    detail:
      'nothing is known of how long it takes: some such tasks run first, and places for the others are bought when one of them has ended or has run longer than an instance takes to start',
    wouldChange: '`expectedRuntime` in the job file, or the end of a run of this program',
    expectedStartMs: null,
  });
  return accounted;
}

/** Planned starts without placement: their instances are bought, or cannot be. `accounted`: those with a slot. */
function explainBought(
  d: Deliberation,
  group: PendingGroup,
  of: { readonly index: Index; readonly accounted: number },
  out: Said,
): void {
  const { index } = of;
  let { accounted } = of;
  for (const s of index.starts.get(group.id) ?? []) {
    let tasks = Math.max(0, s.count - accounted);
    accounted = Math.max(0, accounted - s.count);
    const heldUp = d.heldUp.get(group.job);
    const detail = d.short.get(group.job)?.detail ?? heldUp;
    const unpaid = detail === undefined ? 0 : Math.max(0, tasks - (index.boughtTasks.get(group.id) ?? 0));
    if (detail !== undefined && unpaid > 0) {
      tasks -= unpaid;
      out.waiting.push({
        stage: group.stage.name,
        tasks: unpaid,
        why: 'budget',
        detail,
        wouldChange:
          detail === heldUp
            ? 'the end of that day or month (UTC), or a higher maxUsdPerDay or maxUsdPerMonth'
            : whatWouldChange('budget', d.snapshot.limits),
        expectedStartMs: null,
      });
    }
    if (tasks === 0) continue;
    const unbought = d.unbought.get(group.id);
    const bought = d.purchases.length > 0 && unbought === undefined;
    const why = unbought === undefined ? 'capacity' : 'placement';
    out.waiting.push(
      bought
        ? {
            stage: group.stage.name,
            tasks,
            why: 'starting-instance',
            detail: `capacity is being bought: ${s.reason}`,
            wouldChange: 'nothing: it starts when the instance is up',
            expectedStartMs: plus(d.snapshot.nowMs, s.option.offer.startDelayS),
          }
        : {
            stage: group.stage.name,
            tasks,
            why,
            detail:
              unbought ?? `no room and nothing could be bought within the limit of ${d.snapshot.limits.vcpus} vCPUs`,
            wouldChange: whatWouldChange(why, d.snapshot.limits),
            expectedStartMs: null,
          },
    );
  }
}

/** Tasks that start later in the window, and tasks without a start in it. */
function explainWaits(d: Deliberation, group: PendingGroup, index: Index, out: Said): void {
  const { limits } = d.snapshot;
  const deferred = index.deferred.get(group.id) ?? [];
  const wait = index.waits.get(group.id);
  for (const { option, count, reason } of deferred) {
    out.waiting.push({
      stage: group.stage.name,
      tasks: count,
      why: wait?.why ?? 'cheaper-later',
      detail: wait?.detail ?? reason,
      wouldChange: wait === undefined ? whatWouldChange('cheaper-later', limits) : whatEndsWait(wait, limits),
      expectedStartMs: option.startMs,
    });
  }
  // Tasks without a start in the window.
  const rest = (wait?.count ?? 0) - deferred.reduce((n, x) => n + x.count, 0);
  if (wait !== undefined && rest > 0) {
    out.waiting.push({
      stage: group.stage.name,
      tasks: rest,
      why: wait.why,
      detail: wait.detail,
      wouldChange: whatEndsWait(wait, limits),
      expectedStartMs: expectedStart(d, group.id, index),
    });
  }
}

/** Null if a group waits for anything but room, or starts beyond the prediction. */
function expectedStart(d: Deliberation, group: GroupId, index: Index): EpochMs | null {
  const inS = index.startsInS.get(group);
  return inS === undefined ? null : plus(d.snapshot.nowMs, seconds(inS));
}
