/**
 * The historical median as forecasts of one hour, in two readings. Tributary (section 2.4.7) has "the historical median
 * probability of preemption depending on the instance type, availability zone and the difference between the user bid
 * price and the spot market price" and evaluates all its models on a range after the one they were made from: `static`
 * is that, made once from the training range. `rolling` is this program's own: the median of the last seven days, asked
 * anew at each moment; it also sees the public prices of the judged range. Both use every instant of the history, not a
 * sample.
 */
import { deltaRung, HORIZONS_S, PriceSurvival, rungDelta } from '../../../market/forecast/survival.ts';
import type { PriceArrays } from '../../../market/price-steps.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { DatasetRows } from '../../../models/evaluation/dataset-rows.ts';

const HOUR = HORIZONS_S.indexOf(3600);
/** `priceHistoryS` of the scheduler's defaults. */
const WINDOW_MS = 7 * 86_400_000;

export interface Medians {
  readonly static: Float32Array;
  readonly rolling: Float32Array;
}

/**
 * `traces` in the order of the data set's sources; NaN for rows that are not `asked`. O(rows log rows + prices x
 * rungs).
 */
export function historicalMedians(
  rows: DatasetRows,
  traces: readonly MarketTrace[],
  asked: readonly number[],
): Medians {
  const found: Medians = {
    static: new Float32Array(rows.atMs.length).fill(NaN),
    rolling: new Float32Array(rows.atMs.length).fill(NaN),
  };
  for (const [source, trace] of traces.entries()) ofSource(rows, { trace, source, asked }, found);
  return found;
}

interface Asked {
  readonly trace: MarketTrace;
  readonly source: number;
  readonly asked: readonly number[];
}

function ofSource(rows: DatasetRows, { trace, source, asked }: Asked, found: Medians): void {
  const { manifest } = rows;
  const trainMs = {
    from: Date.parse(manifest.sources[source]?.from ?? ''),
    to: Date.parse(manifest.sources[source]?.validationFrom ?? ''),
  };
  const steps = pricesByName(trace);
  const delta = manifest.features.indexOf('bidDeltaUsd');
  const rungOf = (row: number): number => deltaRung(rows.features[row * manifest.features.length + delta] ?? 0);
  const mine = asked.filter((row) => rows.source[row] === source);
  const unseen = manifest.splits.indexOf('unseen');
  for (const [rung, ofRung] of Map.groupBy(mine, rungOf)) {
    const byPool = Map.groupBy(ofRung, (row) => rows.pool[row] ?? -1);
    const statics = new Map<number, number>();
    for (const [pool, list] of byPool) {
      const prices = steps.get(manifest.pools[pool] ?? '');
      if (prices === undefined)
        throw new Error(`no prices of ${manifest.pools[pool]} in ${manifest.sources[source]?.name}`);
      const isUnseen = list.some((row) => rows.split[row] === unseen);
      const p = isUnseen ? null : trained(prices, rung, trainMs);
      if (p !== null) statics.set(pool, p);
      roll(rows, list, { prices, rung, rolling: found.rolling });
    }
    // For a pool that was never seen, or has no history: the median of all pools.
    const ofAll = median([...statics.values()]);
    for (const row of ofRung) found.static[row] = statics.get(rows.pool[row] ?? -1) ?? ofAll;
    for (const row of ofRung) if (Number.isNaN(found.rolling[row])) found.rolling[row] = ofAll;
  }
}

function pricesByName(trace: MarketTrace): ReadonlyMap<string, PriceArrays> {
  const spot = trace.pools.filter((pool) => pool.option === 'spot');
  return new Map(spot.map((pool) => [`${pool.type.name}/${pool.zone}`, trace.prices(pool.id)]));
}

function trained(prices: PriceArrays, rung: number, { from, to }: { from: number; to: number }): number | null {
  const survival = new PriceSurvival(rungDelta(rung), to - from);
  survival.advance(prices, to);
  return survival.curve('median')?.p[HOUR] ?? null;
}

interface Rolling {
  readonly prices: PriceArrays;
  readonly rung: number;
  readonly rolling: Float32Array;
}

function roll(rows: DatasetRows, list: readonly number[], { prices, rung, rolling }: Rolling): void {
  const at = (row: number): number => rows.atMs[row] ?? NaN;
  const survival = new PriceSurvival(rungDelta(rung), WINDOW_MS);
  for (const row of list.toSorted((a, b) => at(a) - at(b))) {
    survival.advance(prices, at(row));
    const p = survival.curve('median')?.p;
    if (p !== undefined) rolling[row] = p[Math.min(HOUR, p.length - 1)] ?? NaN;
  }
}

function median(values: number[]): number {
  const sorted = values.sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}
