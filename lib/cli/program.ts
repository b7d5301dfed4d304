import { Command, Option } from 'commander';
import { addCapacity, addNeighbours } from './commands/inventory-commands.ts';
import { addCompletion } from './commands/completion-commands.ts';
import { addJobs } from './commands/job-commands.ts';
import { addModels } from './commands/model-commands.ts';
import { addRunning } from './commands/engine-commands.ts';
import { addSettings } from './commands/settings-command.ts';
import { addSimulate } from './commands/simulate-command.ts';
import { addServices } from './commands/service-commands.ts';
import { addUpkeep } from './commands/upkeep-commands.ts';
import { DEFAULT_URL, type World } from './context.ts';
import { EbbError } from '../kernel/errors.ts';
import { VERSION } from '../drivers/local/engine/version.ts';

export interface ProgramParts {
  readonly world: World;
  /** Called with the exit code of the command. */
  readonly finish: (code: number) => void;
  /** True to load heavy commands too: `market` loads a charting library. */
  readonly whole: boolean;
}

/** Command tree: options and texts only. The code of a command is loaded when it runs. */
export async function buildProgram({ world, finish, whole }: ProgramParts): Promise<Command> {
  const program = new Command('ebb')
    .description(
      'Ebbtide runs batch jobs and services on capacity that ebbs and flows in price and availability: deadlines and latency targets met at the lowest cost, every decision explained, every cent accounted for.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .option('--url <url>', `address of the engine (default: EBB_URL, or ${DEFAULT_URL})`)
    .option(
      '--token-file <file>',
      'file with the token of the engine (default: EBB_TOKEN, or the file that an engine of yours keeps), or of a --stack whose `auth` is jwt',
    )
    .addOption(new Option('--token <token>').argParser(refuseToken).hideHelp())
    .option('--stack <name>', 'a deployment on AWS, by its CloudFormation stack (default: EBB_STACK)')
    .option('--profile <name>', 'AWS profile whose credentials sign requests to --stack')
    .option('--region <name>', 'AWS region of --stack')
    .option('--no-color', 'no colours, no live display (also: NO_COLOR=1)')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({
      writeOut: (text) => void world.stdout.write(text),
      // main.ts prints each error once, in the common form.
      writeErr: () => undefined,
      outputError: () => undefined,
    })
    .exitOverride()
    .addHelpText('after', '\nFirst steps:\n  $ ebb run examples/hello.yaml --speed 60\n  $ ebb run --help');
  program.commandsGroup('Run jobs:');
  addRunning(program, world, finish);
  addSimulate(program, world, finish);
  program.commandsGroup('Work with jobs (of an engine started with `ebb up`):');
  addJobs(program, world, finish);
  program.commandsGroup('Run services (on such an engine):');
  addServices(program, world, finish);
  program.commandsGroup('See capacity and money:');
  addCapacity(program, world, finish);
  addNeighbours(program, world, finish);
  await addMarket(program, whole);
  addModels(program, world, finish);
  program.commandsGroup('Keep an engine\u2019s folder:');
  addUpkeep(program, world, finish);
  program.commandsGroup('Settings:');
  addSettings(program, world, finish);
  addCompletion(program, world, finish);
  for (const command of allCommands(program)) command.copyInheritedSettings(program);
  return program;
}

/** Refuses a token on the command line, which every user of the machine can read. */
function refuseToken(): never {
  throw new EbbError('usage', {
    what: 'a token on the command line is seen by everybody on this machine',
    got: '--token',
    allowed: '--token-file FILE, or the environment variable EBB_TOKEN',
    next: 'write the token to a file that only you can read; for an engine of your own leave it out: `ebb` finds it',
  });
}

const MARKET_SUMMARY = 'import, generate or show markets';

async function addMarket(program: Command, whole: boolean): Promise<void> {
  if (!whole) {
    program.command('market').summary(MARKET_SUMMARY);
    return;
  }
  const { marketCommand } = await import('./commands/market-commands.ts');
  program.addCommand(marketCommand().summary(MARKET_SUMMARY));
}

const allCommands = (command: Command): Command[] => command.commands.flatMap((c) => [c, ...allCommands(c)]);
