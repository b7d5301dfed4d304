/** What the Lambdas that watch the world stand on; made once per process. */
import type { FleetEvent } from './fleet/events.ts';
import type { Swept } from './fleet/sweep.ts';
import type { ListSource } from './list-prices.ts';

export interface FetchedPrices {
  /** Changes of spot prices that were new. */
  readonly changes: number;
  /** Where on-demand prices are from; null: they were not due. */
  readonly onDemand: ListSource | null;
  /** Pools that have a price now; counted when a deployment asks, else null. */
  readonly pools: number | null;
}

export interface Observing {
  /** Takes in one event. False when it was about nothing of ours, or told nothing new. */
  observe(event: FleetEvent): Promise<boolean>;
  sweep(): Promise<Swept>;
  /** Fetches prices. Null: they are not due, for there is nothing to do and they are not old. */
  fetchPrices(asked: { readonly isDeploying: boolean }): Promise<FetchedPrices | null>;
  /** There may be something to do. */
  wake(): Promise<unknown>;
}

let known: Observing | null = null;

export function observing(compose: () => Observing): Observing {
  known ??= compose();
  return known;
}
