import type { InstanceId, JobId } from '../kernel/ids.ts';
import { seconds, type EpochMs, type Seconds } from '../kernel/units.ts';
import type { Caller } from './caller.ts';
import type { Constraints, JobSpec, StageSpec } from './job.ts';

/** What a service promises: so many per cent of its requests are answered within the latency. */
export interface ServiceTarget {
  readonly latencyS: Seconds;
  /** In (0, 100). */
  readonly percent: number;
}

/** HTTP check of a replica: GET of a path; any status below 400 is healthy. */
export interface HealthCheck {
  readonly path: string;
  readonly intervalS: Seconds;
  readonly timeoutS: Seconds;
  /** Wall time from the start of its process in which a replica may be unhealthy without being replaced. */
  readonly graceS: Seconds;
  /** Failed checks in a row that make a healthy replica unhealthy. */
  readonly failures: number;
}

/** A number of replicas, or a share of those wanted. */
export type ReplicaAmount = { readonly count: number } | { readonly share: number };

export interface UpdateRule {
  /** Replicas beyond the wanted number while an update runs; at least 1 where `maxUnavailable` is 0. */
  readonly maxSurge: ReplicaAmount;
  /** Replicas that may be missing while an update runs. */
  readonly maxUnavailable: ReplicaAmount;
}

/** A service file, checked: units resolved, defaults filled in. */
export interface ServiceSpec {
  readonly name: string;
  readonly owner: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Job of one replica: one stage of one task. `PORT` is set for each replica. */
  readonly replica: JobSpec;
  readonly target: ServiceTarget;
  /** Requests per second that one replica serves within the target; null: learned from measurements. */
  readonly capacityRps: number | null;
  /** Most requests at once in one replica; the rest wait. Null: no limit. */
  readonly concurrency: number | null;
  /** Name of the scaling policy. */
  readonly scaling: string;
  readonly min: number;
  readonly max: number;
  readonly health: HealthCheck;
  /** Longest wall time for the requests in flight of a replica that is taken out. */
  readonly drainS: Seconds;
  readonly update: UpdateRule;
  /**
   * Utility of a share of requests in time, in [0, 1] each, ascending. Null: linear from 0 at none to 1 at the target
   * (Tributary, section 2.2).
   */
  readonly utility: readonly (readonly [share: number, utility: number])[] | null;
  /** Port of the service on the machine of the engine; null: any free one. */
  readonly port: number | null;
}

/** A specification of a service; each `apply` of a changed one adds a revision. */
export interface Revision {
  /** Ascends from 1. */
  readonly number: number;
  readonly spec: ServiceSpec;
  readonly atMs: EpochMs;
  /** Absent: not known. */
  readonly by?: Caller;
  /**
   * Revision whose replicas it has: that which it brings back, or from which it differs in rules alone. Absent: none.
   */
  readonly of?: number;
}

/**
 * starting: waits for capacity, or for its first healthy check. healthy: serves. unhealthy: it served, and its checks
 * fail. draining: no new requests; those in flight end. stopping: its job is being ended.
 */
export type ReplicaPhase = 'starting' | 'healthy' | 'unhealthy' | 'draining' | 'stopping';

/** A process of the service, as a job of one task that moves from instance to instance where those are lost. */
export interface Replica {
  /** Ascends within the service; never used again. */
  readonly number: number;
  readonly revision: number;
  readonly job: JobId;
  /** Port on its instance. */
  readonly port: number;
  readonly phase: ReplicaPhase;
  readonly sinceMs: EpochMs;
  /** Time at which its process was first seen to run, where it runs now; null while it waits. */
  readonly seenMs: EpochMs | null;
  /** True once a check succeeded. */
  readonly hasServed: boolean;
  /** Pools that it is to begin in, where it relocates others; absent: any that its service allows. */
  readonly within?: Within;
  /** Why it is going or not healthy, one sentence; null: nothing to say. */
  readonly detail: string | null;
}

/** An update that goes on: replicas of the current revision take the place of the others. */
export interface Rollout {
  readonly revision: number;
  /** Last revision that was healthy; null: none has been. */
  readonly from: number | null;
  readonly sinceMs: EpochMs;
  /** Replicas of the revision that ended or stayed unhealthy before they served. */
  readonly failures: number;
}

/** Requests of one monitoring period. */
export interface PeriodMeasures {
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
  readonly requests: number;
  /** Answered later than the target's latency. */
  readonly slow: number;
  /** Without an answer of a replica: nobody to serve them, a full queue, or a broken connection. */
  readonly failed: number;
  /** Quantiles of the answers' latency, seconds; null without any. */
  readonly p50S: number | null;
  readonly p95S: number | null;
  readonly p99S: number | null;
  /** Requests that waited for a replica at the end of the period. */
  readonly queued: number;
  /** Healthy replicas at its end. */
  readonly replicas: number;
}

export interface LearnedCapacity {
  /** Most requests per second that were served in time, or nine tenths of what was not. */
  readonly rps: number;
  /** True: more than that was too slow once. False: more has not been tried. */
  readonly isLimit: boolean;
}

