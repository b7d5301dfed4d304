import type { AttemptId, InstanceId, JobId } from '../kernel/ids.ts';
import type { EpochMs, MiB, Seconds, Usd } from '../kernel/units.ts';
import type { Caller } from './caller.ts';
import type { Arch, PurchaseOption } from './pool.ts';
import type { Resources } from './resources.ts';
import type { RunningTimes } from './running-times.ts';

export type JobClass = 'deadline' | 'best-effort';

/** Hard constraints: an absent list allows all. Instance types and families may hold `*`. */
export interface Constraints {
  readonly arch?: readonly Arch[];
  readonly zones?: readonly string[];
  readonly instanceTypes?: readonly string[];
  readonly families?: readonly string[];
  readonly purchaseOptions?: readonly PurchaseOption[];
  readonly minGeneration?: number;
}

/**
 * A soft constraint: a pool that matches `prefer` is worth `weight` (fraction of its price, 0.1 = as if 10 % cheaper).
 */
export interface Preference {
  readonly prefer: Constraints;
  readonly weight: number;
}

export interface Checkpoint {
  /** Sent first when an attempt must give way. */
  readonly signal: 'SIGUSR1' | 'SIGUSR2' | 'SIGTERM' | 'SIGINT';
  /** Wall time from this signal to SIGTERM. */
  readonly graceS: Seconds;
  /** How often the program saves by itself, if it says so. */
  readonly everyS: Seconds | null;
}

/**
 * Working directory of a stage that names none, in a job file without a folder: the job gets a folder of its own where
 * it is taken.
 */
export const OWN_FOLDER = '';

export interface StageSpec {
  readonly name: string;
  readonly dependsOn: readonly string[];
  readonly tasks: number;
  /** All tasks start together or none does. */
  readonly gang: boolean;
  /** Program and arguments; a string in the file runs through `sh -c`. `{index}` is replaced by the task's index. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Variables whose values are secrets, by reference (secret-ref.ts): no value is ever part of a job. Absent: none. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Absolute. Inputs are read from here, outputs are put here. */
  readonly workdir: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly resources: Resources;
  /** Container image on AWS; absent: the deployment's. Local mode runs the command on the machine itself. */
  readonly image?: string;
  /** Failures that are tried again. Interruptions never count. */
  readonly retries: number;
  /** Longest running time of one attempt. */
  readonly timeoutS: Seconds | null;
  readonly checkpoint: Checkpoint | null;
  /** The user's own guess of one task's running time; used until there is history. */
  readonly expectedRuntimeS: Seconds | null;
  readonly constraints: Constraints;
  readonly preferences: readonly Preference[];
}

/** What finishing is worth. */
export interface ValueSpec {
  /** Worth when on time; null: derived from the cost of the job on on-demand (lib/stages/value). */
  readonly onTimeUsd: Usd | null;
  /** After the deadline the worth falls linearly to 0 over this time (JamaisVu section 4.3). */
  readonly worthlessAfterS: Seconds | null;
}

/** A job file, checked and normalised: units resolved, defaults filled in, one form for every spelling. */
export interface JobSpec {
  readonly name: string;
  readonly owner: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly class: JobClass;
  /** Relative to submission, or an instant. Null for best-effort. */
  readonly deadline: { readonly afterS: Seconds } | { readonly atMs: EpochMs } | null;
  readonly value: ValueSpec;
  /** Ids or names of jobs that must have succeeded before this one starts. */
  readonly after: readonly string[];
  readonly maxCostUsd: Usd | null;
  /** At least one; acyclic. */
  readonly stages: readonly StageSpec[];
}

/** `held`: the scheduler cannot decide on the job and has set it aside, so that all others go on. */
export type JobState = 'pending' | 'running' | 'held' | 'succeeded' | 'failed' | 'cancelled';
export const isOver = (state: JobState): boolean =>
  state === 'succeeded' || state === 'failed' || state === 'cancelled';

/**
 * Compact state of a stage's tasks. Tasks start in the order of their index, so those never tried are exactly
 * `[nextFresh, tasks)`; only tasks that have been tried have a record. Counts sum to `nextFresh`.
 */
export interface StageProgress {
  readonly name: string;
  readonly tasks: number;
  readonly nextFresh: number;
  /** Tried, interrupted or failed with retries left, to be started again. */
  readonly waiting: number;
  readonly running: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  /** None of its tasks that wait starts before. Absent: they may. */
  readonly notBeforeMs?: EpochMs;
  /** How long its tasks ran that succeeded. Absent: none did, or it has one task, or an earlier version ran them. */
  readonly times?: RunningTimes;
  /** Attempts that were superseded and have not ended. Absent: none. */
  readonly superseded?: number;
}

/** Why a job is held. Present exactly while its state is `held`. */
export interface Hold {
  /** The fault that the job causes, one sentence. */
  readonly reason: string;
  readonly sinceMs: EpochMs;
}

/** What submission found out about the job: reported at once, kept for explanations. */
export interface Admission {
  /** False when the deadline cannot be met even starting now on on-demand. */
  readonly feasible: boolean;
  readonly notes: readonly string[];
}

/**
 * Something that the owner of a job should know about tasks that succeeded, such as an output pattern that matched no
 * file.
 */
