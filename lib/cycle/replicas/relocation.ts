/**
 * Replicas that cost more where they are than elsewhere. A service begins where capacity is to be had: before spot
 * prices are known, or while spot refuses, that is on demand, and no allocation there ends with a window (Tributary,
 * section 2.2.4: those on spot do). So where all replicas of an instance would be clearly cheaper in other pools, they
 * are to go there. The controller moves them once the next ones serve, and gives up where those pools refuse.
 */
import { raw, secondsBetween } from '../../kernel/units.ts';
import { onDemandUsdOf, type Pool } from '../../domain/pool.ts';
import type { Relocation } from '../../domain/service.ts';
import type { FootprintChange, FootprintContext, HeldInstance } from '../../policy/services/contracts.ts';
import { windowEndMs } from '../../stages/scale/window.ts';
import { unitsOf } from '../../stages/services/units.ts';
import { serviceOf, type Acquiring, type Known, type Priced } from './demand.ts';

/** Least part of its cost that leaving an instance saves: prices move, and a start costs some minutes of both. */
export const LEAST_SAVED = 0.25;
/** Least age of an instance that is left, seconds. */
const LEAST_AGE_S = 600;
/** An hour that is paid for is used up to so long before its end, seconds: a replica needs that to begin elsewhere. */
const BEFORE_HOUR_S = 600;

/**
 * The instance whose replicas cost most each, if leaving it saves enough; null: none is to be left. O(instances) and
 * two answers of the policy.
 */
export function relocationOf(
  service: string,
  { context, change }: Pick<Priced, 'change'> & { readonly context: FootprintContext },
  known: Known & Acquiring,
): Relocation | null {
  const quotes = new Map(context.pools.map((v) => [v.pool.id, v.quote === null ? NaN : raw(v.quote)]));
  const usdOf = (pool: Pool): number => (pool.option === 'spot' ? (quotes.get(pool.id) ?? NaN) : onDemandUsdOf(pool));
  const each = (held: HeldInstance): number => usdOf(held.pool) / (held.units ?? 1);
  const least = context.pools.reduce((usd, { pool, open }) => {
    const of = open ? usdOf(pool) / unitsOf(pool) : NaN;
    return of < usd ? of : usd;
  }, Infinity);
  const dear = context.held
    .filter((held) => each(held) * (1 - LEAST_SAVED) > least && mayBeLeft(service, held, known))
    .toSorted((a, b) => each(b) - each(a));
  const [dearest] = dear;
  if (dearest === undefined) return null;
  const instead = known.footprint({ ...context, held: context.held.filter((h) => h.id !== dearest.id) });
  const cost = ({ buy }: FootprintChange): number =>
    buy.reduce((usd, { pool, count }) => usd + count * usdOf(poolNamed(context, pool)), 0);
  const [usd, insteadUsd] = [usdOf(dearest.pool), cost(instead) - cost(change)];
  if (instead.buy.length === 0 || !(insteadUsd <= (1 - LEAST_SAVED) * usd)) return null;
  const pools = instead.buy.map(({ pool }) => poolNamed(context, pool));
  const all = <T>(of: (pool: Pool) => T): readonly T[] => [...new Set(pools.map(of))];
  return {
    instance: dearest.id,
    within: {
      instanceTypes: all((p) => p.type.name),
      zones: all((p) => p.zone),
      purchaseOptions: all((p) => p.option),
    },
    reason: `its replicas cost ${text(usd)} USD/h on ${dearest.pool.id}, and ${text(Math.max(0, insteadUsd))} elsewhere`,
  };
}

/** True for an instance of its own that has run for a while, and whose paid hour is nearly over. */
function mayBeLeft(service: string, { id, launchedMs, pool }: HeldInstance, { snapshot, config }: Known): boolean {
  const view = snapshot.instances.get(id);
  if (view === undefined || launchedMs === null || pool.option === 'reserved') return false;
  if (secondsBetween(launchedMs, snapshot.nowMs) < LEAST_AGE_S) return false;
  if (view.attempts.some((r) => serviceOf(r.attempt.job, snapshot) !== service)) return false;
  if (config.billing !== 'per-hour') return true;
  const endMs = windowEndMs(view, snapshot.nowMs, config);
  return endMs !== null && secondsBetween(snapshot.nowMs, endMs) <= BEFORE_HOUR_S;
}

function poolNamed({ pools }: FootprintContext, id: Pool['id']): Pool {
  const found = pools.find((v) => v.pool.id === id);
  if (found === undefined) throw new RangeError(`a footprint policy buys in ${id}, which it was not given`);
  return found.pool;
}

const text = (usd: number): string => String(Number(usd.toPrecision(3)));
