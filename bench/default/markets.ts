/** Markets of the grounds: price histories cut down to common types, availability series, and generated ones. */
import { mkdirSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { raw } from '../../lib/kernel/units.ts';
import { openMarket } from '../../lib/drivers/local/market/import.ts';
import { defaultMarket } from '../../lib/market/default-market.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { Part } from './ground.ts';

export const HOUR_MS = 3_600_000;
export const WEEK_MS = 7 * 24 * HOUR_MS;

/** Types of each price history that hold most tasks, so that a simulation takes seconds. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  '2015': ['m3.medium', 'm3.large', 'm3.xlarge', 'c3.large', 'c3.xlarge', 'c3.2xlarge', 'r3.large', 'r3.xlarge'],
  '2016': ['m1.large', 'm1.xlarge', 'm2.xlarge', 'm3.large', 'c1.medium', 'c1.xlarge', 'r3.large', 'm4.4xlarge'],
  '2021': ['m5', 'c5', 'r5'].flatMap((f) => ['large', 'xlarge', '2xlarge', '4xlarge'].map((size) => `${f}.${size}`)),
};

const folderOf = (year: string): string => `spot-prices-us-east-1-${year}`;
export const SERIES = 'spot-availability-2022-2023';

/** Years of price histories by part: what is tuned on has a file of its own. */
export const yearsOf = (part: Part): readonly string[] => (part === 'tune' ? ['2015'] : ['2016', '2021']);
export const priceFolders = (part: Part): readonly string[] => yearsOf(part).map(folderOf);

const opened = new Map<string, Promise<MarketTrace>>();

/** Converted markets are kept for the next call. */
function cached(path: string): Promise<MarketTrace> {
  let trace = opened.get(path);
  if (trace === undefined) {
    const cache = join(tmpdir(), 'ebb-bench-default');
    mkdirSync(cache, { recursive: true });
    opened.set(path, (trace = openMarket(path, cache).then((market) => market.trace)));
  }
  return trace;
}

/** `all`: with every type. */
export async function priceMarket(data: string, year: string, all = false): Promise<MarketTrace> {
  const trace = await cached(join(data, folderOf(year), 'spot_price_changes.csv.gz'));
  const types = TYPES[year] ?? [];
  return all ? trace : withPools(trace, (pool) => types.includes(pool.type.name));
}

export const seriesMarket = (data: string, file: string): Promise<MarketTrace> => cached(join(data, SERIES, file));

export const generatedMarket = (seed: number): MarketTrace => defaultMarket(seed);

export const withPools = (trace: MarketTrace, keep: (pool: MarketTrace['pools'][number]) => boolean): MarketTrace => ({
  name: trace.name,
  startMs: trace.startMs,
  endMs: trace.endMs,
  pools: trace.pools.filter(keep),
  prices: (id) => trace.prices(id),
  availability: (id) => trace.availability(id),
});

/** Availability series by part: the first half of the files is for tuning, the other half is reported. */
export function seriesFiles(data: string, part: Part): readonly string[] {
  const files = readdirSync(join(data, SERIES), { recursive: true, encoding: 'utf8' })
    .filter((f) => f.endsWith('.json'))
    .sort();
  const half = Math.ceil(files.length / 2);
  return part === 'tune' ? files.slice(0, half) : files.slice(half);
}

/** Beginnings of windows, one after the other. */
export const windowsIn = ({ startMs, endMs }: MarketTrace, lengthMs: number): readonly number[] =>
  Array.from({ length: Math.floor((raw(endMs) - raw(startMs)) / lengthMs) }, (_, n) => raw(startMs) + n * lengthMs);

/** An instant in each of `count` stretches of the market after its first week, which forecasts learn from. */
export function instantsIn({ startMs, endMs }: MarketTrace, count: number, part: number): readonly number[] {
  const firstMs = raw(startMs) + WEEK_MS;
  const stepMs = (raw(endMs) - 2 * 24 * HOUR_MS - firstMs) / count;
  return Array.from({ length: count }, (_, n) => Math.round(firstMs + (n + part) * stepMs));
}

/** The middle of each. */
export const middlesIn = (market: MarketTrace, count: number): readonly number[] => instantsIn(market, count, 0.5);
