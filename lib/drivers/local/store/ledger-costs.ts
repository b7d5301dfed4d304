import type { Database } from './database.ts';
import {
  AGED_OUT,
  type By,
  type CostRow,
  CostSums,
  IDLE_KEY,
  isKeptSum,
  UNKNOWN_CALLER,
} from '../../../domain/costs.ts';

/** Values of `costKeyOf` for a row of the ledger. */
const KEY: Readonly<Record<By, string>> = {
  job: `coalesce(l.job, '${IDLE_KEY}')`,
  owner: `coalesce(l.owner, '${IDLE_KEY}')`,
  caller: `coalesce(l.caller, CASE WHEN l.job IS NULL THEN '${IDLE_KEY}' ELSE '${UNKNOWN_CALLER}' END)`,
  pool: 'l.pool',
  template: `coalesce(l.template, '${IDLE_KEY}')`,
};

/**
 * The ledger summed by key. An instance's hours are divided among its rows by their on-demand cost: that price is
 * constant over an instance's life, so it measures share times time; by time if the price is 0.
 */
export function costsBy(db: Database, by: By): CostRow[] {
  const rows = db.all<CostRow>(
    `WITH lives AS (
       SELECT instance, (max(to_ms) - min(from_ms)) / 3600000.0 AS hours,
              sum(on_demand_usd) AS on_demand, sum(to_ms - from_ms) AS time_ms
       FROM ledger GROUP BY instance)
     SELECT ${KEY[by]} AS key,
            sum(CASE kind WHEN 'work' THEN usd ELSE 0.0 END) AS workUsd,
            sum(CASE kind WHEN 'wasted' THEN usd ELSE 0.0 END) AS wastedUsd,
            sum(CASE kind WHEN 'speculative' THEN usd ELSE 0.0 END) AS speculativeUsd,
            sum(CASE kind WHEN 'moved' THEN usd ELSE 0.0 END) AS movedUsd,
            sum(CASE kind WHEN 'idle' THEN usd ELSE 0.0 END) AS idleUsd,
            sum(CASE kind WHEN 'work' THEN on_demand_usd ELSE 0.0 END) AS onDemandUsd,
            sum(CASE WHEN on_demand > 0 THEN hours * on_demand_usd / on_demand
                     WHEN time_ms > 0 THEN hours * (to_ms - from_ms) / time_ms
                     ELSE 0.0 END) AS instanceHours,
            sum(CASE WHEN kind <> 'idle' THEN 0.0
                     WHEN on_demand > 0 THEN hours * on_demand_usd / on_demand
                     WHEN time_ms > 0 THEN hours * (to_ms - from_ms) / time_ms
                     ELSE 0.0 END) AS idleHours
     FROM ledger l JOIN lives USING (instance) GROUP BY 1 ORDER BY 1`,
  );
  const aged = agedCosts(db, by);
  if (aged.length === 0) return rows;
  const sums = new CostSums();
  for (const row of [...rows, ...aged]) sums.add(row);
  return sums.rows();
}

/** Aged-out costs have lost their jobs, templates and callers. */
function agedCosts(db: Database, by: By): CostRow[] {
  const sums = `sum(work_usd) AS workUsd, sum(wasted_usd) AS wastedUsd, sum(speculative_usd) AS speculativeUsd,
    sum(moved_usd) AS movedUsd, sum(idle_usd) AS idleUsd, sum(on_demand_usd) AS onDemandUsd, sum(hours) AS instanceHours, sum(idle_hours) AS idleHours`;
  const key = isKeptSum(by) ? 'key' : `'${AGED_OUT}'`;
  return db.all<CostRow>(
    `SELECT ${key} AS key, ${sums} FROM aged_costs WHERE by = ? GROUP BY 1`,
    isKeptSum(by) ? by : 'pool',
  );
}
