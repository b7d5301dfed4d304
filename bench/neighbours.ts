/**
 * Cost of a day of mixed work whose programs slow one another down, with and without the knowledge of who does, and
 * against rivals.
 *   npm run bench:neighbours -- [--part report|tune] [--seeds 6] [--worlds devices,pairs,none] [--presets a,b]
 *   [--procs 2] [--json FILE] [--html FILE] [--draw]
 * needs EBB_DATA_DIR (default ../shared/data).
 *
 * Worlds, with what is measured and what is assumed: bench/neighbours/worlds.ts. In `pairs` the pace of a task is the
 * product of the throughputs that Eva measured for it beside each of its neighbours; the fit of the contention model to
 * them, and its error, are printed.
 *
 * Nothing is known at the beginning of a day. Costs are ratios of sums over days, with 95 % intervals by resampling
 * days. Reported are days of 2016 and 2021 with seeds 101 and up; for tuning there are days of 2015, and days of 2016
 * and 2021 that lie between these, with seeds 1 and up.
 *
 * Writes bench/results/clusters/neighbours.json (`--part tune`: out/neighbours-tune.json), and a page,
 * out/neighbours.html.
 */
import { parseArgs } from 'node:util';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { partOf } from './cluster/results.ts';
import { yearsOf } from './default/markets.ts';
import { answerOf, UNAWARE } from './neighbours/order.ts';
import { fitted, readPairs } from './neighbours/pairs.ts';
import { figuresOf, tablesOf } from './neighbours/table.ts';
import { WORLDS, type World } from './neighbours/worlds.ts';

const PRESETS = ['ebbtide', UNAWARE, 'eva', 'stratus-no-clearing', 'resource-aware'];

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    seeds: { type: 'string', default: '6' },
    worlds: { type: 'string', default: WORLDS.join(',') },
    presets: { type: 'string', default: PRESETS.join(',') },
  },
});
const presets = options.presets.split(',');
const worlds = options.worlds.split(',') as readonly World[];
const unknown = worlds.find((w) => !WORLDS.includes(w));
if (unknown !== undefined) throw new Error(`--worlds takes ${WORLDS.join(', ')}; got ${unknown}`);
const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';

if (!options.worker && !options.draw && worlds.includes('pairs')) {
  const { rmse, spread, measured } = fitted(readPairs(data));
  console.log(
    `contention model fitted to ${measured} measured pairs: root mean squared error of the throughput ${rmse.toFixed(3)}, of its mean alone ${spread.toFixed(3)}`,
  );
}

const part = partOf(options.part);
const YEARS = part === 'tune' ? [...yearsOf('tune'), ...yearsOf('report')] : yearsOf(part);

/** The types of 2015 that are simulated are too small for the programs of the pairs. */
const yearsIn = (world: World): readonly string[] => YEARS.filter((year) => world !== 'pairs' || year !== '2015');

await mainOf(
  {
    name: 'neighbours',
    title: 'Noisy neighbours on a day of mixed work',
    about: `Days of 480 jobs of 24 templates, half with deadlines, on markets of real prices, in simulated worlds where programs slow one another down. Nothing is known at first. \`${UNAWARE}\` is the default preset with \`neighbours: false\`. Ratios of sums over days, with 95 % intervals by resampling days.`,
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf: (seeds) =>
      worlds.flatMap((world) =>
        yearsIn(world).flatMap((year) =>
          seeds.flatMap((seed) => presets.map((preset) => ({ world, data, year, preset, seed, part }))),
        ),
      ),
    answerOf,
    labelOf: ({ world, year }) => `${world}, ${year}`,
    resultOf: (answers) => Promise.resolve({ figures: figuresOf(answers), tables: tablesOf(answers, presets) }),
  },
  options,
);
