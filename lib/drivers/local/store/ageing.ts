import type { Database } from './database.ts';
import { IDLE_KEY, KEPT_SUMS } from '../../../domain/costs.ts';
import type { Retention } from '../../../ports/store.ts';
import { DAY_MS } from '../../../kernel/units.ts';

/** Most rows of one table that age out with one commit, because it holds the write lock meanwhile. */
const AT_ONCE = 200;

const MONEY = `sum(CASE kind WHEN 'work' THEN usd ELSE 0.0 END), sum(CASE kind WHEN 'wasted' THEN usd ELSE 0.0 END),
  sum(CASE kind WHEN 'idle' THEN usd ELSE 0.0 END), sum(CASE kind WHEN 'work' THEN on_demand_usd ELSE 0.0 END)`;

/**
 * Deletes entities that have been final for the retention time; their cost stays in `aged_costs`. `nowMs`: wall time.
 */
export function ageOut(db: Database, { historyDays }: Retention, nowMs: number): void {
  if (historyDays === null) return;
  const cutMs = nowMs - historyDays * DAY_MS;
  db.run('DELETE FROM idempotency WHERE at_ms <= ?', cutMs);
  const jobs = db.all<{ arrival: number; id: string }>(
    `SELECT arrival, id FROM jobs WHERE over_ms <= ?
     AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.job = jobs.id AND a.open = 1) LIMIT ?`,
    cutMs,
    AT_ONCE,
  );
  for (const { arrival, id } of jobs) forgetJob(db, arrival, id);
  const instances = db.all<{ id: string }>('SELECT id FROM instances WHERE settled_ms <= ? LIMIT ?', cutMs, AT_ONCE);
  for (const { id } of instances) forgetInstance(db, id);
}

function forgetJob(db: Database, arrival: number, id: string): void {
  for (const table of ['tasks', 'attempts', 'explanations']) db.run(`DELETE FROM ${table} WHERE job = ?`, id);
  for (const table of ['job_specs', 'job_labels', 'idempotency']) db.run(`DELETE FROM ${table} WHERE job = ?`, arrival);
  db.run('DELETE FROM jobs WHERE arrival = ?', arrival);
}

function forgetInstance(db: Database, id: string): void {
  for (const by of KEPT_SUMS) {
    db.run(
      `INSERT INTO aged_costs
       WITH life AS (SELECT (max(to_ms) - min(from_ms)) / 3600000.0 AS hours,
                            sum(on_demand_usd) AS on_demand, sum(to_ms - from_ms) AS time_ms
                     FROM ledger WHERE instance = ?1)
       SELECT '${by}', coalesce(${by}, '${IDLE_KEY}'), ${MONEY},
              sum(CASE WHEN on_demand > 0 THEN hours * on_demand_usd / on_demand
                       WHEN time_ms > 0 THEN hours * (to_ms - from_ms) / time_ms ELSE 0.0 END),
              sum(CASE WHEN kind <> 'idle' THEN 0.0
                       WHEN on_demand > 0 THEN hours * on_demand_usd / on_demand
                       WHEN time_ms > 0 THEN hours * (to_ms - from_ms) / time_ms ELSE 0.0 END),
              sum(CASE kind WHEN 'speculative' THEN usd ELSE 0.0 END),
              sum(CASE kind WHEN 'moved' THEN usd ELSE 0.0 END)
       FROM ledger, life WHERE instance = ?1 GROUP BY 2
       ON CONFLICT (by, key) DO UPDATE SET
         work_usd = work_usd + excluded.work_usd, wasted_usd = wasted_usd + excluded.wasted_usd,
         idle_usd = idle_usd + excluded.idle_usd, on_demand_usd = on_demand_usd + excluded.on_demand_usd,
         hours = hours + excluded.hours, idle_hours = idle_hours + excluded.idle_hours,
         speculative_usd = speculative_usd + excluded.speculative_usd,
         moved_usd = moved_usd + excluded.moved_usd`,
      id,
    );
  }
  for (const table of ['ledger', 'cursors']) db.run(`DELETE FROM ${table} WHERE instance = ?`, id);
  db.run('DELETE FROM instances WHERE id = ?', id);
}
