/**
 * Quality and speed of the empirical interruption forecast.
 *
 *   node bench/forecast.ts            needs EBB_DATA_DIR (default ../shared/data) for the first two tables
 *
 * 1. Brier score of P(price passes the bid within h), forecast every 8 hours from the prices known by then.
 * 2. Hazards by bid above the price relative to on-demand: the source of the cold-start table in
 * lib/market/forecast/forecaster.ts.
 * 3. Time to build and to refresh 1,000 pools x 4 bids.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { epochMs, mib, milliCpu, raw, usdPerHour } from '../lib/kernel/units.ts';
import { randomStream } from '../lib/kernel/random.ts';
import { poolKey, type Pool, onDemandUsdOf } from '../lib/domain/pool.ts';
import { builtInCatalogue } from '../lib/market/catalogue.ts';
import { indexAt, type PriceArrays } from '../lib/market/price-steps.ts';
import { MarketForecaster } from '../lib/market/forecast/forecaster.ts';
import { CapacityEvidence } from '../lib/market/forecast/hazard.ts';
import { HORIZONS_S, PriceSurvival, type DayStatistic } from '../lib/market/forecast/survival.ts';

const HOUR_MS = 3_600_000;
const WINDOW_MS = 7 * 24 * HOUR_MS;

interface Market {
  readonly onDemand: number;
  readonly prices: PriceArrays;
}

function load(folder: string): Market[] {
  const file = join(process.env['EBB_DATA_DIR'] ?? '../shared/data', folder, 'spot_price_changes.csv.gz');
  if (!existsSync(file)) return [];
  const rows = new Map<string, { at: number[]; usd: number[] }>();
  for (const line of gunzipSync(readFileSync(file)).toString('utf8').split('\n').slice(1)) {
    const [time = '', az = '', type = '', price = ''] = line.split(',');
    if (time === '') continue;
    const list = rows.get(`${type}/${az}`) ?? { at: [], usd: [] };
    rows.set(`${type}/${az}`, list);
    list.at.push(Date.parse(time));
    list.usd.push(Number(price));
  }
  return [...rows].flatMap(([key, { at, usd }]) => {
    const entry = builtInCatalogue().entry(key.split('/')[0] ?? '', epochMs(at[0] ?? 0));
    if (entry === null) return [];
    const prices = { atMs: Float64Array.from(at), usdPerHour: Float64Array.from(usd) };
    return [{ onDemand: onDemandUsdOf(entry), prices }];
  });
}

function passedWithin({ atMs, usdPerHour: usd }: PriceArrays, from: number, h: { ms: number; bid: number }): boolean {
  for (let i = indexAt(atMs, from) + 1; i < atMs.length && (atMs[i] ?? 0) <= from + h.ms; i++) {
    if ((usd[i] ?? 0) > h.bid) return true;
  }
  return false;
}

const BIDS: readonly { readonly name: string; readonly delta: (m: Market, price: number) => number }[] = [
  { name: '+0.0001', delta: () => 0.0001 },
  { name: '+0.01', delta: () => 0.01 },
  { name: '+0.1', delta: () => 0.1 },
  { name: 'on-demand', delta: (m, price) => m.onDemand - price },
];
const SCORED = [4, 7, 9];

function brier(markets: readonly Market[], statistic: DayStatistic): void {
  for (const bid of BIDS) {
    const cells = SCORED.map(() => ({ n: 0, brier: 0, predicted: 0, happened: 0 }));
    for (const m of markets) {
      const last = m.prices.atMs.at(-1) ?? 0;
      for (let now = (m.prices.atMs[0] ?? 0) + WINDOW_MS; now < last - 24 * HOUR_MS; now += 8 * HOUR_MS) {
        const price = m.prices.usdPerHour[indexAt(m.prices.atMs, now)] ?? 0;
        const delta = bid.delta(m, price);
        if (delta <= 0) continue;
        const survival = new PriceSurvival(delta, WINDOW_MS);
        const from = Math.max(0, indexAt(m.prices.atMs, now - WINDOW_MS));
        survival.advance({ atMs: m.prices.atMs.subarray(from), usdPerHour: m.prices.usdPerHour.subarray(from) }, now);
        const curve = survival.curve(statistic);
        SCORED.forEach((h, k) => {
          const cell = cells[k];
          if (curve === null || cell === undefined || curve.p.length <= h) return;
          const p = curve.p[h] ?? 0;
          const y = passedWithin(m.prices, now, { ms: (HORIZONS_S[h] ?? 0) * 1000, bid: price + delta }) ? 1 : 0;
          cell.n++;
          cell.brier += (p - y) ** 2;
          cell.predicted += p;
          cell.happened += y;
        });
      }
    }
    const text = cells.map((c, k) => {
      const base = c.happened / c.n;
      return `${(HORIZONS_S[SCORED[k] ?? 0] ?? 0) / 3600} h: Brier ${(c.brier / c.n).toFixed(4)} (constant ${(base * (1 - base)).toFixed(4)}), said ${(c.predicted / c.n).toFixed(3)}, was ${base.toFixed(3)}`;
    });
    console.log(`  ${statistic.padEnd(6)} ${bid.name.padEnd(10)} ${text.join(' | ')}  n=${cells[0]?.n}`);
  }
}

function hazards(name: string, markets: readonly Market[]): void {
  for (const relative of [0.001, 0.03, 0.2, 0.7]) {
    let sum = 0;
    for (const m of markets) {
      const last = m.prices.atMs.at(-1) ?? 0;
      const survival = new PriceSurvival(relative * m.onDemand, last - (m.prices.atMs[0] ?? 0));
      survival.advance(m.prices, last);
      sum += -Math.log(1 - (survival.curve('mean')?.p[4] ?? 0));
    }
    console.log(`  ${name} bid ${relative} x on-demand above the price: ${(sum / markets.length).toFixed(4)} per hour`);
  }
}

function refresh(): void {
  const random = randomStream(1, 'bench/forecast');
  const start = 1_700_000_000_000;
  const end = start + WINDOW_MS + HOUR_MS;
  const markets = Array.from({ length: 1000 }, () => {
    const at: number[] = [];
    const usd: number[] = [];
    for (let t = start; t < end; t += (random() * 2 * WINDOW_MS) / 1000) {
      at.push(t);
      usd.push(0.03 + 0.02 * random() + (random() < 0.02 ? random() : 0));
    }
    return { atMs: Float64Array.from(at), usdPerHour: Float64Array.from(usd) };
  });
  const pools = markets.map((_, i): Pool => ({
    id: poolKey(`m5.${i}`, 'a', 'spot'),
    type: {
      name: `m5.${i}`,
      family: 'm5',
      generation: 5,
      arch: 'x86_64',
      capacity: { cpu: milliCpu(2000), memory: mib(8192), gpus: 0, disk: mib(0) },
    },
    zone: 'a',
    option: 'spot',
    onDemandUsdPerHour: usdPerHour(0.1),
  }));
  const byId = new Map(pools.map((p, i) => [p.id, markets[i] as PriceArrays]));
  const forecaster = new MarketForecaster({
    history: (pool, from, to) => {
      const m = byId.get(pool) as PriceArrays;
      const low = Math.max(0, indexAt(m.atMs, raw(from)));
      const high = indexAt(m.atMs, raw(to) - 1) + 1;
      return { atMs: m.atMs.subarray(low, high), usdPerHour: m.usdPerHour.subarray(low, high) };
    },
    config: { priceHistoryS: WINDOW_MS / 1000, hazardPriorPerHour: 0.03, hazardPriorHours: 20 },
  });
  const evidence = new CapacityEvidence();
  for (const [what, now] of [
    ['build', end - HOUR_MS],
    ['refresh after 60 s', end - HOUR_MS + 60_000],
    ['refresh after 600 s', end - HOUR_MS + 660_000],
  ] as const) {
    const began = performance.now();
    const forecast = forecaster.at(epochMs(now), evidence);
    for (const pool of pools) {
      const m = byId.get(pool.id) as PriceArrays;
      const price = m.usdPerHour[indexAt(m.atMs, now)] ?? 0;
      for (const delta of [0.0001, 0.01, 0.1, 0.05]) forecast.interruption(pool, usdPerHour(price + delta));
    }
    console.log(
      `  1,000 pools x 4 bids, about 1,000 changes each: ${what} ${(performance.now() - began).toFixed(0)} ms`,
    );
  }
  console.log(
    `  heap ${(process.memoryUsage().heapUsed / 2 ** 20).toFixed(0)} MiB, arrays ${(process.memoryUsage().arrayBuffers / 2 ** 20).toFixed(0)} MiB`,
  );
}

console.log(`node ${process.version}, seed 1`);
for (const folder of ['spot-prices-us-east-1-2016', 'spot-prices-us-east-1-2021']) {
  const markets = load(folder);
  console.log(`${folder}: ${markets.length} markets`);
  if (markets.length === 0) continue;
  const some = markets.slice(0, 40);
  brier(some, 'median');
  brier(some, 'mean');
  hazards(folder, markets);
}
refresh();
