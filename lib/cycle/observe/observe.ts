import { EbbError, invariant, unreachable, messageOf } from '../../kernel/errors.ts';
import type { AttemptId, InstanceId } from '../../kernel/ids.ts';
import {
  ZERO_S,
  add,
  between,
  gt,
  isPositive,
  least,
  most,
  plus,
  raw,
  seconds,
  secondsBetween,
  sub,
  type EpochMs,
  type Seconds,
} from '../../kernel/units.ts';
import type { EndCause, Instance } from '../../domain/instance.ts';
import { callerText } from '../../domain/caller.ts';
import {
  isEnding,
  type Attempt,
  type AttemptOutcome,
  type Departure,
  type Job,
  type OwnStops,
  type StageSpec,
  type Task,
} from '../../domain/job.ts';
import type { Observation } from '../../domain/observation.ts';
import { workDoneIn } from '../../domain/slowdown.ts';
import { EndedAttempt, type Ground } from '../learn/attempt-ended.ts';
import { holdJob } from './holding.ts';
import { closeReservation, reserve } from '../state/reservations.ts';
import type { WorkingState } from '../state/working-state.ts';

/**
 * First pause after a failure; doubles with each further one, up to MAX_BACKOFF_S (full jitter is needless: one
 * scheduler decides).
 */
const BACKOFF_S = 10;
const MAX_BACKOFF_S = 600;

/** Results of observing besides state: ends to learn from and instances whose bill is due. */
export interface Observed {
  /** Attempts that ended, those among them that went with their instance. */
  readonly ends: readonly EndedAttempt[];
  readonly ended: readonly InstanceId[];
  /** Attempts that ended while their instance stayed. */
  readonly left: readonly Left[];
  readonly cameUp: readonly InstanceId[];
  /** True for an instance that is about to go, or has gone. */
  readonly isLosing: boolean;
}

/** An attempt, as it was, and how it ended. */
export interface Left {
  readonly attempt: Attempt;
  readonly outcome: AttemptOutcome;
}

/**
 * Folds reports of the world into the state. An observation at or below its instance's cursor was applied before and is
 * skipped, so delivering again changes nothing.
 */
export function applyObservations(ground: Ground, observations: readonly Observation[]): Observed {
  const { state } = ground;
  const ends: EndedAttempt[] = [];
  const noteEnd = (a: Attempt, runtimeS: Seconds | null): void => {
    const end = endOf(a, runtimeS, ground);
    if (end !== null) ends.push(end);
  };
  const ended: InstanceId[] = [];
  const left: Left[] = [];
  const cameUp: InstanceId[] = [];
  let isLosing = false;
  const cursors = new Map<InstanceId, number>();
  for (const o of observations) {
    if (o.sequence <= (cursors.get(o.instance) ?? state.cursors.get(o.instance) ?? 0)) continue;
    cursors.set(o.instance, o.sequence);
    const instance = state.instances.get(o.instance);
    if (instance === undefined || instance.state === 'ended') continue;
    switch (o.kind) {
      case 'instance-launched':
        state.putInstance({
          ...instance,
          state: forward(instance, 'starting'),
          launchedMs: o.atMs,
          readyMs: o.readyMs,
        });
        break;
      case 'instance-ready':
        cameUp.push(instance.id);
        state.putInstance({ ...instance, state: forward(instance, 'ready'), readyMs: o.atMs });
        state.event('instance-ready', o.atMs, { text: `instance ${instance.id} in ${instance.pool} is ready` });
        break;
      case 'instance-warned':
        isLosing = true;
        state.putInstance({ ...instance, state: forward(instance, 'warned'), warnedMs: o.atMs, goneMs: o.goneMs });
        state.event('instance-warned', o.atMs, {
          text: `instance ${instance.id} in ${instance.pool} will be taken in ${Math.round(secondsBetween(o.atMs, o.goneMs))} s`,
          data: { instance: instance.id, pool: instance.pool },
        });
        break;
      case 'instance-rebalance':
        isLosing = true;
        state.putInstance({ ...instance, rebalance: true });
        break;
      case 'instance-ended':
        for (const a of endInstance(state, instance, { at: o.atMs, cause: o.cause, detail: o.detail })) {
          noteEnd(a, null);
        }
        ended.push(instance.id);
        isLosing = true;
        break;
      case 'attempt-started':
        onAttempt(state, o, (a) =>
          state.putAttempt({
            ...a,
            state: a.state === 'starting' ? 'running' : a.state,
            startedMs: o.atMs,
            ...(o.log === undefined ? {} : { log: o.log }),
          }),
        );
        break;
      case 'attempt-checkpointed':
        onAttempt(state, o, (a) => state.putAttempt({ ...a, keptS: o.keptS }));
        break;
      case 'attempt-ended':
        onAttempt(state, o, (a) => {
          const outcome = outcomeOf(a, o);
          left.push({ attempt: a, outcome });
          if (outcome === 'succeeded' && o.detail !== null) remark(state, a, o.detail);
          const runtimeS = endOrHold(state, a, {
            at: o.atMs,
            outcome,
            exitCode: o.exitCode,
            exitSignal: o.exitSignal,
            keptS: o.keptS,
            usage: o.usage,
            // The reason of a move says more than the signal that ended the attempt.
            reason: o.detail ?? (outcome === 'moved' ? a.reason : describeEnd(outcome, o.exitCode, o.exitSignal)),
            ...(o.publisher === undefined ? {} : { publisher: o.publisher }),
            ...(o.cannotClaim === undefined ? {} : { cannotClaim: o.cannotClaim }),
          });
          noteEnd(a, runtimeS);
        });
        break;
      default:
        unreachable(o, 'observation');
    }
  }
  for (const [instance, sequence] of cursors) state.putCursor(instance, sequence);
  return { ends, ended, left, cameUp, isLosing };
}