/** Load that was measured, and what follows from it. */
export interface ServiceLoad {
  readonly periodS: Seconds;
  /** Requests per wall second of each period, oldest first; null where nothing was measured. */
  readonly rps: readonly (number | null)[];
  /** End of the last period. */
  readonly endMs: EpochMs;
  readonly last: PeriodMeasures | null;
  /** What one replica serves in time, as far as measured; null: nothing was. */
  readonly learned: LearnedCapacity | null;
  /** Share of the expected load to be ready for beyond it, because too many requests were slow. Absent: none. */
  readonly headroom?: number;
  /** Sums since the service began. */
  readonly requests: number;
  readonly slow: number;
  readonly failed: number;
}

/** What plans need to know of a service. */
export interface ServiceNeed extends Pick<ServiceSpec, 'utility'> {
  readonly name: string;
  /** Replicas that the load needs, spare ones not counted. */
  readonly needed: number;
  /** Share of requests that are to be in time, in (0, 1). */
  readonly target: number;
  /** Most replicas on an instance, and in a pool as far as others are sold; null: any number, or as its file says. */
  readonly together: number | null;
  /** What a replica of its current revision is; absent: what its jobs are. */
  readonly stage?: StageSpec;
  /** Instance that its replicas are leaving; absent: none. */
  readonly leaving?: InstanceId;
}

/** Pools that match each list. */
export type Within = Required<Pick<Constraints, 'instanceTypes' | 'zones' | 'purchaseOptions'>>;

/** The replicas of one instance are to go where they cost less. */
export interface Relocation {
  readonly instance: InstanceId;
  readonly within: Within;
  /** One sentence. */
  readonly reason: string;
}

/** What a plan says of a service that runs. */
export interface ServicePlan {
  readonly service: string;
  /** Replicas beyond those that the load needs, for those that may be lost. */
  readonly spare: number;
  /** Null: its replicas are where they are to be. */
  readonly relocation: Relocation | null;
}
/** The last plan of each service, in the memory of the store: decisions write it, the controller reads it. */
export const SERVICE_PLAN_PREFIX = 'service-plan/';

/** Replicas wanted now, with the reason. */
export interface Wanted {
  /** All of them. */
  readonly replicas: number;
  /** Part of them that is spare. */
  readonly spare: number;
  readonly reason: string;
}

export type ServiceState = 'deploying' | 'healthy' | 'degraded' | 'failing' | 'deleting';

/**
 * A service and its replicas: one record, replaced as a whole by compare-and-set on `version`, so that two controllers,
 * or a controller and a person, never both act on the same state.
 */
export interface Service {
  readonly name: string;
  /** Ascends with each write. */
  readonly version: number;
  /** Newest last; the last few. */
  readonly revisions: readonly Revision[];
  readonly createdMs: EpochMs;
  readonly state: ServiceState;
  /** One sentence. */
  readonly detail: string;
  readonly wanted: Wanted;
  /** Set by a person in place of the scaling policy; null: the policy decides. */
  readonly fixedReplicas: number | null;
  readonly isDeleting: boolean;
  readonly replicas: readonly Replica[];
  readonly nextReplica: number;
  /** Last revision all of whose replicas were healthy. */
  readonly good: number | null;
  readonly rollout: Rollout | null;
  /** A relocation that goes on; absent: none does. */
  readonly relocation?: Relocation & { readonly sinceMs: EpochMs };
  /** No relocation begins before; absent: one may. */
  readonly noRelocationBeforeMs?: EpochMs;
  /** No replica is begun before, after failures. */
  readonly notBeforeMs: EpochMs | null;
  /** Replicas in a row that failed before they served. */
  readonly failuresInARow: number;
  /** The last failure of a replica, one sentence; null: none since one was healthy for a while. */
  readonly lastFailure: string | null;
  readonly load: ServiceLoad;
}

/** The specification in force. Throws for a service without revisions, which never exists. */
export function specOf({ name, revisions }: Pick<Service, 'name' | 'revisions'>): Revision {
  const last = revisions.at(-1);
  if (last === undefined) throw new RangeError(`the service ${name} has no revision`);
  return last;
}

/** The revision whose replicas a revision's are: another one where it brings that back, or changed no replica. */
export const rootOf = ({ revisions }: Pick<Service, 'revisions'>, number: number): number =>
  revisions.find((r) => r.number === number)?.of ?? number;

/** Length of the future that a replica is planned for: it has no end of its own. */
export const REPLICA_AHEAD_S: Seconds = seconds(3600);

/** Label of a replica's job that names its service. */
export const SERVICE_LABEL = 'ebb.service';
/** Label of a replica's job that has its revision. */
export const REVISION_LABEL = 'ebb.revision';

/** A whole number of replicas of `wanted`, rounded up or down. */
export const replicasOf = (amount: ReplicaAmount, wanted: number, round: 'up' | 'down'): number =>
  'count' in amount ? amount.count : (round === 'up' ? Math.ceil : Math.floor)(amount.share * wanted);
