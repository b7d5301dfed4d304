/**
 * Fit of the market generator to real traces, and comparison of generated markets with the held-out part.
 *
 *   node bench/market-fit.ts [--write] [--svg FILE]
 *
 * Data: EBB_DATA_DIR (default ../shared/data): spot-prices-us-east-1-{2015,2016,2021}, spot-availability-2022-2023, see
 * docs/datasets.md. Split by time: the first two thirds of every market and series are fitted, the last third is
 * compared. `--write` rewrites lib/market/fitted.ts; `--svg` draws the distributions side by side.
 */
import { readdirSync, writeFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { epochMs, raw } from '../lib/kernel/units.ts';
import { invariant } from '../lib/kernel/errors.ts';
import { builtInCatalogue } from '../lib/market/catalogue.ts';
import { fitCapacity, fitSmooth, fitSpiky } from '../lib/market/fit.ts';
import { generateMarket, type Regime } from '../lib/market/generate.ts';
import { quantilesOf } from '../lib/market/quantiles.ts';
import type { MarketModel } from '../lib/market/regimes.ts';
import {
  periods,
  profilesOf,
  summariseAvailability,
  summarisePrices,
  type AvailabilitySummary,
  type PriceProfile,
  type PriceSummary,
  type Window,
} from '../lib/market/statistics.ts';
import { marketsOf } from '../lib/market/price-steps.ts';
import type { AvailabilitySteps, MarketTrace } from '../lib/market/trace.ts';
import { openMarket } from '../lib/drivers/local/market/import.ts';
import { distributionCharts, type Panel } from '../lib/drivers/local/market/chart.ts';

const SEED = 20170401;
const GENERATED_MARKETS = 400;
const GENERATED_DAYS = 30;
/** Profiles of smooth markets, which are many and similar. */
const SMOOTH_PROFILES = 48;
const FIT_SHARE = 2 / 3;

const { values: args } = parseArgs({ options: { write: { type: 'boolean' }, svg: { type: 'string' } } });
const dataDir = process.env['EBB_DATA_DIR'] ?? join(import.meta.dirname, '../../shared/data');
const cacheDir = join(import.meta.dirname, '../.cache/market-fit');

const open = async (name: string): Promise<MarketTrace> => (await openMarket(join(dataDir, name), cacheDir)).trace;

interface Halves {
  readonly fit: Window;
  readonly held: Window;
}
function split(trace: MarketTrace): Halves {
  const [fromMs, toMs] = [raw(trace.startMs), raw(trace.endMs)];
  const cut = fromMs + FIT_SHARE * (toMs - fromMs);
  return { fit: { fromMs, toMs: cut }, held: { fromMs: cut, toMs } };
}

interface PriceParts {
  readonly fit: readonly PriceProfile[];
  readonly held: readonly PriceProfile[];
}
async function priceParts(names: readonly string[]): Promise<PriceParts> {
  const parts = { fit: [] as PriceProfile[], held: [] as PriceProfile[] };
  for (const name of names) {
    const trace = await open(name);
    const { fit, held } = split(trace);
    parts.fit.push(...profilesOf(marketsOf(trace), fit));
    parts.held.push(...profilesOf(marketsOf(trace), held));
  }
  return parts;
}

interface SeriesPart {
  readonly steps: AvailabilitySteps;
  readonly window: Window;
}
async function seriesParts(folder: string): Promise<{ fit: SeriesPart[]; held: SeriesPart[] }> {
  const parts = { fit: [] as SeriesPart[], held: [] as SeriesPart[] };
  const files = readdirSync(join(dataDir, folder), { recursive: true, encoding: 'utf8' }).sort();
  // Files one by one: in one market the months between two series of a pool would be a long outage. EC2 only.
  for (const file of files.filter((f) => f.endsWith('.json') && f.includes('aws-'))) {
    const trace = await open(join(folder, file));
    const { fit, held } = split(trace);
    const steps = marketsOf(trace)[0]?.availability;
    if (steps === null || steps === undefined) continue;
    parts.fit.push({ steps, window: fit });
    parts.held.push({ steps, window: held });
  }
  return parts;
}

function generated(regime: Regime, model: MarketModel): MarketTrace {
  // Price of some dollars, so that rounding to 1/100 cent does not show.
  const entry = invariant(
    builtInCatalogue().entry('m5.16xlarge', epochMs(Date.UTC(2020, 0, 1))),
    'm5.16xlarge is built in',
  );
  const markets = Array.from({ length: GENERATED_MARKETS }, (_, i) => ({ entry, zone: `us-east-1-${i}`, regime }));
  const spec = {
    name: regime,
    seed: SEED,
    startMs: epochMs(0),
    days: GENERATED_DAYS,
    markets,
    temper: 'natural' as const,
  };
  return generateMarket(spec, model);
}

const whole = (trace: MarketTrace): Window => ({ fromMs: raw(trace.startMs), toMs: raw(trace.endMs) });

const show = (x: number): string =>
  Number.isNaN(x) ? '-' : Math.abs(x) >= 1000 ? x.toFixed(0) : x >= 10 ? x.toFixed(1) : x.toPrecision(3);
const list = (xs: readonly number[]): string => xs.map(show).join(' / ');

function priceRows(parts: readonly PriceSummary[]): string[][] {
  const row = (label: string, cell: (s: PriceSummary) => string): string[] => [label, ...parts.map(cell)];
  return [
    row('markets', (s) => String(s.markets)),
    row('upward crossings of on-demand, per market and day', (s) => show(s.crossingsPerDay)),
    row('share of market-time above on-demand', (s) => show(s.aboveShare)),
    row('share of markets never above', (s) => show(s.quietShare)),
    row('time between changes, s (10/50/90 %)', (s) => list(s.interS)),
    row('time above on-demand, s (10/50/90 %)', (s) => list(s.excursionS)),
    row('highest price / on-demand of an excursion (10/50/90 %)', (s) => list(s.peak)),
    row('time between excursions, s (10/50/90 %)', (s) => list(s.gapS)),
    row('price / on-demand (5/25/50/75/95/99 %)', (s) => list(s.ratio)),
  ];
}

function availabilityRows(parts: readonly AvailabilitySummary[]): string[][] {
  const row = (label: string, cell: (s: AvailabilitySummary) => string): string[] => [label, ...parts.map(cell)];
  return [
    row('series', (s) => String(s.series)),
    row('share of time with capacity', (s) => show(s.upShare)),
    row('losses of capacity, per series and day', (s) => show(s.interruptionsPerDay)),
    row('period with capacity, s (10/50/90 %)', (s) => list(s.upS)),
    row('period without capacity, s (10/50/90 %)', (s) => list(s.downS)),
  ];
}

function table(title: string, rows: readonly string[][]): void {
  console.log(`\n### ${title}\n`);
  console.log('| | fitted part | held-out part | generated |\n| --- | --- | --- | --- |');
  for (const row of rows) console.log(`| ${row.join(' | ')} |`);
}

/** Numbers with four significant digits: the fit is not better, and the file stays readable. */
const rounded = (_key: string, value: unknown): unknown =>
  typeof value === 'number' ? Number(value.toPrecision(4)) : value;

function writeFitted(model: MarketModel): void {
  const file = join(import.meta.dirname, '../lib/market/fitted.ts');
  writeFileSync(
    file,
    `import type { MarketModel } from './regimes.ts';\n\n/**\n * The generator's parameters, fitted by bench/market-fit.ts (\`--write\` makes this file): spiky from the first two thirds of\n * us-east-1 spot prices of 2015 and 2016, smooth from those of 2021, capacity from the spot availability series of 2022\n * and 2023 (docs/datasets.md names the sources, docs/market.md shows the fit).\n */\nexport const FITTED: MarketModel = ${JSON.stringify(model, rounded)};\n`,
  );
  console.log(`\nwrote ${file}; format it: npm run format`);
}

const spans = (profiles: readonly PriceProfile[]): { values: number[]; weights: number[] } => ({
  values: profiles.flatMap((p) => p.ratio),
  weights: profiles.flatMap((p) => p.heldMs.map((ms) => ms / p.spanMs)),
});

function curve(values: readonly number[], weights?: readonly number[]): [number, number][] {
  const at = Array.from({ length: 199 }, (_, i) => (i + 1) / 200);
  return quantilesOf(values, at, weights).map((x, i) => [x, at[i] ?? 0]);
}

if (!existsSync(dataDir)) {
  console.error(`no data at ${dataDir}: set EBB_DATA_DIR (docs/datasets.md says where to get it)`);
  process.exit(2);
}
console.log(
  `seed ${SEED}, ${GENERATED_MARKETS} generated markets of ${GENERATED_DAYS} days per regime, node ${process.version}`,
);

const spiky = await priceParts(['spot-prices-us-east-1-2015', 'spot-prices-us-east-1-2016']);
const smooth = await priceParts(['spot-prices-us-east-1-2021']);
const series = await seriesParts('spot-availability-2022-2023');
const model: MarketModel = {
  spiky: fitSpiky(spiky.fit),
  smooth: fitSmooth(smooth.fit, SMOOTH_PROFILES),
  capacity: fitCapacity(series.fit.map((s) => periods(s.steps, s.window))),
};
console.log(`\nphi: spiky ${show(model.spiky.phi)}, smooth ${show(model.smooth.phi)}`);
console.log(
  `profiles: spiky ${model.spiky.profiles.length}, smooth ${model.smooth.profiles.length}, capacity ${model.capacity.profiles.length}`,
);

const spikyTrace = generated('spiky', model);
const smoothTrace = generated('smooth', model);
const spikyMade = profilesOf(marketsOf(spikyTrace), whole(spikyTrace));
const smoothMade = profilesOf(marketsOf(smoothTrace), whole(smoothTrace));
const capacityMade = marketsOf(smoothTrace).flatMap((m) =>
  m.availability === null ? [] : [{ steps: m.availability, window: whole(smoothTrace) }],
);
table('Spiky: 2015 and 2016', priceRows([spiky.fit, spiky.held, spikyMade].map(summarisePrices)));
table('Smooth: 2021', priceRows([smooth.fit, smooth.held, smoothMade].map(summarisePrices)));
table('Capacity: 2022 and 2023', availabilityRows([series.fit, series.held, capacityMade].map(summariseAvailability)));

if (args.write === true) writeFitted(model);
if (args.svg !== undefined) {
  const pair = (title: string, unit: string, held: [number, number][], made: [number, number][]): Panel => ({
    title,
    unit,
    curves: [
      { name: 'real, held out', points: held },
      { name: 'generated', points: made },
    ],
  });
  const ratio = (p: readonly PriceProfile[]): [number, number][] => curve(spans(p).values, spans(p).weights);
  const lengths = (p: readonly PriceProfile[]): [number, number][] =>
    curve(p.flatMap((x) => x.excursions.map((e) => (e.endMs - e.startMs) / 1000)));
  const ups = (parts: readonly SeriesPart[], key: 'upS' | 'downS'): [number, number][] =>
    curve(parts.flatMap((s) => periods(s.steps, s.window)[key]));
  writeFileSync(
    args.svg,
    await distributionCharts([
      pair('Spiky: price', 'price / on-demand', ratio(spiky.held), ratio(spikyMade)),
      pair('Spiky: time above on-demand', 'seconds', lengths(spiky.held), lengths(spikyMade)),
      pair('Smooth: price', 'price / on-demand', ratio(smooth.held), ratio(smoothMade)),
      pair('Capacity: time available', 'seconds', ups(series.held, 'upS'), ups(capacityMade, 'upS')),
    ]),
  );
}
