/**
 * Costs: settled ledger rows of ended instances, and bills until now of live ones, attributed by the same rule
 * (lib/cycle/money/ledger.ts). So a report never waits for an instance to end.
 */
import { compareText } from '../kernel/compare.ts';
import { z } from 'zod';
import { raw, rawOrNull, type EpochMs } from '../kernel/units.ts';
import type { InstanceId, JobId } from '../kernel/ids.ts';
import { attribute, jobsNamed } from '../cycle/money/ledger.ts';
import { isLive, type Instance } from '../domain/instance.ts';
import type { Job } from '../domain/job.ts';
import { instanceHours, type LedgerRow } from '../domain/ledger.ts';
import type { Backend } from '../ports/backend.ts';
import { boundedPage } from './bounded.ts';
import { notACursor } from './cursor.ts';
import { liveInstances } from '../cycle/state/known-instances.ts';
import { findJob } from './find-job.ts';
import type { costsQuery } from './requests.ts';
import type { CostReport, CostRowView, JobCostView } from './schemas.ts';
import { NO_MONEY, plusMoney, sumOfMoney, type Money } from './money.ts';
import { callerView, iso } from './views.ts';
import { billedUsd, costKeyOf, type CostRow, IDLE_KEY } from '../domain/costs.ts';

/** Row with its share of the instance's hours. */
type Charged = LedgerRow & { readonly instanceHours: number };

type Asked = z.output<typeof costsQuery>;

/** One page of costs, the highest first. */
export async function costReport(of: Backend, { by, idle, limit, cursor }: Asked): Promise<CostReport> {
  const now = of.clock.now();
  const all = await costsBy(of, { by, idle });
  const total = totalOf(all);
  const from = cursor === undefined ? 0 : firstBehind(all, costCursorOf(cursor));
  return boundedPage(limit, async (most) => {
    const rows = all.slice(from, from + most);
    const next = from + rows.length < all.length ? cursorBehind(rows.at(-1)) : null;
    return { by, asOf: iso(now), rows, items: rows, next, total };
  }).then(({ items: _, ...report }) => report);
}

/** All costs until now, the highest first, those of live instances among them. O(keys log keys + live instances). */
export async function costsBy(of: Backend, { by, idle }: Pick<Asked, 'by' | 'idle'>): Promise<readonly CostRowView[]> {
  const now = of.clock.now();
  const sums = new Map<string, Money>();
  // In the view by pool, idle time belongs to the pool either way.
  const isApart = idle === 'apart' && by !== 'pool';
  for (const row of await of.store.costs(by)) {
    const { idleHours = row.key === IDLE_KEY ? row.instanceHours : 0 } = row;
    if (!isApart) addTo(sums, row.key, moneyOf(row));
    else {
      addTo(sums, row.key, moneyOf({ ...row, idleUsd: 0, instanceHours: row.instanceHours - idleHours }));
      addTo(sums, IDLE_KEY, { ...NO_MONEY, idleUsd: row.idleUsd, totalUsd: row.idleUsd, instanceHours: idleHours });
    }
  }
  for (const row of await accruing(of, now, await billedInstances(of))) {
    addTo(sums, isApart && row.kind === 'idle' ? IDLE_KEY : costKeyOf(row, by), moneyOfLedger(row));
  }
  for (const [key, money] of sums) if (Object.values(money).every((x) => x === 0)) sums.delete(key);
  return byCost(sums);
}

/** Position after a page in the order of rows, independent of later rows. */
type CostPlace = Pick<CostRowView, 'totalUsd' | 'key'>;

const costCursor = z.tuple([z.number(), z.string()]);
const cursorBehind = (row: CostPlace | undefined): string | null =>
  row === undefined ? null : Buffer.from(JSON.stringify([row.totalUsd, row.key])).toString('base64url');

function costCursorOf(cursor: string): CostPlace {
  try {
    const [totalUsd, key] = costCursor.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')));
    return { totalUsd, key };
  } catch (cause) {
    throw notACursor(cause);
  }
}

function firstBehind(rows: readonly CostRowView[], place: CostPlace): number {
  const found = rows.findIndex((row) => inOrderOfCost(place, row) < 0);
  return found === -1 ? rows.length : found;
}

