/**
 * Record of one EC2 instance and its tasks, with the observations that it gives. Pure: facts in, record and
 * observations out. Stored as one item per instance (inbox.ts).
 *
 * Facts come from EventBridge repeatedly and in any order. So each fact is a statement about the world, not a step: a
 * repeated one changes nothing and is reported once. An end is reported only after everything that comes before it; for
 * an instance, after the ends of its attempts.
 * The same facts in any order give the same observations, except for checkpoints that a later one has replaced
 * (test/unit/drivers/aws/fleet-record.test.ts).
 *
 * Life of an attempt: ordered (`triedMs` null: no RunTask yet) -> tried -> task (`task`: its ARN) -> ended and removed.
 * Our own requests to stop and to release are facts too.
 */
import {
  attemptId,
  effectKey,
  instanceId,
  poolId,
  type AttemptId,
  type EffectKey,
  type InstanceId,
  type PoolId,
} from '../../../kernel/ids.ts';
import { epochMs, mib, seconds, usdPerHour } from '../../../kernel/units.ts';
import type { EndCause } from '../../../domain/instance.ts';
import type { Observation } from '../../../domain/observation.ts';
import type { Bid } from '../../../domain/pool.ts';
import type { Usage } from '../../../domain/job.ts';
import type { EffectOutcome } from '../../../domain/plan.ts';
import { transfersOfVcpus } from '../../../market/transfers.ts';
import { CANNOT_CLAIM, PUBLISHES, SUPERSEDED_CODE } from './entrypoint.ts';
import type { TaskReport } from './report.ts';

export type StopReason = 'interrupted' | 'preempted' | 'cancelled' | 'timed-out' | 'superseded';

export interface AttemptRecord {
  /** Time of the last RunTask, engine ms; null: none, or ECS said that it started none. */
  readonly triedMs: number | null;
  /** Number of RunTask calls that started no task. */
  readonly refusals: number;
  /** ARN of the task. */
  readonly task: string | null;
  readonly startedMs: number | null;
  /** Time of the last written checkpoint, engine ms. */
  readonly keptMs: number | null;
  readonly reportedKeptS: number;
  /** Reason of the stop request. The first one stays. */
  readonly stop: StopReason | null;
  /** Instance on which its task goes on; absent: the stop is no move. */
  readonly goesTo?: string;
  readonly isStopSent: boolean;
  readonly saves: boolean;
  readonly timeoutS: number | null;
  /** vCPUs that it asked for, thousandths. Absent: an earlier version wrote the record. */
  readonly milliCpu?: number;
}

export interface InstanceRecord {
  readonly instance: InstanceId;
  readonly key: EffectKey;
  readonly pool: PoolId;
  readonly bid: number | 'uncapped';
  /** Outcome of a launch that bought nothing. */
  readonly refused: Extract<EffectOutcome, { status: 'refused' }> | null;
  /** EC2 id; null only if refused. */
  readonly ec2: string | null;
  readonly launchedMs: number | null;
  /** ARN of the ECS registration, once it accepts tasks. */
  readonly host: string | null;
  readonly readyMs: number | null;
  readonly rebalanceMs: number | null;
  readonly warnedMs: number | null;
  readonly goneMs: number | null;
  readonly isReleased: boolean;
  /** Time of the last request to end it, engine ms. */
  readonly endAskedMs: number | null;
  /** EC2's latest refusal to end it; null if it has refused nothing since it last agreed. */
  readonly endRefused: EndRefused | null;
  readonly gone: { readonly atMs: number; readonly cause: EndCause; readonly detail: string } | null;
  /** True: somebody stopped it. It still exists in EC2 and must be ended. */
  readonly isStopped: boolean;
  /** True: its end has been reported. */
  readonly isEnded: boolean;
  readonly attempts: Readonly<Record<string, AttemptRecord>>;
  readonly sequence: number;
  /** Observations that are not known to be applied, ascending. */
  readonly observations: readonly Observation[];
}

/** Refusal to end an instance, which goes on to cost money: termination protection, or a missing right. */
export interface EndRefused {
  readonly tries: number;
  /** Time of the last refusal, engine ms. */
  readonly atMs: number;
  readonly detail: string;
}

/**
 * Number of refusals after which a person is told. Most passing faults are over by then: each try repeats several
 * times.
 */
export const END_TRIES = 3;

