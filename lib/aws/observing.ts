/** What the Lambdas that watch the world stand on; made once per process. */
import type { FleetEvent } from './fleet/events.ts';
import type { Swept } from './fleet/sweep.ts';

export interface Observing {
  /** Takes in one event. False when it was about nothing of ours, or told nothing new. */
  observe(event: FleetEvent): Promise<boolean>;
  sweep(): Promise<Swept>;
  /** Fetches prices; how many changes were new. */
  fetchPrices(): Promise<number>;
  /** There may be something to do. */
  wake(): Promise<unknown>;
}

let known: Observing | null = null;

export function observing(compose: () => Observing): Observing {
  known ??= compose();
  return known;
}
