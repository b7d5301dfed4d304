import type { JobClass } from '../domain/job.ts';
import type { Estimate } from './bootstrap.ts';

export interface Comparison {
  readonly method: Method;
  readonly fromMs: readonly number[];
  readonly seeds: readonly number[];
  /** In the order in which they first appear among the runs. */
  readonly presets: readonly PresetFigures[];
  /** Of every two presets with cells in common. */
  readonly differences: readonly Difference[];
  /** Runs that were asked for. */
  readonly planned: number;
  /** What a reader has to know before trusting a figure; empty when there is nothing. */
  readonly warnings: readonly string[];
}

/** How intervals were made. */
export interface Method {
  readonly units: 'markets' | 'windows' | 'seeds' | 'none';
  readonly n: number;
  readonly level: number;
  readonly resamples: number;
  readonly text: string;
}

/** Sums over the runs of one preset, and estimates per run or as ratios of sums. Money in USD, durations in s. */
export interface PresetFigures {
  readonly preset: string;
  readonly runs: number;
  /** Runs that were aborted: in the sums, in no ratio to other presets. */
  readonly aborted: number;
  /** Runs that reached the end of their window with work left or capacity held. */
  readonly timeOver: number;
  readonly jobs: number;
  readonly tasks: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly unfinished: number;
  readonly refused: number;
  /** Jobs that come after the end of the simulation. */
  readonly notSubmitted: number;
  readonly deadlines: number;
  readonly missed: number;
  /** Per run. */
  readonly costUsd: Estimate;
  readonly workUsd: number;
  readonly wastedUsd: number;
  readonly idleUsd: number;
  /** The same work at on-demand prices, nothing wasted or idle. */
  readonly onDemandUsd: number;
  readonly refundedUsd: number;
  /** Part of the cost that is of on-demand pools. */
  readonly onDemandBillUsd: number;
  /** References of the same jobs (`References` in outcome.ts), mean over the runs that have one; null: none has. */
  readonly referenceUsd: number | null;
  readonly lowerBoundUsd: number | null;
  readonly interruptions: Estimate;
  readonly launches: Estimate;
  readonly instanceHours: number;
  readonly lostHours: number;
  /** Of the cost of the same work at on-demand prices. */
  readonly toOnDemandPrices: Estimate;
  /** Of the on-demand reference; null where none is known. */
  readonly toOnDemand: Estimate | null;
  /** Charges before refunds, of the lower bound. Below 1 only where work was not done, or not in time. */
  readonly toBound: Estimate | null;
  /** Of the cost of the preset `oracle` over the same cells; null without such runs. */
  readonly toOracle: Estimate | null;
  /** Of the jobs with deadlines. */
  readonly missedShare: Estimate;
  /** Of the cost. */
  readonly wastedShare: Estimate;
  readonly idleShare: Estimate;
  /** Of the instance-hours. */
  readonly utilisation: Estimate;
  /** Submission to completion: mean over the runs of each run's percentile; null without such jobs. */
  readonly completionS: Readonly<Record<JobClass, Percentiles | null>>;
  /** Past the deadline, of jobs that succeeded late. */
  readonly latenessS: Percentiles | null;
}

/** `a` less `b`, over the cells that both ran to the end. Negative: `a` is lower. */
export interface Difference {
  readonly a: string;
  readonly b: string;
  readonly cells: number;
  /** Per run. */
  readonly costUsd: Estimate;
  /** Of the cost of `b`. */
  readonly costShare: Estimate;
  /** Share of missed deadlines, a less b; 0.01 is one percentage point. */
  readonly missedShare: Estimate;
  /** Wasted and idle cost per run. */
  readonly lostUsd: Estimate;
}

export interface Percentiles {
  readonly p50: Estimate;
  readonly p90: Estimate;
  readonly p99: Estimate;
}