/** End of a task by ECS. */
export interface TaskEnd {
  readonly atMs: number;
  readonly exitCode: number | null;
  /** ECS' reasons, for people. */
  readonly detail: string | null;
  /** True: the host was taken or shut down, so the exit code is not the program's own. */
  readonly isHostGone: boolean;
  /** True: ECS was asked to stop it. */
  readonly isAsked: boolean;
  /** Resources used, if the image could tell. Absent: unknown. */
  readonly usage?: TaskReport['usage'];
}

export type Fact =
  | { readonly is: 'launched'; readonly atMs: number; readonly readyMs: number }
  | { readonly is: 'ready'; readonly atMs: number; readonly host: string }
  | { readonly is: 'rebalance'; readonly atMs: number }
  | { readonly is: 'warned'; readonly atMs: number; readonly goneMs: number }
  | {
      readonly is: 'gone';
      readonly atMs: number;
      readonly cause: EndCause;
      readonly detail: string;
      readonly isStopped: boolean;
    }
  | {
      readonly is: 'ordered';
      readonly attempt: AttemptId;
      readonly saves: boolean;
      readonly timeoutS: number | null;
      readonly milliCpu?: number;
    }
  | { readonly is: 'tried'; readonly attempt: AttemptId; readonly atMs: number | null }
  | {
      readonly is: 'task';
      readonly attempt: AttemptId;
      readonly task: string;
      readonly startedMs: number | null;
      readonly keptMs: number | null;
      readonly end: TaskEnd | null;
    }
  /** Attempt that never ran: no task of it exists or will exist. A failure, unless it was to stop. */
  | {
      readonly is: 'never';
      readonly attempt: AttemptId;
      readonly atMs: number;
      readonly why: StopReason | null;
      readonly detail: string;
    }
  | { readonly is: 'kept'; readonly attempt: AttemptId; readonly atMs: number }
  | {
      readonly is: 'stop';
      readonly attempt: AttemptId;
      readonly why: StopReason;
      readonly atMs: number;
      /** Target of a move. */
      readonly to?: InstanceId;
    }
  | { readonly is: 'stop-sent'; readonly attempt: AttemptId }
  | { readonly is: 'release'; readonly atMs: number }
  | { readonly is: 'end-asked'; readonly atMs: number }
  | { readonly is: 'end-refused'; readonly atMs: number; readonly detail: string };

export const bidOf = (record: Pick<InstanceRecord, 'bid'>): Bid =>
  record.bid === 'uncapped' ? record.bid : usdPerHour(record.bid);

/** Record of an instance that EC2 has launched. */
export function launchedRecord(of: {
  readonly instance: string;
  readonly key: string;
  readonly pool: string;
  readonly bid: number | 'uncapped';
  readonly ec2: string | null;
  readonly refused?: InstanceRecord['refused'];
}): InstanceRecord {
  return {
    instance: instanceId(of.instance),
    key: effectKey(of.key),
    pool: poolId(of.pool),
    bid: of.bid,
    refused: of.refused ?? null,
    ec2: of.ec2,
    launchedMs: null,
    host: null,
    readyMs: null,
    rebalanceMs: null,
    warnedMs: null,
    goneMs: null,
    isReleased: false,
    endAskedMs: null,
    endRefused: null,
    gone: null,
    isStopped: false,
    isEnded: false,
    attempts: {},
    sequence: 0,
    observations: [],
  };
}

export const attemptsOf = (record: InstanceRecord): readonly (readonly [AttemptId, AttemptRecord])[] =>
  Object.entries(record.attempts).map(([id, a]) => [attemptId(id), a] as const);

/** True if the instance accepts new tasks. */
export const isOpen = (record: InstanceRecord): boolean =>
  record.refused === null && record.gone === null && record.warnedMs === null && !record.isReleased;

