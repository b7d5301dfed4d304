import { epochMs, lt, raw, type EpochMs } from '../../kernel/units.ts';
import type { JobState } from '../../domain/job.ts';
import { quantilesOf } from '../../market/quantiles.ts';
import type { Collector } from './collector.ts';
import type { SimulationResult } from './simulation.ts';
import {
  completionsS,
  type InstanceSeries,
  type JobColumns,
  latenessesS,
  QUANTILES,
  type RunOutcome,
  type ServiceUse,
  type Totals,
} from '../../report/outcome.ts';
import { vcpusOf } from '../../domain/pool.ts';

export const SERIES_POINTS = 2000;

/** O(jobs log jobs + instances log instances). */
export function outcomeOf(
  result: SimulationResult,
  of: Pick<RunOutcome, 'preset' | 'seed'> & {
    readonly fromMs: EpochMs;
    readonly marketSeed?: number | null;
    readonly references?: RunOutcome['references'];
  },
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
    ...(result.services.length === 0 ? {} : { services: servicesOf(result) }),
    ...(of.references && { references: of.references }),
    ...(result.refusedPolicies.length === 0 ? {} : { refusedPolicies: result.refusedPolicies }),
  };
}

const servicesOf = ({ services, collected }: SimulationResult): readonly ServiceUse[] =>
  services.map((of) => ({
    ...of,
    ...(collected.services.get(of.service) ?? { interruptions: 0, billedUsd: 0, onDemandUsd: 0 }),
  }));

function totalsOf(
  jobs: JobColumns,
  c: Collector,
  { refused, notSubmitted, endMs }: Pick<SimulationResult, 'refused' | 'notSubmitted' | 'endMs'>,
): Totals {
  const { usd, hours } = c;
  const instanceHours = hours.work + hours.wasted + hours.speculative + hours.moved + hours.idle;
  const count = (state: JobState): number => jobs.state.reduce((n, s) => n + Number(s === state), 0);
  const deadlines = [...jobs.deadlineMs.keys()].filter((i) => !Number.isNaN(jobs.deadlineMs[i]));
  // Work that is not over and still has time when the simulation ends has missed nothing.
  const missed = (i: number): boolean => {
    const over = !['pending', 'running', 'held'].includes(jobs.state[i] ?? '');
    const deadlineMs = jobs.deadlineMs[i] ?? Infinity;
    if (jobs.state[i] === 'succeeded') return (jobs.finishedMs[i] ?? Infinity) > deadlineMs;
    return over || lt(epochMs(deadlineMs), endMs);
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
    speculativeUsd: usd.speculative,
    movedUsd: usd.moved,
    idleUsd: usd.idle,
    billedUsd: usd.work + usd.wasted + usd.speculative + usd.moved + usd.idle,
    refundedUsd: c.refundedUsd,
    onDemandUsd: c.onDemandUsd,
    instanceHours,
    utilisation: instanceHours > 0 ? hours.work / instanceHours : 0,
    launches: c.launches,
    interruptions: c.interruptions,
    attempts: c.attempts,
    moves: c.moves,
    lostHours: c.lostS / 3600,
    completionS: {
      deadline: spread(completionsS(jobs, 'deadline')),
      'best-effort': spread(completionsS(jobs, 'best-effort')),
    },
    latenessS: spread(latenessesS(jobs)),
  };
}

const spread = (values: readonly number[]): readonly number[] =>
  values.length === 0 ? [] : quantilesOf(values, QUANTILES);

function instanceSeries(changes: Collector['changes']): InstanceSeries {
  const now = { reserved: 0, 'on-demand': 0, spot: 0, vcpus: 0 };
  const steps: (typeof now & { atMs: number })[] = [];
  for (const { atMs, by, pool } of changes.inOrder()) {
    now[pool.option] += by;
    now.vcpus += by * vcpusOf(pool);
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
