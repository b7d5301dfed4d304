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
import { parseArgs } from 'node:util';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { answerOf, type Order } from './jamaisvu/order.ts';
import { figuresOf, tablesOf } from './jamaisvu/table.ts';

const PRESETS = ['jvusched', 'jvusched-greedy', 'prio', 'oracle-told', 'jvusched-base', 'p', 'p-u', 'incby1'];

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    slacks: { type: 'string', default: '20,60,100,140,180' },
    seeds: { type: 'string', default: '3' },
    jobs: { type: 'string', default: '200' },
    load: { type: 'string', default: '1.2' },
    presets: { type: 'string', default: PRESETS.join(',') },
  },
});
const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';
const presets = options.presets.split(',');

await mainOf(
  {
    name: 'jamaisvu',
    title: 'JVuSched and its rivals',
    about:
      'DEADLINE-n of JamaisVu on 256 nodes in 8 racks: half of the jobs have a deadline with a slack of n per cent of their running time, half are best effort; classes of jobs by k-means on running times of the Google trace, load 1.2. `p`, `p-u` and `jvusched` add pre-emption, back-off and decay to `jvusched-base`; `incby1` is `jvusched` with the other back-off; `oracle-told` is told running times. A job that admission refuses counts as missed. Intervals of 95 % by resampling seeds.',
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf: (seeds) => {
      const of = { data, jobs: Number(options.jobs), load: Number(options.load) };
      const slacks = options.slacks.split(',').map(Number);
      return slacks.flatMap((slack) =>
        seeds.flatMap((seed) => presets.map((preset): Order => ({ ...of, slack, seed, preset }))),
      );
    },
    answerOf,
    labelOf: ({ slack }) => `slack ${slack}`,
    resultOf: (answers) => Promise.resolve({ figures: figuresOf(answers), tables: tablesOf(answers, presets) }),
  },
  options,
);
