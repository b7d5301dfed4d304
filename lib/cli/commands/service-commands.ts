import { type Command, Option } from 'commander';
import { lazily, type World } from '../context.ts';
import { durationS, path, positive, whole } from '../options.ts';
import type { ApplyOptions, LoadFlags, ServiceLogsOptions } from '../flags/service-flags.ts';

/** Adds `service` with its commands (apply, list, status, watch, explain, scale, logs, delete), and `load`. */
export function addServices(program: Command, world: World, finish: (code: number) => void): void {
  const service = program
    .command('service')
    .summary('run HTTP services with a latency target, beside jobs')
    .description(
      'Runs HTTP services: so many replicas as their load needs, on the cheapest capacity that keeps their latency target, checked, replaced and updated without a failed request.',
    )
    .addHelpText('after', '\nExample:\n  $ ebb service apply examples/service/service.yaml\n  $ ebb service watch web');

  service
    .command('apply')
    .summary('make services be as their files say')
    .description(
      'Makes services be as their files say: new ones begin; of changed ones new replicas take the place of the others, and the earlier revision comes back if they do not get healthy. The same file again changes nothing.',
    )
    .argument('<file...>', 'service files: YAML (several with `---` between them) or JSON; - reads standard input')
    .option('--wait', 'wait until all replicas are healthy; exit code 3 if the update is rolled back or fails')
    .option('--json', 'print the answers as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb service apply web.yaml --wait')
    .action(lazily<ApplyOptions>(world, finish, async () => (await load()).apply));

  service
    .command('list')
    .summary('list services')
    .description('Lists services, by name.')
    .option('--json', 'print as JSON')
    .action(lazily<object>(world, finish, async () => (await load()).list));

  addQuestions(service, world, finish);
  addChanges(service, world, finish);
  addLoad(program, world, finish);
}

const load = async () => import('../actions/services.ts');

/** A command on one service. */
const naming =
  (service: Command) =>
  (name: string, summary: string, description: string): Command =>
    service.command(name).summary(summary).description(description).argument('<service>', 'name');

function addQuestions(service: Command, world: World, finish: (code: number) => void): void {
  const named = naming(service);
  named(
    'status',
    'show one service: replicas, load, latency, cost',
    'Shows one service: replicas, load, latency, cost.',
  )
    .option('--json', 'print as JSON')
    .action(lazily<object>(world, finish, async () => (await load()).status));

  named('watch', 'follow one service, live', 'Follows one service until Ctrl-C. Stopping to watch stops nothing else.')
    .option('--json', 'print its state as JSON, one line for each monitoring period')
    .action(lazily<object>(world, finish, async () => (await load()).watch));

  named(
    'explain',
    'why so many replicas, and why each is where it is',
    'Says why so many replicas are wanted, and for each replica why it waits or runs where it runs.',
  )
    .option('--json', 'print as JSON')
    .action(lazily<object>(world, finish, async () => (await load()).explain));
}

function addChanges(service: Command, world: World, finish: (code: number) => void): void {
  const named = naming(service);
  named(
    'scale',
    'set the number of replicas',
    'Sets the number of replicas, in place of the scaling policy; `auto` lets the policy decide again.',
  )
    .argument('<replicas>', 'a number up to `max` of the service file, or `auto`')
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb service scale web 5\n  $ ebb service scale web auto')
    .action(lazily<object>(world, finish, async () => (await load()).scale));

  named('logs', "print a replica's output", 'Prints what a replica wrote.')
    .addOption(new Option('--replica <n>', 'number of the replica (default: the newest)').argParser(whole))
    .option('--stderr', 'standard error instead of standard output')
    .option('-f, --follow', 'follow the replica until it ends')
    .option('--json', 'print as JSON')
    .action(lazily<ServiceLogsOptions>(world, finish, async () => (await load()).logs));

  named('delete', 'drain and end all replicas', 'Drains and ends all replicas, and forgets the service.')
    .option('--json', 'print as JSON')
    .action(lazily<object>(world, finish, async () => (await load()).remove));
}

function addLoad(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('load')
    .summary('send requests to a service and measure the answers')
    .description(
      'Sends requests to a service of the engine, or to any address, at a rate that does not depend on the answers, and says how they were answered. With --trace the rate follows a request trace, at the speed of the engine: with `ebb up --speed 60` a minute of the trace takes a second.',
    )
    .argument('<target>', 'name of a service, or a URL')
    .option('--trace <path>', 'request trace: a CSV file, or a folder with one (docs/workloads.md)', path)
    .addOption(
      new Option('--rate <rps>', 'mean requests per second (default: 10, or that of the trace)').argParser(positive),
    )
    .option(
      '--for <time>',
      'how long, on the wall: 30s, 10m (default: the length of the trace, or until Ctrl-C)',
      durationS,
    )
    .addOption(
      new Option('--speed <n>', 'seconds of the trace per second on the wall (default: as the engine)').argParser(
        positive,
      ),
    )
    .option('--path <path>', 'path of each request', '/')
    .addOption(new Option('--seed <n>', 'seed of the arrivals').argParser(whole).default(39))
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  $ ebb load web --rate 40 --for 1m\n  $ ebb load web --trace data/clarknet --rate 125',
    )
    .action(lazily<LoadFlags>(world, finish, async () => (await import('../actions/load.ts')).load));
}
