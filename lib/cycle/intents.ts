import { invariant, unreachable } from '../kernel/errors.ts';
import type { EffectKey, PoolId } from '../kernel/ids.ts';
import { plus, raw, seconds, usd, ZERO_S, type EpochMs } from '../kernel/units.ts';
import type { Attempt } from '../domain/job.ts';
import type { Effect, EffectOutcome, Plan } from '../domain/plan.ts';
import type { EffectRecord, Store } from '../ports/store.ts';
import { endAttempt, endInstance, settleJob } from './observe.ts';
import type { WorkingState } from './working-state.ts';

/**
 * A pool that had no capacity rests this long, then it is tried again. Longer rests after more refusals would miss most of
 * what there is: the median stretch of spot capacity in the eight series of 2022 is 30 minutes (spot-availability-2022-2023,
 * availability/1-node), and asking is free.
 */
const REST_S = 300;

/**
 * Writes a plan into the state: every effect as an intent without outcome, and what it will bring about. Committed in
 * one piece before anything is done, so that after a crash what was intended is known and is done under the same keys.
 */
export function recordIntents(state: WorkingState, plan: Plan): readonly EffectRecord[] {
  state.putPlan(plan);
  return plan.effects.map((effect) => {
    const record: EffectRecord = { key: effect.key, plan: plan.id, atMs: plan.atMs, effect, outcome: null };
    state.putEffect(record);
    intend(state, effect, plan.atMs);
    return record;
  });
}

function intend(state: WorkingState, effect: Effect, at: EpochMs): void {
  switch (effect.kind) {
    case 'launch':
      state.putInstance({
        id: effect.instance,
        allocation: effect.allocation,
        pool: effect.pool,
        bid: effect.bid,
        state: 'requested',
        requestedMs: at,
        launchedMs: null,
        readyMs: null,
        warnedMs: null,
        goneMs: null,
        rebalance: false,
        endedMs: null,
        endCause: null,
        costUsd: null,
      });
      state.event('instance-requested', at, {
        text: `buying ${effect.pool}${effect.bid === 'uncapped' ? '' : ` at no more than ${raw(effect.bid).toFixed(4)} USD/h`}: ${effect.reason}`,
        data: { instance: effect.instance, pool: effect.pool },
      });
      return;
    case 'start':
      beginAttempt(state, effect, at);
      return;
    case 'stop': {
      const attempt = invariant(
        state.attempts.get(effect.attempt),
        `the plan stops attempt ${effect.attempt}, which does not run`,
      );
      state.putAttempt({ ...attempt, state: 'stopping', reason: effect.reason });
      state.event('attempt-stopping', at, {
        job: attempt.job,
        text: `${attempt.stage}[${attempt.index}] is asked to stop: ${effect.reason}`,
        data: { attempt: attempt.id },
      });
      return;
    }
    case 'release': {
      const instance = invariant(
        state.instances.get(effect.instance),
        `the plan releases unknown instance ${effect.instance}`,
      );
      state.putInstance({ ...instance, state: 'releasing' });
      return;
    }
    default:
      unreachable(effect, 'effect');
  }
}

function beginAttempt(state: WorkingState, effect: Extract<Effect, { kind: 'start' }>, at: EpochMs): void {
  const job = invariant(
    state.jobs.get(effect.task.job),
    `the plan starts a task of job ${effect.task.job}, which is not active`,
  );
  const stage = invariant(
    job.spec.stages.find((s) => s.name === effect.task.stage),
    `job ${job.id} has no stage ${effect.task.stage}`,
  );
  const task = state.beginTask(effect.task);
  const attempt: Attempt = {
    ...effect.task,
    id: effect.attempt,
    number: task.attempts,
    instance: effect.instance,
    resources: stage.resources,
    state: 'starting',
    placedMs: at,
    startedMs: null,
    endedMs: null,
    outcome: null,
    exitCode: null,
    exitSignal: null,
    reason: effect.reason,
    resumedFromS: task.keptS,
    keptS: ZERO_S,
    usage: null,
  };
  state.putAttempt(attempt);
  const begun = invariant(state.jobs.get(job.id), 'the job is still active');
  if (begun.state === 'pending') state.putJob({ ...begun, state: 'running', startedMs: begun.startedMs ?? at });
  state.event('attempt-starting', at, {
    job: job.id,
    text: `${stage.name}[${attempt.index}] starts on ${effect.instance}${task.attempts > 1 ? ` (attempt ${task.attempts}, ${Math.round(raw(task.keptS))} s of work kept)` : ''}`,
    data: { attempt: attempt.id, instance: effect.instance },
  });
}

