import { Columns } from './columns.ts';
import {
  JOB_NUMBERS,
  JOB_TEXTS,
  JOB_TIMES,
  type Curve,
  type JobsPayload,
  type Payload,
  type RefusedPayload,
  type RunPayload,
} from './payload.ts';
import type { PriceSeries } from './prices.ts';
import { completionsS, type JobColumns, latenessesS, type Refusal, type RunOutcome } from './outcome.ts';
import type { Comparison } from './figures.ts';

/** Most rows of jobs in one file, over all runs: about 40 MB. Further runs have figures without a table of jobs. */
export const EMBEDDED_ROWS = 1_000_000;
/** Most steps of a distribution function: a chart shows no more. */
const CURVE_POINTS = 240;
const REFUSED_EXAMPLES = 5;

export interface Details {
  readonly payload: Payload;
  readonly blobs: readonly string[];
  /** Number of runs without jobs. */
  readonly leftOut: number;
}

/** All data that the page's script draws. O(jobs of all runs, sorted). */
export async function detailsOf(
  runs: readonly RunOutcome[],
  comparison: Comparison,
  of: { readonly prices: readonly PriceSeries[]; readonly rows?: number },
): Promise<Details> {
  const columns = new Columns();
  const embedded = withJobs(runs, of.rows ?? EMBEDDED_ROWS);
  const byPreset = Map.groupBy(runs, (r) => r.preset);
  const curves = (pick: (jobs: JobColumns) => number[]): readonly Curve[] =>
    [...byPreset].flatMap(([preset, its]) => curve(preset, Float64Array.from(its.flatMap((r) => pick(r.jobs)))));
  const payload: Payload = {
    presets: [...byPreset.keys()],
    costs: comparison.presets.map(({ preset, workUsd, wastedUsd, speculativeUsd, movedUsd, idleUsd, onDemandUsd }) => ({
      preset,
      workUsd,
      wastedUsd,
      speculativeUsd,
      movedUsd,
      idleUsd,
      onDemandUsd,
    })),
    completionS: {
      deadline: curves((jobs) => completionsS(jobs, 'deadline')),
      'best-effort': curves((jobs) => completionsS(jobs, 'best-effort')),
    },
    latenessS: curves(latenessesS),
    runs: runs.map((run) => runPayload(columns, run, embedded.has(run))),
    prices: of.prices,
  };
  return { payload, blobs: await columns.blobs(), leftOut: runs.length - embedded.size };
}

/** Runs whose jobs fit: first one of every preset, then the others. */
function withJobs(runs: readonly RunOutcome[], rows: number): ReadonlySet<RunOutcome> {
  const firsts = [...new Map(runs.toReversed().map((r) => [r.preset, r])).values()].reverse();
  const chosen = new Set<RunOutcome>();
  let used = 0;
  for (const run of new Set([...firsts, ...runs])) {
    // The first run always fits, however large.
    if (chosen.size > 0 && used + run.jobs.key.length > rows) continue;
    used += run.jobs.key.length;
    chosen.add(run);
  }
  return chosen;
}

function runPayload(columns: Columns, run: RunOutcome, withItsJobs: boolean): RunPayload {
  const { preset, fromMs, endMs, seed, ended, instances, pools } = run;
  const { atMs, counts, vcpus } = instances;
  return {
    preset,
    fromMs,
    endMs,
    seed,
    ended,
    jobs: withItsJobs ? jobsPayload(columns, run.jobs) : null,
    series: {
      atMs: columns.numbers(atMs),
      vcpus: columns.numbers(vcpus),
      reserved: columns.numbers(counts.reserved),
      'on-demand': columns.numbers(counts['on-demand']),
      spot: columns.numbers(counts.spot),
    },
    pools,
    refused: refusedByCode(run.refused),
  };
}

function jobsPayload(columns: Columns, jobs: JobColumns): JobsPayload {
  const texts = JOB_TEXTS.map((name) => [name, columns.texts(jobs[name])]);
  const times = JOB_TIMES.map((name) => [name, columns.numbers(jobs[name])]);
  // Single precision has seven digits, more than the table shows of money.
  const numbers = JOB_NUMBERS.map((name) => [name, columns.numbers(Float32Array.from(jobs[name]))]);
  return {
    rows: jobs.key.length,
    texts: Object.fromEntries(texts) as JobsPayload['texts'],
    numbers: Object.fromEntries([...times, ...numbers]) as JobsPayload['numbers'],
  };
}

/** Refusals by reason over all runs; a job counts once per run that refused it. */
export const refusalsOf = (runs: readonly RunOutcome[]): readonly RefusedPayload[] =>
  refusedByCode(runs.flatMap((r) => r.refused));

const refusedByCode = (refused: readonly Refusal[]): readonly RefusedPayload[] =>
  [...Map.groupBy(refused, (r) => r.code)].map(([code, its]) => ({
    code,
    count: its.length,
    first: its.slice(0, REFUSED_EXAMPLES).map(({ key, what }) => ({ key, what })),
  }));

/** Distribution function of `values` as steps, thinned evenly by share; both ends are kept. */
export function curve(preset: string, values: Float64Array): readonly Curve[] {
  const n = values.length;
  if (n === 0) return [];
  const sorted = values.toSorted();
  const kept = Math.min(n, CURVE_POINTS);
  const points = Array.from({ length: kept }, (_, k) => {
    const i = kept === 1 ? 0 : Math.round((k * (n - 1)) / (kept - 1));
    return [sorted[i] ?? 0, (i + 1) / n] as const;
  });
  return [{ preset, jobs: n, points }];
}
