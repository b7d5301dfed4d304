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
import { parseArgs } from 'node:util';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { answerOf } from './hopper/order.ts';
import { figuresOf, tablesOf } from './hopper/table.ts';

const PRESETS = ['srpt', 'srpt-speculation', 'fair-speculation', 'hopper', 'hopper-unfair', 'srpt-copies'];

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    betas: { type: 'string', default: '1.1,1.3,1.5,1.7,1.9' },
    loads: { type: 'string', default: '0.8,1.1' },
    seeds: { type: 'string', default: '5' },
    jobs: { type: 'string', default: '120' },
    presets: { type: 'string', default: PRESETS.join(',') },
  },
});
const presets = options.presets.split(',');
const numbers = (text: string): readonly number[] => text.split(',').map(Number);

await mainOf(
  {
    name: 'hopper',
    title: 'Hopper and its rivals',
    about:
      'Jobs of one to three phases of 2 to 600 tasks on 50 machines of 4 slots. Every attempt takes a minute on average, from a Pareto distribution of index beta. Load: demand of all tasks without copies over the slots. Completion times are ratios of sums over jobs, with 95 % intervals by resampling seeds. Wasted: part of the slot time whose results were thrown away. `hopper-unfair` is `hopper` with epsilon 1, `srpt-copies` is ours.',
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf: (seeds) =>
      numbers(options.loads).flatMap((load) =>
        numbers(options.betas).flatMap((beta) =>
          seeds.flatMap((seed) => presets.map((preset) => ({ preset, beta, load, seed, jobs: Number(options.jobs) }))),
        ),
      ),
    answerOf,
    labelOf: ({ beta, load }) => `beta ${beta}, load ${load}`,
    resultOf: (answers) => Promise.resolve({ figures: figuresOf(answers), tables: tablesOf(answers, presets) }),
  },
  options,
);
