import { type Command, Option } from 'commander';
import { lazily, type World } from '../context.ts';
import { path, whole } from '../options.ts';
import type {
  CostOptions,
  InstancesOptions,
  NeighboursOptions,
  PlansOptions,
  PoolsOptions,
} from '../flags/inventory-flags.ts';
import { COST_KEYS } from '../../domain/costs.ts';

/** Adds commands on capacity and money: cost, pools, instances, plans. */
export function addCapacity(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('cost')
    .summary('where the money went')
    .description('Where the money went: useful, wasted and idle, next to what on-demand would have cost.')
    .addOption(new Option('--by <what>', 'one row per').choices(COST_KEYS).default('job'))
    .addOption(
      new Option('--idle <how>', 'idle time: shared by the jobs that caused it, or apart in a row of its own')
        .choices(['shared', 'apart'])
        .default('shared'),
    )
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb cost --by owner\n  $ ebb cost --idle apart')
    .action(lazily<CostOptions>(world, finish, async () => (await import('../actions/inventory.ts')).cost));

  program
    .command('pools')
    .summary('list pools with their prices')
    .description('Lists pools (instance type, zone, purchase option), cheapest first, with the price now and its day.')
    .addOption(new Option('--option <option>', 'only').choices(['spot', 'on-demand', 'reserved']))
    .option('--zone <zone>', 'only this zone')
    .option('--type <type>', 'only this instance type')
    .addOption(new Option('--limit <n>', 'at most this many').argParser(whole).default(40))
    .addOption(
      new Option('--forecast', 'how likely spot pools are to be kept for a time, by bid, instead of prices').conflicts(
        'drift',
      ),
    )
    .addOption(
      new Option(
        '--drift [risk]',
        'how often instances were interrupted, against the forecasts that they were bought by: of any cause, or for want of capacity alone',
      )
        .choices(['any', 'capacity'])
        .preset('any'),
    )
    .option('--json', 'print as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  $ ebb pools --option spot --type c5.large\n  $ ebb pools --forecast --zone us-east-1a',
    )
    .action(lazily<PoolsOptions>(world, finish, async () => (await import('../actions/inventory.ts')).pools));

  program
    .command('instances')
    .summary('list instances held now, or all that were')
    .description('Lists the instances that are held now, with what runs on them and what they have cost.')
    .option('--all', 'those that have ended as well')
    .addOption(new Option('--limit <n>', 'at most this many').argParser(whole).default(100))
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb instances --all')
    .action(lazily<InstancesOptions>(world, finish, async () => (await import('../actions/inventory.ts')).instances));

  program
    .command('plans')
    .summary('list the latest decisions')
    .description('Lists the latest decisions: what each did, how it was found and how far from the bound it is.')
    .addOption(new Option('--limit <n>', 'at most this many').argParser(whole).default(10))
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb plans --limit 3')
    .action(lazily<PlansOptions>(world, finish, async () => (await import('../actions/inventory.ts')).plans));
}

/** Adds what was learned of programs that share machines. */
export function addNeighbours(program: Command, world: World, finish: (code: number) => void): void {
  const neighbours = program
    .command('neighbours')
    .summary('what was learned of programs that share machines')
    .description('Programs that share machines.');
  neighbours
    .command('export')
    .summary('write all of it, for another engine to begin with')
    .description(
      'Writes what was learned of programs that share machines to a file, for another engine to begin with: `ebb up --neighbours FILE`.',
    )
    .argument('<file>', 'file to write', path)
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb neighbours export neighbours.json')
    .action(lazily(world, finish, async () => (await import('../actions/inventory.ts')).exportNeighbours));
  neighbours
    .command('show')
    .summary('groups of programs, and how well they share machines')
    .description(
      'Shows what was learned of programs that share machines: groups that use them alike, how likely each is to be the next beside another, and how much longer it runs there.',
    )
    .option('--html <file>', 'write it as a page with heat maps that needs nothing else', path)
    .option('--json', 'print as JSON')
    .addHelpText('after', '\nExamples:\n  $ ebb neighbours show\n  $ ebb neighbours show --html neighbours.html')
    .action(lazily<NeighboursOptions>(world, finish, async () => (await import('../actions/inventory.ts')).neighbours));
}
