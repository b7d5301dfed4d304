/**
 * Interruptions and prices to expect, for every bid that the decision can ask about.
 *
 * A trained model, where one is chosen, lies beside this file in the function's asset. It is opened once per process, and so is the
 * state of its features: a process that stays warm takes in what is new of each pool since its last cycle, a new one
 * begins with the week of prices that it reads for its forecasts from history anyway.
 */
import { fileURLToPath } from 'node:url';
import middy from '@middy/core';
import type { z } from 'zod';
import type { SchedulerConfig } from '../../lib/domain/config.ts';
import type { Sight } from '../../lib/cycle/decision.ts';
import { Forecasting } from '../../lib/cycle/forecasting.ts';
import { forecastNamed } from '../../lib/cycle/presets.ts';
import { forecast } from '../../lib/cycle/steps.ts';
import { FEATURES } from '../../lib/market/features/names.ts';
import { CapacityEvidence } from '../../lib/market/forecast/hazard.ts';
import { composeDeployment } from '../../lib/aws/compose.ts';
import { deployment } from '../../lib/aws/deployment.ts';
import { measureForecast } from '../../lib/aws/measures.ts';
import { forecastInput } from '../../lib/aws/messages.ts';
import { lambdaStack, logger } from '../../lib/aws/stack.ts';
import { openForecast } from '../../lib/models/preemption.ts';

const MODELS = { shipped: fileURLToPath(new URL('models/preemption', import.meta.url)), own: null };

let known: { readonly config: SchedulerConfig; readonly forecasting: Promise<Forecasting> } | null = null;

/** Of this process, which has one configuration all its life. */
function forecastingOf(config: SchedulerConfig): Promise<Forecasting> {
  if (known?.config !== config) known = { config, forecasting: opened(config) };
  return known.forecasting;
}

async function opened(config: SchedulerConfig): Promise<Forecasting> {
  const chosen = await openForecast(forecastNamed(config.forecast, config.preset), MODELS, FEATURES);
  if (chosen.refused !== null) logger.warn(`${chosen.refused}; forecast from history`, { model: chosen.fault });
  return new Forecasting({ chosen, config });
}

export const handler = middy<z.output<typeof forecastInput>, { market: string }>()
  .use(lambdaStack('forecast', forecastInput))
  .handler(async ({ execution, round, sight: reference }) => {
    const of = deployment(composeDeployment);
    const [sight, { market }, forecasting] = await Promise.all([
      of.carrier.get<Sight>(reference),
      of.market(),
      forecastingOf(of.config),
    ]);
    const evidence = new CapacityEvidence();
    evidence.restore(await of.store.memory(evidence.prefix));
    const made = await forecasting.of(sight.snapshot, { market, evidence });
    measureForecast(sight.snapshot, made);
    return { market: await of.carrier.put(forecast(sight, made, of.config), `${execution}/${round}/market`) };
  });
