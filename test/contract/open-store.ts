import type { Retention, Store } from '../../lib/ports/store.ts';

/** Gives an empty store with the given retention; `nowMs`: its wall clock. */
export type OpenStore = (retention: Retention, nowMs: () => number) => Promise<Store>;