/** Record with a fact folded in; the same object if the fact is not new. */
export function fold(record: InstanceRecord, fact: Fact): InstanceRecord {
  switch (fact.is) {
    case 'launched':
      if (record.launchedMs !== null) return record;
      return report(
        { ...record, launchedMs: fact.atMs },
        { kind: 'instance-launched', atMs: epochMs(fact.atMs), readyMs: epochMs(fact.readyMs) },
      );
    case 'ready':
      if (record.readyMs !== null) return record;
      return report(
        { ...record, readyMs: fact.atMs, host: fact.host },
        { kind: 'instance-ready', atMs: epochMs(fact.atMs) },
      );
    case 'rebalance':
      if (record.rebalanceMs !== null) return record;
      return report({ ...record, rebalanceMs: fact.atMs }, { kind: 'instance-rebalance', atMs: epochMs(fact.atMs) });
    case 'warned':
      if (record.warnedMs !== null) return record;
      return neverBegun(
        report(
          { ...record, warnedMs: fact.atMs, goneMs: fact.goneMs },
          { kind: 'instance-warned', atMs: epochMs(fact.atMs), goneMs: epochMs(fact.goneMs) },
        ),
        { atMs: fact.atMs, why: 'interrupted', detail: 'its instance was given notice before it began' },
      );
    case 'gone': {
      if (record.gone !== null) return record;
      const { atMs, cause, detail, isStopped } = fact;
      return ended(
        neverBegun(
          { ...record, gone: { atMs, cause, detail }, isStopped },
          { atMs, why: 'interrupted', detail: 'its instance ended' },
        ),
      );
    }
    case 'release':
      if (record.isReleased) return record;
      return released(record, fact.atMs);
    case 'end-asked':
      return { ...record, endAskedMs: fact.atMs, endRefused: null };
    case 'end-refused': {
      const tries = (record.endRefused?.tries ?? 0) + 1;
      return { ...record, endRefused: { tries, atMs: fact.atMs, detail: fact.detail } };
    }
    default:
      return foldAttempt(record, fact);
  }
}

type AttemptFact = Extract<Fact, { attempt: AttemptId }>;

const ORDERED: AttemptRecord = {
  triedMs: null,
  refusals: 0,
  task: null,
  startedMs: null,
  keptMs: null,
  reportedKeptS: 0,
  stop: null,
  isStopSent: false,
  saves: false,
  timeoutS: null,
};

function foldAttempt(record: InstanceRecord, fact: AttemptFact): InstanceRecord {
  const { attempt: id } = fact;
  const attempt = record.attempts[id];
  if (fact.is === 'ordered') {
    if (attempt !== undefined) return record;
    const { saves, timeoutS, milliCpu } = fact;
    return withAttempt(record, id, { ...ORDERED, saves, timeoutS, ...(milliCpu === undefined ? {} : { milliCpu }) });
  }
  // Unknown attempts have ended, or were never sent here: nothing to report.
  if (attempt === undefined) return record;
  switch (fact.is) {
    case 'tried':
      return withAttempt(record, id, {
        ...attempt,
        triedMs: fact.atMs,
        refusals: attempt.refusals + (fact.atMs === null ? 1 : 0),
      });
    case 'never':
      return attempt.task === null ? neverRan(record, id, fact) : record;
    case 'stop': {
      if (attempt.triedMs === null && attempt.task === null) {
        return neverRan(record, id, { ...fact, detail: 'stopped before it began' });
      }
      if (attempt.stop !== null) return record;
      const move = fact.to === undefined ? {} : { goesTo: fact.to };
      return withAttempt(record, id, { ...attempt, stop: fact.why, ...move });
    }
    case 'stop-sent':
      return attempt.isStopSent ? record : withAttempt(record, id, { ...attempt, isStopSent: true });
    case 'kept':
      return checkpointed(record, id, { ...attempt, keptMs: Math.max(attempt.keptMs ?? 0, fact.atMs) });
    case 'task':
      return foldTask(record, attempt, fact);
  }
}

function foldTask(record: InstanceRecord, known: AttemptRecord, fact: Extract<Fact, { is: 'task' }>): InstanceRecord {
  const { attempt: id, task, startedMs, end } = fact;
  const keptMs = fact.keptMs === null ? known.keptMs : Math.max(known.keptMs ?? 0, fact.keptMs);
  let attempt: AttemptRecord = { ...known, task, keptMs };
  let next = record;
  if (startedMs !== null && attempt.startedMs === null) {
    attempt = { ...attempt, startedMs };
    const log = task.split('/').at(-1) ?? '';
    next = report(next, { kind: 'attempt-started', atMs: epochMs(startedMs), attempt: id, log });
  }
  if (end === null) return checkpointed(next, id, attempt);
  return endAttempt(next, id, { attempt, end });
}

/** Reports the work in the checkpoint, if it is more than reported before. */
function checkpointed(record: InstanceRecord, id: AttemptId, attempt: AttemptRecord): InstanceRecord {
  const keptS = keptOf(attempt, Infinity);
  if (keptS <= attempt.reportedKeptS) return withAttempt(record, id, attempt);
  const next = withAttempt(record, id, { ...attempt, reportedKeptS: keptS });
  const atMs = epochMs(attempt.keptMs ?? 0);
  return report(next, { kind: 'attempt-checkpointed', atMs, attempt: id, keptS: seconds(keptS) });
}

