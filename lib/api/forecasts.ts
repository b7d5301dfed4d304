import type { z } from 'zod';
import type { Backend } from '../ports/backend.ts';
import { slice } from './cursor.ts';
import type { forecastsQuery } from './requests.ts';
import type { ForecastList } from './schemas.ts';
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
