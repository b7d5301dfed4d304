import { Forecasting } from '../cycle/forecasting.ts';
import { poolForecasts } from '../cycle/pool-forecasts.ts';
import { forecastNamed } from '../cycle/presets.ts';
import { FROM_HISTORY } from '../domain/forecast.ts';
import type { Pool } from '../domain/pool.ts';
import { CapacityEvidence } from '../market/forecast/hazard.ts';
import type { PoolForecasts } from '../ports/backend.ts';
import type { Market } from '../ports/market.ts';
import type { StoreParts } from './compose-store.ts';

/** Trained models lie with the function that decides ask, 11 MB: the API answers from history, and says so. */
const NOT_HERE = 'the API of a deployment asks no model; its decisions do, as their plans say';

/** Forecasts of pools for the API. */
export async function forecastsFromHistory(
  { environment, store, clock }: Pick<StoreParts, 'environment' | 'store' | 'clock'>,
  market: Market,
  pools: readonly Pool[],
): Promise<PoolForecasts> {
  const config = environment.EBB_CONFIG.settings;
  const name = forecastNamed(config.forecast, config.preset);
  const chosen = name === FROM_HISTORY.chosen ? FROM_HISTORY : { chosen: name, model: null, refused: NOT_HERE };
  const evidence = new CapacityEvidence();
  evidence.restore(await store().memory(evidence.prefix));
  const forecasting = new Forecasting({ chosen, config });
  return poolForecasts({ forecasting, market, evidence, config, now: clock.now() }, pools);
}
