import type { JobClass, JobState } from '../../../lib/domain/job.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { type JobColumns, QUANTILES, type RunOutcome, type Totals } from '../../../lib/report/outcome.ts';

/** Outcomes of runs made up by hand or from a seed, for what reads them. */
const START_MS = Date.UTC(2026, 0, 5);
const DAY_MS = 86_400_000;

const NO_TOTALS: Totals = {
  jobs: 0,
  tasks: 0,
  succeeded: 0,
  failed: 0,
  unfinished: 0,
  refused: 0,
  notSubmitted: 0,
  deadlines: 0,
  missed: 0,
  workUsd: 0,
  wastedUsd: 0,
  speculativeUsd: 0,
  movedUsd: 0,
  idleUsd: 0,
  billedUsd: 0,
  refundedUsd: 0,
  onDemandUsd: 0,
  instanceHours: 0,
  utilisation: 0,
  launches: 0,
  interruptions: 0,
  attempts: 0,
  moves: 0,
  lostHours: 0,
  completionS: { deadline: [], 'best-effort': [] },
  latenessS: [],
};

const none = new Float64Array(0);
const NO_JOBS: JobColumns = {
  key: [],
  name: [],
  owner: [],
  class: [],
  state: [],
  tasks: none,
  submittedMs: none,
  startedMs: none,
  finishedMs: none,
  deadlineMs: none,
  workUsd: none,
  wastedUsd: none,
  speculativeUsd: none,
  movedUsd: none,
  idleUsd: none,
  onDemandUsd: none,
  interruptions: none,
};

/** A run without jobs whose totals are as given. */
export const outcome = (
  of: Partial<Omit<RunOutcome, 'totals'>> & { readonly totals?: Partial<Totals> } = {},
): RunOutcome => ({
  preset: 'greedy',
  seed: 1,
  marketSeed: null,
  fromMs: START_MS,
  endMs: START_MS + DAY_MS,
  ended: 'done',
  steps: 1,
  cycles: { count: 1, solved: 0, solverMs: 0 },
  jobs: NO_JOBS,
  instances: { atMs: none, counts: { reserved: none, 'on-demand': none, spot: none }, vcpus: none },
  pools: [],
  refused: [],
  ...of,
  totals: { ...NO_TOTALS, ...of.totals },
});

export interface Fabricated {
  readonly preset: string;
  readonly jobs: number;
  readonly seed?: number;
  readonly fromMs?: number;
  /** Of the on-demand cost. */
  readonly price?: number;
  /** Share of the deadlines that are missed. */
  readonly late?: number;
}

/**
 * A run with jobs of every kind. The workload depends on the seed and the window alone, as it would between presets.
 */