/** How long a pool rests after refusals, kept across cycles and restarts. */
export interface PoolRest {
  readonly untilMs: number;
  readonly refusals: number;
}
export type PoolRests = Map<PoolId, PoolRest>;
const REST_PREFIX = 'rest/';

/** Which pools rest, as stored. */
export async function storedRests(store: Pick<Store, 'memory'>): Promise<PoolRests> {
  const rests: PoolRests = new Map();
  for (const [key, value] of await store.memory(REST_PREFIX)) {
    if (value !== '') rests.set(key.slice(REST_PREFIX.length) as PoolId, JSON.parse(value) as PoolRest);
  }
  return rests;
}

/**
 * Folds outcomes into the state. `done` and `refused` close the effect; `failed` leaves it open and it is done again,
 * under the same key, in the next cycle. Refusals are data: the pool rests, the task waits again.
 */
export function confirm(
  state: WorkingState,
  outcomes: ReadonlyMap<EffectKey, EffectOutcome>,
  context: { readonly records: readonly EffectRecord[]; readonly at: EpochMs; readonly rests: PoolRests },
): void {
  for (const record of context.records) {
    const outcome = outcomes.get(record.key);
    if (outcome === undefined || outcome.status === 'failed') continue;
    state.putEffect({ ...record, outcome });
    const { effect } = record;
    if (effect.kind === 'launch') confirmLaunch(state, effect, outcome, context);
    else if (outcome.status === 'refused' && effect.kind === 'start') {
      const attempt = state.attempts.get(effect.attempt);
      if (attempt !== undefined && attempt.state !== 'ended') {
        endAttempt(state, attempt, {
          at: context.at,
          outcome: 'interrupted',
          exitCode: null,
          exitSignal: null,
          keptS: ZERO_S,
          usage: null,
          reason: `did not start: ${outcome.detail}`,
        });
      }
    }
  }
}

function confirmLaunch(
  state: WorkingState,
  effect: Extract<Effect, { kind: 'launch' }>,
  outcome: EffectOutcome,
  context: { readonly at: EpochMs; readonly rests: PoolRests },
): void {
  if (outcome.status === 'done') {
    if (context.rests.delete(effect.pool)) state.putMemory(`${REST_PREFIX}${effect.pool}`, '');
    return;
  }
  if (outcome.status !== 'refused') return;
  const instance = state.instances.get(effect.instance);
  if (instance !== undefined && instance.state !== 'ended') {
    endInstance(state, instance, { at: context.at, cause: 'failed', detail: outcome.detail });
    state.putInstance({ ...invariant(state.instances.get(effect.instance), 'just put'), costUsd: usd(0) });
  }
  const refusals = (context.rests.get(effect.pool)?.refusals ?? 0) + 1;
  const rest: PoolRest = { untilMs: raw(plus(context.at, seconds(REST_S))), refusals };
  context.rests.set(effect.pool, rest);
  state.putMemory(`${REST_PREFIX}${effect.pool}`, JSON.stringify(rest));
}

/** Decisions in a row that follow at once because capacity was refused: past them the period is waited for. */
export const MAX_HURRIED = 5;

/** Whether capacity that the plan counted on was refused: its pool rests from now on, so the next plan is another one. */
export const capacityRefused = (
  outcomes: ReadonlyMap<EffectKey, EffectOutcome>,
  records: readonly EffectRecord[],
): boolean => records.some((r) => r.effect.kind === 'launch' && outcomes.get(r.key)?.status === 'refused');

/** Jobs that a cancel request or a spent budget ends and that run nothing any more. */
export function settleAll(state: WorkingState, at: EpochMs): void {
  for (const job of state.activeJobs()) settleJob(state, job.id, at);
}
