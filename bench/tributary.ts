/**
 * Tributary and its rivals: a service on spot, its cost and its slow requests.
 *   npm run bench:tributary -- [--part report|tune] [--years 2016,2021] [--requests clarknet,nasa_http,twitter_2021-08]
 *   [--scalings reactive] [--refunds first-hour,none] [--minutes 2000] [--rps 125] [--seeds 20] [--presets a,b]
 *   [--from TIME] [--procs 2] [--json FILE] [--html FILE] [--draw]
 * needs EBB_DATA_DIR (default ../shared/data) with web-requests and the price histories of those years.
 *
 * As section 2.4 of the paper: requests of 0.1 s of a vCPU, a target of 95 % within a second, 200 s from a launch to
 * the first request, nine pools of one family in three zones, traces scaled to a mean of 125 requests per second.
 * Starts are spread over the history after its first week. `name+0.5` has a buffer of half of what the load needs,
 * `name@oracle` knows what the market will take, `name@VERSION` asks a trained model (with `--from`: starts in a time
 * that it was not trained on). Instances are billed by the second with the refund of the first hour,
 * as in the paper, on prices of any year (`--billing history`: as they were billed then).
 *
 * Costs and slow requests are ratios of sums over starts, with 95 % intervals by resampling starts. `--part tune` runs
 * on prices of 2015.
 *
 * Writes bench/results/clusters/tributary.json (`--part tune`: out/tributary-tune.json), and out/tributary.html.
 */
import { parseArgs } from 'node:util';
import { SCALING } from '../lib/stages/services/scalings.ts';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { billingOf, familyMarket } from './tributary/markets.ts';
import { answerOf, type Order } from './tributary/order.ts';
import { figuresOf, tablesOf } from './tributary/table.ts';

const PRESETS = [
  'on-demand-autoscale',
  'autoscale-lowest',
  'autoscale-lowest+0.1',
  'autoscale-lowest+0.25',
  'autoscale-lowest+0.5',
  'autoscale-lowest+1',
  'autoscale-diversified',
  'exosphere',
  'exosphere-averse',
  'proteus',
  'tributary',
  'tributary@oracle',
  'ebbtide',
];

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    years: { type: 'string' },
    requests: { type: 'string', default: 'clarknet,nasa_http,twitter_2021-08' },
    scalings: { type: 'string', default: 'reactive' },
    refunds: { type: 'string', default: 'first-hour,none' },
    billing: { type: 'string', default: 'per-second' },
    minutes: { type: 'string', default: '2000' },
    rps: { type: 'string', default: '125' },
    seeds: { type: 'string', default: '20' },
    presets: { type: 'string', default: PRESETS.join(',') },
    from: { type: 'string' },
  },
});
const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';
const years = (options.years ?? (options.part === 'tune' ? '2015' : '2016,2021')).split(',');

function oneOf<T extends string>(option: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((of) => of === text);
  if (found !== undefined) return found;
  throw new Error(`--${option} takes ${allowed.join(', ')}; got ${text}`);
}

const scalings = options.scalings
  .split(',')
  .map((name) => oneOf('scalings', name, Object.keys(SCALING) as (keyof typeof SCALING)[]));
const refunds = options.refunds.split(',').map((name) => oneOf('refunds', name, ['first-hour', 'none'] as const));
const billing = oneOf('billing', options.billing, ['per-second', 'history'] as const);
const billingIn = new Map<string, Order['billing']>();
for (const year of options.worker || options.draw ? [] : years) {
  const trace = await familyMarket(data, year);
  billingIn.set(year, billing === 'history' ? billingOf(trace) : billing);
}

await mainOf(
  {
    name: 'tributary',
    title: 'Tributary and its rivals',
    about:
      'A service on spot: requests of 0.1 s of a vCPU, 95 % of them wanted within a second, 200 s from a launch to the first request, traces scaled to a mean of 125 requests per second, nine pools of one family in three zones. Starts are spread over each price history. Costs and slow requests are ratios of sums over starts, with 95 % intervals by resampling starts. `name+0.5` has a buffer of half of what the load needs; `name@oracle` knows what the market will take. Lost: instances that the market took; free: part of the charges that were refunded.',
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf: (seeds) => {
      const of = { data, minutes: Number(options.minutes), rps: Number(options.rps), starts: seeds.length };
      return years.flatMap((year) =>
        options.requests.split(',').flatMap((requests) =>
          refunds.flatMap((refundRule) =>
            scalings.flatMap((scaling) =>
              seeds.flatMap((seed, start) =>
                options.presets.split(',').map((preset): Order => ({
                  ...{ ...of, year, requests, refundRule, scaling, seed, start, preset, from: options.from ?? null },
                  billing: billingIn.get(year) ?? 'per-second',
                })),
              ),
            ),
          ),
        ),
      );
    },
    answerOf,
    labelOf: ({ year, requests, scaling, refundRule }) => `${year} ${requests} ${scaling} ${refundRule}`,
    resultOf: (answers) => Promise.resolve({ figures: figuresOf(answers), tables: tablesOf(answers) }),
  },
  options,
);
