import type { AttemptId, EffectKey, InstanceId, JobId, PlanId } from '../kernel/ids.ts';
import type { EpochMs } from '../kernel/units.ts';
import type { Caller } from '../domain/caller.ts';
import type { Attempt, Job, JobState, Task } from '../domain/job.ts';
import type { Instance } from '../domain/instance.ts';
import type { LedgerRow } from '../domain/ledger.ts';
import type { Effect, EffectOutcome, Explanation, Plan } from '../domain/plan.ts';
import type { Service } from '../domain/service.ts';
import type { By, CostRow } from '../domain/costs.ts';

export interface Submission {
  readonly job: Job;
  /** The caller's Idempotency-Key and a digest of the body; null when none was given. */
  readonly idempotency: { readonly key: string; readonly digest: string } | null;
}

/** Caller who asks that a job be cancelled, and when. */
export interface Cancelling {
  readonly caller: Caller;
  readonly atMs: EpochMs;
}

export type SubmitOutcome =
  | { readonly status: 'created'; readonly job: Job }
  /** The same key with the same body was here before: the job it made. */
  | { readonly status: 'repeated'; readonly job: Job }
  /** The same key was used with another body. */
  | { readonly status: 'conflict'; readonly key: string };

/** Use of an Idempotency-Key: the digest of its body, and the job that it made, as it is now. */
export interface Submitted {
  readonly digest: string;
  readonly job: Job;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Opaque; pass to go on. Null at the end. */
  readonly next: string | null;
}

export interface JobFilter {
  readonly states?: readonly JobState[];
  readonly owner?: string;
  readonly name?: string;
  readonly label?: { readonly key: string; readonly value: string };
}

/** A thing that happened, in order, for people and streams. */
export interface EventRecord {
  /** Ascends; assigned by the store. */
  readonly sequence: number;
  readonly atMs: EpochMs;
  readonly type: string;
  readonly job: JobId | null;
  /** One sentence. */
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** An event on its way to the store. */
export type NewEvent = Omit<EventRecord, 'sequence'>;

/** One state change; a commit is a list of them, all or nothing. */
export type Change =
  | { readonly put: 'job'; readonly value: Job }
  | { readonly put: 'task'; readonly value: Task }
  | { readonly put: 'attempt'; readonly value: Attempt }
  | { readonly put: 'instance'; readonly value: Instance }
  | { readonly put: 'plan'; readonly value: Plan }
  | { readonly put: 'effect'; readonly value: EffectRecord }
  | { readonly put: 'ledger'; readonly value: readonly LedgerRow[]; readonly instance: InstanceId }
  | { readonly put: 'event'; readonly value: Omit<EventRecord, 'sequence'> }
  | { readonly put: 'cursor'; readonly instance: InstanceId; readonly sequence: number }
  | { readonly put: 'memory'; readonly key: string; readonly value: string };

/** A recorded effect with its outcome; null = not confirmed yet. */
export interface EffectRecord {
  readonly key: EffectKey;
  readonly plan: PlanId;
  readonly atMs: EpochMs;
  readonly effect: Effect;
  readonly outcome: EffectOutcome | null;
}

/** Load of a cycle: everything that has not ended. */
export interface ActiveState {
  readonly jobs: readonly Job[];
  /** Tasks of active jobs in state waiting or running. */
  readonly tasks: readonly Task[];
  /** Attempts that have not ended. */
  readonly attempts: readonly Attempt[];
  /** Instances that have not ended. */
  readonly instances: readonly Instance[];
  /** Effects without an outcome. */
  readonly openEffects: readonly EffectRecord[];
  /** Cursors of live instances; those of others may be there. */
  readonly cursors: ReadonlyMap<InstanceId, number>;
}

/** Writes of others than the engine, and parts of a commit that the store computes. */
export interface OthersChanges {
  /** Unfinished jobs that were submitted since, or are asked to be cancelled. In order of arrival. */
  readonly jobs: readonly Job[];
  readonly openEffects: readonly EffectRecord[];
  /** As in ActiveState; may be the store's own, which commits change. */
  readonly cursors: ReadonlyMap<InstanceId, number>;
}

/**
 * All data that must survive. Writers: submissions and cancel requests (any process, any time) and the one engine that
 * holds the lease. A resolved write is durable. Contract: test/contract/store.ts, run on every implementation.
 */
export interface Store {
  /**
   * Durable when it resolves. Outcomes in order. Each job that is created leaves its event (`submittedEvent`) with it:
   * both or neither. A call is stored whole or not at all.
   */
  submit(submissions: readonly Submission[]): Promise<readonly SubmitOutcome[]>;
  /** Submissions by Idempotency-Key; unused keys are left out. */
  submitted(keys: readonly string[]): Promise<ReadonlyMap<string, Submitted>>;
  /**
   * Marks the job; the engine acts on it. False when the job is unknown or over. The first request that says who asks
   * stays with the job and leaves its event (`cancelEvent`): both or neither.
   */
  requestCancel(job: JobId, by?: Cancelling): Promise<boolean>;
  /** Marks the hold of a held job as ended by a person; the engine acts on it. False when the job is not held. */
  requestRelease(job: JobId): Promise<boolean>;

