/**
 * Cost of serving the trained model: 1,000 pools x 10 bids, each at the model's horizons.
 *
 *   node bench/forecast-serving.ts [--forecast model|VERSION] [--pools 1000] [--bids 10] [--runs 20]
 *
 * Prices are generated: a week per pool, about 170 changes each, seed 1. First comes a whole new process: loading of
 * the model, and a week of every pool. Then warm cycles a minute apart: some pools have a new price, and all bids are
 * forecast again. Measured are wall time, processor time with ONNX Runtime's threads, and memory.
 */
import { parseArgs } from 'node:util';
import { epochMs, mib, milliCpu, raw, usdPerHour } from '../lib/kernel/units.ts';
import { randomStream } from '../lib/kernel/random.ts';
import { poolKey, type Pool } from '../lib/domain/pool.ts';
import { FEATURES } from '../lib/market/features/names.ts';
import { LearnedLosses } from '../lib/market/forecast/learned.ts';
import { indexAt, type PriceArrays } from '../lib/market/price-steps.ts';
import { openForecast, MODEL_OF } from '../lib/models/preemption.ts';
import { shippedModels } from '../lib/models/versions.ts';
import { asMs, machine, percentile } from './figures.ts';

const { values: args } = parseArgs({
  options: {
    forecast: { type: 'string', default: 'model' },
    pools: { type: 'string', default: '1000' },
    bids: { type: 'string', default: '10' },
    runs: { type: 'string', default: '20' },
  },
});
const [POOLS, BIDS, RUNS] = [Number(args.pools), Number(args.bids), Number(args.runs)];
const HOUR_MS = 3_600_000;
const START_MS = 1_700_000_000_000;
const NOW_MS = START_MS + 8 * 24 * HOUR_MS;
/** Types of one family per zone, as EC2 has sizes. */
const SIZES = 8;
const ZONES = 6;

const random = randomStream(1, 'bench/forecast-serving');
const pools = Array.from({ length: POOLS }, (_, i): Pool => {
  const family = `m${Math.floor(i / (SIZES * ZONES))}`;
  const type = `${family}.${i % SIZES}`;
  const zone = `z${Math.floor(i / SIZES) % ZONES}`;
  const capacity = { cpu: milliCpu(2000), memory: mib(8192), gpus: 0, disk: mib(0) };
  return {
    id: poolKey(type, zone, 'spot'),
    type: { name: type, family, generation: 5, arch: 'x86_64', capacity },
    zone,
    option: 'spot',
    onDemandUsdPerHour: usdPerHour(0.1),
  };
});
const prices = new Map(
  pools.map((pool): [string, PriceArrays] => {
    const at: number[] = [];
    const usd: number[] = [];
    for (let t = START_MS; t < NOW_MS + HOUR_MS; t += random() * 2 * HOUR_MS) {
      at.push(t);
      usd.push(0.03 + 0.02 * random() + (random() < 0.02 ? random() : 0));
    }
    return [pool.id, { atMs: Float64Array.from(at), usdPerHour: Float64Array.from(usd) }];
  }),
);
const steps = (id: string): PriceArrays =>
  prices.get(id) ?? { atMs: new Float64Array(), usdPerHour: new Float64Array() };

function question(nowMs: number) {
  const asked = pools.flatMap((pool) => {
    const { atMs, usdPerHour: usd } = steps(pool.id);
    const price = usd[indexAt(atMs, nowMs)] ?? 0;
    return Array.from({ length: BIDS }, (_, b) => ({ pool, bid: usdPerHour(price + 1e-4 * 2.3 ** b) }));
  });
  const history = (id: string, from: Parameters<typeof raw>[0], to: Parameters<typeof raw>[0]): PriceArrays => {
    const { atMs, usdPerHour: usd } = steps(id);
    const low = Math.max(0, indexAt(atMs, raw(from)));
    const high = indexAt(atMs, raw(to) - 1) + 1;
    return { atMs: atMs.subarray(low, high), usdPerHour: usd.subarray(low, high) };
  };
  return { now: epochMs(nowMs), pools, asked, history };
}

interface Took {
  readonly wallMs: number;
  readonly cpuMs: number;
}
async function timed(work: () => Promise<void>): Promise<Took> {
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  return { wallMs: performance.now() - began, cpuMs: (user + system) / 1000 };
}

console.log(`forecasts by the model: ${machine()}`);
const opened = await openForecast(args.forecast, { shipped: shippedModels(MODEL_OF.price), own: null }, FEATURES);
if (opened.model === null) throw new Error(opened.refused ?? 'no model');
const learned = new LearnedLosses(opened.model);
const answered = async (nowMs: number): Promise<void> => {
  const asked = question(nowMs);
  const losses = await learned.losses(asked);
  const curves = asked.asked.filter(({ pool, bid }) => losses(pool, bid)?.kind === 'curve').length;
  if (curves !== POOLS * BIDS) throw new Error(`${curves} curves for ${POOLS * BIDS} bids`);
};
const first = await timed(() => answered(NOW_MS));
const warm: Took[] = [];
for (let run = 1; run <= RUNS; run++) warm.push(await timed(() => answered(NOW_MS + run * 60_000)));
const of = (pick: (t: Took) => number, q: number): string => asMs(percentile(warm.map(pick), q));
const { version, horizonsS } = opened.model;
console.log(
  `  model ${version}: ${POOLS} pools x ${BIDS} bids x ${horizonsS.length} horizons, ${RUNS} warm runs, seed 1`,
);
console.log(`  first, with a week of prices to take in: ${asMs(first.wallMs)}, processor ${asMs(first.cpuMs)}`);
console.log(
  `  warm: p50 ${of((t) => t.wallMs, 0.5)}, most ${of((t) => t.wallMs, 1)}; processor p50 ${of((t) => t.cpuMs, 0.5)} (to reach: < 500 ms on 2 cores)`,
);
console.log(
  `  memory: ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB, at most ${(process.resourceUsage().maxRSS / 1024).toFixed(0)} MiB, made-up prices included (to reach: < 300 MiB)`,
);
await opened.close();