/** An end for learners. Null if the job or the stage is unknown. */
function endOf({ id, job: of, stage: name }: Attempt, runtimeS: Seconds | null, ground: Ground): EndedAttempt | null {
  const attempt = ground.state.attempts.get(id);
  const job = ground.state.jobs.get(of);
  const stage = job?.spec.stages.find((s) => s.name === name);
  if (attempt === undefined || job === undefined || stage === undefined) return null;
  return new EndedAttempt({ attempt, job, stage, runtimeS }, ground);
}

/** Longest reason of an attempt that is repeated as that of its job. */
const MOST_REASON = 500;
const NO_RETRIES = 'failed with no retries left';

/** A superseded attempt stays so however it ended, also by a later success. */
function outcomeOf(
  { supersededBy, leaving }: Attempt,
  { exitCode, stopped }: Extract<Observation, { kind: 'attempt-ended' }>,
): AttemptOutcome {
  if (supersededBy !== undefined || stopped === 'superseded') return 'superseded';
  if (exitCode === 0) return 'succeeded';
  return stopped === 'preempted' && leaving !== undefined ? 'moved' : (stopped ?? 'failed');
}

const ORDER = ['requested', 'starting', 'ready', 'warned', 'releasing', 'ended'] as const;
/** States only move forward, in whatever order reports arrive. */
const forward = (i: Instance, to: Instance['state']): Instance['state'] =>
  ORDER.indexOf(to) > ORDER.indexOf(i.state) ? to : i.state;

function onAttempt(
  state: WorkingState,
  o: Extract<Observation, { attempt: unknown }>,
  then: (a: Attempt) => void,
): void {
  const attempt = state.attempts.get(o.attempt);
  if (attempt !== undefined && attempt.state !== 'ended') then(attempt);
}

/** Ends an instance and interrupts its remaining attempts; returns these as they were. The caller settles the bill. */
export function endInstance(
  state: WorkingState,
  instance: Instance,
  end: { readonly at: EpochMs; readonly cause: EndCause; readonly detail: string },
): readonly Attempt[] {
  state.putInstance({ ...instance, state: 'ended', endedMs: end.at, endCause: end.cause });
  state.event(`instance-${end.cause}`, end.at, {
    text: `instance ${instance.id} in ${instance.pool} ended: ${end.detail}`,
    data: { instance: instance.id, pool: instance.pool, cause: end.cause },
  });
  return interruptAttempts(state, instance.id, { at: end.at, reason: `its instance ended: ${end.detail}` });
}