  /**
   * Takes the engine's lease and returns a fencing token, higher than any before. The last taker has it: every commit
   * under an older token fails with `fenced`.
   */
  takeLease(holder: string): Promise<number>;
  /** Applies all changes or none. Throws EbbError `fenced` when `token` is not the newest. */
  commit(token: number, changes: readonly Change[]): Promise<void>;
  /**
   * `cancelRequested` and `releasedHoldMs` set meanwhile by others are kept when a commit puts an older copy of the
   * job. With `known`, submissions since the last load may be left out: for a caller that goes on with the entities of
   * that load.
   */
  loadActive(of?: 'all' | 'known'): Promise<ActiveState>;
  /**
   * Changes that the engine, which holds the lease and keeps the active state between cycles, cannot know from its own
   * commits. `known`: jobs that it has; they may be left out except for cancel requests. Absent if loading anew is as
   * good. Together with the engine's state it must give the result of `loadActive`.
   */
  changedByOthers?(known: { has(job: JobId): boolean }): Promise<OthersChanges>;

  job(id: JobId): Promise<Job | null>;
  /** Newest first. A page may have fewer than `limit` and still a `next`, where few jobs among many are wanted. */
  jobs(filter: JobFilter, limit: number, after: string | null): Promise<Page<Job>>;
  /** Jobs among `refs` by id, else the newest of that name. */
  findJobs(refs: readonly string[]): Promise<ReadonlyMap<string, Job>>;
  tasks(job: JobId): Promise<readonly Task[]>;
  attempts(job: JobId): Promise<readonly Attempt[]>;
  /** Attempts that ran on the instance, ended or not. */
  attemptsOn(instance: InstanceId): Promise<readonly Attempt[]>;
  attempt(id: AttemptId): Promise<Attempt | null>;
  /** Newest first. */
  instances(live: boolean | null, limit: number, after: string | null): Promise<Page<Instance>>;
  /** Newest first. */
  plans(limit: number, after: string | null): Promise<Page<Plan>>;
  /** Latest explanation of the job. */
  explanation(job: JobId): Promise<Explanation | null>;
  /** Ledger rows of a job, or of an instance, or all. */
  ledger(of: { readonly job: JobId } | { readonly instance: InstanceId } | 'all'): Promise<readonly LedgerRow[]>;
  costs(by: By): Promise<readonly CostRow[]>;
  events(after: number, limit: number): Promise<readonly EventRecord[]>;

  /** All services, by name. */
  services(): Promise<readonly Service[]>;
  service(name: string): Promise<Service | null>;
  /**
   * Writes the service with its events, if the stored one has the version before (1: none of the name is stored): all
   * or nothing. False: another write came first.
   */
  putService(service: Service, events: readonly NewEvent[]): Promise<boolean>;
  /** Removes a service of this version, with its events. False: another write came first. */
  dropService(service: Pick<Service, 'name' | 'version'>, events: readonly NewEvent[]): Promise<boolean>;
  /**
   * Values written by `memory` changes whose key starts so (predictor histories, observed interruptions, clock anchor).
   */
  memory(prefix: string): Promise<ReadonlyMap<string, string>>;
  close(): Promise<void>;
}

/**
 * Retention, so that a store does not grow with every cycle. The latest explanation of a job is kept as long as the
 * job.
 * Final entities age out: a finished job, with its tasks and attempts, once all its attempts have ended; an ended
 * instance, with its ledger, once its bill is settled. They leave no trace but their costs, which stay in every sum. An
 * idempotency key holds equally long, from its submission on, so that it never outlives its job. Unfinished entities
 * are never forgotten.
 */
export interface Retention {
  /** Newest plans kept, and with them the outcomes of their effects. Effects without an outcome are always kept. */
  readonly plans: number;
  /** Newest events kept. Sequence numbers go on ascending. */
  readonly events: number;
  /** Wall days from the end after which final entities age out, at the latest with a commit thereafter; null: never. */
  readonly historyDays: number | null;
}
