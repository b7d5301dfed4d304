/**
 * What things cost: settled rows of the ledger (instances that have ended) and, for instances that live, their bill
 * until now attributed by the same rule (lib/cycle/ledger.ts), so that a report never waits for a machine to end.
 */
import { raw, type EpochMs } from '../kernel/units.ts';
import type { InstanceId, JobId } from '../kernel/ids.ts';
import { attribute } from '../cycle/ledger.ts';
import { isLive, type Instance } from '../domain/instance.ts';
import type { Job } from '../domain/job.ts';
import { instanceHours, type LedgerRow } from '../domain/ledger.ts';
import type { Backend } from '../ports/backend.ts';
import type { CostRow } from '../ports/store.ts';
import { liveInstances } from './known-instances.ts';
import { findJob } from './find-job.ts';
import type { CostReport, CostRowView, JobCostView } from './schemas.ts';
import { iso } from './views.ts';

type By = CostReport['by'];
type Money = Omit<CostRowView, 'key'>;
/** A row with its part of its instance's hours. */
type Charged = LedgerRow & { readonly instanceHours: number };

const IDLE_KEY = '(idle)';
const NOTHING: Money = { workUsd: 0, wastedUsd: 0, idleUsd: 0, totalUsd: 0, onDemandUsd: 0, instanceHours: 0 };

export async function costReport(of: Backend, by: By): Promise<CostReport> {
  const now = of.clock.now();
  const sums = new Map<string, Money>();
  for (const row of await of.store.costs(by)) addTo(sums, row.key, moneyOf(row));
  for (const row of await accruing(of, now, await billedInstances(of))) addTo(sums, keyOf(row, by), moneyOfLedger(row));
  const rows = byCost(sums);
  return { by, asOf: iso(now), rows, total: totalOf(rows) };
}

export async function jobCost(of: Backend, ref: string): Promise<JobCostView> {
  const now = of.clock.now();
  const job = await findJob(of, ref);
  const sums = new Map<string, Money>();
  const settled = await settledRows(of, job.id);
  const attempts = await of.store.attempts(job.id);
  const billed = new Set(settled.map((row) => row.instance));
  const unbilled = new Set(attempts.map((a) => a.instance).filter((id) => !billed.has(id)));
  const live = (await billedInstances(of)).filter((i) => unbilled.has(i.id));
  const accrued = (await accruing(of, now, live)).filter((row) => row.job === job.id);
  for (const row of [...settled, ...accrued]) addTo(sums, row.pool, moneyOfLedger(row));
  const rows = byCost(sums);
  return {
    job: job.id,
    asOf: iso(now),
    settled: live.length === 0 && job.finishedMs !== null,
    rows,
    accruedUsd: accrued.reduce((sum, row) => sum + row.usd, 0),
    total: totalOf(rows),
    maxCostUsd: job.spec.maxCostUsd === null ? null : raw(job.spec.maxCostUsd),
  };
}

/** The job's part of the ledger. Its part of an instance's hours depends on who else used the instance. */
async function settledRows(of: Backend, job: JobId): Promise<readonly Charged[]> {
  const instances = new Set((await of.store.ledger({ job })).map((row) => row.instance));
  const rows: Charged[] = [];
  for (const instance of instances) rows.push(...charged(await of.store.ledger({ instance })));
  return rows.filter((row) => row.job === job);
}

/** `rows`: all of one instance. */
function charged(rows: readonly LedgerRow[]): Charged[] {
  const hours = instanceHours(rows);
  return rows.map((row, i) => ({ ...row, instanceHours: hours[i] ?? 0 }));
}

/** Instances that are being paid for. */
const billedInstances = async (of: Backend): Promise<readonly Instance[]> =>
  (await liveInstances(of.store)).filter((i) => i.launchedMs !== null);

async function accruing(of: Backend, now: EpochMs, live: readonly Instance[]): Promise<readonly Charged[]> {
  const pools = new Map(of.market.pools().map((p) => [p.id, p]));
  const known = new Map<JobId, Job>();
  const rows: Charged[] = [];
  for (const instance of live) {
    const pool = pools.get(instance.pool);
    if (pool === undefined) continue;
    const attempts = await of.store.attemptsOn(instance.id);
    for (const { job: id } of attempts) {
      const job = known.get(id) ?? (await of.store.job(id));
      if (job !== null) known.set(id, job);
    }
    const bill = await of.fleet.bill(instance.id, now);
    rows.push(...charged(attribute({ instance, pool, bill, attempts, jobs: known, until: now })));
  }
  return rows;
}

/** What an instance has cost: its final bill, or what has accrued until now; null before it launched. */
export async function costOf(of: Backend, instance: Instance, now: EpochMs): Promise<number | null> {
  if (instance.costUsd !== null) return raw(instance.costUsd);
  if (instance.launchedMs === null || !isLive(instance)) return null;
  return raw((await of.fleet.bill(instance.id satisfies InstanceId, now)).totalUsd);
}

function keyOf(row: LedgerRow, by: By): string {
  switch (by) {
    case 'job':
      return row.job ?? IDLE_KEY;
    case 'owner':
      return row.owner ?? IDLE_KEY;
    case 'pool':
      return row.pool;
    case 'template':
      return row.template ?? IDLE_KEY;
  }
}

const moneyOf = (row: CostRow): Money => ({
  workUsd: row.workUsd,
  wastedUsd: row.wastedUsd,
  idleUsd: row.idleUsd,
  totalUsd: row.workUsd + row.wastedUsd + row.idleUsd,
  onDemandUsd: row.onDemandUsd,
  instanceHours: row.instanceHours,
});

const moneyOfLedger = (row: Charged): Money => ({
  workUsd: row.kind === 'work' ? row.usd : 0,
  wastedUsd: row.kind === 'wasted' ? row.usd : 0,
  idleUsd: row.kind === 'idle' ? row.usd : 0,
  totalUsd: row.usd,
  onDemandUsd: row.kind === 'work' ? row.onDemandUsd : 0,
  instanceHours: row.instanceHours,
});

const addTo = (sums: Map<string, Money>, key: string, more: Money): void => {
  sums.set(key, plus(sums.get(key) ?? NOTHING, more));
};

const plus = (a: Money, b: Money): Money => ({
  workUsd: a.workUsd + b.workUsd,
  wastedUsd: a.wastedUsd + b.wastedUsd,
  idleUsd: a.idleUsd + b.idleUsd,
  totalUsd: a.totalUsd + b.totalUsd,
  onDemandUsd: a.onDemandUsd + b.onDemandUsd,
  instanceHours: a.instanceHours + b.instanceHours,
});

const byCost = (sums: ReadonlyMap<string, Money>): CostRowView[] =>
  [...sums].map(([key, m]) => ({ key, ...m })).sort((a, b) => b.totalUsd - a.totalUsd || a.key.localeCompare(b.key));

const totalOf = (rows: readonly CostRowView[]): Money =>
  rows.reduce<Money>((sum, { key: _, ...money }) => plus(sum, money), NOTHING);
