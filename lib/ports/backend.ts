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
import type { Market } from './market.ts';
import type { Store } from './store.ts';

/** A job with its files' places, and notes for who submits it. */
export interface Placed {
  readonly spec: JobSpec;
  readonly notes: readonly string[];
  /** Takes back what was made for the job, should it be refused after all. Absent: nothing was. */
  readonly undo?: () => void;
}

/** What the API's handlers stand on. Local mode and the Lambdas each compose one. */
export interface Backend {
  readonly store: Store;
  readonly clock: Clock;
  /** For ids. */
  readonly random: Uniform;
  readonly market: Market;
  readonly fleet: Pick<Fleet, 'logs' | 'logEnd' | 'bill' | 'logUrl'>;
  readonly limits: Snapshot['limits'];
  /**
   * Who owns a job that names no owner, and what its relative folders are relative to; absent: `anonymous`, nothing.
   */
  readonly submitter?: NormaliseOptions;
  /**
   * The job with its working directories as its tasks will find them, and what its submitter should know of that.
   * Absent: as they are. Throws `job-file.invalid` for files that tasks here cannot reach, `job.input-missing` for
   * files that are known to be missing.
   */
  place?(spec: JobSpec, job: JobId): Placed | Promise<Placed>;
  /**
   * What submission can say at once. Throws `job.unplaceable` (which constraint excludes how many pools) or
   * `job.deadline-past`.
   */
  admit(spec: JobSpec): Promise<Admission>;
  /** What is forecast now of those of the pools that are spot and quote a price. */
  forecast(pools: readonly Pool[]): Promise<PoolForecasts>;
  /** Who may do what beyond what the way in allows. Absent: whoever gets in may do everything. */
  readonly access?: Access;
  /** Tells the engine that there is something to do. Cheap; calls coalesce. */
  wake(): void;
  /**
   * How long what is over is kept, and where it is afterwards: a place in S3 that ends with a slash, or nowhere.
   * Absent: for good.
   */
  readonly history?: { readonly days: number; readonly archive: string | null };
  /** Answers health checks: is the engine working, since when, last cycle, version. */
  health(): Promise<Health>;
}

/** Jobs belong to their submitters: nobody submits in another name, and only submitters and administrators cancel. */
export interface Access {
  readonly ownerIsCaller: boolean;
  /** Patterns of callers (lib/api/access.ts) that may cancel any job. */
  readonly admins: readonly string[];
}

export interface PoolForecasts {
  /** How it was made; null: by what there is no choice of. */
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
  /** How full the disk is that tasks write to. Null: not measured yet, or there is no such disk. */
  readonly disk: (DiskUse & { readonly level: DiskLevel }) | null;
}
