import type { PoolId } from '../../kernel/ids.ts';
import { epochMs, raw, seconds, usdPerHour, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { Doubles } from '../../domain/distribution.ts';
import { FROM_OBSERVED, NEVER_INTERRUPTED, type InterruptionCurve } from '../../domain/forecast.ts';
import { type Bid, type Pool, onDemandUsdOf } from '../../domain/pool.ts';
import { indexAt, type PriceArrays } from '../price-steps.ts';
import { OBSERVED_MS, priceDrivers } from './drivers.ts';
import { survivesCapacity, type CapacityBelief, type HazardPosterior } from './hazard.ts';
import type { CapacityRisks } from './learned-capacity.ts';
import type { PriceLosses } from './learned.ts';
import { correlationOf, expectedPriceOf, hourlyUsdOf, meanPriceOf, type PoolOutlook } from './outlook.ts';
import { relativesOf } from './relatives.ts';
import { priceStatistics, type PriceStatistics } from './price-statistics.ts';
import { deltaRung, HORIZONS_S, PriceSurvival, rungDelta, type DayStatistic, type PriceLossCurve } from './survival.ts';
import type { OutlookForecast } from './forecast-data.ts';

/**
 * Public price history: changes within [from, to), the price in force at `from` first (the answer of the Market port).
 */
type PriceHistory = (pool: PoolId, from: EpochMs, to: EpochMs) => PriceArrays;

interface ForecasterInput {
  readonly history: PriceHistory;
  /** Pools whose history may stand in for a pool's own; absent: none. */
  readonly pools?: () => readonly Pool[];
  /**
   * Statistic that makes one curve of the days; default: the published median. `node bench/forecast.ts` scores both.
   */
  readonly dayStatistic?: DayStatistic;
  readonly config: Pick<SchedulerConfig, 'priceHistoryS' | 'hazardPriorPerHour' | 'hazardPriorHours'>;
}

/**
 * Cached rungs per pool: config's deltas, the on-demand bid and those that it drifted through lately. More if one cycle
 * asks for more, as for instances bought at many prices: reading a week of history again each cycle costs more.
 */
const MOST_RUNGS = 12;
const HOUR_MS = 3_600_000;

interface PoolMemory {
  /** Per rung; the least recently asked for is first. */
  readonly survivals: Map<number, PriceSurvival>;
  statistics: PriceStatistics | null;
  statisticsHour: number;
}

interface RungCurve {
  readonly pInterrupted: Float64Array;
  readonly days: number;
}

/** Answers for a pool within one cycle. */
interface PoolCurves {
  readonly nowMs: number;
  readonly price: number | null;
  readonly capacity: Float64Array;
  readonly capacityBy: string;
  readonly capacityReason: string;
  readonly byRung: Map<number, RungCurve | null>;
  readonly curves: Map<Bid, InterruptionCurve>;
  readonly learned: PriceLosses | null;
}

/** Answers of trained models; absent or null: none was chosen. */
interface Learned {
  readonly losses?: PriceLosses | null;
  readonly risks?: CapacityRisks | null;
}

/** P(capacity ends within HORIZONS_S), with its evidence. */
interface CapacityRisk {
  readonly p: Float64Array;
  /** The version of the model, or `observed`. */
  readonly by: string;
  readonly reason: string;
}

/**
 * Forecasts spot pools from prices and observed interruptions. Lives as long as the engine; `at` gives the view of one
 * instant. Caches are functions of the requested history: after a restart the same answers come again. When time goes
 * back (another market, a simulator's next run) the pool's cache is dropped.
 * Memory: per pool and rung about 8 KiB for a week of history (hours x horizons), plus the open stretches.
 */
export class MarketForecaster {
  readonly #input: ForecasterInput;
  readonly #pools = new Map<PoolId, PoolMemory>();
  readonly #correlations = new Map<string, number>();
  readonly #doubles = new Doubles();
  #correlationHour = NaN;

  constructor(input: ForecasterInput) {
    this.#input = input;
  }

  /**
   * The forecast as of `now`, for one cycle: answers are cached within it. Trained models override history and observed
   * interruptions.
   */
  at(now: EpochMs, evidence: CapacityBelief, { losses = null, risks = null }: Learned = {}): OutlookForecast {
    const nowMs = raw(now);
    const pools = new Map<PoolId, PoolCurves>();
    const knownOf = (pool: Pool): PoolCurves => {
      let known = pools.get(pool.id);
      if (known === undefined) {
        known = { ...this.#curvesOf(pool, nowMs, this.#capacityOf(pool, evidence, risks)), learned: losses };
        pools.set(pool.id, known);
      }
      return known;
    };
    return {
      interruption: (pool, bid) => {
        if (pool.option !== 'spot') return NEVER_INTERRUPTED;
        const known = knownOf(pool);
        let curve = known.curves.get(bid);
        if (curve === undefined) known.curves.set(bid, (curve = this.#interruption(pool, bid, known)));
        return curve;
      },
      capacity: (pool) => {
        if (pool.option !== 'spot') return null;
        const { capacity, capacityBy } = knownOf(pool);
        return { by: capacityBy, horizonS: HORIZONS_S, pInterrupted: capacity };
      },
      expectedPrice: (pool, at) =>
        expectedPriceOf(pool, pool.option === 'on-demand' ? null : this.#outlook(pool, nowMs), now, at),
      meanPrice: (pool, over) =>
        meanPriceOf(pool, pool.option === 'on-demand' ? null : this.#outlook(pool, nowMs), over),
      correlation: (a, b) => this.#correlation(a, b, nowMs),
      outlook: (pool) => this.#outlook(pool, nowMs),
      hourlyUsd: (pool) => hourlyUsdOf(pool, pool.option === 'on-demand' ? null : this.#outlook(pool, nowMs)),
      drivers: (pool, bid) => {
        if (pool.option !== 'spot' || bid === 'uncapped') return null;
        return priceDrivers(this.#history(pool.id, nowMs - OBSERVED_MS, nowMs), raw(bid), nowMs);
      },
    };
  }

  #curvesOf(pool: Pool, nowMs: number, capacity: CapacityRisk): Omit<PoolCurves, 'learned'> {
    return {
      nowMs,
      price: this.#priceAt(pool.id, nowMs),
      capacity: capacity.p,
      capacityBy: capacity.by,
      capacityReason: capacity.reason,
      byRung: new Map(),
      curves: new Map(),
    };
  }

  #capacityOf(pool: Pool, evidence: CapacityBelief, risks: CapacityRisks | null): CapacityRisk {
    const risk = risks?.(pool.id) ?? null;
    if (risk?.kind === 'curve')
      return { p: risk.p, by: risk.version, reason: `capacity: by the model ${risk.version}` };
    const hazard = evidence.posterior(pool.id, this.#input.config);
    const p = this.#overHorizons((h) => 1 - survivesCapacity(hazard, seconds(h)));
    const instead = risks === null ? '' : ` (not by the model: ${risk?.why ?? 'it was not asked about this pool'})`;
    return { p, by: FROM_OBSERVED.chosen, reason: `${capacityReason(hazard)}${instead}` };
  }

  #interruption(pool: Pool, bid: Bid, known: PoolCurves): InterruptionCurve {
    if (bid === 'uncapped') {
      return {
        horizonS: HORIZONS_S,
        pInterrupted: this.#eitherTakes(known.capacity, null),
        reason: `no bid to be passed; ${known.capacityReason}`,
      };
    }
    const { reason, ...risk } = this.#withPrice(pool, raw(bid), known);
    return { horizonS: HORIZONS_S, ...risk, reason: `${reason}; ${known.capacityReason}` };
  }

  #withPrice(pool: Pool, bid: number, known: PoolCurves): Omit<InterruptionCurve, 'horizonS' | 'limit'> {
    const { price, capacity } = known;
    if (price !== null && price > bid) {
      const passed = this.#overHorizons(() => 1);
      return {
        pInterrupted: this.#eitherTakes(capacity, passed),
        reason: `the price ${price} is above the bid already`,
      };
    }
    const delta = bid - (price ?? bid);
    const learned = known.learned?.(pool, usdPerHour(bid)) ?? null;
    if (learned?.kind === 'curve') {
      return {
        pInterrupted: this.#eitherTakes(capacity, learned.p),
        priceBy: learned.version,
        reason: `price: bid ${delta.toPrecision(2)} USD/h above the price, by the model ${learned.version}`,
      };
    }
    const { pInterrupted, reason } = this.#byHistory(pool, delta, known);
    if (known.learned === null || price === null) return { pInterrupted, reason };
    return {
      pInterrupted,
      reason: `${reason} (not by the model: ${learned?.why ?? 'it was not asked about this bid'})`,
    };
  }

  #byHistory(pool: Pool, delta: number, known: PoolCurves): { pInterrupted: Float64Array; reason: string } {
    const { price, capacity } = known;
    const statistic = this.#input.dayStatistic ?? 'median';
    const byRung = price === null ? null : this.#atRung(pool.id, deltaRung(delta), known);
    if (byRung === null) {
      const { p, whose } = this.#byRelatives(pool, delta, known.nowMs) ?? {
        p: this.#coldStart(delta / Math.max(onDemandUsdOf(pool), 1e-9)),
        whose: 'prior of all markets',
      };
      return { pInterrupted: this.#eitherTakes(capacity, p), reason: `price: too little history, ${whose}` };
    }
    return {
      pInterrupted: byRung.pInterrupted,
      reason: `price: bid ${delta.toPrecision(2)} USD/h above the price, ${statistic} of ${byRung.days} day(s) of history`,
    };
  }

  /** The mean of the nearest relatives that have a history, for a bid as far above the price relative to on-demand. */
  #byRelatives(pool: Pool, delta: number, nowMs: number): { p: Float64Array; whose: string } | null {
    const perOnDemand = delta / Math.max(onDemandUsdOf(pool), 1e-9);
    for (const { name, pools } of relativesOf(pool, this.#input.pools?.() ?? [])) {
      const curves = pools.flatMap((p) => {
        const rung = deltaRung(perOnDemand * onDemandUsdOf(p));
        return this.#survival(p.id, rung, nowMs).curve(this.#input.dayStatistic ?? 'median') ?? [];
      });
      if (curves.length === 0) continue;
      const all = curves.map((curve) => this.#extended(curve));
      const p = this.#overHorizons((_, h) => all.reduce((sum, curve) => sum + (curve[h] ?? 0), 0) / all.length);
      return { p, whose: `mean of ${curves.length} pool(s) of ${name}` };
    }
    return null;
  }

  /** Bids of one rung share their curve: a thousand instances bought at as many prices ask for a few dozen. */
  #atRung(pool: PoolId, rung: number, known: PoolCurves): RungCurve | null {
    let found = known.byRung.get(rung);
    if (found === undefined) {
      const curve = this.#survival(pool, rung, known.nowMs).curve(this.#input.dayStatistic ?? 'median');
      found =
        curve === null
          ? null
          : { pInterrupted: this.#eitherTakes(known.capacity, this.#extended(curve)), days: curve.days };
      known.byRung.set(rung, found);
    }
    return found;
  }

  #survival(pool: PoolId, rung: number, nowMs: number): PriceSurvival {
    const { survivals } = this.#memory(pool);
    let survival = survivals.get(rung);
    const windowMs = this.#input.config.priceHistoryS * 1000;
    if (survival === undefined || survival.takenMs > nowMs) survival = new PriceSurvival(rungDelta(rung), windowMs);
    if (survival.takenMs < nowMs) {
      const from = Math.max(survival.takenMs, nowMs - windowMs);
      survival.advance(this.#history(pool, from, nowMs), nowMs);
    }
    survivals.delete(rung);
    survivals.set(rung, survival);
    for (const [oldest, { takenMs }] of survivals) {
      if (survivals.size <= MOST_RUNGS || takenMs === nowMs) break;
      survivals.delete(oldest);
    }
    return survival;
  }

  #outlook(pool: Pool, nowMs: number): PoolOutlook | null {
    const statistics = this.#statistics(pool.id, nowMs);
    return statistics === null ? null : { priceUsd: this.#priceAt(pool.id, nowMs), statistics };
  }

  #correlation(a: Pool, b: Pool, nowMs: number): number {
    const hour = Math.floor(nowMs / HOUR_MS);
    if (hour !== this.#correlationHour) {
      this.#correlations.clear();
      this.#correlationHour = hour;
    }
    const key = a.id < b.id ? `${a.id} ${b.id}` : `${b.id} ${a.id}`;
    let value = this.#correlations.get(key);
    if (value === undefined) {
      value = correlationOf(a, b, (pool) => this.#outlook(pool, nowMs));
      this.#correlations.set(key, value);
    }
    return value;
  }

  /** Medians move slowly, so they are renewed once per hour of history, not per cycle. */
  #statistics(pool: PoolId, nowMs: number): PriceStatistics | null {
    const memory = this.#memory(pool);
    const hour = Math.floor(nowMs / HOUR_MS);
    if (memory.statisticsHour !== hour || memory.statistics === null) {
      const from = nowMs - this.#input.config.priceHistoryS * 1000;
      memory.statistics = priceStatistics(this.#history(pool, from, nowMs), from, nowMs);
      memory.statisticsHour = hour;
    }
    return memory.statistics;
  }

  #priceAt(pool: PoolId, nowMs: number): number | null {
    const steps = this.#history(pool, nowMs, nowMs);
    const i = indexAt(steps.atMs, nowMs);
    return i < 0 ? null : (steps.usdPerHour[i] ?? null);
  }

  /** Prices in [fromMs, toMs], both ends included. */
  #history(pool: PoolId, fromMs: number, toMs: number): PriceArrays {
    return this.#input.history(pool, epochMs(fromMs), epochMs(toMs + 1));
  }

  /** A probability for each horizon: curves are made for each bid in each cycle. */
  #overHorizons(at: (horizonS: number, index: number) => number): Float64Array {
    const p = this.#doubles.take(HORIZONS_S.length);
    for (let i = 0; i < p.length; i++) p[i] = at(HORIZONS_S[i] as number, i);
    return p;
  }

  /** Independent competing risks: an instance lives while neither has taken it. */
  #eitherTakes(capacity: Float64Array, price: Float64Array | null): Float64Array {
    return this.#overHorizons((_, i) => 1 - (1 - (capacity[i] ?? 0)) * (1 - (price?.[i] ?? 0)));
  }

  /** Horizons that history is too short for go on at the constant hazard of the last one it answers. */
  #extended({ p }: PriceLossCurve): Float64Array {
    const last = p.length - 1;
    const lastP = p[last] ?? 0;
    const lastS = HORIZONS_S[last] ?? 1;
    return this.#overHorizons((h, i) => (i <= last ? (p[i] ?? 0) : 1 - (1 - lastP) ** (h / lastS)));
  }

  #coldStart(relativeDelta: number): Float64Array {
    const perHour = coldStartPerHour(relativeDelta);
    return this.#overHorizons((h) => 1 - Math.exp((-perHour * h) / 3600));
  }

  #memory(pool: PoolId): PoolMemory {
    let memory = this.#pools.get(pool);
    if (memory === undefined) {
      memory = { survivals: new Map(), statistics: null, statisticsHour: NaN };
      this.#pools.set(pool, memory);
    }
    return memory;
  }
}

/**
 * P(price passes the bid) for a pool with under six hours of watched history, by the distance of the bid above the
 * price relative to on-demand: constant hazards per hour, means over all pools of the us-east-1 traces of 2016 (spikes)
 * and 2021 (smooth), half each. Printed by `node bench/forecast.ts`.
 */
const COLD_START: readonly { readonly above: number; readonly perHour: number }[] = [
  { above: 0.5, perHour: 0.004 },
  { above: 0.1, perHour: 0.008 },
  { above: 0.01, perHour: 0.033 },
  { above: -Infinity, perHour: 0.23 },
];

const coldStartPerHour = (relativeDelta: number): number =>
  COLD_START.find((row) => relativeDelta >= row.above)?.perHour ?? 0;

const capacityReason = ({ shape, rateHours }: HazardPosterior): string =>
  `capacity: ${(shape / rateHours).toPrecision(2)} interruptions per instance-hour from ${rateHours.toFixed(0)} h of evidence, prior included`;
