import type { AttemptId, InstanceId, JobId, PoolId } from '../kernel/ids.ts';
import type { EpochMs, Usd } from '../kernel/units.ts';

/**
 * Where an instance's cost went. work: kept by a checkpoint or a success; wasted: running time lost past the last
 * checkpoint (interruption, pre-emption, failure); idle: paid and unused (start-up included). For one instance the rows
 * sum to its bill.
 */
export type LedgerKind = 'work' | 'wasted' | 'idle';

export interface LedgerRow {
  readonly instance: InstanceId;
  readonly pool: PoolId;
  readonly kind: LedgerKind;
  /** Null for idle rows. */
  readonly attempt: AttemptId | null;
  readonly job: JobId | null;
  readonly owner: string | null;
  readonly template: string | null;
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
  /** Dollars charged (0 for refunded time). */
  readonly usd: number;
  /** The same share of the same instance type at its on-demand price. */
  readonly onDemandUsd: number;
}

/** A provider's bill as consecutive pieces of one price; refunded pieces cost 0. The pieces sum to `totalUsd`. */
export interface Bill {
  readonly totalUsd: Usd;
  readonly pieces: readonly {
    readonly fromMs: EpochMs;
    readonly toMs: EpochMs;
    /** Dollars charged for this piece. */
    readonly usd: number;
    /** Dollars that the on-demand price would have been. */
    readonly onDemandUsd: number;
  }[];
}
