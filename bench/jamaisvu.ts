/**
 * JVuSched, strict priority and an oracle, in the setting of JamaisVu's simulations (section 5): 256 nodes in 8 racks.
 *   npm run bench:jamaisvu -- [--part report|tune] [--slacks 20,60,100,140,180] [--seeds N] [--jobs 200] [--load 1.2]
 *   [--presets a,b] [--procs 2] [--json FILE] [--html FILE] [--draw]
 * needs EBB_DATA_DIR (default ../shared/data) with google-2011.
 *
 * Work: DEADLINE-n (table 3): half of the jobs have a deadline with a slack of n per cent of the running time, half are
 * best effort. Jobs come from classes of the Google trace, which k-means on running times finds: a class by its weight,
 * features and number of tasks of one of its jobs, a running time from its log-normal. A task has a node. 2000 jobs of
 * the same kind are known before. The plan looks ten minutes ahead, and decides at each event and every ten seconds.
 *
 * `p`, `p-u` and `jvusched` add pre-emption, back-off of under-estimates and decay of over-estimates to `jvusched-base`
 * (figure 14); `incby1` is `jvusched` with the other back-off (figure 16). A job that admission refuses counts as
 * missed. Seeds 1 to 3 are for tuning (`--part tune`), seeds 101 to 103 are reported; intervals resample seeds.
 *
 * Writes bench/results/clusters/jamaisvu.json (`--part tune`: out/jamaisvu-tune.json), and a page, out/jamaisvu.html.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { drawAgain, keep, partOf, pathOf } from './cluster/results.ts';
import { machine } from './figures.ts';
import { answerOf, type Answer, type Order } from './jamaisvu/order.ts';
import { figuresOf, tablesOf } from './jamaisvu/table.ts';
import { answerOrders, inProcesses } from './processes.ts';
import { stamp } from './record.ts';

const PRESETS = ['jvusched', 'jvusched-greedy', 'prio', 'oracle-told', 'jvusched-base', 'p', 'p-u', 'incby1'];

const { values: options } = parseArgs({
  options: {
    part: { type: 'string', default: 'report' },
    slacks: { type: 'string', default: '20,60,100,140,180' },
    seeds: { type: 'string', default: '3' },
    jobs: { type: 'string', default: '200' },
    load: { type: 'string', default: '1.2' },
    presets: { type: 'string', default: PRESETS.join(',') },
    procs: { type: 'string', default: '2' },
    json: { type: 'string' },
    html: { type: 'string', default: 'out/jamaisvu.html' },
    draw: { type: 'boolean', default: false },
    worker: { type: 'boolean', default: false },
  },
});
const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';

function ordersOf(first: number): readonly Order[] {
  const seeds = Array.from({ length: Number(options.seeds) }, (_, i) => first + i);
  const of = { data, jobs: Number(options.jobs), load: Number(options.load) };
  return options.slacks
    .split(',')
    .map(Number)
    .flatMap((slack) =>
      seeds.flatMap((seed) => options.presets.split(',').map((preset): Order => ({ ...of, slack, seed, preset }))),
    );
}

async function main(): Promise<void> {
  const began = performance.now();
  const part = partOf(options.part);
  console.log(machine());
  const orders = ordersOf(part === 'report' ? 101 : 1);
  const crew = { script: fileURLToPath(import.meta.url), procs: Number(options.procs) };
  const answers = await inProcesses<Order, Answer>(crew, orders, ({ preset, slack, seed, figures }, done) => {
    console.error(
      `${done} of ${orders.length}: ${preset}, slack ${slack}, seed ${seed}: ${figures.tookS.toFixed(1)} s`,
    );
  });
  await keep(
    {
      title: 'JVuSched and its rivals',
      about: ABOUT,
      command: `npm run bench:jamaisvu${part === 'tune' ? ' -- --part tune' : ''}`,
      part,
      ...stamp(),
      figures: figuresOf(answers),
      tables: tablesOf(answers, options.presets.split(',')),
    },
    files,
  );
  console.log(`\ntook ${((performance.now() - began) / 1000).toFixed(0)} s`);
}

const ABOUT =
  'DEADLINE-n of JamaisVu on 256 nodes in 8 racks: half of the jobs have a deadline with a slack of n per cent of their running time, half are best effort; classes of jobs by k-means on running times of the Google trace, load 1.2. `p`, `p-u` and `jvusched` add pre-emption, back-off and decay to `jvusched-base`; `incby1` is `jvusched` with the other back-off; `oracle-told` is told running times. A job that admission refuses counts as missed. Intervals of 95 % by resampling seeds.';
const files = { path: options.json ?? pathOf('jamaisvu', partOf(options.part)), html: options.html };

if (options.worker) answerOrders(answerOf);
else if (options.draw) await drawAgain(files);
else await main();
