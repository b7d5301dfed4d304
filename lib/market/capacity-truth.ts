import type { SchedulerConfig } from '../domain/config.ts';
import type { Bill } from '../domain/ledger.ts';
import type { Bid } from '../domain/pool.ts';
import type { InstanceId, PoolId } from '../kernel/ids.ts';
import { randomStream } from '../kernel/random.ts';
import { plus, seconds, type EpochMs } from '../kernel/units.ts';
import { billOf, type Use } from './billing.ts';
import { interruptionAfter, launchOutcome, rebalanceAfter, type Interruption, type LaunchOutcome } from './replay.ts';
import type { MarketTrace } from './trace.ts';

/**
 * True capacity, for capacity engines only (local supervisors, the in-memory fleet, the EC2 double). All answers depend
 * on their arguments only, so an engine may ask again after a crash.
 */
export interface CapacityTruth {
  /** False for a pool that the market does not have. */
  knows(pool: PoolId): boolean;
  /** Most instances alive in the pool at once; Infinity: no limit. */
  most(pool: PoolId): number;
  launch(pool: PoolId, at: EpochMs, bid: Bid): LaunchOutcome;
  /** Time at which an instance launched at `launched` takes its first task. */
  ready(of: { readonly pool: PoolId; readonly instance: InstanceId }, launched: EpochMs): EpochMs;
  interruption(pool: PoolId, launched: EpochMs, bid: Bid): Interruption | null;
  rebalance(pool: PoolId, launched: EpochMs, bid: Bid): EpochMs | null;
  bill(pool: PoolId, use: Use): Bill;
}

/** The truth of a replayed trace, billed by `rules`. */
export function capacityOf(trace: MarketTrace, rules: Pick<SchedulerConfig, 'billing' | 'refundRule'>): CapacityTruth {
  const pools = new Map(trace.pools.map((p) => [p.id, p.reservedInstances ?? Infinity]));
  const own = new Set(trace.pools.flatMap((p) => (p.isOwn === true ? [p.id] : [])));
  return {
    knows: (pool) => pools.has(pool),
    most: (pool) => pools.get(pool) ?? Infinity,
    launch: (pool, at, bid) => launchOutcome(trace, pool, at, bid),
    ready: ({ pool, instance }, launched) => (own.has(pool) ? launched : readyAfter(instance, launched)),
    interruption: (pool, launched, bid) => interruptionAfter(trace, pool, launched, bid),
    rebalance: (pool, launched, bid) => rebalanceAfter(trace, pool, launched, bid),
    bill: (pool, use) => billOf(trace, pool, use, rules),
  };
}

/** Stratus section 3.3.1: an instance is up between 30 and 160 s after its launch, uniformly. */
const START_DELAY_MIN_S = 30;
const START_DELAY_MAX_S = 160;

/** The draw is the instance's own: asking again gives the same. */
function readyAfter(instance: InstanceId, launched: EpochMs): EpochMs {
  const random = randomStream(0, `start-delay/${instance}`);
  return plus(launched, seconds(START_DELAY_MIN_S + random() * (START_DELAY_MAX_S - START_DELAY_MIN_S)));
}
