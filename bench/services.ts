/**
 * A service and jobs on one system, against two systems: what sharing one acquirer and one footprint saves.
 *   npm run bench:services -- [--part report|tune] [--years 2016] [--requests clarknet] [--minutes 1000] [--rps 125]
 *   [--jobs-per-hour 20] [--seeds 3] [--systems joint,separate,joint-on-demand] [--procs 2] [--json FILE] [--html FILE]
 *   [--draw]
 * needs EBB_DATA_DIR (default ../shared/data) with web-requests and the price histories of those years.
 *
 * The product's own controller, engine and default preset, in the simulator. Requests of 0.1 s of a vCPU, a target of
 * 95 % within a second, replicas of one vCPU; jobs of the synthetic workload (half of the tasks below 20 minutes, one
 * in six above an hour). Instances start in 30 to 160 s, and are billed as they were at that time. Costs are ratios of
 * sums over starts, with 95 % intervals by resampling starts. `--part tune` runs on prices of 2015.
 *
 * Writes bench/results/clusters/services.json (`--part tune`: out/services-tune.json), and out/services.html.
 */
import { parseArgs } from 'node:util';
import { mainOf, OPTIONS } from './cluster/main.ts';
import { answerOf, type Order, type System } from './services/order.ts';
import { figuresOf, tablesOf } from './services/table.ts';

const { values: options } = parseArgs({
  options: {
    ...OPTIONS,
    years: { type: 'string' },
    requests: { type: 'string', default: 'clarknet' },
    minutes: { type: 'string', default: '1000' },
    rps: { type: 'string', default: '125' },
    'jobs-per-hour': { type: 'string', default: '20' },
    seeds: { type: 'string', default: '3' },
    systems: { type: 'string', default: 'joint,separate,joint-on-demand' },
  },
});
const data = process.env['EBB_DATA_DIR'] ?? '../shared/data';
const years = (options.years ?? (options.part === 'tune' ? '2015' : '2016')).split(',');

await mainOf(
  {
    name: 'services',
    title: 'A service and jobs on one system',
    about:
      'The default preset in the simulator: a service (requests of 0.1 s of a vCPU, 95 % of them wanted within a second, replicas of one vCPU) and a synthetic mix of jobs, on one system and on two, for the first 1,000 minutes of the trace. Costs are ratios of sums over starts, with 95 % intervals by resampling starts.',
    url: import.meta.url,
    seeds: Number(options.seeds),
    ordersOf: (seeds) => {
      const of = { data, minutes: Number(options.minutes), rps: Number(options.rps), starts: seeds.length };
      return years.flatMap((year) =>
        options.requests.split(',').flatMap((requests) =>
          seeds.flatMap((seed, start) =>
            (options.systems.split(',') as System[]).map((preset): Order => ({
              ...{ ...of, year, requests, seed, start, preset },
              jobsPerHour: Number(options['jobs-per-hour']),
            })),
          ),
        ),
      );
    },
    answerOf,
    labelOf: ({ year, requests }) => `${year} ${requests}`,
    resultOf: (answers) => Promise.resolve({ figures: figuresOf(answers), tables: tablesOf(answers) }),
  },
  options,
);
