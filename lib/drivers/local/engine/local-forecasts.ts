import { liveInstances } from '../../../cycle/state/known-instances.ts';
import { poolForecasts } from '../../../cycle/forecast/pool-forecasts.ts';
import { forecastNamed } from '../../../stages/registry.ts';
import { capacityLearner } from '../../../stages/capacity-learner.ts';
import { priceDriftLearner } from '../../../stages/price-drift-learner.ts';
import { composeLearners } from '../../../cycle/learn/compose-learners.ts';
import type { Backend } from '../../../ports/backend.ts';
import type { Market } from '../../../ports/market.ts';
import type { Store } from '../../../ports/store.ts';
import { ForecastInUse } from './forecast-in-use.ts';
import type { World } from '../market/world.ts';

interface Asked {
  readonly dir: string;
  readonly world: World;
  readonly market: Market;
  readonly store: Store;
}

/** Forecast that the engine would make now: made outside of its thread, from the same prices, evidence and model. */
export function localForecasts({ dir, world, market, store }: Asked): Backend['forecast'] {
  const { config, record, clock, ownPolicies } = world;
  const name = forecastNamed(config.forecast, record.preset, config.presets, ownPolicies);
  const forecasting = new ForecastInUse({ dir, name, config });
  return async (pools) => {
    const learners = composeLearners();
    await learners.recall(store, [capacityLearner, priceDriftLearner]);
    const evidence = learners.of(capacityLearner);
    const drift = learners.of(priceDriftLearner);
    return poolForecasts(
      { forecasting, market, evidence, drift, held: await liveInstances(store), config, now: clock.now() },
      pools,
    );
  };
}
