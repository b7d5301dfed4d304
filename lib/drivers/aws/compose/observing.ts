/** What the Lambdas that watch the world stand on; made once per process. */
import type { EbbError } from '../../../kernel/errors.ts';
import type { FleetEvent } from '../fleet/event-notices.ts';
import type { Swept } from '../fleet/sweep.ts';
import type { ListSource } from '../market/on-demand-prices.ts';
import type { ReservationsRead } from '../market/reservations.ts';

export interface FetchedPrices {
  /** Changes of spot prices that were new. */
  readonly changes: number;
  /** Where on-demand prices are from; null: they were not due. */
  readonly onDemand: ListSource | null;
  /** What EC2 says of capacity reservations; null: the deployment names none. */
  readonly reserved: ReservationsRead | null;
  /** Pools that have a price now; counted when a deployment asks, else null. */
  readonly pools: number | null;
}

/** What came of taking in events. */
export interface Observed {
  /** False when they were about nothing of ours, or told nothing new. */
  readonly isNews: boolean;
  /** Something may have to be decided now. Else the next cycle takes the news in, whenever that is. */
  readonly isDue: boolean;
  /** By the event's place: what follows from it cannot be done now, and it must come again. */
  readonly failed: ReadonlyMap<number, EbbError>;
}

export interface Observing {
  observe(events: readonly FleetEvent[]): Promise<Observed>;
  /** `struckMs`: when the clock struck (strike.ts). */
  sweep(struckMs: number): Promise<Swept>;
  /** Fetches prices. Null: the clock asked and they are not due, for there is nothing to do and they are not old. */
  fetchPrices(asked: 'deploying' | { readonly struckMs: number }): Promise<FetchedPrices | null>;
  /** There may be something to do. */
  wake(): Promise<unknown>;
}

let known: Observing | null = null;

export function observing(compose: () => Observing): Observing {
  known ??= compose();
  return known;
}
