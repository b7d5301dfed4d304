import { Forecasting } from '../cycle/forecasting.ts';
import { poolForecasts } from '../cycle/pool-forecasts.ts';
import { forecastNamed } from '../cycle/presets.ts';
import { FEATURES } from '../market/features/names.ts';
import { CapacityEvidence } from '../market/forecast/hazard.ts';
import { openForecast } from '../models/preemption.ts';
import type { Backend } from '../ports/backend.ts';
import type { Market } from '../ports/market.ts';
import type { Store } from '../ports/store.ts';
import { modelPlaces } from './model-places.ts';
import type { World } from './world.ts';

interface Asked {
  readonly dir: string;
  readonly world: World;
  readonly market: Market;
  readonly store: Store;
}

/** What the engine would forecast now: made apart from its thread, of the same prices, evidence and model. */
export function localForecasts({ dir, world, market, store }: Asked): Backend['forecast'] {
  const { config, record, clock } = world;
  let forecasting: Promise<Forecasting> | null = null;
  const opened = async (): Promise<Forecasting> => {
    const chosen = await openForecast(forecastNamed(config.forecast, record.preset), modelPlaces(dir), FEATURES);
    return new Forecasting({ chosen, config });
  };
  return async (pools) => {
    forecasting ??= opened();
    const evidence = new CapacityEvidence();
    evidence.restore(await store.memory(evidence.prefix));
    return poolForecasts({ forecasting: await forecasting, market, evidence, config, now: clock.now() }, pools);
  };
}
