/** Runs as plain data. */
import { join } from 'node:path';
import { schedulerConfig, type SchedulerConfig } from '../../lib/domain/config.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { TRIBUTARY_REQUESTS } from '../../lib/drivers/sim/services/request-queue.ts';
import {
  runService,
  type ServiceOutcome,
  type ServiceScene,
  type ServiceWorld,
} from '../../lib/drivers/sim/services/service-run.ts';
import { withTrueInterruptions } from '../../lib/drivers/sim/true-interruptions.ts';
import { epochMs, raw, type EpochMs } from '../../lib/kernel/units.ts';
import { Forecasting } from '../../lib/cycle/forecast/forecasting.ts';
import { openForecast, MODEL_OF } from '../../lib/models/preemption.ts';
import { FEATURES } from '../../lib/market/features/names.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { Market } from '../../lib/ports/market.ts';
import type { Scene } from '../../lib/policy/asks.ts';
import type { InstanceView } from '../../lib/domain/snapshot.ts';
import { presetNamed } from '../../lib/stages/registry.ts';
import { capacityOf, type CapacityTruth } from '../../lib/market/capacity-truth.ts';
import { MarketForecaster } from '../../lib/market/forecast/forecaster.ts';
import { CapacityEvidence } from '../../lib/market/forecast/hazard.ts';
import { footprintNamed } from '../../lib/stages/services/footprints.ts';
import { SCALING } from '../../lib/stages/services/scalings.ts';
import { openRequests } from '../../lib/workload/requests/open.ts';
import { firstMinutes, scaledTo } from '../../lib/workload/requests/trace.ts';
import { middlesIn } from '../default/markets.ts';
import { familyMarket } from './markets.ts';

export interface Order {
  /**
   * Of lib/stages/services/footprints.ts. `@oracle`: it knows which instances the market will take; `@VERSION`: it asks
   * that trained model; else the history of prices tells.
   */
  readonly preset: string;
  readonly data: string;
  readonly year: string;
  readonly requests: string;
  readonly scaling: keyof typeof SCALING;
  readonly refundRule: SchedulerConfig['refundRule'];
  readonly billing: SchedulerConfig['billing'];
  readonly minutes: number;
  readonly rps: number;
  /** Starts are in what comes after it, ISO 8601; null: anywhere after the first week. */
  readonly from: string | null;
  /** Which of the starts, and how many there are. */
  readonly seed: number;
  readonly start: number;
  readonly starts: number;
}

export interface Answer extends Order {
  readonly figures: Omit<ServiceOutcome, 'minutes'> & { readonly tookS: number };
}

/** From the launch to the first request, seconds (section 2.4.1). */
const START_S = 200;
const TARGET = 0.95;

export async function answerOf(order: Order): Promise<Answer> {
  const began = performance.now();
  const trace = await familyMarket(order.data, order.year);
  const requests = await openRequests(join(order.data, 'web-requests', order.requests));
  const { perMinute } = scaledTo(firstMinutes(requests, order.minutes), order.rps);
  const config = { ...schedulerConfig.parse({}), refundRule: order.refundRule, billing: order.billing };
  const market = replayMarket(trace);
  const truth = capacityOf(trace, config);
  const forecaster = new MarketForecaster({
    history: (pool, from, to) => market.history(pool, from, to),
    pools: () => trace.pools,
    config,
  });
  const nothingSeen = new CapacityEvidence();
  const [name = '', by = 'history'] = order.preset.split('@');
  const footprint = footprintNamed(name);
  if (footprint === null) throw new Error(`--presets: there is no footprint ${name}`);
  const asked = await openAsked(by, { market, forecaster, config, truth });
  const { minutes: _, ...figures } = await runService({
    world: {
      market,
      truth,
      forecast: asked.forecast,
      hourlyUsd: (pool, now) => {
        const grid = forecaster.at(now, nothingSeen).outlook(pool)?.statistics.grid ?? [];
        return [...grid].filter((usd) => !Number.isNaN(usd));
      },
    },
    plan: { scaling: SCALING[order.scaling].policy, footprint, target: TARGET },
    rules: TRIBUTARY_REQUESTS,
    config,
    startS: START_S,
    fromMs: startOf(order, trace),
    perMinute,
    seed: order.seed,
  });
  await asked.close();
  return { ...order, figures: { ...figures, tookS: (performance.now() - began) / 1000 } };
}

/** Starts are spread over the history, or over what comes after a time: there the last one has its minutes. */
function startOf({ from, starts, start, minutes }: Order, trace: MarketTrace): EpochMs {
  if (from === null) return epochMs(middlesIn(trace, starts)[start] ?? NaN);
  const [first, last] = [Date.parse(from), raw(trace.endMs) - minutes * 60_000];
  return epochMs(first + ((start + 0.5) * (last - first)) / starts);
}

interface AskedForecast {
  readonly forecast: ServiceWorld['forecast'];
  close(): Promise<void>;
}

/** The forecast that a run asks. Throws for a model that cannot be opened. */
async function openAsked(
  by: string,
  of: {
    readonly market: Market;
    readonly forecaster: MarketForecaster;
    readonly config: SchedulerConfig;
    readonly truth: CapacityTruth;
  },
): Promise<AskedForecast> {
  const evidence = new CapacityEvidence();
  const close = (): Promise<void> => Promise.resolve();
  if (by === 'history') return { forecast: ({ nowMs }) => of.forecaster.at(nowMs, evidence), close };
  if (by === 'oracle') {
    return {
      forecast: ({ nowMs }) => withTrueInterruptions(of.forecaster.at(nowMs, evidence), of.truth, nowMs),
      close,
    };
  }
  const chosen = await openForecast(by, { shipped: join('models', MODEL_OF.price), own: null }, FEATURES);
  if (chosen.model === null) throw new Error(`--presets: the model ${by} cannot be asked: ${chosen.refused ?? ''}`);
  const { asks } = presetNamed('ebbtide');
  const forecasting = new Forecasting({
    chosen,
    config: of.config,
    asks: asks.filter((a) => a.isForServices === true),
  });
  return {
    forecast: ({ nowMs, pools, held }) => forecasting.of(sceneOf(nowMs, pools, held), { market: of.market, evidence }),
    close: () => chosen.close(),
  };
}

/** What a service holds, as the scheduler would know it. */
const sceneOf = (nowMs: EpochMs, pools: ServiceScene['pools'], held: ServiceScene['held']): Scene => ({
  nowMs,
  pools,
  instances: new Map(held.map((h) => [h.id, { pool: h.pool, instance: h } as unknown as InstanceView])),
  services: new Map([['web', { name: 'web', needed: 1, target: TARGET, utility: null, together: null }]]),
});
