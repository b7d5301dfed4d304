/** Runs as plain data. */
import { join } from 'node:path';
import { schedulerConfig, type SchedulerConfig } from '../../lib/domain/config.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { TRIBUTARY_REQUESTS } from '../../lib/drivers/sim/services/request-queue.ts';
import { runService, type ServiceOutcome } from '../../lib/drivers/sim/services/service-run.ts';
import { withTrueInterruptions } from '../../lib/drivers/sim/true-interruptions.ts';
import { epochMs } from '../../lib/kernel/units.ts';
import { capacityOf } from '../../lib/market/capacity-truth.ts';
import { MarketForecaster } from '../../lib/market/forecast/forecaster.ts';
import { CapacityEvidence } from '../../lib/market/forecast/hazard.ts';
import { footprintNamed } from '../../lib/stages/services/footprints.ts';
import { SCALING } from '../../lib/stages/services/scalings.ts';
import { openRequests } from '../../lib/workload/requests/open.ts';
import { firstMinutes, scaledTo } from '../../lib/workload/requests/trace.ts';
import { middlesIn } from '../default/markets.ts';
import { familyMarket } from './markets.ts';

export interface Order {
  /** Of lib/stages/services/footprints.ts; with `@oracle` it knows which instances the market will take. */
  readonly preset: string;
  readonly data: string;
  readonly year: string;
  readonly requests: string;
  readonly scaling: keyof typeof SCALING;
  readonly refundRule: SchedulerConfig['refundRule'];
  readonly billing: SchedulerConfig['billing'];
  readonly minutes: number;
  readonly rps: number;
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
  const [name = '', oracle] = order.preset.split('@');
  const footprint = footprintNamed(name);
  if (footprint === null) throw new Error(`--presets: there is no footprint ${name}`);
  const { minutes: _, ...figures } = runService({
    world: {
      market,
      truth,
      forecast: (now) => {
        const forecast = forecaster.at(now, nothingSeen);
        return oracle === undefined ? forecast : withTrueInterruptions(forecast, truth, now);
      },
      hourlyUsd: (pool, now) => {
        const grid = forecaster.at(now, nothingSeen).outlook(pool)?.statistics.grid ?? [];
        return [...grid].filter((usd) => !Number.isNaN(usd));
      },
    },
    plan: { scaling: SCALING[order.scaling].policy, footprint, target: TARGET },
    rules: TRIBUTARY_REQUESTS,
    config,
    startS: START_S,
    fromMs: epochMs(middlesIn(trace, order.starts)[order.start] ?? NaN),
    perMinute,
    seed: order.seed,
  });
  return { ...order, figures: { ...figures, tookS: (performance.now() - began) / 1000 } };
}
