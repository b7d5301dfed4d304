/**
 * Hopper and the schedulers that it was compared with, on a cluster with stragglers.
 *   npm run bench:hopper -- [--part report|tune] [--betas 1.1,1.3,...] [--loads 0.8,1.1] [--seeds N] [--jobs 120]
 *   [--presets a,b] [--procs 2] [--json FILE] [--html FILE] [--draw]
 *
 * Work: jobs of one to three phases, each of 2 to 600 tasks (bench/hopper/work.ts). Every attempt of a task takes a
 * minute on average, drawn from a Pareto distribution of index beta: a copy of a task draws anew. 50 machines of 4
 * slots. Load is the mean demand of the tasks without copies over the slots. A decision at each event, at least one
 * second apart, and every 15 s. Running times are not known beforehand; the mean is, as a guess of the job file.
 *
 * Mean completion times are ratios of sums over all jobs, with 95 % intervals by resampling seeds. Seeds 1 to 5 are for
 * tuning (`--part tune`), seeds 101 to 105 are reported.
 *
 * Writes bench/results/clusters/hopper.json (`--part tune`: out/hopper-tune.json), and a page, out/hopper.html.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { answerOf, type Answer, type Order } from './hopper/order.ts';
import { figuresOf, tablesOf } from './hopper/table.ts';
import { drawAgain, keep, partOf, pathOf } from './cluster/results.ts';
import { machine } from './figures.ts';
import { answerOrders, inProcesses } from './processes.ts';
import { stamp } from './record.ts';

const PRESETS = ['srpt', 'srpt-speculation', 'fair-speculation', 'hopper', 'hopper-unfair', 'srpt-copies'];

const { values: options } = parseArgs({
  options: {
    part: { type: 'string', default: 'report' },
    betas: { type: 'string', default: '1.1,1.3,1.5,1.7,1.9' },
    loads: { type: 'string', default: '0.8,1.1' },
    seeds: { type: 'string', default: '5' },
    jobs: { type: 'string', default: '120' },
    presets: { type: 'string', default: PRESETS.join(',') },
    procs: { type: 'string', default: '2' },
    json: { type: 'string' },
    html: { type: 'string', default: 'out/hopper.html' },
    draw: { type: 'boolean', default: false },
    worker: { type: 'boolean', default: false },
  },
});

const numbers = (text: string): readonly number[] => text.split(',').map(Number);

function ordersOf(first: number): readonly Order[] {
  const seeds = Array.from({ length: Number(options.seeds) }, (_, i) => first + i);
  return numbers(options.loads).flatMap((load) =>
    numbers(options.betas).flatMap((beta) =>
      seeds.flatMap((seed) =>
        options.presets.split(',').map((preset) => ({ preset, beta, load, seed, jobs: Number(options.jobs) })),
      ),
    ),
  );
}

async function main(): Promise<void> {
  const began = performance.now();
  const part = partOf(options.part);
  console.log(machine());
  const orders = ordersOf(part === 'report' ? 101 : 1);
  const crew = { script: fileURLToPath(import.meta.url), procs: Number(options.procs) };
  const answers = await inProcesses<Order, Answer>(crew, orders, ({ preset, beta, load, seed, figures }, done) => {
    const took = `${figures.tookS.toFixed(1)} s`;
    console.error(`${done} of ${orders.length}: ${preset}, beta ${beta}, load ${load}, seed ${seed}: ${took}`);
  });
  const command = `npm run bench:hopper${part === 'tune' ? ' -- --part tune' : ''}`;
  const tables = tablesOf(answers, options.presets.split(','));
  const record = { title: TITLE, about: ABOUT, command, part, ...stamp(), figures: figuresOf(answers), tables };
  await keep(record, files);
  console.log(`\ntook ${((performance.now() - began) / 1000).toFixed(0)} s`);
}

const TITLE = 'Hopper and its rivals';
const ABOUT =
  'Jobs of one to three phases of 2 to 600 tasks on 50 machines of 4 slots. Every attempt takes a minute on average, from a Pareto distribution of index beta. Load: demand of all tasks without copies over the slots. Completion times are ratios of sums over jobs, with 95 % intervals by resampling seeds. Wasted: part of the slot time whose results were thrown away. `hopper-unfair` is `hopper` with epsilon 1, `srpt-copies` is ours.';
const files = {
  path: options.json ?? pathOf('hopper', partOf(options.part)),
  html: options.html,
};

if (options.worker) answerOrders(answerOf);
else if (options.draw) await drawAgain(files);
else await main();
