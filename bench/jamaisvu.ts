/**
 * JVuSched, strict priority and an oracle, in the setting of JamaisVu's simulations (section 5): 256 nodes in 8 racks.
 *   npm run bench:jamaisvu -- [--part report|tune] [--show deadlines,mixed,delays,errors] [--slacks 20,60,140]
 *   [--seeds N] [--jobs 80] [--load 1.2] [--presets a,b] [--procs 2] [--json FILE] [--html FILE] [--draw]
 * needs EBB_DATA_DIR (default ../shared/data) with google-2011.
 *
 * Work (table 3): DEADLINE-n, half of the jobs have a deadline with a slack of n per cent of the running time; EXP1 to
 * EXP3, those have hard or soft constraints to half of the nodes, and run 1.5 or 1.4 times as long elsewhere. The
 * other half is best effort. Jobs come from classes of the Google trace, which k-means on running times finds: a class
 * by its weight, features and number of tasks of one of its jobs, a running time from its log-normal. A task has a
 * node. 2000 jobs of the same kind are known before. The plan looks ten minutes ahead, and decides at each event and
 * every ten seconds.
 *
 * `p`, `p-u` and `jvusched` add pre-emption, back-off of under-estimates and decay of over-estimates to `jvusched-base`
 * (figure 14, over the time that a stopped task keeps its place); `told-p` to `oracle-told` do the same with running
 * times from the job file that are off by a factor (figure 15); `incby1` is `jvusched` with the other back-off (figure
 * 16). No job is refused. Seeds 1 to 3 are for tuning (`--part tune`), seeds 101 to 103 are
 * reported; intervals resample seeds.
 *
 * Writes bench/results/clusters/jamaisvu.json (`--part tune`: out/jamaisvu-tune.json), and a page, out/jamaisvu.html.
 */
import { parseArgs } from 'node:util';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { answerOf, type Answer, type Order } from './jamaisvu/order.ts';
import { figuresOf, tablesOf, type Part } from './jamaisvu/table.ts';

const PRESETS = ['jvusched', 'jvusched-greedy', 'prio', 'oracle-told', 'jvusched-base', 'p', 'p-u', 'incby1'];

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    show: { type: 'string', default: 'deadlines,mixed,delays,errors' },
    slacks: { type: 'string', default: '20,60,140' },
    seeds: { type: 'string', default: '3' },
    jobs: { type: 'string', default: '80' },
    load: { type: 'string', default: '1.2' },
    presets: { type: 'string' },
  },
});

type Conditions = Pick<Order, 'work' | 'delayS' | 'error'>;
const plain = (work: string): Conditions => ({ work, delayS: 0, error: 0 });
const only = (presets: readonly string[]): readonly string[] => options.presets?.split(',') ?? presets;

/** Parts of the report. The last two have one slack each, of the paper's middle ones. */
const PARTS: readonly (Omit<Part, 'answers'> & {
  readonly show: string;
  readonly conditions: readonly Conditions[];
})[] = [
  {
    show: 'deadlines',
    title: 'Deadlines (DEADLINE-n)',
    presets: only(PRESETS),
    xName: 'slack of',
    xOf: ({ work }) => `${work.replace('DEADLINE-', '')} %`,
    isMain: true,
    conditions: options.slacks.split(',').map((slack) => plain(`DEADLINE-${slack}`)),
  },
  {
    show: 'mixed',
    title: 'Deadlines and constraints (EXP1 to EXP3)',
    presets: only(['jvusched', 'jvusched-greedy', 'prio', 'oracle-told']),
    xName: 'workload',
    xOf: ({ work }) => work,
    isMain: true,
    conditions: ['EXP1', 'EXP2', 'EXP3'].map(plain),
  },
  {
    show: 'delays',
    title: 'Time until the place of stopped work is free',
    presets: only(['p', 'jvusched', 'oracle-told']),
    xName: 'delay of',
    xOf: ({ delayS }) => `${delayS} s`,
    isMain: false,
    conditions: [0, 60, 180].map((delayS) => ({ ...plain('DEADLINE-60'), delayS })),
  },
  {
    show: 'errors',
    title: 'Estimates off by a factor',
    presets: only(['told-p', 'told-p-u', 'told-p-o', 'oracle-told']),
    xName: 'error of',
    xOf: ({ error }) => `${100 * error} %`,
    isMain: false,
    conditions: [-0.5, 0, 1].map((error) => ({ ...plain('DEADLINE-60'), error })),
  },
];
const shown = PARTS.filter(({ show }) => options.show.split(',').includes(show));

const keyOf = ({ work, delayS, error, preset }: Conditions & { readonly preset: string }): string =>
  `${preset} ${work} ${delayS} ${error}`;

/** Each combination of preset and conditions once: parts share some. */
function ordersOf(seeds: readonly number[]): readonly Order[] {
  const of = {
    data: process.env['EBB_DATA_DIR'] ?? '../shared/data',
    jobs: Number(options.jobs),
    load: Number(options.load),
  };
  const runs = shown.flatMap(({ conditions, presets }) =>
    conditions.flatMap((c) => presets.map((preset) => ({ ...c, preset }))),
  );
  const once = new Map(runs.map((run) => [keyOf(run), run]));
  return [...once.values()].flatMap((run) => seeds.map((seed): Order => ({ ...of, ...run, seed })));
}

function answersOf({ conditions, presets }: (typeof PARTS)[number], answers: readonly Answer[]): readonly Answer[] {
  const wanted = new Set(conditions.flatMap((c) => presets.map((preset) => keyOf({ ...c, preset }))));
  const order = new Map(conditions.map((c, i) => [`${c.work} ${c.delayS} ${c.error}`, i]));
  const rank = ({ work, delayS, error }: Answer): number => order.get(`${work} ${delayS} ${error}`) ?? 0;
  return answers.filter((a) => wanted.has(keyOf(a))).sort((a, b) => rank(a) - rank(b));
}

await mainOf(
  {
    name: 'jamaisvu',
    title: 'JVuSched and its rivals',
    about:
      'Workloads of JamaisVu on 256 nodes in 8 racks, at a load of 1.2: half of the jobs have a deadline with some slack, half are best effort; classes of jobs by k-means on running times of the Google trace. In EXP1 to EXP3 jobs with a deadline have hard or soft constraints to half of the nodes. `p`, `p-u` and `jvusched` add pre-emption, back-off and decay to `jvusched-base`; `incby1` is `jvusched` with the other back-off; `oracle-told` is told running times. No job is refused. Intervals of 95 % by resampling seeds.',
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf,
    answerOf,
    labelOf: ({ work, delayS, error }) => `${work}, delay ${delayS} s, error ${error}`,
    resultOf: (answers) => {
      const parts = shown.map((part): Part => ({ ...part, answers: answersOf(part, answers) }));
      const compared = parts.filter(({ isMain }) => isMain);
      return Promise.resolve({ figures: compared.flatMap(figuresOf), tables: parts.flatMap(tablesOf) });
    },
  },
  options,
);
