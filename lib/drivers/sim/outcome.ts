import { raw, type EpochMs } from '../../kernel/units.ts';
import type { JobClass, JobState } from '../../domain/job.ts';
import type { PurchaseOption } from '../../domain/pool.ts';
import { quantilesOf } from '../../market/quantiles.ts';
import type { Collector } from './collector.ts';
import type { CycleTotals, EndReason, Refusal, SimulationResult } from './simulation.ts';

/**
 * What one simulation came to, as plain data: what is sent between threads, printed as JSON, and drawn. Columns of equal
 * length where there may be hundreds of thousands of rows. Times in ms since the epoch, money in USD.
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
  /** Jobs with a deadline that were admitted, and how many of them did not succeed by it; those that still had time at the end did not miss it. */
  readonly deadlines: number;
  readonly missed: number;
  readonly workUsd: number;
  readonly wastedUsd: number;
  readonly idleUsd: number;
  /** work + wasted + idle: what the provider bills. */
  readonly billedUsd: number;
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

/** Live instances over time as steps at `atMs`, thinned to SERIES_POINTS at most (the highest of each stretch is kept). */
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

export const SERIES_POINTS = 2000;

/** O(jobs log jobs + instances log instances). */
export function outcomeOf(
  result: SimulationResult,
  of: Pick<RunOutcome, 'preset' | 'seed'> & { readonly fromMs: EpochMs; readonly marketSeed?: number | null },
): RunOutcome {
  const { collected } = result;
  const jobs = collected.rows.columns();
  return {
    preset: of.preset,
    seed: of.seed,
    marketSeed: of.marketSeed ?? null,
    fromMs: raw(of.fromMs),
    endMs: raw(result.endMs),
    ended: result.ended,
    steps: result.steps,
    cycles: result.cycles,
    totals: totalsOf(jobs, collected, result),
    jobs,
    instances: instanceSeries(collected.changes),
    pools: [...collected.uses.values()].sort((a, b) => b.billedUsd - a.billedUsd || (a.pool < b.pool ? -1 : 1)),
    refused: result.refused,
  };
}

function totalsOf(
  jobs: JobColumns,
  c: Collector,
  { refused, notSubmitted, endMs }: Pick<SimulationResult, 'refused' | 'notSubmitted' | 'endMs'>,
): Totals {
  const { usd, hours } = c;
  const instanceHours = hours.work + hours.wasted + hours.idle;
  const count = (state: JobState): number => jobs.state.reduce((n, s) => n + Number(s === state), 0);
  const deadlines = [...jobs.deadlineMs.keys()].filter((i) => !Number.isNaN(jobs.deadlineMs[i]));
  // Work that is not over and still has time when the simulation ends has missed nothing.
  const missed = (i: number): boolean => {
    const over = !['pending', 'running', 'held'].includes(jobs.state[i] ?? '');
    const deadlineMs = jobs.deadlineMs[i] ?? Infinity;
    if (jobs.state[i] === 'succeeded') return (jobs.finishedMs[i] ?? Infinity) > deadlineMs;
    return over || deadlineMs < raw(endMs);
  };
  return {
    jobs: jobs.key.length,
    tasks: jobs.tasks.reduce((n, x) => n + x, 0),
    succeeded: count('succeeded'),
    failed: count('failed') + count('cancelled'),
    unfinished: count('pending') + count('running') + count('held'),
    refused: refused.length,
    notSubmitted,
    deadlines: deadlines.length,
    missed: deadlines.filter(missed).length,
    workUsd: usd.work,
    wastedUsd: usd.wasted,
    idleUsd: usd.idle,
    billedUsd: usd.work + usd.wasted + usd.idle,
    onDemandUsd: c.onDemandUsd,
    instanceHours,
    utilisation: instanceHours > 0 ? hours.work / instanceHours : 0,
    launches: c.launches,
    interruptions: c.interruptions,
    attempts: c.attempts,
    lostHours: c.lostS / 3600,
    completionS: {
      deadline: spread(completionsS(jobs, 'deadline')),
      'best-effort': spread(completionsS(jobs, 'best-effort')),
    },
    latenessS: spread(latenessesS(jobs)),
  };
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

const spread = (values: readonly number[]): readonly number[] =>
  values.length === 0 ? [] : quantilesOf(values, QUANTILES);

function instanceSeries(changes: Collector['changes']): InstanceSeries {
  const now = { reserved: 0, 'on-demand': 0, spot: 0, vcpus: 0 };
  const steps: (typeof now & { atMs: number })[] = [];
  for (const { atMs, by, pool } of changes.inOrder()) {
    now[pool.option] += by;
    now.vcpus += (by * raw(pool.type.capacity.cpu)) / 1000;
    if (steps.at(-1)?.atMs === atMs) steps.pop();
    steps.push({ atMs, ...now });
  }
  const kept = thinned(steps, (s) => s.vcpus);
  const column = (pick: (s: (typeof steps)[number]) => number): Float64Array => Float64Array.from(kept, pick);
  return {
    atMs: column((s) => s.atMs),
    counts: {
      reserved: column((s) => s.reserved),
      'on-demand': column((s) => s['on-demand']),
      spot: column((s) => s.spot),
    },
    vcpus: column((s) => s.vcpus),
  };
}

/** The highest step of each of SERIES_POINTS equal stretches, and the last one. */
function thinned<T>(steps: readonly T[], height: (step: T) => number): readonly T[] {
  if (steps.length <= SERIES_POINTS) return steps;
  const size = steps.length / SERIES_POINTS;
  const kept: T[] = [];
  for (let k = 0; k < SERIES_POINTS; k++) {
    const stretch = steps.slice(Math.floor(k * size), Math.floor((k + 1) * size));
    kept.push(stretch.reduce((best, s) => (height(s) > height(best) ? s : best)));
  }
  const last = steps.at(-1);
  return last === undefined || kept.at(-1) === last ? kept : [...kept, last];
}