const inOrderOfCost = (a: CostPlace, b: CostPlace): number => b.totalUsd - a.totalUsd || compareText(a.key, b.key);

export async function jobCost(of: Backend, ref: string): Promise<JobCostView> {
  const now = of.clock.now();
  const job = await findJob(of, ref);
  const sums = new Map<string, Money>();
  const settled = await settledRows(of, job.id);
  const attempts = await of.store.attempts(job.id);
  const billed = new Set(settled.map((row) => row.instance));
  const unbilled = new Set(attempts.map((a) => a.instance).filter((id) => !billed.has(id)));
  const live = (await billedInstances(of)).filter(
    (i) => unbilled.has(i.id) || i.boughtFor?.some((b) => b.job === job.id) === true,
  );
  const accrued = (await accruing(of, now, live)).filter((row) => row.job === job.id);
  for (const row of [...settled, ...accrued]) addTo(sums, row.pool, moneyOfLedger(row));
  const rows = byCost(sums);
  return {
    job: job.id,
    owner: job.spec.owner,
    submittedBy: callerView(job.submittedBy),
    asOf: iso(now),
    settled: live.length === 0 && job.finishedMs !== null,
    rows,
    accruedUsd: accrued.reduce((sum, row) => sum + row.usd, 0),
    total: totalOf(rows),
    maxCostUsd: rawOrNull(job.spec.maxCostUsd),
  };
}

/** Ledger rows of the job. Its share of an instance's hours depends on all jobs there. */
async function settledRows(of: Backend, job: JobId): Promise<readonly Charged[]> {
  const instances = new Set((await of.store.ledger({ job })).map((row) => row.instance));
  const rows: Charged[] = [];
  for (const instance of instances) rows.push(...charged(await of.store.ledger({ instance })));
  return rows.filter((row) => row.job === job);
}

/** `rows`: all rows of one instance. */
function charged(rows: readonly LedgerRow[]): Charged[] {
  const hours = instanceHours(rows);
  return rows.map((row, i) => ({ ...row, instanceHours: hours[i] ?? 0 }));
}

/** Instances with running costs. */
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
    for (const id of jobsNamed(instance, attempts)) {
      const job = known.get(id) ?? (await of.store.job(id));
      if (job !== null) known.set(id, job);
    }
    const bill = await of.fleet.bill(instance.id, now);
    rows.push(...charged(attribute({ instance, pool, bill, attempts, jobs: known, until: now })));
  }
  return rows;
}

/** Costs of an instance: its final bill, or the amount accrued until now; null before its launch. */
export async function costOf(of: Backend, instance: Instance, now: EpochMs): Promise<number | null> {
  if (instance.costUsd !== null) return raw(instance.costUsd);
  if (instance.launchedMs === null || !isLive(instance)) return null;
  return raw((await of.fleet.bill(instance.id satisfies InstanceId, now)).totalUsd);
}

const moneyOf = (row: CostRow): Money => ({
  workUsd: row.workUsd,
  wastedUsd: row.wastedUsd,
  speculativeUsd: row.speculativeUsd,
  movedUsd: row.movedUsd,
  idleUsd: row.idleUsd,
  totalUsd: billedUsd(row),
  onDemandUsd: row.onDemandUsd,
  instanceHours: row.instanceHours,
});

const moneyOfLedger = (row: Charged): Money => ({
  workUsd: row.kind === 'work' ? row.usd : 0,
  wastedUsd: row.kind === 'wasted' ? row.usd : 0,
  speculativeUsd: row.kind === 'speculative' ? row.usd : 0,
  movedUsd: row.kind === 'moved' ? row.usd : 0,
  idleUsd: row.kind === 'idle' ? row.usd : 0,
  totalUsd: row.usd,
  onDemandUsd: row.kind === 'work' ? row.onDemandUsd : 0,
  instanceHours: row.instanceHours,
});

const addTo = (sums: Map<string, Money>, key: string, more: Money): void => {
  sums.set(key, plusMoney(sums.get(key) ?? NO_MONEY, more));
};

const byCost = (sums: ReadonlyMap<string, Money>): CostRowView[] =>
  [...sums].map(([key, m]) => ({ key, ...m })).sort(inOrderOfCost);

const totalOf = (rows: readonly CostRowView[]): Money => sumOfMoney(rows.map(({ key: _, ...money }) => money));
