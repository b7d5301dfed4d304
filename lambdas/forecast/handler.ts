/**
 * Expected interruptions and prices for every bid that the decision can ask about. With a trained model, also the API's
 * questions about pools.
 *
 * A trained model lies beside this file in the function's asset. Each process opens it once and keeps the state of its
 * features. A warm process reads only what is new since its last cycle. A new one starts with the week of prices that
 * forecasts from history read anyway.
 * Questions of the API have a state of their own: they ask about now. A decision with an earlier snapshot would
 * otherwise go back in time and read the week again.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import middy from '@middy/core';
import { z } from 'zod';
import type { SchedulerConfig } from '../../lib/domain/config.ts';
import type { ObservedState } from '../../lib/cycle/decide/decision.ts';
import { Forecasting } from '../../lib/cycle/forecast/forecasting.ts';
import { liveInstances } from '../../lib/cycle/state/known-instances.ts';
import { poolForecasts } from '../../lib/cycle/forecast/pool-forecasts.ts';
import { forecastNamed, presetNamed } from '../../lib/stages/registry.ts';
import { forecast } from '../../lib/cycle/steps.ts';
import { CAPACITY_FEATURES } from '../../lib/market/features/capacity-features.ts';
import { FEATURES } from '../../lib/market/features/names.ts';
import { capacityLearner } from '../../lib/stages/capacity-learner.ts';
import { priceDriftLearner } from '../../lib/stages/price-drift-learner.ts';
import { composeLearners } from '../../lib/cycle/learn/compose-learners.ts';
import type { CapacityBelief } from '../../lib/market/forecast/hazard.ts';
import type { PriceDriftBelief } from '../../lib/market/forecast/price-drift.ts';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment, type Deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { measureForecast } from '../../lib/drivers/aws/metrics/measures.ts';
import { forecastAsked, forecastInput, type ForecastAsked } from '../../lib/drivers/aws/cycle/messages.ts';
import { toPlain, type PlainForecasts } from '../../lib/drivers/aws/cycle/plain-forecasts.ts';
import { inTime } from '../../lib/drivers/aws/cycle/late.ts';
import { lambdaStack, logger } from '../../lib/drivers/aws/lambda/stack.ts';
import type { Market } from '../../lib/ports/market.ts';
import { openCapacity, openForecast, MODEL_OF, type Risk } from '../../lib/models/preemption.ts';
import type { ModelPlaces } from '../../lib/models/versions.ts';

/** Forecasters with a state of their own each: their instants must ascend. */
interface Forecasters {
  readonly decisions: Forecasting;
  readonly questions: Forecasting;
}

let known: { readonly config: SchedulerConfig; readonly forecasters: Promise<Forecasters> } | null = null;

/** Forecasters of this process, which has one configuration all its life. */
function forecastersOf({ config, models }: Deployment): Promise<Forecasters> {
  const folder = models ?? fileURLToPath(new URL('models', import.meta.url));
  if (known?.config !== config) known = { config, forecasters: opened(config, folder) };
  return known.forecasters;
}

async function opened(config: SchedulerConfig, folder: string): Promise<Forecasters> {
  const modelsOf = (risk: Risk): ModelPlaces => ({ shipped: join(folder, MODEL_OF[risk]), own: null });
  const chosen = await openForecast(
    forecastNamed(config.forecast, config.preset, config.presets),
    modelsOf('price'),
    FEATURES,
  );
  if (chosen.refused !== null) logger.warn(`${chosen.refused}; forecast from history`, { model: chosen.fault });
  const capacity = await openCapacity(config.capacityForecast, modelsOf('capacity'), CAPACITY_FEATURES);
  if (capacity.refused !== null) {
    logger.warn(`${capacity.refused}; forecast from observed interruptions`, { model: capacity.fault });
  }
  const parts = { chosen, capacity, config };
  const { asks } = presetNamed(config.preset, config.presets);
  return { decisions: new Forecasting({ ...parts, asks }), questions: new Forecasting(parts) };
}

type Asked = z.output<typeof forecastInput> | ForecastAsked;

export const handler = middy<Asked, { market: string } | PlainForecasts>()
  .use(lambdaStack('forecast', z.union([forecastInput, forecastAsked])))
  .use(inTime())
  .handler(async (asked) => {
    const of = deployment(composeDeployment);
    const [{ market }, { decisions, questions }] = await Promise.all([of.market(), forecastersOf(of)]);
    const learners = composeLearners();
    await learners.recall(of.store, decisions.byRegime ? [capacityLearner, priceDriftLearner] : [capacityLearner]);
    const evidence = learners.of(capacityLearner);
    const drift = learners.of(priceDriftLearner);
    return 'pools' in asked
      ? ofPools(asked, { of, forecasting: questions, market, evidence, drift })
      : ofDecision(asked, { of, forecasting: decisions, market, evidence, drift });
  });

interface Parts {
  readonly of: Deployment;
  readonly forecasting: Forecasting;
  readonly market: Market;
  readonly evidence: CapacityBelief;
  readonly drift: PriceDriftBelief;
}

async function ofDecision(
  { execution, round, observation: reference }: z.output<typeof forecastInput>,
  { of, forecasting, market, evidence, drift }: Parts,
): Promise<{ market: string }> {
  const observed = await of.carrier.get<ObservedState>(reference);
  const made = await forecasting.of(observed.snapshot, { market, evidence, drift });
  measureForecast(observed.snapshot, made);
  const { asks, stages } = presetNamed(of.config.preset, of.config.presets);
  return {
    market: await of.carrier.put(
      forecast(observed, made, { config: of.config, asks, ...(stages.buys && { buys: stages.buys }) }),
      `${execution}/${round}/market`,
    ),
  };
}

async function ofPools(asked: ForecastAsked, { of, ...parts }: Parts): Promise<PlainForecasts> {
  const wanted = new Set(asked.pools);
  const pools = parts.market.pools().filter((pool) => wanted.has(pool.id));
  const held = await liveInstances(of.store);
  return toPlain(await poolForecasts({ ...parts, held, config: of.config, now: of.clock.now() }, pools));
}
