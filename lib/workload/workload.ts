import type { JobSpec } from '../domain/job.ts';

/**
 * Input of a simulation: jobs in order of submission, each with its true behaviour. Readers of traces stream;
 * docs/workloads.md has their rules. The truth reaches the simulated fleet and oracles only.
 */

/** True behaviour of a stage, hidden from all policies but oracles. */
export interface StageTruth {
  /** Running time of each task without interruption, s; one positive, finite entry per task. */
  readonly runtimeS: Float64Array;
  /** Failed tries of task i before its success, each of full length. Absent: none fails. */
  readonly failures?: Uint16Array;
}

/** Job as it will be submitted, with the trace's knowledge of it. */
export interface WorkloadJob {
  /** Unique key in the workload, from the trace. Repeats by `scale` end in `~2`, `~3` ... */
  readonly key: string;
  /** Seconds since the workload's start, >= 0. */
  readonly submittedS: number;
  /** Specification within the limits of a job file. */
  readonly spec: JobSpec;
  /** Truth by stage name, complete. */
  readonly truth: ReadonlyMap<string, StageTruth>;
}

/** Unusable line, or file (line 0). */
export interface BadLine {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}

/** Statistics of the input read so far: `toS` and `jobsLimit` end reading early. */
export interface WorkloadReport {
  /** Jobs and tasks of the workload. */
  readonly jobs: number;
  readonly tasks: number;
  readonly bad: { readonly count: number; readonly first: readonly BadLine[] };
  /** Input dropped on purpose, by reason: jobs, or tasks if the reason says so. */
  readonly dropped: ReadonlyMap<string, number>;
  /** Adjusted values, by adjustment. */
  readonly adjusted: ReadonlyMap<string, number>;
}

export interface Workload {
  readonly name: string;
  readonly format: string;
  /** Assumptions of the reader where the trace has no data: sentences for people. */
  readonly notes: readonly string[];
  /** Upper bound of the jobs; null: unknown before the end. */
  readonly mostJobs: number | null;
  /**
   * Jobs by `submittedS`, ties in file order. Each call reads again and gives the same jobs. Ends with EbbError
   * `workload.invalid` if no job is usable.
   */
  jobs(): AsyncIterable<WorkloadJob>;
  /** Report of the latest `jobs()`, so far. */
  report(): WorkloadReport;
}
