import type { JobSpec } from '../domain/job.ts';

/*
 * What a simulation is fed: jobs in the order of their submission, each with what really happens to it. Readers of
 * traces stream (docs/workloads.md has every rule they follow); the truth goes to the simulated fleet and to oracles
 * only.
 */

/** What a stage really does. No policy but an oracle may see it. */
export interface StageTruth {
  /** Running time of each task on an instance that is not taken away, s; one entry per task, positive and finite. */
  readonly runtimeS: Float64Array;
  /** Tries of task i that fail, each after its whole running time, before one succeeds. Absent: none fails. */
  readonly failures?: Uint16Array;
}

/** A job as it will be submitted, and what the trace knows of it. */
export interface WorkloadJob {
  /** Unique in the workload; from the trace. Repeats that `scale` makes end in `~2`, `~3` ... */
  readonly key: string;
  /** Seconds since the workload's start, >= 0. */
  readonly submittedS: number;
  /** Within the limits of a job file. */
  readonly spec: JobSpec;
  /** By stage name: an entry for each stage of the job. */
  readonly truth: ReadonlyMap<string, StageTruth>;
}

/** A line (or a whole file: line 0) that cannot be used. */
export interface BadLine {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}

/** What became of a trace. Covers what has been read: with `toS` or `jobsLimit` reading ends early. */
export interface WorkloadReport {
  /** Jobs and tasks handed out. */
  readonly jobs: number;
  readonly tasks: number;
  readonly bad: { readonly count: number; readonly first: readonly BadLine[] };
  /** What was left out on purpose, by reason: jobs, or tasks where the reason says so. */
  readonly dropped: ReadonlyMap<string, number>;
  /** What was taken otherwise than written, by what was done. */
  readonly adjusted: ReadonlyMap<string, number>;
}

export interface Workload {
  readonly name: string;
  readonly format: string;
  /** What the reader assumes where the trace says nothing: sentences for people. */
  readonly notes: readonly string[];
  /** No more jobs than that come; null: nobody knows before it is read to its end. */
  readonly mostJobs: number | null;
  /**
   * By `submittedS`, ties in the order of the file. Each call reads anew and gives the same jobs. Ends with EbbError
   * `workload.invalid` when not one job could be used.
   */
  jobs(): AsyncIterable<WorkloadJob>;
  /** Of the latest `jobs()`, as far as it has come. */
  report(): WorkloadReport;
}
