/**
 * Costs by the day (UTC) on which they were settled: `COSTS` `<day>`. The commit that writes the ledger also writes the
 * whole day, computed from its own state. So each row counts once, whatever crashes. The sums outlive their ledger and
 * cost one read per day.
 */
import type { LedgerRow } from '../../../domain/ledger.ts';
import { ownName, type Blobs } from './blobs.ts';
import { textAt } from './codec.ts';
import { COSTS, COSTS_PREFIX, costsKey } from './keys.ts';
import type { Write } from './dynamo-table.ts';
import type { Reader } from './view.ts';
import {
  AGED_OUT,
  type By,
  type CostRow,
  costsBy,
  CostSums,
  isRounding,
  KEPT_SUMS,
  type KeptSum,
} from '../../../domain/costs.ts';

type CostsDoc = Readonly<Record<KeptSum, readonly CostRow[]>>;

interface Parts {
  readonly view: Reader;
  readonly blobs: Blobs;
}

/** Ledger rows of one instance, before and after a commit. */
export interface Correction {
  readonly before: readonly LedgerRow[];
  readonly after: readonly LedgerRow[];
}

/** Sums of the day with these corrections, and the object that held them before. */
export async function costWrites(
  parts: Parts,
  of: { readonly day: string; readonly commits: number },
  corrections: readonly Correction[],
): Promise<{ readonly writes: readonly Write[]; readonly dropped: readonly string[] }> {
  if (corrections.every(({ before, after }) => before.length + after.length === 0)) return { writes: [], dropped: [] };
  const key = costsKey(of.day);
  const item = await parts.view.get(key);
  const known = item === undefined ? null : await parts.blobs.valueOf<CostsDoc>(item);
  const doc = Object.fromEntries(KEPT_SUMS.map((by) => [by, corrected(known?.[by] ?? [], by, corrections)]));
  const held = await parts.blobs.held(doc, ownName(`${COSTS_PREFIX}${of.day}-${of.commits}`));
  return { writes: [{ key, ...held }], dropped: item?.['s3'] === undefined ? [] : [textAt(item, 's3')] };
}

function corrected(known: readonly CostRow[], by: KeptSum, corrections: readonly Correction[]): readonly CostRow[] {
  const sums = new CostSums();
  for (const row of known) sums.add(row);
  const taken = new Set<string>();
  for (const { before, after } of corrections) {
    for (const row of costsBy([before], by).rows()) {
      taken.add(row.key);
      sums.add(row, -1);
    }
    sums.addInstance(after, by);
  }
  return sums.rows().filter((row) => !taken.has(row.key) || !isRounding(row));
}

/** Sums over all days, in one query. */
async function keptCosts(parts: Parts, by: KeptSum): Promise<CostSums> {
  const sums = new CostSums();
  for (const row of await daysOf(parts, by)) sums.add(row);
  return sums;
}

/** Sums as rows, without keys whose costs later days have taken back in full. */
export async function keptRows(parts: Parts, by: KeptSum): Promise<readonly CostRow[]> {
  const days = await daysOf(parts, by);
  const taken = new Set(days.filter(isTakenBack).map((row) => row.key));
  const sums = new CostSums();
  for (const row of days) sums.add(row);
  return sums.rows().filter((row) => !taken.has(row.key) || !isRounding(row));
}

const isTakenBack = (row: CostRow): boolean =>
  [row.workUsd, row.wastedUsd, row.speculativeUsd, row.movedUsd, row.idleUsd, row.onDemandUsd, row.instanceHours].some(
    (x) => x < 0,
  );

async function daysOf({ view, blobs }: Parts, by: KeptSum): Promise<readonly CostRow[]> {
  const docs = await Promise.all((await view.range({ pk: COSTS })).map((item) => blobs.valueOf<CostsDoc>(item)));
  return docs.flatMap((doc) => doc[by]);
}

/** Costs by keys without kept sums: from the stored ledger, with one row for what has expired. */
export async function ledgerCosts(
  parts: Parts,
  ledger: readonly (readonly LedgerRow[])[],
  by: Exclude<By, KeptSum>,
): Promise<readonly CostRow[]> {
  const sums = costsBy(ledger, by);
  const all = (await keptCosts(parts, 'pool')).total(AGED_OUT);
  const missing = new CostSums();
  missing.add(all);
  missing.add(sums.total(AGED_OUT), -1);
  const rest = missing.total(AGED_OUT);
  if (!isRounding(rest, all)) sums.add(rest);
  return sums.rows();
}
