import type { AttemptId, InstanceId, JobId, PoolId } from '../kernel/ids.ts';
import { FOREVER, least, msBetween, type EpochMs, type Usd } from '../kernel/units.ts';

/**
 * Share of an instance's cost. work: saved by a checkpoint or a success. wasted: running time after the last
 * checkpoint, lost (interruption, preemption, failure), and all of a copy's that did not succeed. speculative: running
 * time of superseded attempts; earlier versions called it work. moved: time of moves, in which a task makes no
 * progress: on the source from the order to stop until its end, on the target while room is kept for the arrival. idle:
 * paid and unused, start-up included, charged to the job that caused it (lib/cycle/money/ledger.ts). The rows of one
 * instance sum to its bill.
 */
export const LEDGER_KINDS = ['work', 'wasted', 'speculative', 'moved', 'idle'] as const;

export type LedgerKind = (typeof LEDGER_KINDS)[number];

export interface LedgerRow {
  readonly instance: InstanceId;
  readonly pool: PoolId;
  readonly kind: LedgerKind;
  /** Null for idle rows. */
  readonly attempt: AttemptId | null;
  /** Null for idle time that no job is known to have caused, and in idle rows of versions that named none. */
  readonly job: JobId | null;
  readonly owner: string | null;
  readonly template: string | null;
  /** Id of the submitter; null if not recorded. */
  readonly caller: string | null;
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
  /** Dollars charged (0 for refunded time). */
  readonly usd: number;
  /** The same share of the same instance type at its on-demand price. */
  readonly onDemandUsd: number;
}

/**
 * Instance-hours of each row of one instance, in order: its life divided among rows by their on-demand cost. That price
 * is constant over an instance's life, so it measures share times time; if it is 0, time alone. They sum to the hours
 * from the first row's beginning to the last one's end.
 */
export function instanceHours(rows: readonly LedgerRow[]): number[] {
  const spanMs = (row: LedgerRow): number => msBetween(row.fromMs, row.toMs);
  const fromMs = rows.reduce((first, r) => least(first, r.fromMs), FOREVER);
  const hours = rows.reduce((most, r) => Math.max(most, msBetween(fromMs, r.toMs)), 0) / 3_600_000;
  const onDemandUsd = rows.reduce((sum, r) => sum + r.onDemandUsd, 0);
  const timeMs = rows.reduce((sum, r) => sum + spanMs(r), 0);
  return rows.map((r) => hours * (onDemandUsd > 0 ? r.onDemandUsd / onDemandUsd : timeMs > 0 ? spanMs(r) / timeMs : 0));
}

/** A provider's bill as consecutive pieces of one price; refunded pieces cost 0. The pieces sum to `totalUsd`. */
export interface Bill {
  readonly totalUsd: Usd;
  /** Cost without the refund of an early interruption. Absent: nothing was refunded. */
  readonly refundedUsd?: number;
  readonly pieces: readonly {
    readonly fromMs: EpochMs;
    readonly toMs: EpochMs;
    /** Dollars charged for this piece. */
    readonly usd: number;
    /** Dollars that the on-demand price would have been. */
    readonly onDemandUsd: number;
  }[];
}
