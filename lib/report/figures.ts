import type { BatchClass } from '../domain/job.ts';
import type { Estimate } from './bootstrap.ts';

export interface Comparison {
  readonly method: Method;
  readonly fromMs: readonly number[];
  readonly seeds: readonly number[];
  /** Presets in order of appearance. */
  readonly presets: readonly PresetFigures[];
  /** Differences of every two presets with common cells. */
  readonly differences: readonly Difference[];
  /** Number of requested runs. */
  readonly planned: number;
  /** Doubts about the figures; empty: none. */
  readonly warnings: readonly string[];
}

/** Method of the intervals. */
export interface Method {
  readonly units: 'markets' | 'windows' | 'seeds' | 'none';
  readonly n: number;
  readonly level: number;
  readonly resamples: number;
  readonly text: string;
}

/**
 * Figures of one preset: sums over its runs, and estimates per run or as ratios of sums. Money in USD, durations in s.
 */
export interface PresetFigures {
  readonly preset: string;
  readonly runs: number;
  /** Aborted runs: part of the sums, but not of ratios to other presets. */
  readonly aborted: number;
  /** Runs that reached the end of their window with unfinished work or live capacity. */
  readonly timeOver: number;
  readonly jobs: number;
  readonly tasks: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly unfinished: number;
  readonly refused: number;
  /** Jobs due after the end of the simulation. */
  readonly notSubmitted: number;
  readonly deadlines: number;
  readonly missed: number;
  /** Cost per run. */
  readonly costUsd: Estimate;
  readonly workUsd: number;
  readonly wastedUsd: number;
  readonly speculativeUsd: number;
  readonly movedUsd: number;
  readonly idleUsd: number;
  /** The same work at on-demand prices, nothing wasted, speculative, moved or idle. */
  readonly onDemandUsd: number;
  readonly refundedUsd: number;
  /** Part of the cost that is of on-demand pools. */
  readonly onDemandBillUsd: number;
  /** References of the same jobs (`References` in outcome.ts), mean over the runs that have one; null: none has. */
  readonly referenceUsd: number | null;
  readonly lowerBoundUsd: number | null;
  readonly interruptions: Estimate;
  readonly launches: Estimate;
  /** Attempts that ended to go on elsewhere. */
  readonly moves: Estimate;
  readonly instanceHours: number;
  readonly lostHours: number;
  /** Cost over that of the same work at on-demand prices. */
  readonly toOnDemandPrices: Estimate;
  /** Of the on-demand reference; null where none is known. */
  readonly toOnDemand: Estimate | null;
  /** Charges before refunds, of the lower bound. Below 1 only where work was not done, or not in time. */
  readonly toBound: Estimate | null;
  /** Of the cost of the preset `oracle` over the same cells; null without such runs. */
  readonly toOracle: Estimate | null;
  /** Share of the jobs with deadlines. */
  readonly missedShare: Estimate;
  /** Share of the cost. */
  readonly wastedShare: Estimate;
  readonly speculativeShare: Estimate;
  readonly movedShare: Estimate;
  readonly idleShare: Estimate;
  /** Share of the instance-hours. */
  readonly utilisation: Estimate;
  /** Time from submission to completion: mean over the runs of each run's percentile; null without such jobs. */
  readonly completionS: Readonly<Record<BatchClass, Percentiles | null>>;
  /** Time past the deadline, of jobs that succeeded late. */
  readonly latenessS: Percentiles | null;
  /** Services in the order of their names. */
  readonly services: readonly ServiceFigures[];
}

/** One service under one preset, over all runs. */
export interface ServiceFigures {
  readonly service: string;
  /** Latency that an answer may take, s. */
  readonly latencyS: number;
  /** Share of requests that may be slow by the service's target. */
  readonly maySlow: number;
  /** Per run. */
  readonly requests: number;
  /** Share of the requests later than the latency, failed ones included. */
  readonly slowShare: Estimate;
  readonly failedShare: Estimate;
  /** Hours of replicas that served, per run. */
  readonly replicaHours: number;
  /** Replicas that the market took, per run. */
  readonly interruptions: number;
  /** Charges per run, with their part of what idled. */
  readonly costUsd: Estimate;
  /** Charges over the work at the on-demand prices of the instances. */
  readonly toOnDemandPrices: Estimate;
}

/** Difference `a` - `b` over the cells that both ran to the end. Negative: `a` is lower. */
export interface Difference {
  readonly a: string;
  readonly b: string;
  readonly cells: number;
  /** Cost per run. */
  readonly costUsd: Estimate;
  /** Difference over the cost of `b`. */
  readonly costShare: Estimate;
  /** Share of missed deadlines, a - b; 0.01 is one percentage point. */
  readonly missedShare: Estimate;
  /** Cost per run of all but work. */
  readonly lostUsd: Estimate;
}

export interface Percentiles {
  readonly p50: Estimate;
  readonly p90: Estimate;
  readonly p99: Estimate;
}
