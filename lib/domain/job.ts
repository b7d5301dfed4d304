import type { AttemptId, InstanceId, JobId, PoolId } from '../kernel/ids.ts';
import type { EpochMs, MiB, Seconds, Usd } from '../kernel/units.ts';
import type { Caller } from './caller.ts';
import type { Load, MostTransfers } from './load.ts';
import type { Arch, PurchaseOption } from './pool.ts';
import type { Resources } from './resources.ts';
import type { RunningTimes } from './running-times.ts';

/** `service`: a replica of a service, begun and ended by its controller alone. */
export type JobClass = 'deadline' | 'best-effort' | 'service';

/** Work that comes before best-effort work, and may take its place. */
export const isUrgent = (kind: JobClass): boolean => kind !== 'best-effort';
/** Classes of jobs that end. */
export type BatchClass = Exclude<JobClass, 'service'>;

/** Hard constraints: an absent list allows all. Instance types and families may hold `*`. */
export interface Constraints {
  readonly arch?: readonly Arch[];
  readonly zones?: readonly string[];
  readonly instanceTypes?: readonly string[];
  readonly families?: readonly string[];
  readonly purchaseOptions?: readonly PurchaseOption[];
  readonly minGeneration?: number;
  /** Labels of pools, each with its allowed values. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
}

/**
 * A soft constraint: a pool that matches `prefer` is worth `weight` (fraction of its price, 0.1 = as if 10 % cheaper).
 * On any other pool a task takes `slowdown` times as long (slowdown.ts).
 */
export interface Preference {
  readonly prefer: Constraints;
  readonly weight: number;
  /** Above 1. Absent: it runs as fast elsewhere. */
  readonly slowdown?: number;
}

/** What tasks are counted in. */
export type Domain = 'zone' | 'instance';

/** Tasks of one stage that live in a domain exceed those in the allowed domain with the fewest by so many at most. */
export interface SpreadRule {
  readonly over: Domain;
  readonly maxSkew: number;
}

/** Tasks of the owner's jobs that have all of these labels, the stage's own ones among them. */
export interface LabelRule {
  readonly over: Domain;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Hard constraints on where tasks of a stage are relative to other tasks, checked at each start and move; what runs
 * stays. They are those of Kubernetes (topology spread, pod affinity and anti-affinity) and Amazon ECS
 * (`distinctInstance`).
 */
export interface PlacementRules {
  /** Most tasks of the stage on one instance. */
  readonly maxPerInstance?: number;
  readonly spread?: readonly SpreadRule[];
  /** A task starts only where a task with these labels lives. If none lives and its own job has them, anywhere. */
  readonly affinity?: readonly LabelRule[];
  /** A task does not start where a task with these labels lives, nor they where it lives. */
  readonly antiAffinity?: readonly LabelRule[];
}

export interface Checkpoint {
  /** First signal to an attempt that must stop. */
  readonly signal: 'SIGUSR1' | 'SIGUSR2' | 'SIGTERM' | 'SIGINT';
  /** Wall time from this signal to SIGTERM. */
  readonly graceS: Seconds;
  /** Interval between the program's own saves, if known. */
  readonly everyS: Seconds | null;
}

/**
 * Working directory of a stage without one, in a job file without a folder: the job gets its own folder at submission.
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
  /** Variables with secret values, by reference (secret-ref.ts): a job never holds a value. Absent: none. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Absolute. Inputs are read from here, outputs are put here. */
  readonly workdir: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly resources: Resources;
  /** Container image on AWS; absent: the deployment's. Local mode runs the command on the machine itself. */
  readonly image?: string;
  /** Port that its program listens on and that others are to reach. Absent: nobody connects to it. */
  readonly port?: number;
  /** Failures that are tried again. Interruptions never count. */
  readonly retries: number;
  /** Longest running time of one attempt. */
  readonly timeoutS: Seconds | null;
  readonly checkpoint: Checkpoint | null;
  /** The user's guess of one task's running time; used until there is history. */
  readonly expectedRuntimeS: Seconds | null;
  readonly constraints: Constraints;
  readonly preferences: readonly Preference[];
  /** Absent: none. */
  readonly placement?: PlacementRules;
}

/** Worth of finishing. */
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
  /** True: its deadline is never put at risk to save money, whatever the `lateBudget`. Absent: it may be. */
  readonly mustMeet?: boolean;
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
 * Compact state of a stage's tasks. Tasks begin in one order (task-order.ts), so those never tried are exactly the ones
 * from `nextFresh` on; only tasks that have been tried have a record. Counts sum to `nextFresh`.
 */
export interface StageProgress {
  readonly name: string;
  readonly tasks: number;
  /** Number of tasks that have begun. */
  readonly nextFresh: number;
  /** True: they begin in a random order, for the first were pilots. Absent: in the order of their indices. */
  readonly isDrawn?: true;
  /** Tried, interrupted or failed with retries left, to be started again. */
  readonly waiting: number;
  readonly running: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Earliest start of its waiting tasks. Absent: any time. */
  readonly notBeforeMs?: EpochMs;
  /**
   * Running times of its successful tasks. Absent: there is none, or it has one task, or an earlier version ran them.
   */
  readonly times?: RunningTimes;
  /** Superseded attempts that have not ended. Absent: none. */
  readonly superseded?: number;
  /** Why its tasks get no copies, one sentence. Absent: they may. */
  readonly noCopies?: string;
}

/** Why a job is held. Present exactly while its state is `held`. */
export interface Hold {
  /** The fault that the job causes, one sentence. */
  readonly reason: string;
  readonly sinceMs: EpochMs;
}

/** Findings of submission about the job: reported at once, kept for explanations. */
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
  /** Number of tasks concerned. */
  readonly tasks: number;
}

