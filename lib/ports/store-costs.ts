import { instanceHours, type LedgerRow } from '../domain/ledger.ts';
import type { CostRow } from './store.ts';

type By = 'job' | 'owner' | 'pool' | 'template';
type Sums = { -readonly [K in keyof CostRow]: CostRow[K] };

/** The ledger summed by key. */
export function costsBy(ledger: Iterable<readonly LedgerRow[]>, by: By): CostRow[] {
  const sums = new Map<string, Sums>();
  for (const rows of ledger) {
    const hours = instanceHours(rows);
    rows.forEach((row, i) => {
      const sum = sumOf(sums, row[by] ?? '(idle)');
      sum[`${row.kind}Usd`] += row.usd;
      if (row.kind === 'work') sum.onDemandUsd += row.onDemandUsd;
      sum.instanceHours += hours[i] ?? 0;
    });
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
