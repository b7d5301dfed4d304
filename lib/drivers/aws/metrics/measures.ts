/** Values of the metrics in metrics.ts. A cycle has them at hand, except for one counter that is read. */
import { epochMs, lte, most, raw, seconds, secondsBetween, type EpochMs } from '../../../kernel/units.ts';
import { pInterruptedWithin } from '../../../domain/forecast.ts';
import type { Instance } from '../../../domain/instance.ts';
import { isOver } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import type { InstanceView, Snapshot } from '../../../domain/snapshot.ts';
import type { MarketForecast } from '../../../domain/forecasts.ts';
import { usdPerHourOf, type PurchaseOption, onDemandUsdOf } from '../../../domain/pool.ts';
import { driftOf, type Drift, type DriftRisk } from '../../../market/forecast/drift.ts';
import type { Change, Store } from '../../../ports/store.ts';
import type { KnownMarket } from '../compose/deployment.ts';
import { startOfDay, type Spent } from './spent.ts';
import { BOOKED, HELD } from './metrics.ts';
import { logger, measure } from '../lambda/stack.ts';

const HOUR_S = seconds(3600);

/** Metrics of a snapshot: the queue, held instances and their cost. */
export async function measureSnapshot(
  snapshot: Snapshot,
  { market, checkedMs }: KnownMarket,
  spent: Spent,
): Promise<void> {
  const { nowMs, groups, running } = snapshot;
  measure(
    'queueDepth',
    groups.reduce((sum, g) => sum + g.count, 0),
  );
  measure('runningTasks', running.length);
  measure('liveInstances', snapshot.instances.size);
  if (checkedMs !== null) measure('priceAge', Math.max(0, raw(nowMs) - checkedMs) / 1000);
  const rates = new Map<PurchaseOption, number>();
  let onDemandRate = 0;
  let accruedUsd = 0;
  for (const view of snapshot.instances.values()) {
    const { launchedMs } = view.instance;
    if (launchedMs === null) continue;
    const rate = priceOf(view, market, nowMs);
    rates.set(view.pool.option, (rates.get(view.pool.option) ?? 0) + rate);
    // Reservations are paid for whether used or not, so their use saves nothing.
    onDemandRate += view.pool.option === 'reserved' ? rate : onDemandUsdOf(view.pool);
    accruedUsd += (rate * Math.max(0, raw(nowMs) - Math.max(raw(launchedMs), startOfDay(raw(nowMs))))) / 3_600_000;
  }
  for (const option of ['spot', 'on-demand'] as const) measure('spendRate', rates.get(option) ?? 0, option);
  // Reserved capacity is rare, so its metric is written only if there is some.
  const reservedRate = rates.get('reserved');
  if (reservedRate !== undefined) measure('spendRate', reservedRate, 'reserved');
  measure('onDemandRate', onDemandRate);
  measure('spentToday', (await spent.on(raw(nowMs))) + accruedUsd);
}

/** Number of held jobs; not written while there are none. */
export function measureHeldJobs(now: number, before: number): void {
  if (now + before > 0) measure('heldJobs', now);
}

const priceOf = ({ instance, pool }: InstanceView, market: KnownMarket['market'], nowMs: EpochMs): number =>
  usdPerHourOf(pool, market.quote(instance.pool, nowMs));

/** Expected interruptions of held spot instances within an hour, and questions that the model did not answer. */
export function measureForecast(snapshot: Snapshot, forecast: MarketForecast): void {
  let expected = 0;
  for (const { pool, instance } of snapshot.instances.values()) {
    if (pool.option === 'spot') expected += pInterruptedWithin(forecast.interruption(pool, instance.bid), HOUR_S);
  }
  measure('interruptionsExpected', expected);
  const { origin } = forecast;
  if (origin === undefined) return;
  const refused = [origin.refused, origin.capacity?.refused ?? null].filter((why) => why !== null);
  if (refused.length > 0) measure('modelsRefused', refused.length);
  const instead = origin.byHistory.reduce((sum, { bids }) => sum + bids, 0);
  if (instead > 0) {
    measure('bidsByHistory', instead);
    logger.info('bids that the model did not answer', { byHistory: origin.byHistory });
  }
}

