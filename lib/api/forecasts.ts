import type { z } from 'zod';
import type { Backend } from '../ports/backend.ts';
import { driftOf } from '../market/forecast/drift.ts';
import { slice } from './cursor.ts';
import { allInstances } from '../cycle/state/known-instances.ts';
import type { driftQuery, forecastsQuery } from './requests.ts';
import type { DriftView, ForecastList } from './schemas.ts';
import { forecastOriginView, iso, poolForecastView } from './views.ts';

/** Interruption curves of spot pools now, for the bids that a decision would try. */
export async function listForecasts(of: Backend, query: z.output<typeof forecastsQuery>): Promise<ForecastList> {
  const wanted = of.market
    .pools()
    .filter(
      (p) =>
        p.option === 'spot' &&
        (query.zone === undefined || p.zone === query.zone) &&
        (query.type === undefined || p.type.name === query.type),
    );
  const page = slice(wanted, query.limit, query.cursor);
  const { origin, pools } = await of.forecast(page.items);
  return {
    origin: forecastOriginView(origin),
    items: pools.map(poolForecastView),
    next: page.next,
    asOf: iso(of.clock.now()),
  };
}

/**
 * Drift: forecast and observed losses of all spot instances in the store. Each request reads all of them.
 */
export async function forecastDrift(of: Backend, { limit, by, risk }: z.output<typeof driftQuery>): Promise<DriftView> {
  const now = of.clock.now();
  const { overall, pools } = driftOf(await allInstances(of.store, null), now, { risk, by: by ?? null });
  const shown = pools.slice(0, limit).map(({ pool, drift }) => ({ pool, drift }));
  return { by: by ?? null, risk, asOf: iso(now), overall, pools: shown, morePools: pools.length - shown.length };
}
