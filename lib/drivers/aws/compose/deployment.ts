/**
 * Dependencies of the cycle's Lambdas, and the one place where handlers find them. A Lambda composes them at first use
 * (compose.ts). Tests provide others.
 */
import type { Clock } from '../../../kernel/clock.ts';
import type { Uniform } from '../../../kernel/random.ts';
import type { ObservationMemory } from '../../../cycle/observe/remembered.ts';
import type { SchedulerConfig } from '../../../domain/config.ts';
import type { Limits } from '../../../domain/snapshot.ts';
import type { Fleet } from '../../../ports/fleet.ts';
import type { Market } from '../../../ports/market.ts';
import type { Store } from '../../../ports/store.ts';
import type { Carrier } from '../cycle/blobs.ts';
import type { Spent } from '../metrics/spent.ts';
import type { Wake } from '../cycle/wake.ts';
import type { WindowEnds } from '../market/window-ends.ts';

/** The market as far as prices are known. */
export interface KnownMarket {
  readonly market: Market;
  /** Engine time of the last fetch of prices; null before the first. */
  readonly checkedMs: number | null;
}

export interface Deployment {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly clock: Clock;
  /** Engine seconds per wall second; other than 1 only in a rehearsal. */
  readonly speed: number;
  /** Wall time. */
  readonly nowMs: () => number;
  readonly random: Uniform;
  readonly config: SchedulerConfig;
  readonly limits: Limits;
  readonly draining: boolean;
  readonly wake: Wake;
  /** Starts the controller of services. Absent: the deployment has no services. */
  readonly serviceWake?: Pick<Wake, 'wake' | 'wakeIfDue'>;
  readonly memory: ObservationMemory;
  /** One-off schedules. Absent: only the clock wakes the cycle. */
  readonly windowEnds?: Pick<WindowEnds, 'keep'>;
  readonly carrier: Carrier;
  readonly spent: Spent;
  /** Folder of trained models. Absent: the folder beside the function's code. */
  readonly models?: string;
  /** The market, read again if it may have changed. */
  market(): Promise<KnownMarket>;
}

let known: Deployment | null = null;

/** For tests: replaces the composition from the environment; null restores it. */
export function provideDeployment(deployment: Deployment | null): void {
  known = deployment;
}

/** Deployment of this process. `compose` makes it at first use. */
export function deployment(compose: () => Deployment): Deployment {
  known ??= compose();
  return known;
}
