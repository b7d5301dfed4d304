/** Markets of the comparison: one kind of instance type in the zones of a price history (Stratus, section 3.3.1). */
import { epochMs, raw, type EpochMs } from '../../lib/kernel/units.ts';
import { billingAt } from '../../lib/market/billing.ts';
import type { SchedulerConfig } from '../../lib/domain/config.ts';
import { withFargate } from '../../lib/market/fargate.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import { middlesIn, priceMarket, withPools } from '../default/markets.ts';

export interface PriceMarket {
  readonly name: string;
  readonly about: string;
  readonly folder: string;
  readonly open: (data: string) => Promise<MarketTrace>;
  /** The largest type: requests of the Google trace are fractions of it (section 3.3.2). */
  readonly machine: { readonly vcpus: number; readonly memoryGiB: number };
}

const M4 = ['large', 'xlarge', '2xlarge', '4xlarge', '10xlarge', '16xlarge'].map((size) => `m4.${size}`);
/**
 * General-purpose types with prices in 2016. The history has m4.4xlarge and m4.10xlarge alone of the m4 family, so that
 * smaller types of the same kind (3.75 to 4 GiB for a vCPU) stand for the others.
 */
const M_OF_2016 = ['m3.medium', 'm3.large', 'm1.xlarge', 'm4.4xlarge', 'm4.10xlarge'];

const isOneOf =
  (types: readonly string[]) =>
  (pool: MarketTrace['pools'][number]): boolean =>
    types.includes(pool.type.name);

const LARGEST = { vcpus: 64, memoryGiB: 256 };

export const MARKETS: readonly PriceMarket[] = [
  {
    name: '2016',
    about: 'spot and on-demand of m1, m3 and m4 types in 3 zones, 2016, billed by the hour',
    folder: 'spot-prices-us-east-1-2016',
    open: async (data) => withFargate(withPools(await priceMarket(data, '2016', true), isOneOf(M_OF_2016))),
    machine: { vcpus: 40, memoryGiB: 160 },
  },
  {
    name: '2021',
    about: 'spot and on-demand of the six m4 types in 6 zones, 2021, billed by the second',
    folder: 'spot-prices-us-east-1-2021',
    open: async (data) => withFargate(withPools(await priceMarket(data, '2021', true), isOneOf(M4))),
    machine: LARGEST,
  },
  {
    name: 'on-demand',
    about: 'the six m4 types at their on-demand prices of 2021, billed by the second',
    folder: 'spot-prices-us-east-1-2021',
    open: async (data) => {
      const [zone] = (await priceMarket(data, '2021', true)).pools.map((p) => p.zone).sort();
      const inZone = (pool: MarketTrace['pools'][number]): boolean => pool.option === 'on-demand' && pool.zone === zone;
      return withFargate(withPools(await priceMarket(data, '2021', true), (p) => isOneOf(M4)(p) && inZone(p)));
    },
    machine: LARGEST,
  },
];

/** Market time at which a window begins: windows are spread over the history, after its first week. */
export function beginOf(trace: MarketTrace, window: number, windows: number): EpochMs {
  const begins = middlesIn(trace, windows);
  return epochMs(begins[window] ?? raw(trace.startMs));
}

export const billingOf = (trace: MarketTrace): SchedulerConfig['billing'] => billingAt(trace.endMs);
