/** Dependencies of the Lambdas that observe the world, made once per process. */
import type { EbbError } from '../../../kernel/errors.ts';
import type { FleetEvent } from '../fleet/event-notices.ts';
import type { Swept } from '../fleet/sweep.ts';
import type { ListSource } from '../market/on-demand-prices.ts';
import type { ReservationsRead } from '../market/reservations.ts';

export interface FetchedPrices {
  /** New changes of spot prices. */
  readonly changes: number;
  /** Source of on-demand prices; null if they were not due. */
  readonly onDemand: ListSource | null;
  /** EC2's answer about capacity reservations; null if the deployment names none. */
  readonly reserved: ReservationsRead | null;
  /** Pools that have a price now, counted for a deployment; else null. */
  readonly pools: number | null;
}

/** Outcome of a batch of events. */
export interface Observed {
  /** False if the events concern no instance of ours or tell nothing new. */
  readonly isNews: boolean;
  /** True if a decision may be needed now. Otherwise the next cycle applies the news. */
  readonly isDue: boolean;
  /** Errors by the event's position. These events must come again. */
  readonly failed: ReadonlyMap<number, EbbError>;
}

export interface Observing {
  observe(events: readonly FleetEvent[]): Promise<Observed>;
  /** `tickMs`: time of the tick (tick.ts). */
  sweep(tickMs: number): Promise<Swept>;
  /** Fetches prices. Null: the clock asked, nothing is to do, and prices are not old. */
  fetchPrices(asked: 'deploying' | { readonly tickMs: number }): Promise<FetchedPrices | null>;
  /** Wakes the cycle: there may be something to do. */
  wake(): Promise<unknown>;
}

let known: Observing | null = null;

export function observing(compose: () => Observing): Observing {
  known ??= compose();
  return known;
}
