import type { JobClass, JobState } from '../domain/job.ts';
import type { PurchaseOption } from '../domain/pool.ts';

/** A job that submission turned down, as it would have been in every other driver. */
export interface Refusal {
  readonly key: string;
  readonly code: string;
  /** Empty past the first TEXTS_KEPT of a code. */
  readonly what: string;
  /** What to do about it; empty where nothing is known. */
  readonly next: string;
}

/** A policy of the user's own of which answers were refused. */
export interface RefusedPolicy {
  readonly stage: string;
  readonly policy: string;
  readonly standIn: string;
  /** Fault of the first refused answer. */
  readonly firstWhy: string;
  /** Refused answers; one that repeats within a decision counts once. */
  readonly times: number;
}

export type EndReason = 'done' | 'time-over' | 'aborted';

export interface CycleTotals {
  readonly count: number;
  readonly solved: number;
  /** Real time that solvers took, ms: no part of any decision. */
  readonly solverMs: number;
}

/** Refused jobs whose reason is kept word for word, of each code: of the others the name and the code are. */
export const TEXTS_KEPT = 100;

/** A workload may be endless beside its window: past so many jobs that come too late nothing more is counted. */
export const COUNTED_PAST_END = 100_000;

/**
 * What one simulation came to, as plain data: what is sent between threads, printed as JSON, and drawn. Columns of
 * equal length where there may be hundreds of thousands of rows. Times in ms since the epoch, money in USD.
 */
export interface RunOutcome {
  readonly preset: string;
  readonly seed: number;
  /** Of the generated market where the seed has one of its own; null: a market that all seeds share. */
  readonly marketSeed: number | null;
  readonly fromMs: number;
  readonly endMs: number;
  readonly ended: EndReason;
  readonly steps: number;
  readonly cycles: CycleTotals;
  readonly totals: Totals;
  readonly jobs: JobColumns;
  readonly instances: InstanceSeries;
  readonly pools: readonly PoolUse[];
  readonly refused: readonly Refusal[];
  /** Absent: not computed, or the run was aborted. */
  readonly references?: References;
  /** Absent: none were. */
  readonly refusedPolicies?: readonly RefusedPolicy[];
}

/** Costs that a run's own is held against: of the jobs that it admitted, on its market, under its billing. */
export interface References {
  /** Cheapest on-demand way that knows nothing of the future, USD; null: some task fits no on-demand pool. */
  readonly onDemandUsd: number | null;
  /**
   * No way of doing all of it in time costs less before refunds, whatever it knows of the future, USD; null: too many
   * tasks.
   */
  readonly lowerBoundUsd: number | null;
}

export interface Totals {
  readonly jobs: number;
  readonly tasks: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly unfinished: number;
  readonly refused: number;
  /** Jobs that come after the end of the simulation, counted up to COUNTED_PAST_END; in no other figure. */
  readonly notSubmitted: number;
  /**
   * Jobs with a deadline that were admitted, and how many of them did not succeed by it; those that still had time at
   * the end did not miss it.
   */
  readonly deadlines: number;
  readonly missed: number;
  readonly workUsd: number;
  readonly wastedUsd: number;
  readonly idleUsd: number;
  /** work + wasted + idle: what the provider bills. */
  readonly billedUsd: number;
  /** Part of the charges that was refunded, and is in no other figure. */
  readonly refundedUsd: number;
  /** The same work at the on-demand prices of the instances it ran on, with nothing wasted or idle. */
  readonly onDemandUsd: number;
  readonly instanceHours: number;
  /** Instance-hours of work over all: by the share of the instance that tasks asked for. */
  readonly utilisation: number;
  readonly launches: number;
  readonly interruptions: number;
  readonly attempts: number;
  /** Hours of running time done again because an interruption, a pre-emption or a failure lost it. */
  readonly lostHours: number;
  /** Submission to completion of jobs that succeeded, s, at QUANTILES. Empty without such jobs. */
  readonly completionS: Readonly<Partial<Record<JobClass, readonly number[]>>>;
  /** Completion after the deadline of jobs that succeeded late, s, at QUANTILES. */
  readonly latenessS: readonly number[];
}

export const QUANTILES = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1] as const;

/** One row per admitted job in order of submission. NaN for what has not happened or was not asked for. */
export interface JobColumns {
  readonly key: readonly string[];
  readonly name: readonly string[];
  readonly owner: readonly string[];
  readonly class: readonly JobClass[];
  readonly state: readonly JobState[];
  readonly tasks: Float64Array;
  readonly submittedMs: Float64Array;
  readonly startedMs: Float64Array;
  readonly finishedMs: Float64Array;
  readonly deadlineMs: Float64Array;
  readonly workUsd: Float64Array;
  readonly wastedUsd: Float64Array;
  /** Its part of time that was paid and unused (lib/cycle/money/ledger.ts). */
  readonly idleUsd: Float64Array;
  readonly onDemandUsd: Float64Array;
  /** Attempts that the market ended. */
  readonly interruptions: Float64Array;
}

/**
 * Live instances over time as steps at `atMs`, thinned to SERIES_POINTS at most (the highest of each stretch is kept).
 */
export interface InstanceSeries {
  readonly atMs: Float64Array;
  readonly counts: Readonly<Record<PurchaseOption, Float64Array>>;
  /** vCPUs of all of them. */
  readonly vcpus: Float64Array;
}

export interface PoolUse {
  readonly pool: string;
  readonly option: PurchaseOption;
  readonly launches: number;
  readonly interruptions: number;
  readonly refused: number;
  readonly hours: number;
  readonly billedUsd: number;
  readonly onDemandUsd: number;
}

/** Past their deadlines, of the jobs that succeeded late. */
export const latenessesS = (jobs: JobColumns): number[] =>
  jobs.state.flatMap((state, i) => {
    const lateS = ((jobs.finishedMs[i] ?? NaN) - (jobs.deadlineMs[i] ?? NaN)) / 1000;
    return state === 'succeeded' && lateS > 0 ? [lateS] : [];
  });

/** From submission to completion, of the jobs of a class that succeeded. */
export const completionsS = (jobs: JobColumns, of: JobClass): number[] =>
  jobs.class.flatMap((c, i) =>
    c === of && jobs.state[i] === 'succeeded' ? [((jobs.finishedMs[i] ?? 0) - (jobs.submittedMs[i] ?? 0)) / 1000] : [],
  );
