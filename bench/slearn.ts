/**
 * SLearn, 3Sigma and the others of SLearn's evaluation, on jobs and DAGs of the Google trace of 2011.
 *   npm run bench:slearn -- [--part report|tune] [--kinds jobs,dags,alibaba,tpch] [--seeds N] [--jobs 1250] [--load 1]
 *   [--presets a,b] [--procs 2] [--json FILE] [--html FILE] [--draw]
 * needs EBB_DATA_DIR (default ../shared/data) with google-2011.
 *
 * Jobs: those of at most 150 tasks, a slot per task. Earlier jobs are those of the first half of the trace (9.8 hours;
 * the paper has half a month); 1250 jobs are drawn from the second half and their arrivals stretched to the load, on
 * 150 slots (section 4.3). All presets go on learning while they run. DAGs: jobs of one user and name in a row as two
 * to five stages (section 6), and those of Alibaba 2018 (stages of at
 * most 150 tasks) and of TPC-H on Spark (at most 1000, in waves).
 *
 * Errors: of the wide jobs of the second half, one by one in the order of arrival; a job counts for one part by the
 * hash of its key. Mean completion times are ratios of sums over all jobs, with 95 % intervals by resampling seeds.
 * Seeds 1 to 3 are for tuning (`--part tune`), seeds 101 to 103 are reported.
 *
 * Writes bench/results/clusters/slearn.json (`--part tune`: out/slearn-tune.json), and a page, out/slearn.html.
 */
import { parseArgs } from 'node:util';
import { hash32 } from '../lib/kernel/random.ts';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { errorsOf } from './slearn/accuracy.ts';
import { answerOf, type Order } from './slearn/order.ts';
import { errorTable, figuresOf, tablesOf } from './slearn/table.ts';
import { allJobs, KINDS, type Kind } from './slearn/work.ts';

const PRESETS = [
  'slearn',
  '3sigma',
  '3sigma-tl',
  'point-est',
  'las',
  'fifo',
  'oracle',
  'srpt',
  'srpt-fused',
  'srpt-oracle',
  'ebbtide',
];
const SLOTS = 150;

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    kinds: { type: 'string', default: 'jobs,dags,alibaba,tpch' },
    seeds: { type: 'string', default: '3' },
    jobs: { type: 'string', default: '1250' },
    load: { type: 'string', default: '1' },
    presets: { type: 'string', default: PRESETS.join(',') },
  },
});
const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';
const presets = options.presets.split(',');

function kindOf(text: string): Kind {
  const kind = KINDS.find((k) => k === text);
  if (kind !== undefined) return kind;
  throw new Error(`--kinds takes ${KINDS.join(', ')}; got ${text}`);
}

await mainOf(
  {
    name: 'slearn',
    title: 'SLearn and its rivals',
    about:
      'Jobs of the Google trace of 2011 of at most 150 tasks, a slot each, on 150 slots at a load of 1; the first 9.8 hours are known, jobs of the next 9.8 are run, and all presets go on learning. DAGs: jobs of one user and name as two to five stages. Completion times are ratios of sums over jobs, with 95 % intervals by resampling seeds. `oracle` and `srpt-oracle` are `3sigma` and `srpt` that are told the mean of each stage. `srpt-fused` is ours.',
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf: (seeds) => {
      const of = { data, slots: SLOTS, jobs: Number(options.jobs), load: Number(options.load) };
      return options.kinds
        .split(',')
        .flatMap((kind) =>
          seeds.flatMap((seed) => presets.map((preset): Order => ({ ...of, kind: kindOf(kind), seed, preset }))),
        );
    },
    answerOf,
    labelOf: ({ kind }) => kind,
    resultOf: async (answers, part) => {
      const { jobs, half } = await allJobs(data);
      const fromS = jobs[half]?.submittedS ?? 0;
      const mine = part === 'report' ? 1 : 0;
      const errors = errorsOf(jobs, (j) => j.submittedS >= fromS && hash32(j.key) % 2 === mine, 1);
      return { figures: figuresOf(answers, errors), tables: [errorTable(errors), ...tablesOf(answers, presets)] };
    },
  },
  options,
);