/** Ends the remaining attempts of an instance as interrupted; returns them as they were. */
export function interruptAttempts(
  state: WorkingState,
  instance: InstanceId,
  end: { readonly at: EpochMs; readonly reason: string },
): readonly Attempt[] {
  const running = state.attemptsOn(instance).filter((a) => a.state !== 'ended');
  for (const a of running) {
    endOrHold(state, a, {
      at: end.at,
      outcome: 'interrupted',
      exitCode: null,
      exitSignal: null,
      keptS: a.keptS,
      usage: a.usage,
      reason: end.reason,
    });
  }
  return running;
}

interface Ending {
  readonly at: EpochMs;
  readonly outcome: AttemptOutcome;
  readonly exitCode: number | null;
  readonly exitSignal: string | null;
  readonly keptS: Seconds;
  readonly usage: Attempt['usage'];
  readonly reason: string | null;
  /** Attempt that holds the claim which this one lost. Absent: none, or not known. */
  readonly publisher?: AttemptId;
  /** True for a copy whose image cannot claim outputs. */
  readonly cannotClaim?: true;
}

/** Most distinct remarks of a job: tasks of one stage mostly say the same. */
const MAX_REMARKS = 10;

/** Counts the remark of a successful task. Called once per task. */
function remark(state: WorkingState, { job: id, stage }: Attempt, text: string): void {
  const job = state.jobs.get(id);
  if (job === undefined) return;
  const remarks = job.remarks ?? [];
  const known = remarks.find((r) => r.stage === stage && r.text === text);
  if (known !== undefined) {
    state.putJob({ ...job, remarks: remarks.map((r) => (r === known ? { ...r, tasks: r.tasks + 1 } : r)) });
  } else if (remarks.length < MAX_REMARKS) {
    state.putJob({ ...job, remarks: [...remarks, { stage, text, tasks: 1 }] });
  }
}

/**
 * `endAttempt`, but a job with a faulty record is held instead of stopping the cycle: the attempt has ended all the
 * same. Its task waits for the job's release or cancellation, unless another attempt of it lives.
 */
export function endOrHold(state: WorkingState, attempt: Attempt, end: Ending): Seconds | null {
  try {
    return endAttempt(state, attempt, end);
  } catch (error) {
    const reason = `the end of its task ${attempt.stage}[${attempt.index}] cannot be recorded: ${messageOf(error)}`;
    const { job, stage, index, number: attempts } = attempt;
    const known = state.tasksOf(job).find((t) => t.stage === stage && t.index === index);
    const task = known ?? {
      job,
      stage,
      index,
      state: 'running',
      attempts,
      failures: 0,
      keptS: ZERO_S,
      notBeforeMs: null,
    };
    const goesOn = state.rivalsOf(attempt, task.attempts).length > 0;
    giveUpMove(state, attempt, end.at, task);
    if (attempt.supersededBy === undefined && task.state === 'running' && !goesOn) {
      state.moveTask(task, { ...task, state: 'waiting' });
    }
    holdJob(state, { job: attempt.job, reason }, end.at);
    return null;
  }
}

/** Ends an attempt and updates its task. Returns the task's whole running time on success. */
function endAttempt(state: WorkingState, attempt: Attempt, told: Ending): Seconds | null {
  const end = attempt.supersededBy === undefined ? told : supersededEnd(attempt.supersededBy, told);
  state.putAttempt({
    ...attempt,
    state: 'ended',
    endedMs: end.at,
    outcome: end.outcome,
    exitCode: end.exitCode,
    exitSignal: end.exitSignal,
    keptS: end.keptS,
    usage: end.usage ?? attempt.usage,
    reason: end.reason,
  });
  const isSuperseded = attempt.supersededBy !== undefined;
  // A superseded attempt's task is over, and perhaps let go.
  const of = isSuperseded ? null : { task: state.task(attempt), stage: specOf(state, attempt) };
  state.event(`attempt-${end.outcome}`, end.at, {
    job: attempt.job,
    text: `${attempt.stage}[${attempt.index}] ${end.outcome}${end.reason === null ? '' : `: ${end.reason}`}`,
    data: { attempt: attempt.id, instance: attempt.instance, keptS: raw(end.keptS) },
  });
  let runtimeS: Seconds | null = null;
  if (of === null) {
    state.countSuperseded(attempt, -1);
    giveUpMove(state, attempt, end.at);
  } else if (end.outcome === 'succeeded') runtimeS = succeed(state, { ...of, attempt, end });
  else endTry(state, { ...of, attempt, end });
  settleJob(state, attempt.job, end.at);
  return runtimeS;
}

