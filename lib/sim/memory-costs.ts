import { raw } from '../kernel/units.ts';
import type { LedgerRow } from '../domain/ledger.ts';
import type { CostRow } from '../ports/store.ts';

type By = 'job' | 'owner' | 'pool' | 'template';
type Sums = { -readonly [K in keyof CostRow]: CostRow[K] };

const spanMs = (row: LedgerRow): number => raw(row.toMs) - raw(row.fromMs);

/**
 * The ledger summed by key. An instance's hours are divided among its rows by what they would have cost on demand: that
 * price is constant over an instance's life, so it measures share times time; by time where the price is 0.
 */
export function costsBy(ledger: Iterable<readonly LedgerRow[]>, by: By): CostRow[] {
  const sums = new Map<string, Sums>();
  for (const rows of ledger) {
    if (rows.length === 0) continue;
    const first = Math.min(...rows.map((r) => raw(r.fromMs)));
    const hours = (Math.max(...rows.map((r) => raw(r.toMs))) - first) / 3_600_000;
    const onDemand = rows.reduce((sum, r) => sum + r.onDemandUsd, 0);
    const timeMs = rows.reduce((sum, r) => sum + spanMs(r), 0);
    for (const row of rows) {
      const part = onDemand > 0 ? row.onDemandUsd / onDemand : timeMs > 0 ? spanMs(row) / timeMs : 0;
      const sum = sumOf(sums, row[by] ?? '(idle)');
      sum[`${row.kind}Usd`] += row.usd;
      if (row.kind === 'work') sum.onDemandUsd += row.onDemandUsd;
      sum.instanceHours += hours * part;
    }
  }
  return [...sums.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

function sumOf(sums: Map<string, Sums>, key: string): Sums {
  let sum = sums.get(key);
  if (sum === undefined) {
    sum = { key, workUsd: 0, wastedUsd: 0, idleUsd: 0, onDemandUsd: 0, instanceHours: 0 };
    sums.set(key, sum);
  }
  return sum;
}