/** Running time in the checkpoint, seconds; 0 before the start of the task is known. */
const keptOf = ({ startedMs, keptMs }: AttemptRecord, untilMs: number): number =>
  startedMs === null || keptMs === null ? 0 : Math.max(0, (Math.min(keptMs, untilMs) - startedMs) / 1000);

/** Exit code of the entrypoint after its time limit (entrypoint.ts), the same as that of GNU `timeout`. */
const TIMED_OUT_CODE = 124;
const SIGNALS: Readonly<Record<number, string>> = {
  130: 'SIGINT',
  134: 'SIGABRT',
  137: 'SIGKILL',
  139: 'SIGSEGV',
  143: 'SIGTERM',
};

function endAttempt(
  record: InstanceRecord,
  id: AttemptId,
  { attempt, end }: { readonly attempt: AttemptRecord; readonly end: TaskEnd },
): InstanceRecord {
  const { exitCode } = end;
  const isDone = exitCode === 0;
  const isSuperseded = exitCode === SUPERSEDED_CODE;
  const signal = exitCode === null ? null : (SIGNALS[exitCode] ?? null);
  const ranS = attempt.startedMs === null ? 0 : (end.atMs - attempt.startedMs) / 1000;
  return ended(
    report(withoutAttempt(record, id), {
      kind: 'attempt-ended',
      atMs: epochMs(end.atMs),
      attempt: id,
      exitCode: isSuperseded ? 0 : signal === null ? exitCode : null,
      exitSignal: signal,
      stopped: isDone ? null : stopOf(attempt, end),
      keptS: seconds(isDone ? ranS : keptOf(attempt, end.atMs)),
      usage: usageOf(end, attempt),
      detail: isDone ? null : end.detail,
      ...(isSuperseded ? claimOf(end.detail) : {}),
    }),
  );
}

/** What the entrypoint says of the claim of an attempt that left as superseded. */
function claimOf(
  detail: string | null,
): Pick<Extract<Observation, { kind: 'attempt-ended' }>, 'publisher' | 'cannotClaim'> {
  if (detail === CANNOT_CLAIM) return { cannotClaim: true };
  const [publisher, ...words] = detail?.split(' ') ?? [];
  return publisher !== undefined && words.join(' ') === PUBLISHES ? { publisher: attemptId(publisher) } : {};
}

function usageOf({ usage }: TaskEnd, { milliCpu }: AttemptRecord): Usage | null {
  if (usage === null || usage === undefined) return null;
  const used = { maxRss: mib(usage.maxRssMiB), cpuS: seconds(usage.cpuS) };
  const { load } = usage;
  if (load === undefined || milliCpu === undefined) return used;
  const asked = Math.max(0.001, milliCpu / 1000);
  const own = { ...load.own, cpu: Math.min(1, load.own.cpu / asked) };
  return { ...used, own, machine: { load: load.machine, most: transfersOfVcpus(load.vcpus) } };
}

/** Reason of a stop, if there was one. Attempts that end with their host, or by hand in ECS, have not failed. */
function stopOf(attempt: AttemptRecord, end: TaskEnd): StopReason | null {
  if (end.exitCode === SUPERSEDED_CODE) return 'superseded';
  if (attempt.timeoutS !== null && end.exitCode === TIMED_OUT_CODE) return 'timed-out';
  // A move that its host did not outlive has not saved.
  if (attempt.goesTo !== undefined && end.isHostGone) return 'interrupted';
  if (attempt.stop !== null) return attempt.stop;
  if (end.isHostGone) return 'interrupted';
  return end.isAsked ? 'preempted' : null;
}

function neverRan(
  record: InstanceRecord,
  id: AttemptId,
  how: { readonly atMs: number; readonly why: StopReason | null; readonly detail: string },
): InstanceRecord {
  return ended(
    report(withoutAttempt(record, id), {
      kind: 'attempt-ended',
      atMs: epochMs(how.atMs),
      attempt: id,
      exitCode: null,
      exitSignal: null,
      stopped: how.why,
      keptS: seconds(0),
      usage: null,
      detail: how.detail,
    }),
  );
}

/** Ends attempts for which no RunTask was ever called. */
function neverBegun(
  record: InstanceRecord,
  how: { readonly atMs: number; readonly why: StopReason; readonly detail: string },
): InstanceRecord {
  return attemptsOf(record)
    .filter(([, a]) => a.triedMs === null && a.task === null)
    .reduce((next, [id]) => neverRan(next, id, how), record);
}

