/**
 * What a store forgets, so that it does not grow with every cycle. Jobs, tasks, attempts, instances and the ledger are
 * kept for good. Of explanations the latest per job is kept, for good too.
 */
export interface Retention {
  /** Newest plans kept, and with them the outcomes of their effects. Effects without an outcome are always kept. */
  readonly plans: number;
  /** Newest events kept. Sequence numbers go on ascending. */
  readonly events: number;
}

/** At one cycle a minute: eight hours of plans. Events of some 25,000 attempts. */
export const DEFAULT_RETENTION: Retention = { plans: 500, events: 100_000 };
