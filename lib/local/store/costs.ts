import type { CostRow } from '../../ports/store.ts';
import type { Database } from './database.ts';

const KEY_COLUMN = { job: 'job', owner: 'owner', pool: 'pool', template: 'template' } as const;

/**
 * The ledger summed by key. An instance's hours are divided among its rows by what they would have cost on demand: that
 * price is constant over an instance's life, so it measures share times time; by time where the price is 0.
 */
export function costsBy(db: Database, by: keyof typeof KEY_COLUMN): CostRow[] {
  return db.all<CostRow>(
    `WITH lives AS (
       SELECT instance, (max(to_ms) - min(from_ms)) / 3600000.0 AS hours,
              sum(on_demand_usd) AS on_demand, sum(to_ms - from_ms) AS time_ms
       FROM ledger GROUP BY instance)
     SELECT coalesce(l.${KEY_COLUMN[by]}, '(idle)') AS key,
            sum(CASE kind WHEN 'work' THEN usd ELSE 0.0 END) AS workUsd,
            sum(CASE kind WHEN 'wasted' THEN usd ELSE 0.0 END) AS wastedUsd,
            sum(CASE kind WHEN 'idle' THEN usd ELSE 0.0 END) AS idleUsd,
            sum(CASE kind WHEN 'work' THEN on_demand_usd ELSE 0.0 END) AS onDemandUsd,
            sum(CASE WHEN on_demand > 0 THEN hours * on_demand_usd / on_demand
                     WHEN time_ms > 0 THEN hours * (to_ms - from_ms) / time_ms
                     ELSE 0.0 END) AS instanceHours
     FROM ledger l JOIN lives USING (instance) GROUP BY 1 ORDER BY 1`,
  );
}
