import { type Command, Option } from 'commander';
import { lazily, type World } from '../context.ts';
import { whole } from '../options.ts';
import type { ApplyOptions, ServiceLogsOptions } from '../flags/service-flags.ts';

/** Adds `service` with its commands: apply, list, status, watch, explain, scale, logs, delete. */
export function addServices(program: Command, world: World, finish: (code: number) => void): void {
  const service = program
    .command('service')
    .summary('run HTTP services with a latency target, beside jobs')
    .description(
      'Runs HTTP services: so many replicas as their load needs, on the cheapest capacity that keeps their latency target, checked, replaced and updated without a failed request.',
    )
    .addHelpText('after', '\nExample:\n  $ ebb service apply examples/service/service.yaml\n  $ ebb service watch web');
  const load = async () => import('../actions/services.ts');

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

  const named = (name: string, summary: string, description: string): Command =>
    service.command(name).summary(summary).description(description).argument('<service>', 'name');

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
