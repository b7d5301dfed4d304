import { between, raw, type EpochMs } from '../kernel/units.ts';
import { attribute } from '../cycle/ledger.ts';
import type { Instance } from '../domain/instance.ts';
import type { Attempt, Job, JobClass, JobState } from '../domain/job.ts';
import { instanceHours, type LedgerRow } from '../domain/ledger.ts';
import type { Pool, PurchaseOption } from '../domain/pool.ts';
import { quantilesOf } from '../market/quantiles.ts';
import type { CycleTotals, EndReason, Refusal, SimulationResult } from './simulation.ts';

/**
 * What one simulation came to, as plain data: what is sent between threads, printed as JSON, and drawn. Columns of equal
 * length where there may be hundreds of thousands of rows. Times in ms since the epoch, money in USD.
 */
export interface RunOutcome {
  readonly preset: string;
  readonly seed: number;
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
  /** Jobs with a deadline that were admitted, and how many of them did not succeed by it. */
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

/** O(jobs + attempts + ledger rows + instances log instances). */
export async function outcomeOf(
  result: SimulationResult,
  of: { readonly preset: string; readonly seed: number; readonly fromMs: EpochMs; readonly pools: readonly Pool[] },
): Promise<RunOutcome> {
  const { store, keys } = result;
  const pools = new Map(of.pools.map((p) => [p.id as string, p]));
  const jobs = (await store.jobs({}, Number.MAX_SAFE_INTEGER, null)).items.toReversed();
  const instances = (await store.instances(null, Number.MAX_SAFE_INTEGER, null)).items;
  const ledger = await ledgerOf(result, instances, { pools, jobs: new Map(jobs.map((j) => [j.id, j])) });
  const attempts = (await Promise.all(jobs.map((j) => store.attempts(j.id)))).flat();
  const columns = jobColumns(jobs, { keys, ledger: ledger.flat(), attempts });
  return {
    preset: of.preset,
    seed: of.seed,
    fromMs: raw(of.fromMs),
    endMs: raw(result.endMs),
    ended: result.ended,
    steps: result.steps,
    cycles: result.cycles,
    totals: totalsOf(columns, { ledger, attempts, instances, refused: result.refused.length }),
    jobs: columns,
    instances: instanceSeries(instances, pools, raw(result.endMs)),
    pools: poolUses(instances, ledger, pools),
    refused: result.refused,
  };
}

/** The ledger by instance; one that still lives at the end is charged until then, its running work as if it ended there. */
async function ledgerOf(
  { store, fleet, endMs }: SimulationResult,
  instances: readonly Instance[],
  known: { readonly pools: ReadonlyMap<string, Pool>; readonly jobs: ReadonlyMap<string, Job> },
): Promise<readonly (readonly LedgerRow[])[]> {
  const ledger: (readonly LedgerRow[])[] = [];
  for (const instance of instances) {
    const pool = known.pools.get(instance.pool);
    if (instance.costUsd !== null || instance.launchedMs === null || pool === undefined) {
      ledger.push(await store.ledger({ instance: instance.id }));
      continue;
    }
    const bill = await fleet.bill(instance.id, endMs);
    const attempts = await store.attemptsOn(instance.id);
    ledger.push(attribute({ instance, pool, bill, attempts, jobs: known.jobs, until: endMs }));
  }
  return ledger;
}

function jobColumns(
  jobs: readonly Job[],
  of: {
    readonly keys: SimulationResult['keys'];
    readonly ledger: readonly LedgerRow[];
    readonly attempts: readonly Attempt[];
  },
): JobColumns {
  const index = new Map(jobs.map((j, i) => [j.id, i]));
  const column = (): Float64Array => new Float64Array(jobs.length);
  const money = { work: column(), wasted: column(), onDemand: column() };
  for (const row of of.ledger) {
    const i = row.job === null ? undefined : index.get(row.job);
    if (i === undefined || row.kind === 'idle') continue;
    money[row.kind][i] = (money[row.kind][i] ?? 0) + row.usd;
    if (row.kind === 'work') money.onDemand[i] = (money.onDemand[i] ?? 0) + row.onDemandUsd;
  }
  const interruptions = column();
  for (const a of of.attempts) {
    const i = index.get(a.job);
    if (i !== undefined && a.outcome === 'interrupted' && a.startedMs !== null)
      interruptions[i] = (interruptions[i] ?? 0) + 1;
  }
  const time = (pick: (job: Job) => EpochMs | null): Float64Array =>
    Float64Array.from(jobs, (job) => {
      const at = pick(job);
      return at === null ? NaN : raw(at);
    });
  return {
    key: jobs.map((j) => of.keys.get(j.id) ?? j.id),
    name: jobs.map((j) => j.spec.name),
    owner: jobs.map((j) => j.spec.owner),
    class: jobs.map((j) => j.spec.class),
    state: jobs.map((j) => j.state),
    tasks: Float64Array.from(jobs, (j) => j.stages.reduce((n, s) => n + s.tasks, 0)),
    submittedMs: time((j) => j.submittedMs),
    startedMs: time((j) => j.startedMs),
    finishedMs: time((j) => j.finishedMs),
    deadlineMs: time((j) => j.deadlineMs),
    workUsd: money.work,
    wastedUsd: money.wasted,
    onDemandUsd: money.onDemand,
    interruptions,
  };
}

function totalsOf(
  jobs: JobColumns,
  of: {
    readonly ledger: readonly (readonly LedgerRow[])[];
    readonly attempts: readonly Attempt[];
    readonly instances: readonly Instance[];
    readonly refused: number;
  },
): Totals {
  const usd = { work: 0, wasted: 0, idle: 0 };
  const hours = { work: 0, wasted: 0, idle: 0 };
  let onDemandUsd = 0;
  for (const rows of of.ledger) {
    const rowHours = instanceHours(rows);
    rows.forEach((row, i) => {
      usd[row.kind] += row.usd;
      hours[row.kind] += rowHours[i] ?? 0;
      if (row.kind === 'work') onDemandUsd += row.onDemandUsd;
    });
  }
  const instanceHoursTotal = hours.work + hours.wasted + hours.idle;
  const count = (state: JobState): number => jobs.state.filter((s) => s === state).length;
  const deadlines = [...jobs.deadlineMs.keys()].filter((i) => !Number.isNaN(jobs.deadlineMs[i]));
  const succeededBy = (i: number): boolean =>
    jobs.state[i] === 'succeeded' && (jobs.finishedMs[i] ?? Infinity) <= (jobs.deadlineMs[i] ?? Infinity);
  return {
    jobs: jobs.key.length,
    tasks: jobs.tasks.reduce((n, x) => n + x, 0),
    succeeded: count('succeeded'),
    failed: count('failed') + count('cancelled'),
    unfinished: count('pending') + count('running'),
    refused: of.refused,
    deadlines: deadlines.length,
    missed: deadlines.filter((i) => !succeededBy(i)).length,
    workUsd: usd.work,
    wastedUsd: usd.wasted,
    idleUsd: usd.idle,
    billedUsd: usd.work + usd.wasted + usd.idle,
    onDemandUsd,
    instanceHours: instanceHoursTotal,
    utilisation: instanceHoursTotal > 0 ? hours.work / instanceHoursTotal : 0,
    launches: of.instances.filter((i) => i.launchedMs !== null).length,
    interruptions: of.instances.filter((i) => i.endCause === 'interrupted').length,
    attempts: of.attempts.length,
    lostHours: of.attempts.reduce((sum, a) => sum + lostS(a), 0) / 3600,
    completionS: {
      deadline: spread(completions(jobs, 'deadline')),
      'best-effort': spread(completions(jobs, 'best-effort')),
    },
    latenessS: spread(
      deadlines.flatMap((i) => {
        const lateS = ((jobs.finishedMs[i] ?? NaN) - (jobs.deadlineMs[i] ?? NaN)) / 1000;
        return jobs.state[i] === 'succeeded' && lateS > 0 ? [lateS] : [];
      }),
    ),
  };
}

const lostS = ({ outcome, startedMs, endedMs, keptS }: Attempt): number =>
  outcome === 'succeeded' || startedMs === null || endedMs === null
    ? 0
    : Math.max(0, raw(between(startedMs, endedMs)) - raw(keptS));

const completions = (jobs: JobColumns, of: JobClass): number[] =>
  jobs.class.flatMap((c, i) =>
    c === of && jobs.state[i] === 'succeeded' ? [((jobs.finishedMs[i] ?? 0) - (jobs.submittedMs[i] ?? 0)) / 1000] : [],
  );

const spread = (values: readonly number[]): readonly number[] =>
  values.length === 0 ? [] : quantilesOf(values, QUANTILES);

function instanceSeries(
  instances: readonly Instance[],
  pools: ReadonlyMap<string, Pool>,
  endMs: number,
): InstanceSeries {
  const changes: { readonly atMs: number; readonly by: number; readonly pool: Pool }[] = [];
  for (const i of instances) {
    const pool = pools.get(i.pool);
    if (pool === undefined || i.launchedMs === null) continue;
    changes.push({ atMs: raw(i.launchedMs), by: 1, pool });
    if (i.endedMs !== null && raw(i.endedMs) < endMs) changes.push({ atMs: raw(i.endedMs), by: -1, pool });
  }
  changes.sort((a, b) => a.atMs - b.atMs);
  const now = { reserved: 0, 'on-demand': 0, spot: 0, vcpus: 0 };
  const steps: (typeof now & { atMs: number })[] = [];
  for (const { atMs, by, pool } of changes) {
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

function poolUses(
  instances: readonly Instance[],
  ledger: readonly (readonly LedgerRow[])[],
  pools: ReadonlyMap<string, Pool>,
): readonly PoolUse[] {
  const uses = new Map<string, { -readonly [K in keyof PoolUse]: PoolUse[K] }>();
  instances.forEach((i, n) => {
    const option = pools.get(i.pool)?.option;
    if (option === undefined) return;
    const use = uses.get(i.pool) ?? {
      pool: i.pool,
      option,
      launches: 0,
      interruptions: 0,
      refused: 0,
      hours: 0,
      billedUsd: 0,
      onDemandUsd: 0,
    };
    uses.set(i.pool, use);
    if (i.launchedMs === null) {
      use.refused++;
      return;
    }
    use.launches++;
    if (i.endCause === 'interrupted') use.interruptions++;
    const rows = ledger[n] ?? [];
    for (const hours of instanceHours(rows)) use.hours += hours;
    for (const row of rows) {
      use.billedUsd += row.usd;
      use.onDemandUsd += row.onDemandUsd;
    }
  });
  return [...uses.values()].sort((a, b) => b.billedUsd - a.billedUsd || (a.pool < b.pool ? -1 : 1));
}