const supersededEnd = (winner: Attempt['id'], end: Ending): Ending => ({
  ...end,
  outcome: 'superseded',
  reason: `${winner} succeeded first`,
});

interface EndedTry {
  readonly task: Task;
  readonly stage: StageSpec;
  readonly attempt: Attempt;
  readonly end: Ending;
}

/** The task has succeeded; its other attempts are superseded from now on. */
function succeed(state: WorkingState, { task, attempt, end }: EndedTry): Seconds {
  const runtimeS = add(attempt.resumedFromS, workDoneIn(attempt, end.keptS));
  giveUpMove(state, attempt, end.at, task);
  state.succeedTask(task, runtimeS);
  const rivals = state.rivalsOf(attempt, task.attempts);
  for (const rival of rivals) state.putAttempt({ ...rival, supersededBy: attempt.id });
  if (rivals.length > 0) state.countSuperseded(attempt, rivals.length);
  return runtimeS;
}

/**
 * An attempt has ended without success. Its task goes on if another attempt of it lives. Only a failure can fail the
 * task: the last attempt may be lost or stopped where an earlier one of its round has used up the retries.
 */
function endTry(state: WorkingState, of: EndedTry): void {
  const { task, stage, attempt, end } = of;
  if (end.cannotClaim === true) state.forbidCopies(attempt, end.reason ?? 'its image cannot claim outputs');
  const { claimed: _, ...after } = afterTry(of);
  const rivals = state.rivalsOf(attempt, task.attempts);
  if (rivals.length > 0) goOn(state, of, { after, rivals });
  else if (isFailure(end.outcome) && after.failures > stage.retries) {
    giveUpMove(state, attempt, end.at, task);
    state.moveTask(task, { ...after, state: 'failed', keptS: task.keptS, notBeforeMs: task.notBeforeMs });
    noteFailure(state, attempt, end.reason);
  } else {
    const { goesTo } = attempt;
    const isMove = after.state === 'waiting' && !isFailure(end.outcome) && goesTo !== undefined;
    if (isMove) state.moveTask(task, { ...after, goesTo, ...depart(state, of) });
    else {
      giveUpMove(state, attempt, end.at, task);
      state.moveTask(task, after);
    }
  }
}

/** Departure of a task whose attempts have stopped for a move. A restart in place keeps its own room from here on. */
function depart(state: WorkingState, { task, attempt, end }: EndedTry): Pick<Task, 'departed'> {
  const departed = departureOf(state, attempt) ?? task.departed;
  if (departed === undefined) return {};
  if (attempt.goesTo === attempt.instance) {
    const { job, resources } = attempt;
    reserve(state, attempt.instance, { attempt: departed.attempt, job, resources, sinceMs: end.at });
  }
  return { departed };
}

function departureOf(state: WorkingState, { leaving, id, instance, reason }: Attempt): Departure | undefined {
  const pool = state.instances.get(instance)?.pool;
  if (leaving === undefined || pool === undefined) return undefined;
  const { sinceMs: _, ...expected } = leaving;
  return { attempt: id, instance, pool, why: reason ?? '', ...expected };
}

/** Room on the target is kept no longer: the task does not come. `task`: its record, if it may have departed. */
function giveUpMove(state: WorkingState, { id, goesTo, leaving }: Attempt, at: EpochMs, task?: Task): void {
  const from = leaving === undefined ? task?.departed?.attempt : id;
  if (goesTo !== undefined && from !== undefined) closeReservation(state, { on: goesTo, from }, at);
}

const isFailure = (outcome: AttemptOutcome): boolean => outcome === 'failed' || outcome === 'timed-out';

/**
 * The task goes on with its other attempts. If the one that claimed the outputs has ended, none of them can succeed:
 * they are to stop, and the next round begins after them.
 */
function goOn(
  state: WorkingState,
  of: EndedTry,
  { after, rivals }: { readonly after: Task; readonly rivals: readonly Attempt[] },
): void {
  const { task } = of;
  const claimed = claimAfter(of);
  const departed = departureOf(state, of.attempt);
  const stays = {
    ...after,
    state: task.state,
    notBeforeMs: task.notBeforeMs,
    ...(departed === undefined ? {} : { departed }),
  };
  state.updateTask(claimed === null ? stays : { ...stays, claimed });
  const by = claimed?.by ?? null;
  if (by === null || rivals.some((r) => r.id === by)) return;
  for (const rival of rivals) state.putAttempt({ ...rival, claimLostTo: by });
}

