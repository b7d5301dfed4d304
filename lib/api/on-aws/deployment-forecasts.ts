/**
 * Forecasts of pools for the API. Forecasts from history are computed here. A trained model (11 MB) lies with the
 * forecast function, which is invoked for it. If that fails, the answer comes from history and says so.
 */
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { Forecasting } from '../../cycle/forecast/forecasting.ts';
import { poolForecasts } from '../../cycle/forecast/pool-forecasts.ts';
import { forecastNamed } from '../../stages/registry.ts';
import {
  BY_REGIME,
  FROM_HISTORY,
  FROM_OBSERVED,
  type ChosenCapacity,
  type ChosenForecast,
} from '../../domain/forecast.ts';
import type { Pool } from '../../domain/pool.ts';
import { EbbError } from '../../kernel/errors.ts';
import { isSpiky } from '../../market/forecast/spiky.ts';
import { capacityLearner } from '../../stages/capacity-learner.ts';
import { composeLearners } from '../../cycle/learn/compose-learners.ts';
import type { PoolForecasts } from '../../ports/backend.ts';
import type { Market } from '../../ports/market.ts';
import type { StoreParts } from '../../drivers/aws/compose/compose-store.ts';
import { classify } from '../../drivers/aws/errors.ts';
import type { ForecastAsked } from '../../drivers/aws/cycle/messages.ts';
import { fromPlain, type PlainForecasts } from '../../drivers/aws/cycle/plain-forecasts.ts';
import { remainingMs } from '../../drivers/aws/lambda/remaining.ts';
import { reportFallback } from './request-log.ts';

/** Many times what a new process takes with a week of prices, ms. */
const ANSWER_WITHIN_MS = 12_000;
/** Time left of the invocation for the answer from history, ms. */
const TO_FALL_BACK_MS = 8_000;

type Parts = Pick<StoreParts, 'environment' | 'store' | 'clock'>;

export async function forecastsOf(of: Parts, market: Market, pools: readonly Pool[]): Promise<PoolForecasts> {
  const { settings } = of.environment.EBB_CONFIG;
  const name = forecastNamed(settings.forecast, settings.preset, settings.presets);
  const ofCapacity = settings.capacityForecast;
  const now = of.clock.now();
  // The model of spiky pools is not worth an invocation where there are none.
  const asksPrices =
    name === BY_REGIME
      ? pools.some((pool) => isSpiky(pool, (...asked) => market.history(...asked), now, settings.priceHistoryS))
      : name !== FROM_HISTORY.chosen;
  if (!asksPrices && ofCapacity === FROM_OBSERVED.chosen) {
    return withoutModel(of, { chosen: FROM_HISTORY, capacity: FROM_OBSERVED, market }, pools);
  }
  try {
    return await byTheModel(of, pools);
  } catch (error) {
    const { message } = classify(error, 'lambda Invoke');
    const refused = `the function that asks the model gave no answer: ${message}`;
    reportFallback(refused);
    const chosen = !asksPrices ? FROM_HISTORY : { chosen: name, model: null, refused };
    const capacity = ofCapacity === FROM_OBSERVED.chosen ? FROM_OBSERVED : { chosen: ofCapacity, model: null, refused };
    return withoutModel(of, { chosen, capacity, market }, pools);
  }
}

async function withoutModel(
  { environment, store, clock }: Parts,
  {
    chosen,
    capacity,
    market,
  }: { readonly chosen: ChosenForecast; readonly capacity: ChosenCapacity; readonly market: Market },
  pools: readonly Pool[],
): Promise<PoolForecasts> {
  const config = environment.EBB_CONFIG.settings;
  const learners = composeLearners();
  await learners.recall(store(), [capacityLearner]);
  const evidence = learners.of(capacityLearner);
  const forecasting = new Forecasting({ chosen, capacity, config });
  // No model here, so nothing held is needed: observed interruptions do not depend on it.
  return poolForecasts({ forecasting, market, evidence, held: [], config, now: clock.now() }, pools);
}

/** One attempt: a retry would take longer than the caller waits. */
let client: LambdaClient | null = null;
const lambda = (region: string): LambdaClient => (client ??= new LambdaClient({ region, maxAttempts: 1 }));

async function byTheModel({ environment }: Parts, pools: readonly Pool[]): Promise<PoolForecasts> {
  const { EBB_FORECAST_FUNCTION: FunctionName, EBB_REGION: region } = environment;
  if (FunctionName === undefined) {
    throw new EbbError('internal', { what: 'the deployment does not name the function that has the model' });
  }
  const asked: ForecastAsked = { pools: pools.map((pool) => pool.id) };
  const withinMs = Math.max(1, Math.min(ANSWER_WITHIN_MS, remainingMs() - TO_FALL_BACK_MS));
  const answer = await lambda(region).send(new InvokeCommand({ FunctionName, Payload: JSON.stringify(asked) }), {
    abortSignal: AbortSignal.timeout(withinMs),
  });
  const text = Buffer.from(answer.Payload ?? []).toString();
  if (answer.FunctionError !== undefined) {
    const { errorMessage = text } = JSON.parse(text) as { readonly errorMessage?: string };
    throw new EbbError('internal', { what: errorMessage });
  }
  return fromPlain(JSON.parse(text) as PlainForecasts);
}
