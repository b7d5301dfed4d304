import type { Retention } from '../../ports/store.ts';

/** At one cycle a minute: eight hours of plans, and events of some 25,000 attempts. */
export const DEFAULT_RETENTION: Retention = { plans: 500, events: 100_000, historyDays: null };