/** Claim of the round after the end of one of its attempts; null: none is known. */
function claimAfter({ task, attempt, end }: EndedTry): NonNullable<Task['claimed']> | null {
  const { claimed = null } = task;
  if (end.outcome === 'superseded' && end.cannotClaim !== true) return { by: end.publisher ?? claimed?.by ?? null };
  // A publisher that fails of its own accord gives its claim back (drivers/local/fleet/task.ts, entrypoint.ts).
  const isGivenBack = end.outcome === 'failed' && end.exitSignal === null && claimed?.by === attempt.id;
  return isGivenBack ? null : claimed;
}

/** State of a task after an unsuccessful attempt, if no other attempt of it lives and retries are left. */
function afterTry({ task, stage, attempt, end }: EndedTry): Task {
  const keptByIt = stage.checkpoint === null ? ZERO_S : add(attempt.resumedFromS, workDoneIn(attempt, end.keptS));
  // A copy's checkpoint is its own and ends with it.
  const keptS = attempt.role === 'copy' ? task.keptS : keptByIt;
  const ranS = (): Pick<Task, 'ranS'> => ranAtLeast(task, attempt, { at: end.at, keptS });
  switch (end.outcome) {
    case 'failed':
    case 'timed-out': {
      const failures = task.failures + 1;
      const backoffS = Math.min(BACKOFF_S * 2 ** (failures - 1), MAX_BACKOFF_S);
      // A failed attempt's checkpoint is kept: the program decides whether it resumes.
      return { ...task, state: 'waiting', failures, keptS, notBeforeMs: plus(end.at, seconds(backoffS)) };
    }
    case 'interrupted':
    case 'superseded':
      return { ...task, state: 'waiting', keptS, ...ranS() };
    case 'preempted':
    case 'moved':
      return {
        ...task,
        state: 'waiting',
        keptS,
        ...ranS(),
        ownStops: withStop(task, attempt, { at: end.at, keptS }),
      };
    case 'cancelled':
      return { ...task, state: 'cancelled' };
    case 'succeeded':
      throw new EbbError('internal', { what: 'a success is no try that ended without one', got: attempt.id });
    default:
      return unreachable(end.outcome, 'attempt outcome');
  }
}

/** Keeps the first cause of a job's end: the task that used up its retries, and why its last attempt failed. */
function noteFailure(state: WorkingState, { job: id, stage, index }: Attempt, reason: string | null): void {
  const job = state.jobs.get(id);
  if (job === undefined || job.stateReason !== null) return;
  const why = reason === null ? '' : `: ${reason.slice(0, MOST_REASON)}`;
  state.putJob({ ...job, stateReason: `stage ${stage}: task ${index} ${NO_RETRIES}${why}` });
}

/**
 * Lower bound of a task's running time, if above its saved part. A resumed attempt first read its checkpoint, which is
 * no running time, so it gives no bound beyond the saved part.
 */
function ranAtLeast(
  task: Task,
  attempt: Attempt,
  { at, keptS }: { readonly at: EpochMs; readonly keptS: Seconds },
): Pick<Task, 'ranS'> {
  const { startedMs, resumedFromS, leaving } = attempt;
  // The time of a move is no running time.
  const untilMs = leaving === undefined ? at : least(at, leaving.sinceMs);
  const ranS = startedMs === null || isPositive(resumedFromS) ? ZERO_S : most(ZERO_S, between(startedMs, untilMs));
  const longest = most(task.ranS ?? ZERO_S, workDoneIn(attempt, ranS));
  return gt(longest, keptS) ? { ranS: longest } : {};
}

/**
 * The stops that we decided, this one included. Reading a checkpoint again and the time of a move count as lost, too: a
 * move that saved nothing has lost all that ran.
 */
