import type { EpochMs } from '../kernel/units.ts';
import type { AttemptId, InstanceId } from '../kernel/ids.ts';
import type { PeriodMeasures, ServiceSpec } from '../domain/service.ts';

/** Where the process of a replica runs. */
export interface Located {
  readonly replica: number;
  readonly instance: InstanceId;
  readonly attempt: AttemptId;
}

/** A replica as requests reach it. */
export interface Target extends Located {
  /** Port that its process listens on. */
  readonly port: number;
  /** serve: gets requests while its checks succeed. drain: gets none; those in flight end. */
  readonly mode: 'serve' | 'drain';
}

/** Requests of one service, and where they go. */
export interface Route extends Pick<ServiceSpec, 'target' | 'health' | 'concurrency' | 'drainS' | 'port'> {
  readonly service: string;
  readonly targets: readonly Target[];
}

/** A service, with what counts as slow. */
export type Measured = Pick<Route, 'service' | 'target'>;

export interface TargetState {
  readonly replica: number;
  /** unknown: not checked yet. */
  readonly health: 'unknown' | 'healthy' | 'unhealthy';
  /** Requests that it has not answered yet. */
  readonly inFlight: number;
  /** Why it is not healthy; null otherwise. */
  readonly detail: string | null;
}

/** State of a replica whose service cannot be routed. */
export const unrouted = (replica: number, why: Error): TargetState => ({
  replica,
  health: 'unknown',
  inFlight: 0,
  detail: why.message,
});

/**
 * Load balancer of services: a reverse proxy on one machine, an Application Load Balancer on AWS, queues in a
 * simulation. It checks replicas, spreads requests over healthy ones, and measures.
 */
export interface Traffic {
  /**
   * Makes these the only routes, besides those of the services in `kept`, which stay as they are. Idempotent. Throws
   * `port-in-use` where a service cannot have its port, once all other routes are made.
   */
  route(routes: readonly Route[], kept: ReadonlySet<string>): Promise<void>;
  /** State of each of these replicas, as far as known. */
  states(service: string, located: readonly Located[]): Promise<ReadonlyMap<number, TargetState>>;
  /** Requests that ended in this period; null if nothing was measured. A period is asked for once. */
  measures(of: Measured, period: Period): Promise<Omit<PeriodMeasures, 'replicas'> | null>;
  /** Time until which requests can be asked for at `nowMs`: the end of the next period at the latest. */
  measuredUntil(nowMs: EpochMs): EpochMs;
  /** URL of a service; null until it has one. */
  address(service: string): Promise<string | null>;
  /** A port for a replica's process. `taken`: those of the service's other replicas. */
  port(taken: ReadonlySet<number>): Promise<number>;
}

export interface Period {
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
}
