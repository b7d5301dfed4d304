import type { LedgerRow } from '../../../domain/ledger.ts';
import { body, bodyOf, number, text, textAt } from './codec.ts';
import type { VisitsDoc } from './documents.ts';
import { instanceKey, LEDGER, ledgerKey, ledgerOfJobKey, VISITS } from './keys.ts';
import type { Correction } from './cost-days.ts';
import type { Expiry } from './expiry.ts';
import type { Write } from './dynamo-table.ts';
import type { Reader } from './view.ts';

/** Ledger rows per item, some 40 bytes each. */
const LEDGER_ROWS_PER_ITEM = 500;

export interface SettledInstance {
  readonly instance: string;
  readonly rows: readonly LedgerRow[];
  /** Attempts that this commit places on the instance. */
  readonly visits: VisitsDoc;
  /** Next arrival number. */
  readonly arrival: () => number;
  readonly expiry: Expiry;
}

/**
 * Writes that replace an instance's rows, and the former rows. Jobs with a row point to the instance, unless their
 * attempts do.
 */
export async function ledgerWrites(
  view: Reader,
  settled: SettledInstance,
): Promise<{ readonly writes: readonly Write[]; readonly correction: Correction }> {
  const { instance, rows, arrival, expiry } = settled;
  const before: LedgerRow[] = [];
  const { pk } = instanceKey(instance);
  const writes: Write[] = [];
  const jobs = jobsOf(rows);
  for (const item of await view.range({ pk, prefix: LEDGER })) {
    writes.push({ key: { pk, sk: textAt(item, 'sk') }, isDeleted: true });
    const former = bodyOf<readonly LedgerRow[]>(item);
    before.push(...former);
    for (const job of jobsOf(former)) {
      if (!jobs.has(job)) writes.push({ key: ledgerOfJobKey(job, instance), isDeleted: true });
    }
  }
  for (let part = 0; part * LEDGER_ROWS_PER_ITEM < rows.length; part++) {
    const some = rows.slice(part * LEDGER_ROWS_PER_ITEM, (part + 1) * LEDGER_ROWS_PER_ITEM);
    const listed = { l: text('ledger'), a: number(arrival()) };
    writes.push({ key: ledgerKey(instance, part), set: { b: body(some), ...listed, ...expiry.over } });
  }
  const visitors = await visitorsOf(view, settled, jobs);
  for (const job of jobs) {
    if (!visitors.has(job)) writes.push({ key: ledgerOfJobKey(job, instance), set: expiry.beside });
  }
  return { writes, correction: { before, after: rows } };
}

const jobsOf = (rows: readonly LedgerRow[]): ReadonlySet<string> => new Set(rows.flatMap((row) => row.job ?? []));

/** Jobs with attempts on the instance. */
async function visitorsOf(
  view: Reader,
  { instance, visits }: SettledInstance,
  jobs: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const found = new Set(visits.map(({ runs }) => runs.pk.slice(2)));
  if ([...jobs].every((job) => found.has(job))) return found;
  const items = await view.range({ pk: instanceKey(instance).pk, prefix: VISITS });
  for (const { runs } of items.flatMap((item) => bodyOf<VisitsDoc>(item))) found.add(runs.pk.slice(2));
  return found;
}