function withStop(
  { ownStops }: Task,
  attempt: Attempt,
  { at, keptS }: { readonly at: EpochMs; readonly keptS: Seconds },
): OwnStops {
  const { startedMs, resumedFromS } = attempt;
  const ranS = startedMs === null ? ZERO_S : most(ZERO_S, between(startedMs, at));
  const lostS = most(ZERO_S, sub(add(resumedFromS, workDoneIn(attempt, ranS)), keptS));
  return { count: (ownStops?.count ?? 0) + 1, lostS: add(ownStops?.lostS ?? ZERO_S, lostS) };
}

const specOf = (state: WorkingState, attempt: Attempt): StageSpec =>
  invariant(
    state.jobs.get(attempt.job)?.spec.stages.find((s) => s.name === attempt.stage),
    `attempt ${attempt.id} belongs to no stage`,
  );

/** Ends a job once none of its tasks runs any more, and takes it out of `pending` once one has run. */
function settleJob(state: WorkingState, id: Job['id'], at: EpochMs): void {
  const job = state.jobs.get(id);
  if (job === undefined || job.finishedMs !== null) return;
  const running = job.stages.reduce((n, s) => n + s.running + (s.superseded ?? 0), 0);
  if (job.stages.every((s) => s.succeeded === s.tasks)) {
    if (running === 0) finish(state, job, { state: 'succeeded', reason: null, at: job.doneMs ?? at });
    else if (job.doneMs === undefined) state.putJob({ ...job, doneMs: at });
  } else if (isEnding(job) && running === 0) {
    const failed = job.stages.find((s) => s.failed > 0);
    const failures = job.stages.reduce((n, s) => n + s.failed, 0);
    const ofTask = job.stateReason?.includes(NO_RETRIES) === true;
    const others = ofTask && failures > 1 ? ` (and ${failures - 1} more)` : '';
    const isFailure = failed !== undefined || (!job.cancelRequested && job.stateReason !== null);
    finish(state, job, {
      state: isFailure ? 'failed' : 'cancelled',
      reason:
        failed === undefined
          ? (job.stateReason ?? cancelText(job))
          : `${job.stateReason ?? `stage ${failed.name}: a task ${NO_RETRIES}`}${others}`,
      at,
    });
  }
}

/** `settleJob`, where a job whose record is at fault is held instead of stopping the cycle. */
export function settleOrHold(state: WorkingState, id: Job['id'], at: EpochMs): void {
  try {
    settleJob(state, id, at);
  } catch (error) {
    holdJob(state, { job: id, reason: `it cannot be brought to its end: ${messageOf(error)}` }, at);
  }
}

const cancelText = ({ cancelledBy }: Job): string =>
  cancelledBy === undefined ? 'cancelled on request' : `cancelled on request of ${callerText(cancelledBy)}`;

function finish(
  state: WorkingState,
  job: Job,
  end: { readonly state: 'succeeded' | 'failed' | 'cancelled'; readonly reason: string | null; readonly at: EpochMs },
): void {
  const { held: _, doneMs: __, ...rest } = job;
  state.putJob({ ...rest, state: end.state, stateReason: end.reason, finishedMs: end.at });
  for (const t of state.tasksOf(job.id)) if (t.state === 'waiting') cancelWaiting(state, t, end.at);
  const late = job.deadlineMs !== null && gt(end.at, job.deadlineMs);
  const lateText = job.deadlineMs === null ? '' : late ? ', after its deadline' : ', before its deadline';
  state.event(`job-${end.state}`, end.at, {
    job: job.id,
    text: `job ${job.spec.name} ${end.state}${end.state === 'succeeded' ? lateText : ''}${end.reason === null ? '' : `: ${end.reason}`}`,
    data: { late },
  });
}

function cancelWaiting(state: WorkingState, task: Task, at: EpochMs): void {
  const { goesTo, departed, ...stays } = task;
  if (goesTo !== undefined && departed !== undefined)
    closeReservation(state, { on: goesTo, from: departed.attempt }, at);
  state.moveTask(task, { ...stays, state: 'cancelled', notBeforeMs: null });
}

function describeEnd(outcome: AttemptOutcome, exitCode: number | null, exitSignal: string | null): string | null {
  if (outcome === 'succeeded') return null;
  const end = exitSignal !== null ? `ended by ${exitSignal}` : exitCode === null ? null : `exit code ${exitCode}`;
  if (outcome !== 'timed-out') return end;
  return `its timeout passed${end === null ? '' : `, ${end}`}`;
}