export interface Remark {
  readonly stage: string;
  readonly text: string;
  /** How many tasks it is true of. */
  readonly tasks: number;
}

export interface Job {
  readonly id: JobId;
  readonly spec: JobSpec;
  /** What recurring jobs share: owner / templated name / program. */
  readonly template: string;
  readonly state: JobState;
  /** Why it ended as it did, for failed and cancelled jobs. */
  readonly stateReason: string | null;
  /** It failed because it came too late to be worth anything. Absent = no. */
  readonly endedLate?: boolean;
  readonly submittedMs: EpochMs;
  readonly deadlineMs: EpochMs | null;
  readonly startedMs: EpochMs | null;
  readonly finishedMs: EpochMs | null;
  /** When its last task succeeded, while superseded attempts of it still stop: then it finished. Absent otherwise. */
  readonly doneMs?: EpochMs;
  readonly cancelRequested: boolean;
  /** Absent: not known, as of jobs of earlier versions. */
  readonly submittedBy?: Caller;
  /** Who asked first that it be cancelled. */
  readonly cancelledBy?: Caller;
  readonly held?: Hold;
  /** The hold that a person asked to end, by its `sinceMs`. Absent: none. Written by others than the engine. */
  readonly releasedHoldMs?: EpochMs;
  readonly stages: readonly StageProgress[];
  /** Resolved ids of the jobs it depends on. */
  readonly after: readonly JobId[];
  readonly admission: Admission;
  /** A few at most. Absent: none. */
  readonly remarks?: readonly Remark[];
}

export type TaskState = 'waiting' | 'running' | 'succeeded' | 'failed' | 'cancelled';

/** Names a task within the system. */
export interface TaskRef {
  readonly job: JobId;
  readonly stage: string;
  readonly index: number;
}

/** Stops of a task that we decided: moves and preemptions, not interruptions. */
export interface OwnStops {
  readonly count: number;
  /** Running time that they lost, all together. */
  readonly lostS: Seconds;
}

/** A task that has been tried at least once. */
export interface Task extends TaskRef {
  readonly state: TaskState;
  /** Attempts so far, interruptions included. */
  readonly attempts: number;
  /** Failures so far: what `retries` is compared with. */
  readonly failures: number;
  /** Running time whose result a checkpoint keeps: what the next attempt need not do again. */
  readonly keptS: Seconds;
  /**
   * The longest that an attempt ran which was interrupted or pre-empted: it takes longer. Absent: nothing beyond what
   * is kept is known.
   */
  readonly ranS?: Seconds;
  readonly ownStops?: OwnStops;
  /** Instance on which it goes on, while it waits after the stop of a move. Absent: wherever there is room. */
  readonly goesTo?: InstanceId;
  /** Not to be started before: back-off after a failure, or as a plan says. */
  readonly notBeforeMs: EpochMs | null;
}

export type AttemptState = 'starting' | 'running' | 'stopping' | 'ended';
/**
 * An interruption (the market's doing) and a pre-emption (ours) end an attempt and are never failures. Nor is
 * `superseded`: another attempt of the task succeeded first, or published its outputs first.
 */
export type AttemptOutcome =
  | 'succeeded'
  | 'failed'
  | 'timed-out'
  | 'interrupted'
  | 'preempted'
  | 'cancelled'
  | 'superseded';

/**
 * Why an attempt is made. original: the task is to run. copy: the task runs already, and the first attempt to succeed
 * wins; it begins anew and keeps its checkpoint to itself. pilot: as an original, and its running time is to tell of
 * its siblings'.
 */
export type AttemptRole = 'original' | 'copy' | 'pilot';

export interface Usage {
  readonly maxRss: MiB;
  readonly cpuS: Seconds;
}

export interface Attempt extends TaskRef {
  readonly id: AttemptId;
  /** 1 for the first. */
  readonly number: number;
  /** Absent: original. */
  readonly role?: AttemptRole;
  /**
   * Of a copy: number of the attempt that its round began with, the first of those that have lived side by side.
   * Absent: its own.
   */
  readonly round?: number;
  readonly instance: InstanceId;
  readonly resources: Resources;
  readonly state: AttemptState;
  /** When the plan placed it. */
  readonly placedMs: EpochMs;
  /** When its process started; null while starting. */
  readonly startedMs: EpochMs | null;
  readonly endedMs: EpochMs | null;
  readonly outcome: AttemptOutcome | null;
  readonly exitCode: number | null;
  readonly exitSignal: string | null;
  /** Why it ended, one sentence. */
  readonly reason: string | null;
  /** Work that earlier attempts of this task left in the checkpoint. */
  readonly resumedFromS: Seconds;
  /** Running time of this attempt kept by its last checkpoint (all of it when it succeeded). */
  readonly keptS: Seconds;
  readonly usage: Usage | null;
  /** Target of the move for which it is stopping. */
  readonly goesTo?: InstanceId;
  /**
   * The attempt of its task that succeeded first. However this one ends, its outcome is `superseded`. Absent: none did.
   */
  readonly supersededBy?: AttemptId;
  /** What the provider calls its log; absent where that is known by the attempt alone. */
  readonly log?: string;
}