export interface Job {
  readonly id: JobId;
  readonly spec: JobSpec;
  /** Template of recurring jobs: owner / templated name / program. */
  readonly template: string;
  readonly state: JobState;
  /** Why it ended as it did, for failed and cancelled jobs. */
  readonly stateReason: string | null;
  /** True if the job failed because it was too late to be worth anything. Absent = no. */
  readonly endedLate?: boolean;
  readonly submittedMs: EpochMs;
  readonly deadlineMs: EpochMs | null;
  readonly startedMs: EpochMs | null;
  readonly finishedMs: EpochMs | null;
  /** Time of its last task's success, while superseded attempts still stop: the job finished then. Absent otherwise. */
  readonly doneMs?: EpochMs;
  readonly cancelRequested: boolean;
  /** Absent: not known, as of jobs of earlier versions. */
  readonly submittedBy?: Caller;
  /** First caller who asked for the cancellation. */
  readonly cancelledBy?: Caller;
  readonly held?: Hold;
  /** `sinceMs` of the hold that a person released. Absent: none. Not written by the engine. */
  readonly releasedHoldMs?: EpochMs;
  readonly stages: readonly StageProgress[];
  /** Resolved ids of the jobs it depends on. */
  readonly after: readonly JobId[];
  readonly admission: Admission;
  /** Remarks, a few at most. Absent: none. */
  readonly remarks?: readonly Remark[];
}

/** True for a job that is being ended: no further starts, running tasks are stopped. */
export const isEnding = (job: Job): boolean =>
  job.cancelRequested || job.stages.some((s) => s.failed > 0) || job.stateReason !== null;

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

/** What a policy expects of a move, US dollars. Absent: it does not say. */
export interface MoveUsd {
  /** Saved over staying. */
  readonly savedUsd?: number;
  /** Expected loss by a risk that the move takes. */
  readonly riskUsd?: number;
}

/** The move for which an attempt stops. */
export interface Leaving extends MoveUsd {
  /** Time of the order to stop. From then on it saves, and makes no progress. */
  readonly sinceMs: EpochMs;
}

/** The start of a move that has not arrived. */
export interface Departure extends MoveUsd {
  /** The attempt that was stopped. */
  readonly attempt: AttemptId;
  readonly instance: InstanceId;
  readonly pool: PoolId;
  /** Reason of the move. */
  readonly why: string;
}

/** Names a stage among those of all jobs. */
export const stageKey = ({ job, stage }: Pick<TaskRef, 'job' | 'stage'>): string => `${job}/${stage}`;

/** A task that has been tried at least once. */
export interface Task extends TaskRef {
  readonly state: TaskState;
  /** Attempts so far, interruptions included. */
  readonly attempts: number;
  /** Failures so far; compared with `retries`. */
  readonly failures: number;
  /** Running time saved by a checkpoint; the next attempt does not repeat it. */
  readonly keptS: Seconds;
  /**
   * Longest running time of an attempt that was interrupted or preempted: a lower bound of the task's running time.
   * Absent: no bound beyond the saved part.
   */
  readonly ranS?: Seconds;
  readonly ownStops?: OwnStops;
  /** Instance on which it goes on, while it waits after the stop of a move. Absent: wherever there is room. */
  readonly goesTo?: InstanceId;
  /** Its departure for this move. Absent: none waits to arrive, or an earlier version stopped it. */
  readonly departed?: Departure;
  /**
   * Claim of its outputs by an attempt of the present round: no other attempt of the round can succeed. `by` null: the
   * attempt is not known. Absent: no claim is known.
   */
  readonly claimed?: { readonly by: AttemptId | null };
  /** Not to be started before: back-off after a failure, or as a plan says. */
  readonly notBeforeMs: EpochMs | null;
}

