import type { JobClass, JobState } from '../domain/job.ts';
import type { PurchaseOption } from '../domain/pool.ts';

/** Job refused at submission, as any driver would refuse it. */
export interface Refusal {
  readonly key: string;
  readonly code: string;
  /** Reason; empty past the first TEXTS_KEPT of a code. */
  readonly what: string;
  /** Remedy; empty if none is known. */
  readonly next: string;
}

/** User policy with refused answers. */
export interface RefusedPolicy {
  readonly stage: string;
  readonly policy: string;
  readonly standIn: string;
  /** Reason of the first refusal. */
  readonly firstWhy: string;
  /** Refused answers; repetitions within a decision count once. */
  readonly times: number;
}

export type EndReason = 'done' | 'time-over' | 'aborted';

export interface CycleTotals {
  readonly count: number;
  readonly solved: number;
  /** Wall time of the solvers, ms: not an input of decisions. */
  readonly solverMs: number;
}

/** Most refused jobs per code with their reason; further ones have name and code. */
export const TEXTS_KEPT = 100;

/** Most jobs past the end that are counted: a workload may be endless. */
export const COUNTED_PAST_END = 100_000;

/**
 * Outcome of one simulation as plain data, sent between threads, printed as JSON, and drawn. Data of up to hundreds of
 * thousands of rows is in columns of equal length. Times in ms since the epoch, money in USD.
 */
export interface RunOutcome {
  readonly preset: string;
  readonly seed: number;
  /** Seed of the generated market, if each seed has one; null: all seeds share a market. */
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
  /** Services in the order of their names; absent: none. */
  readonly services?: readonly ServiceUse[];
  /** Absent: not computed, or the run was aborted. */
  readonly references?: References;
  /** Policies with refused answers; absent: none. */
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
  /** Jobs due after the end of the simulation, counted up to COUNTED_PAST_END; not in other figures. */
  readonly notSubmitted: number;
  /**
   * Admitted jobs with a deadline. Missed: those that did not succeed by it, without those that still had time at the
   * end.
   */
  readonly deadlines: number;
  readonly missed: number;
  readonly workUsd: number;
  readonly wastedUsd: number;
  /** Running time of superseded attempts. */
  readonly speculativeUsd: number;
  /** Time of moves, in which tasks make no progress. */
  readonly movedUsd: number;
  readonly idleUsd: number;
  /** work + wasted + speculative + moved + idle: what the provider bills. */
  readonly billedUsd: number;
  /** Part of the charges that was refunded, and is in no other figure. */
  readonly refundedUsd: number;
  /** The same work at the on-demand prices of the instances it ran on, nothing wasted, speculative, moved or idle. */
  readonly onDemandUsd: number;
  readonly instanceHours: number;
  /** Instance-hours of work over all, by the requested share of each instance. */
  readonly utilisation: number;
  readonly launches: number;
  readonly interruptions: number;
  readonly attempts: number;
  /** Attempts that ended to go on elsewhere. */
  readonly moves: number;
  /** Hours of running time repeated after interruptions, preemptions and failures. */
  readonly lostHours: number;
  /** Time from submission to completion of successful jobs, s, at QUANTILES. Empty without such jobs. */
  readonly completionS: Readonly<Partial<Record<JobClass, readonly number[]>>>;
  /** Time past the deadline of late successful jobs, s, at QUANTILES. */
  readonly latenessS: readonly number[];
}

export const QUANTILES = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1] as const;

/**
 * Columns with one row per admitted job in order of submission. NaN for events that have not happened, and values not
 * requested.
 */
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
  readonly speculativeUsd: Float64Array;
  readonly movedUsd: Float64Array;
  /** Its part of time that was paid and unused (lib/cycle/money/ledger.ts). */
  readonly idleUsd: Float64Array;
  readonly onDemandUsd: Float64Array;
  /** Attempts ended by the market. */
  readonly interruptions: Float64Array;
}

/** Live instances over time as steps at `atMs`, at most SERIES_POINTS: the highest of each stretch is kept. */
export interface InstanceSeries {
  readonly atMs: Float64Array;
  readonly counts: Readonly<Record<PurchaseOption, Float64Array>>;
  /** Sum of their vCPUs. */
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

/** What reached a service, how it was answered, and what that cost. */
export interface ServiceUse {
  readonly service: string;
  /** Latency that an answer may take, s. */
  readonly latencyS: number;
  /** Share of requests that are to be answered in time. */
  readonly target: number;
  readonly requests: number;
  /** Later than the latency, failed ones included. */
  readonly slow: number;
  readonly failed: number;
  /** Hours of replicas that served. */
  readonly replicaHours: number;
  /** Replicas that the market took. */
  readonly interruptions: number;
  /** Charges of its replicas, with their part of what idled. */
  readonly billedUsd: number;
  /** Work of its replicas at the on-demand prices of their instances. */
  readonly onDemandUsd: number;
}

/** Times past the deadline of late successful jobs. */
export const latenessesS = (jobs: JobColumns): number[] =>
  jobs.state.flatMap((state, i) => {
    const lateS = ((jobs.finishedMs[i] ?? NaN) - (jobs.deadlineMs[i] ?? NaN)) / 1000;
    return state === 'succeeded' && lateS > 0 ? [lateS] : [];
  });

/** Times from submission to completion of a class's successful jobs. */
export const completionsS = (jobs: JobColumns, of: JobClass): number[] =>
  jobs.class.flatMap((c, i) =>
    c === of && jobs.state[i] === 'succeeded' ? [((jobs.finishedMs[i] ?? 0) - (jobs.submittedMs[i] ?? 0)) / 1000] : [],
  );
