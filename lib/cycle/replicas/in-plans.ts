/**
 * Replicas of services in the decision of any preset. A replica has no end and no deadline of its own, so no policy can
 * estimate, value or move it as it does a job. Here the stages are given what they need to know instead:
 * - A replica runs for another hour, however long it has run (no memory).
 * - It is worth a thousand times a best-effort job of that length, as work with a deadline is (JamaisVu, section
 *   4.1.2): so it comes before best-effort work and takes its place. An hour without it costs twenty times such a job:
 *   it never waits to save money, and yet a lower price is worth a small risk that it is lost, for the next one begins
 *   with the market's warning, while it still serves.
 * - What the market takes costs the time until the next one serves, which its footprint has weighed: for its place the
 *   risk of those few minutes counts, not that of an hour. Else a plan would leave what the footprint has bought.
 * - It never waits for a slot of other tasks, and no plan moves, copies or preempts it: its controller begins the next
 *   one before it ends this one.
 */
import { add, plus, raw, seconds, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import { certain } from '../../domain/distribution.ts';
import { pInterruptedWithin, type InterruptionCurve, type RuntimeForecast } from '../../domain/forecast.ts';
import { forecastFor, type MarketForecast, type StageForecasts } from '../../domain/forecasts.ts';
import type { JobId } from '../../kernel/ids.ts';
import type { Job } from '../../domain/job.ts';
import { REPLICA_AHEAD_S } from '../../domain/service.ts';
import type { Worth } from '../../domain/plan.ts';
import type { RunningTask, Snapshot } from '../../domain/snapshot.ts';
import { worthAt } from '../../domain/utility.ts';
import { invariant } from '../../kernel/errors.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { footprintNamed, UNTIL_REPLACED_S } from '../../stages/services/footprints.ts';
import type { Acquiring } from './demand.ts';
import { keptApart } from './apart.ts';
import { scaleReplicas } from './footprint.ts';
import { givingWay } from './give-way.ts';
import { replicasAnywhere } from './starts.ts';
import type { AppraisePolicy, MovePolicy, QueuePolicy, Stages, ValuePolicy } from '../../policy/contracts.ts';
import type { DecideInput } from '../decide/deliberation.ts';

/** Worth over that of a best-effort job of the same size (JamaisVu, section 4.1.2). */
const FACTOR = 1000;
/** Loss of an hour's delay over that worth. Of one minute: a third of it, several times what an hour costs. */
const LOSS_PER_HOUR = 20;

/** How the deployment buys for services. Throws `internal` for a name that was not checked. */
export const acquiringBy = (
  { serviceFootprint }: SchedulerConfig,
  { buys }: Pick<Stages<unknown>, 'buys'>,
): Acquiring => ({
  footprint: invariant(footprintNamed(serviceFootprint), `there is no footprint policy ${serviceFootprint}`),
  ...(buys && { buys }),
});

const isReplica = ({ class: kind }: Pick<RunningTask, 'class'>): boolean => kind === 'service';

/** The same input where there is no replica. O(jobs). */
export function withReplicas<S>(input: DecideInput<S>): DecideInput<S> {
  const { forecasts, stages } = input;
  if (!hasReplicas(input.snapshot)) return input;
  const snapshot = keptApart(input.snapshot, stages.buys);
  return {
    ...input,
    snapshot,
    forecasts: { ...forecasts, runtime: replicaForecasts(forecasts.runtime, snapshot) },
    stages: {
      ...stages,
      value: valueOfReplicas(stages.value),
      appraise: appraiseReplicas(stages.appraise),
      move: withoutReplicas(stages.move),
      plan: givingWay(stages.plan),
      order: replicasAnywhere(stages.order),
      queue: replicasDoNotWait(stages.queue),
      scale: scaleReplicas(stages.scale, acquiringBy(input.config, stages)),
    },
  };
}

function hasReplicas({ jobs }: Snapshot): boolean {
  for (const { spec } of jobs.values()) if (spec.class === 'service') return true;
  return false;
}

/** O(running tasks) once, then O(1) for each question. */
function replicaForecasts(runtime: StageForecasts, { jobs, running, nowMs }: Snapshot): StageForecasts {
  const ages = new Map<JobId, number>();
  for (const r of running) if (isReplica(r)) ages.set(r.attempt.job, ageS(r, nowMs));
  const isOf = (job: Job | undefined): boolean => job?.spec.class === 'service';
  const replica = (job: JobId): RuntimeForecast => ({
    runtime: certain(add(seconds(ages.get(job) ?? 0), REPLICA_AHEAD_S)),
    basis: 'hint',
    reason: 'a replica of a service: it has no end of its own',
  });
  const jobOf = (key: string): JobId => key.slice(0, key.indexOf('/')) as JobId;
  const of = (job: JobId): RuntimeForecast | null => (isOf(jobs.get(job)) ? replica(job) : null);
  const get: StageForecasts['get'] = (key) => of(jobOf(key)) ?? runtime.get(key);
  return {
    get,
    ofStage: (job, stage) => of(job) ?? forecastFor(runtime, { attempt: { job, stage: stage.name }, stage }),
    *[Symbol.iterator]() {
      for (const [key, forecast] of runtime) yield [key, of(jobOf(key)) ?? forecast] as [string, RuntimeForecast];
    },
  };
}

const ageS = ({ attempt }: RunningTask, nowMs: EpochMs): number =>
  raw(attempt.resumedFromS) + (attempt.startedMs === null ? 0 : Math.max(0, secondsBetween(attempt.startedMs, nowMs)));

const valueOfReplicas =
  (value: ValuePolicy): ValuePolicy =>
  (context) => {
    const { nowMs, groups } = context.snapshot;
    const worths = value(context);
    const replicas = groups.flatMap((g): (readonly [typeof g.id, Worth])[] => {
      const worth = isReplica(g) ? worths.groups.get(g.id) : undefined;
      return worth === undefined ? [] : [[g.id, replicaWorth(worth, nowMs)]];
    });
    return {
      ...worths,
      groups: new Map([...worths.groups, ...replicas]),
      ofRunning: (r) => {
        const worth = worths.ofRunning(r);
        return worth === undefined || !isReplica(r) ? worth : replicaWorth(worth, nowMs);
      },
    };
  };

function replicaWorth(worth: Worth, nowMs: EpochMs): Worth {
  const alikeUsd = worthAt(worth.curve, nowMs);
  const usd = FACTOR * alikeUsd;
  const inTimeMs = plus(nowMs, REPLICA_AHEAD_S);
  return {
    curve: {
      points: [
        { atMs: inTimeMs, usd },
        { atMs: plus(inTimeMs, REPLICA_AHEAD_S), usd: usd - LOSS_PER_HOUR * alikeUsd },
      ],
    },
    taskDeadlineMs: null,
    latestSafeStartMs: null,
    reason: `a replica that its service needs now: worth ${FACTOR} times a best-effort job of its size`,
  };
}

/** Replicas are appraised apart from the rest. O(groups) beside the policy's own work. */
const appraiseReplicas =
  (appraise: AppraisePolicy): AppraisePolicy =>
  (context) => {
    const { snapshot, forecasts } = context;
    const replicas = snapshot.groups.filter(isReplica);
    if (replicas.length === 0) return appraise(context);
    const rest = snapshot.groups.filter((g) => !isReplica(g));
    const market = untilReplaced(forecasts.market);
    return new Map([
      ...appraise({ ...context, snapshot: { ...snapshot, groups: rest } }),
      ...appraise({ ...context, snapshot: { ...snapshot, groups: replicas }, forecasts: { ...forecasts, market } }),
    ]);
  };

/** The market, with risks of the time until the next replica serves. */
const untilReplaced = (market: MarketForecast): MarketForecast => ({
  ...market,
  interruption: (pool, bid) => brief(market.interruption(pool, bid)),
});

function brief(curve: InterruptionCurve): InterruptionCurve {
  const most = pInterruptedWithin(curve, seconds(UNTIL_REPLACED_S));
  return { ...curve, pInterrupted: curve.pInterrupted.map((p) => Math.min(p, most)) };
}

const withoutReplicas = (move: MovePolicy): MovePolicy => ({
  ...move,
  propose: (context) => move.propose(context).filter((m) => !isReplica(m.running)),
  returning: (context) => move.returning(context).filter((r) => !isReplica(r)),
});

const replicasDoNotWait =
  (queue: QueuePolicy): QueuePolicy =>
  (input) => {
    const replicas = input.leftovers.filter((l) => isReplica(l.group));
    if (replicas.length === 0) return queue(input);
    const answer = queue({ ...input, leftovers: input.leftovers.filter((l) => !isReplica(l.group)) });
    return { ...answer, leftovers: [...replicas, ...answer.leftovers] };
  };