export type AttemptState = 'starting' | 'running' | 'stopping' | 'ended';
/**
 * An interruption (by the market), a preemption and a move (by us) end an attempt and are never failures. `moved`: it
 * stopped so that its task goes on at `goesTo`; earlier versions called that `preempted`. Nor is `superseded` a
 * failure: another attempt of the task succeeded or published its outputs first.
 */
export type AttemptOutcome =
  | 'succeeded'
  | 'failed'
  | 'timed-out'
  | 'interrupted'
  | 'preempted'
  | 'moved'
  | 'cancelled'
  | 'superseded';

/**
 * Purpose of an attempt. original: to run the task. copy: a second attempt of a running task; the first to succeed
 * wins; it starts from scratch and keeps its checkpoint to itself. pilot: an original whose running time stands for its
 * siblings'.
 */
export type AttemptRole = 'original' | 'copy' | 'pilot';

export interface Usage {
  readonly maxRss: MiB;
  readonly cpuS: Seconds;
  /** Mean load of the attempt's own processes; `cpu` is a part of the vCPUs that it asked for. Absent: not measured. */
  readonly own?: Load;
  /** Mean load of the whole machine meanwhile, and the most that it transfers. Absent: not measured. */
  readonly machine?: { readonly load: Load; readonly most: MostTransfers };
}

export interface Attempt extends TaskRef {
  readonly id: AttemptId;
  /** 1 for the first. */
  readonly number: number;
  /** Absent: original. */
  readonly role?: AttemptRole;
  /** For a copy: number of the first attempt of its round, the attempts that live side by side. Absent: its own. */
  readonly round?: number;
  readonly instance: InstanceId;
  readonly resources: Resources;
  readonly state: AttemptState;
  /** Time of its placement by the plan. */
  readonly placedMs: EpochMs;
  /** Start time of its process; null while starting. */
  readonly startedMs: EpochMs | null;
  readonly endedMs: EpochMs | null;
  readonly outcome: AttemptOutcome | null;
  readonly exitCode: number | null;
  readonly exitSignal: string | null;
  /** Why it ended, one sentence. */
  readonly reason: string | null;
  /** Work that earlier attempts of this task saved in the checkpoint. */
  readonly resumedFromS: Seconds;
  /**
   * Its expected running time over the work that it does: from soft constraints that its pool does not meet, and from
   * its neighbours (`beside`). Absent: 1.
   */
  readonly slowdown?: number;
  /** The part of `slowdown` that its neighbours bear, against the usual ones, as known at its start. Absent: 1. */
  readonly beside?: number;
  /** Running time of this attempt saved by its last checkpoint (all of it on success). */
  readonly keptS: Seconds;
  readonly usage: Usage | null;
  /** Target instance of the move for which it is stopping, or stopped. */
  readonly goesTo?: InstanceId;
  /** Absent: it does not move, or stops beside an attempt of its task that does. */
  readonly leaving?: Leaving;
  /** Attempt of the task from which it went on here, the target of a move. Absent: it did not arrive by a move. */
  readonly movedFrom?: AttemptId;
  /** Time since when its instance kept room for this arrival and was up. Absent without `movedFrom`. */
  readonly reservedMs?: EpochMs;
  /**
   * Attempt of the same task that succeeded first. However this attempt ends, its outcome is `superseded`. Absent:
   * none.
   */
  readonly supersededBy?: AttemptId;
  /**
   * Attempt that claimed the outputs of this one's round and ended without success: this one cannot succeed any more
   * and is stopped. Absent: none.
   */
  readonly claimLostTo?: AttemptId;
  /** Provider's name of its log; absent where the attempt's id is enough. */
  readonly log?: string;
}

/** True for an attempt that cannot succeed any more: another one did, or has claimed the outputs of its round. */
export const hasLost = ({ supersededBy, claimLostTo }: Attempt): boolean =>
  supersededBy !== undefined || claimLostTo !== undefined;