/** Store that also measures its commits, once they are durable. */
export function measuredStore(store: Store, spent: Spent): Store {
  const commit: Store['commit'] = async (token, changes) => {
    await store.commit(token, changes);
    for (const change of changes) await measureChange(change, spent);
  };
  return new Proxy(store, {
    get: (target, name: keyof Store) => (name === 'commit' ? commit : target[name]?.bind(target)),
  });
}

/** One log line per job, and one for unused capacity. A repeated commit may log twice; the ledger is exact. */
function booked(rows: readonly LedgerRow[]): object[] {
  const byJob = Map.groupBy(rows, (row) => row.job);
  const sum = (of: readonly LedgerRow[], kind?: LedgerRow['kind']): number =>
    of.reduce((total, row) => total + (kind === undefined || row.kind === kind ? row.usd : 0), 0);
  return [...byJob].map(([job, of]) => ({
    ...(job === null ? {} : { job, owner: of[0]?.owner ?? '' }),
    usd: sum(of),
    workUsd: sum(of, 'work'),
    wastedUsd: sum(of, 'wasted'),
    speculativeUsd: sum(of, 'speculative'),
    movedUsd: sum(of, 'moved'),
    idleUsd: sum(of, 'idle'),
  }));
}

/**
 * Forecast of a spot instance against its end, once, when its bill is settled. If forecasts are right, observed less
 * expected interruptions sum to a mean of 0 over ended instances, whatever ended them (lib/market/forecast/drift.ts).
 * Pools, and capacity and price apart, are in the log only. Pools have no bound, and each further metric costs money.
 */
function measureHeld(instance: Instance): void {
  const { endedMs, costUsd, forecast, pool } = instance;
  if (endedMs === null || costUsd === null || forecast === undefined) return;
  const drift = (risk: DriftRisk): Drift => driftOf([instance], endedMs, { risk, by: null }).overall;
  const any = drift('any');
  if (any.instances === 0) return;
  measure('endedExpected', any.expected);
  measure('endedInterrupted', any.observed);
  const said = { pool, by: forecast.by, hours: any.hours, expected: any.expected, interrupted: any.observed };
  logger.info(HELD, { ...said, ...apart(any, drift('capacity')) });
}

/**
 * Drift by risk. The forecast treats the risks as independent, so their hazards add up. Nothing if the capacity risk
 * was not stored.
 */
const apart = (any: Drift, capacity: Drift): object =>
  capacity.instances === 0
    ? {}
    : {
        capacityExpected: capacity.expected,
        capacityInterrupted: capacity.observed,
        priceExpected: Math.max(0, any.expected - capacity.expected),
        priceInterrupted: any.observed - capacity.observed,
      };

async function measureChange(change: Change, spent: Spent): Promise<void> {
  if (change.put === 'job' && isOver(change.value.state)) {
    const { state, deadlineMs, finishedMs, endedLate } = change.value;
    const isLate =
      endedLate === true || (deadlineMs !== null && finishedMs !== null && secondsBetween(finishedMs, deadlineMs) < 0);
    if (isLate) measure('jobsLate', 1);
    else if (state === 'succeeded' && deadlineMs !== null && finishedMs !== null && lte(finishedMs, deadlineMs)) {
      measure('jobsInTime', 1);
    }
  } else if (change.put === 'instance') {
    measureHeld(change.value);
  } else if (change.put === 'ledger') {
    const rows = change.value;
    measure(
      'waste',
      rows.reduce((sum, row) => sum + (row.kind === 'work' ? 0 : row.usd), 0),
    );
    for (const line of booked(rows)) logger.info(BOOKED, { ...line });
    const endedMs = rows.reduce((last, row) => most(last, row.toMs), epochMs(0));
    await spent.add(
      raw(endedMs),
      rows.reduce((sum, row) => sum + row.usd, 0),
    );
  }
}
