/** Markets of the comparison: three sizes of one family in three zones (Tributary, section 2.4.1: nine pools). */
import { billingAt } from '../../lib/market/billing.ts';
import type { SchedulerConfig } from '../../lib/domain/config.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import { priceMarket, withPools } from '../default/markets.ts';

interface Family {
  readonly types: readonly string[];
  readonly zones: readonly string[];
}

const zones = (letters: string): readonly string[] => [...letters].map((letter) => `us-east-1${letter}`);

/**
 * Families with three types in three zones are rare: the history of 2015 has one type of each family, and that of 2016
 * no c4 types and no three types of m1 or m3 alone.
 */
const FAMILIES: Readonly<Record<string, Family>> = {
  '2015': { types: ['m3.medium', 'r3.large', 'c3.xlarge'], zones: zones('abe') },
  '2016': { types: ['m1.large', 'm3.medium', 'm3.large'], zones: zones('abc') },
  '2021': { types: ['c4.large', 'c4.xlarge', 'c4.2xlarge'], zones: zones('abc') },
};

export async function familyMarket(data: string, year: string): Promise<MarketTrace> {
  const family = FAMILIES[year];
  if (family === undefined) throw new Error(`--years takes ${Object.keys(FAMILIES).join(', ')}; got ${year}`);
  const { types, zones: of } = family;
  const trace = withPools(
    await priceMarket(data, year, true),
    ({ type, zone }) => types.includes(type.name) && of.includes(zone),
  );
  const spot = trace.pools.filter((pool) => pool.option === 'spot').length;
  if (spot !== types.length * of.length) throw new Error(`the history of ${year} has ${spot} of the nine pools`);
  return trace;
}

/** Whether instances were billed by the hour or by the second at that time. */
export const billingOf = (trace: MarketTrace): SchedulerConfig['billing'] => billingAt(trace.endMs);