function released(record: InstanceRecord, atMs: number): InstanceRecord {
  const next = neverBegun(
    { ...record, isReleased: true },
    { atMs, why: 'preempted', detail: 'its instance was given back before it began' },
  );
  return attemptsOf(next).reduce(
    (all, [id, a]) => (a.stop === null ? withAttempt(all, id, { ...a, stop: 'preempted' }) : all),
    next,
  );
}

/** Reports the end of an instance once nothing else of it is left to report. */
function ended(record: InstanceRecord): InstanceRecord {
  if (record.gone === null || record.isEnded || attemptsOf(record).length > 0) return record;
  const { atMs, cause, detail } = record.gone;
  return report({ ...record, isEnded: true }, { kind: 'instance-ended', atMs: epochMs(atMs), cause, detail });
}

/** Record with a changed attempt; the same object if nothing changed, so that it is not written. */
function withAttempt(record: InstanceRecord, id: AttemptId, attempt: AttemptRecord): InstanceRecord {
  const known = record.attempts[id];
  const isSame =
    known !== undefined && (Object.keys(attempt) as (keyof AttemptRecord)[]).every((k) => known[k] === attempt[k]);
  return isSame ? record : { ...record, attempts: { ...record.attempts, [id]: attempt } };
}

function withoutAttempt(record: InstanceRecord, id: AttemptId): InstanceRecord {
  const { [id]: _, ...attempts } = record.attempts;
  return { ...record, attempts };
}

type Reported = Observation extends infer O
  ? O extends Observation
    ? Omit<O, 'instance' | 'sequence'>
    : never
  : never;

function report(record: InstanceRecord, what: Reported): InstanceRecord {
  const sequence = record.sequence + 1;
  const observation = { ...what, instance: record.instance, sequence } as Observation;
  return { ...record, sequence, observations: [...record.observations, observation] };
}

/** Open duties of an instance by its record. */
export type Duty =
  | { readonly do: 'start'; readonly attempt: AttemptId; readonly host: string; readonly isUnsure: boolean }
  | { readonly do: 'stop'; readonly attempt: AttemptId; readonly task: string; readonly why: StopReason }
  | { readonly do: 'end'; readonly ec2: string };

/** Time after which an unanswered call is repeated, ms. */
const AGAIN_MS = 60_000;
/** Absolute difference, since the caller's clock may have been ahead. A repeated call does no harm. */
const isLongAgo = (askedMs: number, nowMs: number): boolean => Math.abs(nowMs - askedMs) > AGAIN_MS;

export function duties(record: InstanceRecord, nowMs: number): readonly Duty[] {
  if (record.refused !== null) return [];
  if (record.gone !== null) return record.isStopped && record.endAskedMs === null ? endDuty(record, nowMs) : [];
  const found: Duty[] = [];
  for (const [attempt, a] of attemptsOf(record)) {
    if (a.task === null) {
      const isUnsure = a.triedMs !== null;
      const isDue = a.triedMs === null ? isOpen(record) : isLongAgo(a.triedMs, nowMs);
      if (record.host !== null && isDue) found.push({ do: 'start', attempt, host: record.host, isUnsure });
    } else if (!a.isStopSent) {
      // An attempt with checkpoints is stopped at the notice. Others run on and may finish in time.
      const why = a.stop ?? (record.warnedMs !== null && a.saves ? 'interrupted' : null);
      if (why !== null) found.push({ do: 'stop', attempt, task: a.task, why });
    }
  }
  const isAsked = record.endAskedMs !== null && !isLongAgo(record.endAskedMs, nowMs);
  if (record.isReleased && attemptsOf(record).length === 0 && !isAsked) found.push(...endDuty(record, nowMs));
  return found;
}

/** Instances whose end was refused repeatedly are left to the sweep, which asks every few minutes. */
function endDuty({ ec2, endRefused }: InstanceRecord, nowMs: number): readonly Duty[] {
  const isLeft = endRefused !== null && endRefused.tries >= END_TRIES && !isLongAgo(endRefused.atMs, nowMs);
  return ec2 === null || isLeft ? [] : [{ do: 'end', ec2 }];
}

/** Record without observations that are known to be applied. */
export const trimmed = (record: InstanceRecord, applied: number): InstanceRecord => ({
  ...record,
  observations: record.observations.filter((o) => o.sequence > applied),
});

/** End of payment, engine time: its end, or the announced one. */
export const paidUntilMs = (record: InstanceRecord, until: number): number =>
  Math.min(until, record.gone?.atMs ?? record.goneMs ?? until);
