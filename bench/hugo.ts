/**
 * Mary, Hugo and Hugo* on the queues of their evaluation, against the order of submission, and ours.
 *   npm run bench:hugo -- [--part report|tune] [--seeds 20] [--presets a,b] [--procs 2] [--json FILE] [--html FILE]
 *   [--draw]
 *
 * Queues 1 and 2 (Mary, sections 4.1.3) and the learning phase begin without knowledge; the queue of unseen jobs comes
 * after the learning phase, queues 3 and 4 after both, and Hugo*'s arrivals are those of queue 3 (section 4.3.1). A job
 * has a gang of tasks on a quarter of all places; two tasks share a node. All have the same placement: empty nodes
 * first, then any with room, at random (section 4.1.3). Jobs, nodes and contention: bench/hugo/jobs.ts and
 * lib/drivers/sim/interference/contention.ts, with what is published and what is assumed.
 *
 * `best-order` is the order of submission of a queue in the best order that a search found (bench/hugo-bound.ts).
 *
 * Makespans are ratios of sums over seeds, with 95 % intervals by resampling seeds. Seeds 1 and up are for tuning
 * (`--part tune`), seeds 101 and up are reported.
 *
 * Writes bench/results/clusters/hugo.json (`--part tune`: out/hugo-tune.json), and a page, out/hugo.html.
 */
import { parseArgs } from 'node:util';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { answerOf, BEST, type Order } from './hugo/order.ts';
import { figuresOf, tablesOf } from './hugo/table.ts';

const PRESETS = ['fifo-random', 'round-robin', 'mary', 'hugo', 'hugo-star', 'hugo-star-once', 'good-neighbours', BEST];

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    seeds: { type: 'string', default: '20' },
    presets: { type: 'string', default: PRESETS.join(',') },
  },
});
const presets = options.presets.split(',');

const QUEUES: readonly Omit<Order, 'preset' | 'seed'>[] = [
  { queue: 'queue 1', after: [], arrivals: 'at-once' },
  { queue: 'queue 2', after: [], arrivals: 'at-once' },
  { queue: 'learning', after: [], arrivals: 'at-once' },
  { queue: 'unseen', after: ['learning'], arrivals: 'at-once' },
  { queue: 'queue 3', after: ['learning', 'unseen'], arrivals: 'at-once' },
  { queue: 'queue 4', after: ['learning', 'unseen'], arrivals: 'at-once' },
  { queue: 'queue 3', after: ['learning', 'unseen'], arrivals: 'constant' },
  { queue: 'queue 3', after: ['learning', 'unseen'], arrivals: 'arbitrary' },
];

await mainOf(
  {
    name: 'hugo',
    title: 'Order of jobs by their neighbours',
    about:
      'Queues of nine kinds of jobs on nodes that two jobs share, four jobs at once, with a model of contention for vCPUs, disk, network and memory bandwidth. Time from the first start to the last end, over that of the order of submission with the same placement; ratios of sums over seeds, with 95 % intervals by resampling seeds. Jobs are fitted to how long these queues took without the new schedulers on the papers’ cluster. `hugo-star-once` acts on the limit of waiting only once it is reached, as published; `good-neighbours` is ours. `best-order` is no scheduler: the best order of jobs that a search found which knew everything.',
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf: (seeds) =>
      QUEUES.flatMap((queue) =>
        seeds.flatMap((seed) =>
          presets
            .filter((preset) => preset !== BEST || queue.arrivals === 'at-once')
            .map((preset) => ({ ...queue, preset, seed })),
        ),
      ),
    answerOf,
    labelOf: ({ queue, arrivals }) => `${queue}, ${arrivals}`,
    resultOf: (answers) => Promise.resolve({ figures: figuresOf(answers), tables: tablesOf(answers, presets) }),
  },
  options,
);
