import { invariant, unreachable } from '../../kernel/errors.ts';
import { effectKey, type EffectKey, type InstanceId } from '../../kernel/ids.ts';
import { ZERO_S, between, lt, most, raw, seconds, usd, type EpochMs } from '../../kernel/units.ts';
import type { Instance, MarketCause } from '../../domain/instance.ts';
import type { Attempt, MoveUsd } from '../../domain/job.ts';
import {
  refusalText,
  type EarliestStart,
  type Effect,
  type EffectOutcome,
  type Plan,
  type RefusedWhy,
} from '../../domain/plan.ts';
import type { Learners } from '../../policy/learners.ts';
import type { EffectRecord } from '../../ports/store.ts';
import { DeploymentLimits } from '../money/deployment-limits.ts';
import { Teaching } from '../learn/teaching.ts';
import { holdJob } from '../observe/holding.ts';
import { endInstance, endOrHold, interruptAttempts, settleOrHold } from '../observe/observe.ts';
import { endBackOff, backOff, backOffQuota, type BackOffContext } from '../observe/back-off.ts';
import { closeReservation, reserve, takeReservation } from '../state/reservations.ts';
import type { WorkingState } from '../state/working-state.ts';
import { rateText } from '../../domain/pool.ts';

/**
 * Writes a plan into the state: every effect as an intent without outcome, with its consequences. All of it is
 * committed in one piece before any effect, so that intents survive a crash and are performed under the same keys.
 */
export function recordIntents(state: WorkingState, plan: Plan): readonly EffectRecord[] {
  const stops = stopsOfLost(state);
  const whole = stops.length === 0 ? plan : { ...plan, effects: [...plan.effects, ...stops] };
  state.putPlan(whole);
  DeploymentLimits.record(state, whole);
  for (const refusal of plan.refusedPolicies ?? []) {
    if (refusal.isNew) state.event('policy-refused', plan.atMs, { text: refusalText(refusal), data: { ...refusal } });
  }
  for (const earliest of plan.earliest ?? []) putEarliest(state, earliest);
  return whole.effects.map((effect) => recordIntent(state, effect, whole));
}

/** Leaves finished jobs and tasks that do not wait unchanged. */
function putEarliest(state: WorkingState, { job, stage, index, notBeforeMs }: EarliestStart): void {
  if (state.jobs.get(job)?.stages.some((s) => s.name === stage) !== true) return;
  if (index === undefined) {
    state.putEarliest({ job, stage }, notBeforeMs);
    return;
  }
  const task = state.triedTask({ job, stage, index });
  if (task?.state !== 'waiting') return;
  const isBackingOff = task.failures > 0 && task.notBeforeMs !== null;
  const untilMs = isBackingOff ? most(task.notBeforeMs, notBeforeMs ?? task.notBeforeMs) : notBeforeMs;
  state.updateTask({ ...task, notBeforeMs: untilMs });
}

/**
 * Stops of attempts that cannot succeed any more, one request each. They need no judgement, so they are part of every
 * plan. An attempt of a lost claim keeps what it can: its task goes on from there.
 */
export const stopsOfLost = (state: WorkingState): readonly Effect[] =>
  state.lostAttempts().map(({ id, supersededBy, claimLostTo }) => {
    const stop = { kind: 'stop', attempt: id } as const;
    return supersededBy === undefined
      ? {
          ...stop,
          key: effectKey(`claim-lost/stop/${id}`),
          why: 'preempted',
          reason: `${claimLostTo} claimed the outputs and ended without success`,
        }
      : {
          ...stop,
          key: effectKey(`superseded/stop/${id}`),
          why: 'superseded',
          reason: `${supersededBy} succeeded first`,
        };
  });

