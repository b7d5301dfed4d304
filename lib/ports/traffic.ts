import type { EpochMs } from '../kernel/units.ts';
import type { InstanceId } from '../kernel/ids.ts';
import type { PeriodMeasures, ServiceSpec } from '../domain/service.ts';

/** A replica as requests reach it. */
export interface Target {
  readonly replica: number;
  readonly instance: InstanceId;
  readonly port: number;
  /** serve: gets requests while its checks succeed. drain: gets none; those in flight end. */
  readonly mode: 'serve' | 'drain';
}

/** Requests of one service, and where they go. */
export interface Route extends Pick<ServiceSpec, 'target' | 'health' | 'concurrency' | 'drainS' | 'port'> {
  readonly service: string;
  readonly targets: readonly Target[];
}

export interface TargetState {
  readonly replica: number;
  /** unknown: not checked yet. */
  readonly health: 'unknown' | 'healthy' | 'unhealthy';
  /** Requests that it has not answered yet. */
  readonly inFlight: number;
  /** Why it is not healthy; null otherwise. */
  readonly detail: string | null;
}

/**
 * Load balancer of services: a reverse proxy on one machine, an Application Load Balancer on AWS, queues in a
 * simulation. It checks replicas, spreads requests over healthy ones, and measures.
 */
export interface Traffic {
  /** Makes these the only routes. Idempotent. Throws `port-in-use` where a service cannot have its port. */
  route(routes: readonly Route[]): Promise<void>;
  /** State of each target by replica, as far as known. */
  states(service: string): Promise<ReadonlyMap<number, TargetState>>;
  /** Requests that ended in this period; null if nothing was measured. A period is asked for once. */
  measures(service: string, period: Period): Promise<Omit<PeriodMeasures, 'replicas'> | null>;
  /** URL of a service; null until it has one. */
  address(service: string): Promise<string | null>;
  /** A port for a replica that none of these have. */
  port(taken: ReadonlySet<number>): Promise<number>;
}

export interface Period {
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
}
