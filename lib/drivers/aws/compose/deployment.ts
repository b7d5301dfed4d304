/**
 * What the Lambdas of the cycle stand on, and the one place where their handlers find it. A Lambda composes it from its
 * environment at its first use (compose.ts); tests provide one with other parts.
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
  /** Engine time at which prices were last asked for; null when they never were. */
  readonly checkedMs: number | null;
}

export interface Deployment {
  readonly store: Store;
  readonly fleet: Fleet;
  readonly clock: Clock;
  /** Engine seconds per wall second: 1 but in a rehearsal. */
  readonly speed: number;
  /** Wall time. */
  readonly nowMs: () => number;
  readonly random: Uniform;
  readonly config: SchedulerConfig;
  readonly limits: Limits;
  readonly draining: boolean;
  readonly wake: Wake;
  readonly memory: ObservationMemory;
  /** One-off schedules; absent: the clock alone wakes the cycle. */
  readonly windowEnds?: Pick<WindowEnds, 'keep'>;
  readonly carrier: Carrier;
  readonly spent: Spent;
  /** Folder of trained models; absent: the one beside the function's code. */
  readonly models?: string;
  /** Read anew when it may have changed. */
  market(): Promise<KnownMarket>;
}

let known: Deployment | null = null;

/** For tests: takes the place of what the environment would say; null takes it away. */
export function provideDeployment(deployment: Deployment | null): void {
  known = deployment;
}

/** The deployment of this process; `compose` makes it at the first use. */
export function deployment(compose: () => Deployment): Deployment {
  known ??= compose();
  return known;
}
