import type { PoolId } from '../kernel/ids.ts';
import { epochMs, raw } from '../kernel/units.ts';
import { indexAt, priceAt } from '../market/price-steps.ts';
import type { MarketTrace } from '../market/trace.ts';
import type { RunOutcome } from './outcome.ts';
import { onDemandUsdOf } from '../domain/pool.ts';

/** Spot price of one pool within one window, as steps; the last one holds until `toMs`. */
export interface PriceSeries {
  readonly pool: string;
  /** Window: `fromMs` of its runs. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly onDemandUsdPerHour: number;
  readonly atMs: readonly number[];
  readonly usdPerHour: readonly number[];
}

/** Pools drawn per window: those with the highest cost. */
export const DRAWN_POOLS = 6;
/** Most steps of a chart: a wide page shows no more. */
const DRAWN_STEPS = 800;

/** Prices of the costliest spot pools of each window. O(runs x pools + price steps of the windows). */
export function pricesOf(trace: MarketTrace, runs: readonly RunOutcome[]): readonly PriceSeries[] {
  const pools = new Map(trace.pools.map((p) => [p.id as string, p]));
  return [...Map.groupBy(runs, (r) => r.fromMs)].flatMap(([fromMs, of]) => {
    const toMs = Math.min(Math.max(...of.map((r) => r.endMs)), raw(trace.endMs));
    return mostUsed(of).flatMap((id) => {
      const pool = pools.get(id);
      if (pool === undefined) return [];
      const steps = stepsWithin(trace, pool.id, { fromMs, toMs });
      return steps.length === 0
        ? []
        : [
            {
              pool: id,
              fromMs,
              toMs,
              onDemandUsdPerHour: onDemandUsdOf(pool),
              atMs: steps.map(([at]) => at),
              usdPerHour: steps.map(([, usd]) => usd),
            },
          ];
    });
  });
}

/** Spot pools by cost over all runs of a window; the costliest of each run are among them. */
function mostUsed(runs: readonly RunOutcome[]): readonly string[] {
  const spent = new Map<string, number>();
  const firsts = new Set<string>();
  for (const run of runs) {
    const spot = run.pools.filter((p) => p.option === 'spot' && p.launches > 0);
    for (const use of spot) spent.set(use.pool, (spent.get(use.pool) ?? 0) + use.billedUsd);
    for (const use of spot.slice(0, DRAWN_POOLS)) firsts.add(use.pool);
  }
  return [...firsts].sort((a, b) => (spent.get(b) ?? 0) - (spent.get(a) ?? 0) || (a < b ? -1 : 1));
}

type Step = readonly [atMs: number, usdPerHour: number];

function stepsWithin(
  trace: MarketTrace,
  pool: PoolId,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): readonly Step[] {
  const prices = trace.prices(pool);
  const atStart = priceAt(prices, epochMs(fromMs));
  const steps: Step[] = atStart === null ? [] : [[fromMs, atStart]];
  for (let i = indexAt(prices.atMs, fromMs) + 1; i < prices.atMs.length; i++) {
    const at = prices.atMs[i] ?? Infinity;
    if (at >= toMs) break;
    steps.push([at, prices.usdPerHour[i] ?? 0]);
  }
  return thinned(steps);
}

/** About DRAWN_STEPS steps at most, with the first, lowest, highest and last of each stretch: no spike is lost. */
export function thinned(steps: readonly Step[]): readonly Step[] {
  if (steps.length <= DRAWN_STEPS) return steps;
  const size = Math.ceil((4 * steps.length) / DRAWN_STEPS);
  const kept: Step[] = [];
  for (let i = 0; i < steps.length; i += size) {
    const stretch = steps.slice(i, i + size);
    const [first] = stretch;
    const last = stretch.at(-1);
    if (first === undefined || last === undefined) continue;
    const low = stretch.reduce((a, b) => (b[1] < a[1] ? b : a));
    const high = stretch.reduce((a, b) => (b[1] > a[1] ? b : a));
    kept.push(...[...new Set([first, low, high, last])].sort((a, b) => a[0] - b[0]));
  }
  return kept;
}
