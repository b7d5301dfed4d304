import type { Clock } from '../kernel/clock.ts';
import type { JobId } from '../kernel/ids.ts';
import type { Uniform } from '../kernel/random.ts';
import type { DiskLevel, DiskUse } from '../domain/disk-budget.ts';
import type { Admission, JobSpec } from '../domain/job.ts';
import type { ForecastOrigin, PoolForecast } from '../domain/forecast.ts';
import type { Pool } from '../domain/pool.ts';
import type { NormaliseOptions } from '../domain/job-file/normalise.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import type { Fleet } from './fleet.ts';
import type { ServiceSpec } from '../domain/service.ts';
import type { Market } from './market.ts';
import type { Store } from './store.ts';

/** A job with its files' places, and notes for who submits it. */
export interface Placed {
  readonly spec: JobSpec;
  readonly notes: readonly string[];
  /** Removes the files made for a job that is refused after all. Absent: none were made. */
  readonly undo?: () => void;
}

/** Base of the API's handlers. Local mode and the Lambdas each compose one. */
export interface Backend {
  readonly store: Store;
  readonly clock: Clock;
  /** Random stream of ids. */
  readonly random: Uniform;
  readonly market: Market;
  readonly fleet: Pick<Fleet, 'logs' | 'logEnd' | 'bill' | 'logUrl'>;
  readonly limits: Snapshot['limits'];
  /** Defaults of a job file: owner, and folder of relative paths; absent: `anonymous`, none. */
  readonly submitter?: NormaliseOptions;
  /**
   * The job with the working directories that its tasks will have, and notes for its submitter. Absent: unchanged.
   * Throws `job-file.invalid` for files that tasks here cannot reach, `job.input-missing` for files that are known to
   * be missing.
   */
  place?(spec: JobSpec, job: JobId): Placed | Promise<Placed>;
  /**
   * Findings at submission. Throws `job.unplaceable` (which constraint excludes how many pools) or `job.deadline-past`.
   */
  admit(spec: JobSpec): Promise<Admission>;
  /** Present forecast for the spot pools with a price. */
  forecast(pools: readonly Pool[]): Promise<PoolForecasts>;
  /** Rights beyond authentication. Absent: every authenticated caller may do everything. */
  readonly access?: Access;
  /** Services. Absent: they are not turned on here. */
  readonly services?: ServicesBackend;
  /** Wakes the engine. Cheap; calls coalesce. */
  wake(): void;
  /**
   * Time for which finished jobs are kept, and their place afterwards: a place in S3 that ends with a slash, or none.
   * Absent: for good.
   */
  readonly history?: { readonly days: number; readonly archive: string | null };
  /** Answer to health checks: state of the engine, since when, last cycle, version. */
  health(): Promise<Health>;
}

/** What services need of the place where they run. */
export interface ServicesBackend {
  /** Names of the scaling policies. */
  readonly scalings: readonly string[];
  /** Findings about a replica, as `admit` and `place` find them for a job. Throws as they do. */
  admit(spec: ServiceSpec): Promise<Admission>;
  /** URL at which a service is reached; null: none yet. */
  address(service: string): Promise<string | null>;
  /** Wakes the controller. Cheap; calls coalesce. */
  wake(): void;
}

/** Jobs belong to their submitters: nobody submits in another name, and only submitters and administrators cancel. */
export interface Access {
  readonly ownerIsCaller: boolean;
  /** Patterns of callers (lib/api/access.ts) that may cancel any job. */
  readonly admins: readonly string[];
}

export interface PoolForecasts {
  /** Origin of the forecast; null without a choice. */
  readonly origin: ForecastOrigin | null;
  readonly pools: readonly PoolForecast[];
}

export interface Health {
  readonly status: 'ok' | 'degraded';
  /** Why it is degraded, one sentence; null where it is not. */
  readonly detail: string | null;
  readonly version: string;
  readonly engineStartedMs: number;
  readonly lastCycleMs: number | null;
  readonly market: { readonly name: string; readonly fromMs: number; readonly toMs: number; readonly speed: number };
  readonly preset: string;
  /** State of the disk that tasks write to. Null: not measured yet, or no such disk. */
  readonly disk: (DiskUse & { readonly level: DiskLevel }) | null;
}
