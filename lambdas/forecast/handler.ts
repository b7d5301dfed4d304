/** Interruptions and prices to expect, for every bid that the decision can ask about. */
import { fileURLToPath } from 'node:url';
import middy from '@middy/core';
import type { z } from 'zod';
import type { Sight } from '../../lib/cycle/decision.ts';
import { forecast } from '../../lib/cycle/steps.ts';
import { MarketForecaster } from '../../lib/market/forecast/forecaster.ts';
import { CapacityEvidence } from '../../lib/market/forecast/hazard.ts';
import { composeDeployment } from '../../lib/aws/compose.ts';
import { deployment } from '../../lib/aws/deployment.ts';
import { measureForecast } from '../../lib/aws/measures.ts';
import { forecastInput } from '../../lib/aws/messages.ts';
import { lambdaStack, logger, measure } from '../../lib/aws/stack.ts';
import { preemptionModel } from '../../lib/models/preemption.ts';

/** Beside this file in the function's asset; looked at once per process. */
const refusal = await preemptionModel(fileURLToPath(new URL('models/preemption', import.meta.url)));
const note = `${refusal.what}; forecast from past prices and interruptions`;
const isRefused = refusal.kind !== 'missing';
if (isRefused) logger.warn(note, { model: refusal.kind });

export const handler = middy<z.output<typeof forecastInput>, { market: string }>()
  .use(lambdaStack('forecast', forecastInput))
  .handler(async ({ execution, round, sight: reference }) => {
    const of = deployment(composeDeployment);
    const [sight, { market }] = await Promise.all([of.carrier.get<Sight>(reference), of.market()]);
    const evidence = new CapacityEvidence();
    evidence.restore(await of.store.memory(evidence.prefix));
    const forecaster = new MarketForecaster({ history: (...asked) => market.history(...asked), config: of.config });
    const outlook = forecaster.at(sight.snapshot.nowMs, evidence);
    measureForecast(sight.snapshot, outlook);
    if (isRefused) measure('modelsRefused', 1);
    const table = forecast(sight, isRefused ? { ...outlook, note } : outlook, of.config);
    return { market: await of.carrier.put(table, `${execution}/${round}/market`) };
  });
