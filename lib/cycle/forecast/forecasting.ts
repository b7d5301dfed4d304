/**
 * The market's forecast of one decision: the trained model is asked once, in one batch, about every bid that the stages
 * can ask about, so that stages never wait. Without a model, or without its answer, history answers, and the forecast's
 * origin says so.
 * Lifecycle: one for the process. Its cache is a function of the price history alone, so that another process answers
 * alike.
 */
import type { PoolId } from '../../kernel/ids.ts';
import type { EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import {
  FROM_OBSERVED,
  type CapacityOrigin,
  type ChosenCapacity,
  type ChosenForecast,
  type ForecastOrigin,
} from '../../domain/forecast.ts';
import type { Instance } from '../../domain/instance.ts';
import { bidsAsked, type BoundAsks, type Scene } from '../../policy/asks.ts';
import { bidsFor } from '../../stages/appraise/pools.ts';
import { MarketForecaster } from '../../market/forecast/forecaster.ts';
import type { CapacityBelief } from '../../market/forecast/hazard.ts';
import { heldSince } from '../../market/features/capacity-features.ts';
import { capacityRisks, type CapacityQuestion, type CapacityRisks } from '../../market/forecast/learned-capacity.ts';
import { LearnedLosses, type PriceLosses } from '../../market/forecast/learned.ts';
import type { PriceDriftBelief } from '../../market/forecast/price-drift.ts';
import { SpikyPools } from '../../market/forecast/spiky.ts';
import type { Asked, OutlookForecast } from '../../market/forecast/forecast-data.ts';
import type { Market } from '../../ports/market.ts';
import { bidNumber, type Pool } from '../../domain/pool.ts';

export interface ForecastingParts {
  readonly chosen: ChosenForecast;
  /** Forecast of capacity. Default: from observed interruptions. */
  readonly capacity?: ChosenCapacity;
  readonly config: SchedulerConfig;
  /** Questions of the policies; default: every bid tried in a pool. */
  readonly asks?: readonly BoundAsks[];
}

/** Facts for a forecast. */
export interface Known {
  readonly market: Pick<Market, 'pools' | 'history' | 'completeUntil'>;
  readonly evidence: CapacityBelief;
  /** Whether trained models were right of late; absent: nothing is known of it. */
  readonly drift?: PriceDriftBelief;
  /** Held instances, if the scene lacks them; absent: those of the scene. */
  readonly held?: readonly Instance[];
}

/** Every bid that is tried in a pool. */
const EVERY_BID: readonly BoundAsks[] = [
  { policy: 'forecasting', asks: { bids: bidsFor, horizon: 'any' }, configOf: (config) => config },
];

export class Forecasting {
  readonly #parts: ForecastingParts;
  readonly #learned: LearnedLosses | null;
  readonly #spiky: SpikyPools;
  #market: Known['market'] | null = null;
  readonly #forecaster: MarketForecaster;

  constructor(parts: ForecastingParts) {
    this.#parts = parts;
    this.#learned = parts.chosen.model === null ? null : new LearnedLosses(parts.chosen.model);
    this.#spiky = new SpikyPools(parts.config.priceHistoryS);
    this.#forecaster = new MarketForecaster({
      history: (...asked) => this.#known().history(...asked),
      pools: () => this.#known().pools(),
      config: parts.config,
    });
  }

  /** True if the model is asked about spiky pools alone, and the drift of its version is asked for. */
  get byRegime(): boolean {
    return this.#parts.chosen.byRegime === true;
  }

  /** O(new prices + bids) with a model; history's answers are computed on demand. */
  async of(scene: Scene, { market, evidence, drift, held }: Known): Promise<OutlookForecast> {
    this.#market = market;
    const { chosen, capacity = FROM_OBSERVED } = this.#parts;
    const asked = this.#asked(scene);
    const losses = await this.#losses(scene, asked, drift);
    const pools = capacity.model === null ? [] : spotPools(scene);
    const risks = await this.#risks(() => {
      const instances = held ?? scene.instances.values().map(({ instance }) => instance);
      return { now: scene.nowMs, pools, news: evidence.news, held: heldSince(instances) };
    });
    const forecast = this.#forecaster.at(scene.nowMs, evidence, { losses, risks });
    const origin = originOf(chosen, asked, losses);
    if (capacity.chosen === FROM_OBSERVED.chosen) return { ...forecast, origin };
    return { ...forecast, origin: { ...origin, capacity: capacityOrigin(capacity, pools, risks) } };
  }

  async #risks(question: () => CapacityQuestion): Promise<CapacityRisks | null> {
    const model = this.#parts.capacity?.model ?? null;
    return model === null ? null : capacityRisks(model, question());
  }

  /** Bids that the model is to answer. */
  #asked(scene: Scene): readonly Asked[] {
    const { asks = EVERY_BID, config } = this.#parts;
    if (this.#learned === null) return [];
    const all = bidsAsked(scene, asks, config);
    return this.byRegime ? all.filter(({ pool }) => this.#isSpiky(pool, scene.nowMs)) : all;
  }

  #isSpiky(pool: Pool, now: EpochMs): boolean {
    return this.#spiky.has(pool, (...asked) => this.#known().history(...asked), now);
  }

  async #losses(
    { nowMs }: Scene,
    asked: readonly Asked[],
    drift: PriceDriftBelief | undefined,
  ): Promise<PriceLosses | null> {
    const { model, refused } = this.#parts.chosen;
    if (this.#learned === null || model === null || refused !== null) return null;
    if (!this.byRegime) return this.#byModel(this.#learned, nowMs, asked);
    if (asked.length === 0) return null;
    const wrong = drift?.wrong(model.version, nowMs) ?? null;
    const losses = wrong === null ? await this.#byModel(this.#learned, nowMs, asked) : notBelieved(wrong);
    return (pool, bid) => (this.#isSpiky(pool, nowMs) ? losses(pool, bid) : CALM);
  }

  #byModel(learned: LearnedLosses, nowMs: EpochMs, asked: readonly Asked[]): Promise<PriceLosses> {
    const market = this.#known();
    const completeUntil = market.completeUntil?.() ?? null;
    return learned.losses({
      now: nowMs,
      pools: market.pools(),
      asked,
      history: (...of) => market.history(...of),
      ...(completeUntil === null ? {} : { completeUntil }),
    });
  }

  #known(): Known['market'] {
    if (this.#market === null) throw new TypeError('a forecast is asked before there is one');
    return this.#market;
  }
}