/** One effect of a plan that is recorded already or together with it. */
export function recordIntent(
  state: WorkingState,
  effect: Effect,
  { id: plan, atMs }: Pick<Plan, 'id' | 'atMs'>,
): EffectRecord {
  const record: EffectRecord = { key: effect.key, plan, atMs, effect, outcome: null };
  state.putEffect(record);
  intend(state, effect, atMs);
  return record;
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
        ...(effect.expectedS === undefined ? {} : { expectedS: effect.expectedS }),
        ...(effect.boughtFor === undefined ? {} : { boughtFor: effect.boughtFor }),
        ...(effect.forecast === undefined ? {} : { forecast: effect.forecast }),
      });
      state.event('instance-requested', at, {
        text: `buying ${effect.pool}${effect.bid === 'uncapped' ? '' : ` at no more than ${rateText(effect.bid)} USD/h`}: ${effect.reason}`,
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
      const move = effect.to === undefined ? {} : leave(state, { ...effect, to: effect.to, attempt }, at);
      state.putAttempt({ ...attempt, state: 'stopping', reason: effect.reason, ...move });
      const told = effect.to === undefined ? 'is asked to stop' : `moves from ${attempt.instance} to ${effect.to}`;
      state.event('attempt-stopping', at, {
        job: attempt.job,
        text: `${attempt.stage}[${attempt.index}] ${told}: ${effect.reason}`,
        data: { attempt: attempt.id, ...(effect.to === undefined ? {} : { to: effect.to }) },
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

/**
 * An attempt that stops for a move: its target keeps room from now on. Attempts of its task that stop beside it have
 * the same target, and are no moves of their own.
 */
function leave(
  state: WorkingState,
  { attempt, to, usd: expected }: MoveOrder,
  sinceMs: EpochMs,
): Pick<Attempt, 'goesTo' | 'leaving'> {
  const { id, job, resources } = attempt;
  const { attempts } = state.triedTask(attempt) ?? { attempts: attempt.number };
  if (state.rivalsOf(attempt, attempts).some((r) => r.leaving !== undefined)) return { goesTo: to };
  // A gang's task that restarts in place has its own room until it has stopped.
  if (to !== attempt.instance) reserve(state, to, { attempt: id, job, resources, sinceMs });
  return { goesTo: to, leaving: { sinceMs, ...expected } };
}

interface MoveOrder {
  readonly attempt: Attempt;
  readonly to: InstanceId;
  readonly usd?: MoveUsd;
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
  // A copy of a task that does not run any more is its original.
  const isCopy = effect.role === 'copy' && state.triedTask(effect.task)?.state === 'running';
  const role = effect.role === 'copy' && !isCopy ? 'original' : (effect.role ?? 'original');
  const { goesTo, departed } = state.triedTask(effect.task) ?? {};
  const task = state.beginTask(effect.task, role === 'pilot');
  const from = goesTo === undefined || isCopy ? undefined : departed?.attempt;
  const arrival = from === undefined || goesTo !== effect.instance ? {} : takeReservation(state, { on: goesTo, from });
  if (goesTo !== undefined && from !== undefined && goesTo !== effect.instance)
    closeReservation(state, { on: goesTo, from }, at);
  const attempt: Attempt = {
    job: job.id,
    stage: stage.name,
    index: effect.task.index,
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
    ...(role === 'original' ? {} : { role }),
    ...(isCopy ? roundOf(state, effect, task.attempts) : {}),
    ...arrival,
    resumedFromS: isCopy ? ZERO_S : task.keptS,
    ...(effect.slowdown === undefined ? {} : { slowdown: effect.slowdown }),
    ...(effect.beside === undefined ? {} : { beside: effect.beside }),
    keptS: ZERO_S,
    usage: null,
  };
  state.putAttempt(attempt);
  const begun = invariant(state.jobs.get(job.id), 'the job is still active');
  if (begun.state === 'pending') state.putJob({ ...begun, state: 'running', startedMs: begun.startedMs ?? at });
  state.event('attempt-starting', at, {
    job: job.id,
    text: `${stage.name}[${attempt.index}] starts on ${effect.instance}${isCopy ? ' as a copy' : task.attempts > 1 ? ` (${arrival.movedFrom === undefined ? '' : `it moved from ${departed?.instance}; `}attempt ${task.attempts}, ${Math.round(raw(task.keptS))} s of work kept)` : ''}`,
    data: {
      attempt: attempt.id,
      instance: effect.instance,
      ...(arrival.movedFrom === undefined ? {} : { movedFrom: arrival.movedFrom }),
    },
  });
}

/** Round of a copy: that of the first live attempt, and whether its claim is lost. */
function roundOf(
  state: WorkingState,
  { attempt: id, task }: Extract<Effect, { kind: 'start' }>,
  attempts: number,
): Pick<Attempt, 'round' | 'claimLostTo'> {
  const [first] = state.besides({ ...task, id }, attempts);
  const round = first?.round ?? first?.number ?? attempts;
  return first?.claimLostTo === undefined ? { round } : { round, claimLostTo: first.claimLostTo };
}

/**
 * Time after which a launch without a known outcome is given up, because its tasks would wait for ever. If it happened
 * after all, the instance is released. Far more than an instance takes to be up: 234 s at most in the measured delays
 * of 21 types (colocation-interference, ec2_config.json).
 */
export const ANSWER_PATIENCE_S = seconds(600);

/**
 * Folds outcomes into the state. `done` and `refused` close the effect; `failed` leaves it open, to be repeated under
 * the same key in the next cycle. Refusals are data: the pool goes into back-off, the task waits again.
 */
export function confirm(
  state: WorkingState,
  outcomes: ReadonlyMap<EffectKey, EffectOutcome>,
  given: BackOffContext & { readonly records: readonly EffectRecord[]; readonly learners: Learners },
): void {
  const context: Confirming = { ...given, teaching: new Teaching(given.learners) };
  for (const record of given.records) {
    const outcome = outcomes.get(record.key);
    if (outcome === undefined) continue;
    if (outcome.status === 'failed') confirmFailed(state, record, outcome, context);
    else confirmOne(state, record, outcome, context);
  }
  context.teaching.keep(state, context.at);
}

interface Confirming extends BackOffContext {
  readonly teaching: Teaching;
}

function confirmOne(
  state: WorkingState,
  record: EffectRecord,
  outcome: Exclude<EffectOutcome, { status: 'failed' }>,
  context: Confirming,
): void {
  state.putEffect({ ...record, outcome });
  const { effect } = record;
  if (effect.kind === 'launch') {
    if (outcome.status === 'refused') refuseLaunch(state, effect, outcome, context);
    else endBackOff(state, effect.pool, context);
  } else if (outcome.status === 'refused' && effect.kind === 'start') {
    const attempt = state.attempts.get(effect.attempt);
    if (attempt !== undefined && attempt.state !== 'ended') {
      endOrHold(state, attempt, {
        at: context.at,
        outcome: 'interrupted',
        exitCode: null,
        exitSignal: null,
        keptS: ZERO_S,
        usage: null,
        reason: `did not start: ${outcome.detail}`,
      });
    }
    if (outcome.why === 'job-fault') holdJob(state, { job: effect.task.job, reason: outcome.detail }, context.at);
  } else if (outcome.status === 'refused' && effect.kind === 'release') {
    const instance = state.instances.get(effect.instance);
    if (instance?.state === 'releasing' && instance.launchedMs === null)
      endWithoutCost(state, instance, effect.reason, context.at);
  }
}

/**
 * A failed launch. If its instance has been observed, the launch is done. Else, after ANSWER_PATIENCE_S, its tasks wait
 * again and its pool goes into back-off. The instance may exist all the same, so it is released; an answer that it does
 * not exist ends it.
 */
function confirmFailed(
  state: WorkingState,
  record: EffectRecord,
  { detail }: Extract<EffectOutcome, { status: 'failed' }>,
  context: Confirming,
): void {
  const { effect, atMs, plan } = record;
  if (effect.kind !== 'launch') return;
  const instance = state.instances.get(effect.instance);
  if (instance === undefined || instance.state !== 'requested') {
    confirmOne(state, record, { status: 'done' }, context);
    return;
  }
  if (lt(between(atMs, context.at), ANSWER_PATIENCE_S)) return;
  const said = `no answer in ${raw(ANSWER_PATIENCE_S) / 60} minutes: ${detail}`;
  state.putEffect({ ...record, outcome: { status: 'refused', why: 'no-answer', detail: said } });
  interruptAttempts(state, instance.id, { at: context.at, reason: `its instance was not launched: ${said}` });
  state.putInstance({ ...instance, state: 'releasing' });
  const key = effectKey(`release/${instance.id}`);
  const release: Effect = { kind: 'release', key, instance: instance.id, reason: said };
  state.putEffect({ key, plan, atMs: context.at, effect: release, outcome: null });
  backOff(state, effect.pool, said, context);
}

function refuseLaunch(
  state: WorkingState,
  effect: Extract<Effect, { kind: 'launch' }>,
  { why, detail }: Extract<EffectOutcome, { status: 'refused' }>,
  context: Confirming,
): void {
  const instance = state.instances.get(effect.instance);
  if (instance !== undefined && instance.state !== 'ended') {
    const marketCause = REFUSED_BY_MARKET[why];
    const refused = marketCause === undefined ? instance : { ...instance, marketCause };
    endWithoutCost(state, refused, detail, context.at);
  }
  context.teaching.tell({ kind: 'launch-refused', atMs: context.at, poolId: effect.pool, why });
  if (why === 'quota') backOffQuota(state, effect.pool, detail, context);
  else backOff(state, effect.pool, detail, context);
}

const REFUSED_BY_MARKET: Partial<Record<RefusedWhy, MarketCause>> = {
  'insufficient-capacity': 'capacity',
  'bid-below-price': 'price',
};

/** Ends an instance that there never was. */
function endWithoutCost(state: WorkingState, instance: Instance, detail: string, at: EpochMs): void {
  endInstance(state, instance, { at, cause: 'failed', detail });
  state.putInstance({ ...invariant(state.instances.get(instance.id), 'just put'), costUsd: usd(0) });
}

/** Decisions in a row that follow at once because capacity was refused: past them the period is waited for. */
export const MAX_HURRIED = 5;

/** True if capacity in the plan was refused: its pool is in back-off now, so the next plan is another one. */
export const capacityRefused = (
  outcomes: ReadonlyMap<EffectKey, EffectOutcome>,
  records: readonly EffectRecord[],
): boolean => records.some((r) => r.effect.kind === 'launch' && outcomes.get(r.key)?.status === 'refused');

/** Jobs that a cancel request or a spent budget ends and that run nothing any more. */
export function settleAll(state: WorkingState, at: EpochMs): void {
  for (const job of state.activeJobs()) settleOrHold(state, job.id, at);
}
