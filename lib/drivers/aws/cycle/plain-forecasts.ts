import type { PoolForecast } from '../../../domain/forecast.ts';
import type { PoolForecasts } from '../../../ports/backend.ts';

/** Forecasts in an answer between functions, without typed arrays: JSON has none. */
export interface PlainForecasts extends Omit<PoolForecasts, 'pools'> {
  readonly pools: readonly (Omit<PoolForecast, 'bids'> & { readonly bids: readonly PlainBid[] })[];
}
type ForecastBid = PoolForecast['bids'][number];
interface PlainBid extends Omit<ForecastBid, 'curve'> {
  readonly curve: {
    readonly horizonS: readonly number[];
    readonly pInterrupted: readonly number[];
    readonly reason: string;
  };
}

export const toPlain = ({ origin, pools }: PoolForecasts): PlainForecasts => ({
  origin,
  pools: pools.map(({ bids, ...pool }) => ({
    ...pool,
    bids: bids.map(({ curve: { horizonS, pInterrupted, reason }, ...bid }) => ({
      ...bid,
      curve: { horizonS: [...horizonS], pInterrupted: [...pInterrupted], reason },
    })),
  })),
});

export const fromPlain = ({ origin, pools }: PlainForecasts): PoolForecasts => ({
  origin,
  pools: pools.map(({ bids, ...pool }) => ({
    ...pool,
    bids: bids.map(({ curve: { horizonS, pInterrupted, reason }, ...bid }) => ({
      ...bid,
      curve: { horizonS: Float64Array.from(horizonS), pInterrupted: Float64Array.from(pInterrupted), reason },
    })),
  })),
});
