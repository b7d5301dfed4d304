import { InvalidArgumentError, type Command } from 'commander';
import type { Stragglers } from '../../drivers/sim/stragglers.ts';
import { lazily, type World } from '../context.ts';
import { between, durationS, instantMs, path, positive, setting, vcpuCount, whole } from '../options.ts';
import { MIGRATION_MB_PER_S } from '../../domain/config.ts';
import type { SimulateOptions } from '../flags/simulate-flags.ts';

/** Tail indices for which a Pareto distribution has a mean, and above which there are no stragglers to speak of. */
const [LEAST_BETA, MOST_BETA] = [1.01, 100];

function stragglers(text: string): Stragglers {
  const [, number = ''] = /^pareto:(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  const beta = Number(number);
  if (text === 'siblings') return text;
  if (number !== '' && beta >= LEAST_BETA && beta <= MOST_BETA) return { beta };
  throw new InvalidArgumentError(
    `Allowed: siblings, or pareto:BETA with a tail index from ${LEAST_BETA} (heavy) to ${MOST_BETA}, e.g. pareto:1.4.`,
  );
}

const list = (text: string): string[] => text.split(',').map((name) => name.trim());
const count = between(1, 10_000, 'a whole number', whole);
/** Limit above the size of any trace. */
const MOST_JOBS = 1_000_000_000;
const jobCount = between(1, MOST_JOBS, 'a whole number', whole);
const DAY_S = 86_400;
const upToADay = between(0, DAY_S, 'seconds', (text) => (text.trim() === '0' ? 0 : positive(text)));

/** Adds `simulate`. */
export function addSimulate(program: Command, world: World, finish: (code: number) => void): void {
  const command = program
    .command('simulate')
    .summary('what a workload would have cost on a market, under one policy or several')
    .description(
      'Runs the scheduler itself, with its policies and its ledger, on a virtual clock: what would this workload have cost, and which deadlines would have been missed?\n\nThe workload is a job file, a folder of them, a trace (docs/workloads.md lists the formats), or `synthetic:jobs=1000,perHour=60`. Traces without deadlines get some by a stated, seeded rule.',
    )
    .option(
      '--workload <path>',
      'job file, folder, trace, or synthetic:KEY=NUMBER,... (default: synthetic:jobs=200)',
      path,
    )
    .option('--replay <dir>', 'instead: the jobs that an engine ran in this --dir, decided anew on its terms')
    .option('--market <path>', 'market to replay: a file or folder (default: a generated one)', path)
    .option(
      '--cluster <machines>',
      'machines of your own, such as `256x{cpu: 4, memory: 16GiB, rack: 8}`: alone, or beside a --market (docs/cluster.md)',
    )
    .option(
      '--preset <name>',
      'which policies decide: see `ebb config --presets` (default: ebbtide; of a replay its own)',
    )
    .option('--compare <names>', 'several presets, separated by commas, on the same jobs and market', list)
    .option(
      '--from <time>',
      'where in the market the workload begins, ISO 8601 (default: after a week or more of prices; at the start of a market of less than two)',
      instantMs,
    )
    .option(
      '--to <time>',
      'when the simulation ends, finished or not, ISO 8601 (default: when the work or the market ends)',
      instantMs,
    )
    .option('--windows <n>', 'number of start times, spread evenly from --from to --to', count, 1)
    .option('--seeds <n>', 'number of seeds; each has its own market if it is generated', count, 1)
    .option('--seed <n>', 'the first seed (default: 1)', whole)
    .option('--scale <x>', 'factor of the arrivals; below 1 a fraction of them', positive)
    .option('--jobs-limit <n>', 'most jobs', jobCount)
    .option('--workload-option <key=value>', 'an option of the reader, may be repeated: see docs/workloads.md', setting)
    .option('--settings <file>', 'settings of the scheduler, and presets of your own, as YAML or JSON', path)
    .option('--set <key=value>', 'one setting of the scheduler, may be repeated: see `ebb config`', setting);
  addConditions(addServices(command))
    .option('--report <file>', 'write an HTML report with charts and a table of jobs', path)
    .option('--log <file>', 'write every event as a JSON line (one preset, one window, one seed)', path)
    .option('--dir <path>', 'where converted markets are kept', path, '.ebb')
    .option('--json', 'print the comparison as JSON; progress goes to standard error')
    .addHelpText(
      'after',
      '\nExamples:\n  $ ebb simulate\n  $ ebb simulate --workload jobs/ --compare ebbtide,on-demand,spot-fleet --seeds 5 --report report.html\n  $ ebb simulate --replay .ebb --preset greedy\n  $ ebb simulate --service service.yaml --rate 50 --for 12h --workload jobs/ --compare ebbtide,on-demand',
    )
    .action(lazily<SimulateOptions>(world, finish, async () => (await import('../actions/simulate.ts')).simulate));
}

const several = (text: string, before: readonly string[] | undefined): string[] => [...(before ?? []), path(text)];

/** Options of services and of what reaches them. */
function addServices(command: Command): Command {
  return command
    .option('--service <file>', 'a service file, may be repeated; without --workload no jobs run beside it', several)
    .option('--requests <file>', 'trace of the requests that reach each service (docs/services.md)', path)
    .option('--rate <rps>', 'mean requests per second: scales the trace; alone, a constant rate', positive)
    .option(
      '--for <duration>',
      'how long requests come, e.g. 6h (default: as long as the trace; a day with --rate)',
      durationS,
    )
    .option(
      '--request-time <seconds>',
      "time of a vCPU that a request takes (default: the replica's vCPUs over its capacity; without one 0.1)",
      positive,
    );
}

/** Options of what a run meets: limits and delays, attempts that straggle. */
function addConditions(command: Command): Command {
  return command
    .option('--vcpus <n>', 'most vCPUs running at once (default: 100000; of a replay its own)', vcpuCount)
    .option('--gap <seconds>', 'least time between two decisions (default: 5; of a replay its own)', upToADay)
    .option(
      '--setup <seconds>',
      'what every attempt needs before its work begins: image, inputs, checkpoint',
      upToADay,
      0,
    )
    .option(
      '--stragglers <kind>',
      'attempts differ: `pareto:BETA` draws each one, `siblings` draws later ones from their stage (default: none)',
      stragglers,
    )
    .option('--migration-rate <MB/s>', 'rate at which moves transfer memory', positive, MIGRATION_MB_PER_S);
}
