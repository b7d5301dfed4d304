/**
 * Tributary by forecast: what a trained model saves over the history of prices, and what perfect knowledge would.
 *   npm run bench:tributary-forecasts -- [--years 2015,2016,2021] [--requests clarknet,nasa_http] [--minutes 2000]
 *   [--rps 125] [--seeds 10] [--presets a,b] [--procs 2] [--json FILE] [--html FILE] [--draw]
 * needs EBB_DATA_DIR (default ../shared/data) with web-requests and the price histories of those years,
 * and ONNX Runtime.
 *
 * As bench/tributary.ts. Starts are in the part of each history that the models of this version were tested on, and
 * neither trained nor chosen by: the last tenth or so, which its record names (`testFrom`).
 *
 * Writes bench/results/clusters/tributary-forecasts.json, and out/tributary-forecasts.html.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { answerOf, type Order } from './tributary/order.ts';
import { forecastFiguresOf, tablesOf } from './tributary/table.ts';

const LSTM = '2026-11-21-lstm';
const PRESETS = [
  'on-demand-autoscale',
  'autoscale-lowest',
  'tributary',
  `tributary@${LSTM}`,
  'tributary@2026-11-21-trees',
  'tributary@oracle',
];

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    years: { type: 'string', default: '2015,2016,2021' },
    requests: { type: 'string', default: 'clarknet,nasa_http' },
    minutes: { type: 'string', default: '2000' },
    rps: { type: 'string', default: '125' },
    seeds: { type: 'string', default: '10' },
    presets: { type: 'string', default: PRESETS.join(',') },
  },
});
const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';

interface Trained {
  readonly training: { readonly sources: readonly { readonly name: string; readonly testFrom: string }[] };
}
const { training } = JSON.parse(readFileSync(join('models', 'preemption', LSTM, 'manifest.json'), 'utf8')) as Trained;

function testFrom(year: string): string {
  const found = training.sources.find(({ name }) => name.endsWith(year));
  if (found !== undefined) return found.testFrom;
  throw new Error(`--years: the models know ${training.sources.map((s) => s.name.slice(-4)).join(', ')}; got ${year}`);
}

await mainOf(
  {
    name: 'tributary-forecasts',
    title: 'Tributary by forecast',
    about:
      'Tributary with forecasts from the history of prices (its median, the paper’s baseline), from the trained LSTM and trees, and with perfect knowledge (`@oracle`). Starts are in the part of each history that the models were tested on, and neither trained nor chosen by. Otherwise as the benchmark “Tributary and its rivals”.',
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf: (seeds) =>
      options.years.split(',').flatMap((year) =>
        options.requests.split(',').flatMap((requests) =>
          seeds.flatMap((seed, start) =>
            options.presets.split(',').map((preset): Order => ({
              ...{ data, year, requests, seed, start, starts: seeds.length, preset, from: testFrom(year) },
              minutes: Number(options.minutes),
              rps: Number(options.rps),
              refundRule: 'first-hour',
              scaling: 'reactive',
              billing: 'per-second',
            })),
          ),
        ),
      ),
    answerOf,
    labelOf: ({ year, requests }) => `${year} ${requests}`,
    resultOf: (answers) => Promise.resolve({ figures: forecastFiguresOf(answers), tables: tablesOf(answers) }),
  },
  options,
);
