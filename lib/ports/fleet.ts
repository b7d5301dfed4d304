import type { AttemptId, EffectKey, InstanceId, PoolId } from '../kernel/ids.ts';
import type { EpochMs, Seconds } from '../kernel/units.ts';
import type { AttemptRole, Checkpoint } from '../domain/job.ts';
import type { Bill } from '../domain/ledger.ts';
import type { Observation } from '../domain/observation.ts';
import type { EffectOutcome } from '../domain/plan.ts';
import type { Bid } from '../domain/pool.ts';
import type { Resources } from '../domain/resources.ts';

export interface LaunchRequest {
  readonly key: EffectKey;
  readonly instance: InstanceId;
  /** Launches of one allocation have one pool and one bid, and may be bought by one request. Absent: bought alone. */
  readonly allocation?: EffectKey;
  readonly pool: PoolId;
  readonly bid: Bid;
}

/** Everything needed to run one attempt, so that an executor needs no store. */
export interface StartRequest {
  readonly key: EffectKey;
  readonly attempt: AttemptId;
  readonly instance: InstanceId;
  /** `{index}` already replaced. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** References to secrets by variable; their values are looked up where the program starts. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly resources: Resources;
  /** Container image, where tasks run in containers; absent: the deployment's. Others run the command as it is. */
  readonly image?: string;
  /** Port that the program listens on and that others are to reach; absent: none. */
  readonly port?: number;
  readonly timeoutS: Seconds | null;
  readonly checkpoint: Checkpoint | null;
  /** Absent: original. */
  readonly role?: AttemptRole;
  /** Names the directory that attempts of the task share for checkpoints. A copy has one of its own, empty at first. */
  readonly task: {
    readonly job: string;
    readonly stage: string;
    readonly index: number;
    readonly number: number;
    /** Number of its round's first attempt. At most one attempt of a round publishes outputs. Absent: `number`. */
    readonly round?: number;
  };
}

export interface StopRequest {
  readonly key: EffectKey;
  readonly attempt: AttemptId;
  readonly instance: InstanceId;
  readonly why: 'preempted' | 'cancelled' | 'timed-out' | 'superseded';
  /**
   * Target of a move: the task goes on there from its checkpoint. The end of such an attempt is reported as
   * `preempted`, or as `interrupted` if its instance ended before it had saved. Absent: no move.
   */
  readonly to?: InstanceId;
}

export interface ReleaseRequest {
  readonly key: EffectKey;
  readonly instance: InstanceId;
}

/** An instance as the provider knows it: to find instances missing in the store (crash between effect and confirm). */
export interface FleetInstance {
  readonly instance: InstanceId;
  readonly pool: PoolId;
  readonly bid: Bid;
  readonly launchedMs: EpochMs;
  readonly live: boolean;
}

export interface LogChunk {
  readonly text: string;
  /** Pass as `offset` to go on. */
  readonly nextOffset: number;
  /** Known length of the log: more than `nextOffset` if and only if there is more now. */
  readonly totalBytes: number;
  /** Both outputs of the task are one log here, and this is it, whichever was asked for. Absent: they are two. */
  readonly isMerged?: true;
  /** A page for people that shows the log. */
  readonly url?: string;
}

/** The end of a log. */
export interface LogEnd {
  readonly text: string;
  readonly isMerged?: true;
}

/**
 * Capacity and execution: EC2 and ECS, local supervisors, or a simulation. One outcome per request, in order, never a
 * count. Every call is idempotent by `key`: repeated after a crash it has no further effect and the same answer.
 * Contract: test/contract/fleet.ts.
 */
export interface Fleet {
  launch(requests: readonly LaunchRequest[]): Promise<readonly EffectOutcome[]>;
  /** `refused: instance-gone` when the instance has ended or been warned. */
  start(requests: readonly StartRequest[]): Promise<readonly EffectOutcome[]>;
  /** Checkpoint signal, grace, SIGTERM, SIGKILL. `done` as soon as it is under way; the end is an observation. */
  stop(requests: readonly StopRequest[]): Promise<readonly EffectOutcome[]>;
  release(requests: readonly ReleaseRequest[]): Promise<readonly EffectOutcome[]>;
  list(): Promise<readonly FleetInstance[]>;
  /** Everything after the given sequence per instance (0 or absent: from the start), ordered per instance. */
  observe(after: ReadonlyMap<InstanceId, number>): Promise<readonly Observation[]>;
  /** Calls back when there may be something to observe. Returns how to stop. */
  onChange(wake: () => void): () => void;
  /** Cost of the instance until `until` (or its end): the provider's bill. */
  bill(instance: InstanceId, until: EpochMs): Promise<Bill>;
  /** The page for people that shows a log, by the name that `attempt-started` gave it. */
  logUrl?(log: string): string;
  logs(attempt: AttemptId, stream: 'stdout' | 'stderr', offset: number, maxBytes: number): Promise<LogChunk>;
  /** The last lines of a log, if a provider finds them without reading all before them. Absent: use `logs`. */
  logEnd?(attempt: AttemptId, stream: 'stdout' | 'stderr'): Promise<LogEnd>;
  /** Stops watching; instances and tasks live on. */
  close(): Promise<void>;
}

export type { Bill };