const CALM = { kind: 'none', why: 'the price stayed below on-demand, where history knows as much' } as const;
const notBelieved =
  (why: string): PriceLosses =>
  (_, bid) =>
    bid === 'uncapped' ? null : { kind: 'none', why };

function originOf(
  { chosen, model, refused }: ChosenForecast,
  asked: readonly Asked[],
  losses: PriceLosses | null,
): ForecastOrigin {
  const instead = new Map<string, number>();
  const counted = new Set<string>();
  let byModel = 0;
  for (const { pool, bid } of asked) {
    const key = `${pool.id} ${bidNumber(bid)}`;
    const loss = counted.has(key) ? null : (losses?.(pool, bid) ?? null);
    counted.add(key);
    if (loss?.kind === 'curve') byModel++;
    else if (loss !== null) instead.set(loss.why, (instead.get(loss.why) ?? 0) + 1);
  }
  const byHistory = [...instead].map(([why, bids]) => ({ why, bids })).sort((a, b) => b.bids - a.bids);
  return { chosen, refused, version: byModel > 0 ? (model?.version ?? null) : null, byModel, byHistory };
}

/** Spot pools that quote a price, and those of the instances there are. */
function spotPools({ pools, instances }: Scene): PoolId[] {
  const quoted = pools.flatMap(({ pool, quote }) => (pool.option === 'spot' && quote !== null ? [pool.id] : []));
  const held = [...instances.values()].flatMap(({ pool }) => (pool.option === 'spot' ? [pool.id] : []));
  return [...new Set([...quoted, ...held])];
}

function capacityOrigin(
  { chosen, model, refused }: ChosenCapacity,
  pools: readonly PoolId[],
  risks: CapacityRisks | null,
): CapacityOrigin {
  const whys = pools.flatMap((pool) => {
    const risk = risks?.(pool) ?? null;
    return risk?.kind === 'none' ? [risk.why] : [];
  });
  const byModel = risks === null ? 0 : pools.length - whys.length;
  const byObserved = [...Map.groupBy(whys, (why) => why)]
    .map(([why, of]) => ({ why, pools: of.length }))
    .sort((a, b) => b.pools - a.pools);
  return { chosen, refused, version: byModel > 0 ? (model?.version ?? null) : null, byModel, byObserved };
}