export function fabricated({
  preset,
  jobs: n,
  seed = 1,
  fromMs = START_MS,
  price = 0.3,
  late = 0.02,
}: Fabricated): RunOutcome {
  const workload = randomStream(seed, `workload ${fromMs}`);
  const luck = randomStream(seed, `luck ${preset} ${fromMs}`);
  const spanS = 7 * 86_400;
  const rows = Array.from({ length: n }, (_, i) => {
    const submittedMs = fromMs + Math.round(((i + workload()) / n) * spanS * 1000);
    const runtimeS = 30 * Math.exp(6 * workload());
    const owned = workload() < 0.6;
    const template = Math.floor(workload() * 40);
    const deadlineMs = owned ? submittedMs + Math.round((runtimeS * 1.6 + 600) * 1000) : NaN;
    const fate = luck();
    const startedMs = submittedMs + Math.round(-Math.log(1 - luck()) * 90_000);
    const lateMs = owned && fate < late ? Math.round(luck() * 7_200_000) + 1 : null;
    const state: JobState = fate > 0.999 ? 'running' : fate > 0.997 ? 'failed' : 'succeeded';
    const doneMs =
      lateMs !== null
        ? deadlineMs + lateMs
        : Math.min(startedMs + Math.round(runtimeS * 1000), owned ? deadlineMs : Infinity);
    const interruptions = luck() < 0.05 ? 1 + Math.floor(luck() * 3) : 0;
    const onDemandUsd = (runtimeS / 3600) * 0.4;
    return {
      key: `job-${i}`,
      name: `template-${template}${template === 7 ? ' <b>&"quoted"</b>' : ''}`,
      owner: `team-${template % 9}`,
      class: owned ? ('deadline' as const) : ('best-effort' as const),
      state,
      tasks: 1 + Math.floor(workload() * 20),
      submittedMs,
      startedMs,
      finishedMs: state === 'running' ? NaN : doneMs,
      deadlineMs,
      workUsd: onDemandUsd * price * (0.8 + 0.4 * luck()),
      wastedUsd: interruptions * onDemandUsd * price * 0.2,
      onDemandUsd,
      interruptions,
    };
  });
  const numbers = (pick: (row: (typeof rows)[number]) => number): Float64Array => Float64Array.from(rows, pick);
  const sum = (pick: (row: (typeof rows)[number]) => number): number => rows.reduce((total, r) => total + pick(r), 0);
  const count = (when: (row: (typeof rows)[number]) => boolean): number => rows.filter(when).length;
  const took = (kind: JobClass): readonly number[] =>
    rows.filter((r) => r.class === kind && r.state === 'succeeded').map((r) => (r.finishedMs - r.submittedMs) / 1000);
  const lateBy = rows
    .filter((r) => r.state === 'succeeded' && r.finishedMs > r.deadlineMs)
    .map((r) => (r.finishedMs - r.deadlineMs) / 1000);
  const [workUsd, wastedUsd] = [sum((r) => r.workUsd), sum((r) => r.wastedUsd)];
  const idleUsd = workUsd * 0.12;
  const steps = Math.min(2000, Math.max(8, n));
  const atMs = Float64Array.from({ length: steps }, (_, i) => fromMs + (i / steps) * spanS * 1000);
  const wave = (top: number): Float64Array =>
    Float64Array.from(atMs, (_, i) => Math.round(top * (1 + Math.sin((i / steps) * 43)) * (0.8 + 0.2 * luck())));
  const [spot, onDemand] = [wave(40), wave(8)];
  const interruptions = sum((r) => r.interruptions);
  return outcome({
    preset,
    seed,
    fromMs,
    references: { onDemandUsd: 1.2 * sum((r) => r.onDemandUsd), lowerBoundUsd: 0.2 * sum((r) => r.onDemandUsd) },
    endMs: fromMs + (spanS + 86_400) * 1000,
    ended: count((r) => r.state === 'running') > 0 ? 'time-over' : 'done',
    jobs: {
      key: rows.map((r) => r.key),
      name: rows.map((r) => r.name),
      owner: rows.map((r) => r.owner),
      class: rows.map((r) => r.class),
      state: rows.map((r) => r.state),
      tasks: numbers((r) => r.tasks),
      submittedMs: numbers((r) => r.submittedMs),
      startedMs: numbers((r) => r.startedMs),
      finishedMs: numbers((r) => r.finishedMs),
      deadlineMs: numbers((r) => r.deadlineMs),
      workUsd: numbers((r) => r.workUsd),
      wastedUsd: numbers((r) => r.wastedUsd),
      speculativeUsd: numbers(() => 0),
      movedUsd: numbers(() => 0),
      idleUsd: numbers(() => 0),
      onDemandUsd: numbers((r) => r.onDemandUsd),
      interruptions: numbers((r) => r.interruptions),
    },
    instances: {
      atMs,
      counts: { reserved: new Float64Array(steps), 'on-demand': onDemand, spot },
      vcpus: Float64Array.from(atMs, (_, i) => 4 * ((spot[i] ?? 0) + (onDemand[i] ?? 0))),
    },
    pools: POOLS.map(([pool, option, part]) => ({
      pool,
      option,
      launches: Math.ceil(n * part),
      interruptions: option === 'spot' ? Math.floor(interruptions * part) : 0,
      refused: Math.floor(n * part * 0.03),
      hours: (workUsd * part) / 0.4,
      billedUsd: (workUsd + wastedUsd + idleUsd) * part,
      onDemandUsd: ((workUsd + wastedUsd + idleUsd) * part) / price,
    })),
    refused: Array.from({ length: Math.ceil(n / 500) }, (_, i) => ({
      key: `refused-${i}`,
      code: 'job.deadline-impossible',
      what: 'deadline: it cannot be met, even on on-demand <now>',
      next: '',
    })),
    totals: {
      jobs: n,
      tasks: sum((r) => r.tasks),
      succeeded: count((r) => r.state === 'succeeded'),
      failed: count((r) => r.state === 'failed'),
      unfinished: count((r) => r.state === 'running'),
      refused: Math.ceil(n / 500),
      notSubmitted: 0,
      deadlines: count((r) => !Number.isNaN(r.deadlineMs)),
      missed: count((r) => !Number.isNaN(r.deadlineMs) && !(r.state === 'succeeded' && r.finishedMs <= r.deadlineMs)),
      workUsd,
      wastedUsd,
      speculativeUsd: 0,
      idleUsd,
      billedUsd: workUsd + wastedUsd + idleUsd,
      refundedUsd: 0,
      onDemandUsd: sum((r) => r.onDemandUsd),
      instanceHours: sum((r) => r.onDemandUsd) / 0.4,
      utilisation: 0.71,
      launches: Math.ceil(n / 3),
      interruptions,
      attempts: n,
      lostHours: interruptions * 0.1,
      completionS: { deadline: spread(took('deadline')), 'best-effort': spread(took('best-effort')) },
      latenessS: spread(lateBy),
    },
  });
}

const POOLS = [
  ['m5.2xlarge/us-east-1a/spot', 'spot', 0.45],
  ['c5.xlarge/us-east-1b/spot', 'spot', 0.25],
  ['m5.2xlarge/us-east-1a/on-demand', 'on-demand', 0.2],
  ['r5.xlarge/us-east-1c/spot', 'spot', 0.1],
] as const;

/** By the definition of `Totals`: the smallest value whose share reaches the probability. */
function spread(values: readonly number[]): readonly number[] {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted.length === 0 ? [] : QUANTILES.map((p) => sorted[Math.max(Math.ceil(p * sorted.length) - 1, 0)] ?? NaN);
}
