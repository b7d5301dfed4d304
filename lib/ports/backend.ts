import type { Clock } from '../kernel/clock.ts';
import type { JobId } from '../kernel/ids.ts';
import type { Uniform } from '../kernel/random.ts';
import type { Admission, JobSpec } from '../domain/job.ts';
import type { ForecastOrigin, PoolForecast } from '../domain/forecast.ts';
import type { Pool } from '../domain/pool.ts';
import type { NormaliseOptions } from '../domain/job-file/normalise.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import type { Fleet } from './fleet.ts';
import type { Market } from './market.ts';
import type { Store } from './store.ts';

/** What the API's handlers stand on. Local mode and the Lambdas each compose one. */
export interface Backend {
  readonly store: Store;
  readonly clock: Clock;
  /** For ids. */
  readonly random: Uniform;
  readonly market: Market;
  readonly fleet: Pick<Fleet, 'logs' | 'bill' | 'logUrl'>;
  readonly limits: Snapshot['limits'];
  /** Who owns a job that names no owner, and what its relative folders are relative to; absent: `anonymous`, nothing. */
  readonly submitter?: NormaliseOptions;
  /**
   * The job with its working directories as its tasks will find them, and what its submitter should know of that. Absent: as
   * they are. Throws `job-file.invalid` for files that tasks here cannot reach.
   */
  place?(spec: JobSpec, job: JobId): { readonly spec: JobSpec; readonly notes: readonly string[] };
  /** What submission can say at once. Throws `job.unplaceable` (which constraint excludes how many pools) or `job.deadline-past`. */
  admit(spec: JobSpec): Promise<Admission>;
  /** What is forecast now of those of the pools that are spot and quote a price. */
  forecast(pools: readonly Pool[]): Promise<PoolForecasts>;
  /** Tells the engine that there is something to do. Cheap; calls coalesce. */
  wake(): void;
  /** How long what is over is kept, and where it is afterwards: a place in S3 that ends with a slash, or nowhere. Absent: for good. */
  readonly history?: { readonly days: number; readonly archive: string | null };
  /** Answers health checks: is the engine working, since when, last cycle, version. */
  health(): Promise<Health>;
}

export interface PoolForecasts {
  /** How it was made; null: by what there is no choice of. */
  readonly origin: ForecastOrigin | null;
  readonly pools: readonly PoolForecast[];
}

export interface Health {
  readonly status: 'ok' | 'stale';
  readonly version: string;
  readonly engineStartedMs: number;
  readonly lastCycleMs: number | null;
  readonly market: { readonly name: string; readonly fromMs: number; readonly toMs: number; readonly speed: number };
  readonly preset: string;
}
