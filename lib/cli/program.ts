import { Command } from 'commander';
import { addCapacity } from './commands/capacity.ts';
import { addJobs } from './commands/jobs.ts';
import { addModels } from './commands/models.ts';
import { addRunning } from './commands/running.ts';
import { addSettings } from './commands/settings.ts';
import { addSimulate } from './commands/simulate.ts';
import { DEFAULT_URL, type World } from './context.ts';
import { VERSION } from '../local/version.ts';

export interface ProgramParts {
  readonly world: World;
  /** Gets the exit code of the command that ran. */
  readonly finish: (code: number) => void;
  /** Load the commands that others need not wait for: `market` draws in a charting library. */
  readonly whole: boolean;
}

/** The command tree: options and texts only. What a command does is loaded when it runs. */
export async function buildProgram({ world, finish, whole }: ProgramParts): Promise<Command> {
  const program = new Command('ebb')
    .description(
      'Ebbtide runs batch jobs on capacity that ebbs and flows in price and availability: deadlines met at the lowest cost, every decision explained, every cent accounted for.',
    )
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'show help for a command')
    .option('--url <url>', `address of the engine (default: EBB_URL, or ${DEFAULT_URL})`)
    .option('--token <token>', 'token of the engine (default: EBB_TOKEN), or of a --stack whose `auth` is jwt')
    .option('--stack <name>', 'a deployment on AWS, by its CloudFormation stack (default: EBB_STACK)')
    .option('--profile <name>', 'AWS profile whose credentials sign requests to --stack')
    .option('--region <name>', 'AWS region of --stack')
    .option('--no-color', 'no colours, no live display (also: NO_COLOR=1)')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({
      writeOut: (text) => void world.stdout.write(text),
      // Errors are written once, in the common form, by main.ts.
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
  program.commandsGroup('See capacity and money:');
  addCapacity(program, world, finish);
  await addMarket(program, whole);
  addModels(program, world, finish);
  program.commandsGroup('Settings:');
  addSettings(program, world, finish);
  await addCompletion(program, whole);
  for (const command of allCommands(program)) command.copyInheritedSettings(program);
  return program;
}

const MARKET_SUMMARY = 'import, generate or show markets';
const COMPLETION_SUMMARY = 'print a completion script for bash, zsh, fish or powershell';

async function addMarket(program: Command, whole: boolean): Promise<void> {
  if (!whole) {
    program.command('market').summary(MARKET_SUMMARY);
    return;
  }
  const { marketCommand } = await import('./commands/market.ts');
  program.addCommand(marketCommand().summary(MARKET_SUMMARY));
}

async function addCompletion(program: Command, whole: boolean): Promise<void> {
  if (!whole) {
    program.command('completion').summary(COMPLETION_SUMMARY);
    return;
  }
  // The library adds `completion SHELL` and a hidden `complete` that the scripts call.
  const { default: tab } = await import('@bomb.sh/tab/commander');
  tab(program, { completionCommandName: 'completion' });
  program.commands
    .find((c) => c.name() === 'completion')
    ?.summary(COMPLETION_SUMMARY)
    .addHelpText('after', '\nExample:\n  $ source <(ebb completion bash)');
}

const allCommands = (command: Command): Command[] => command.commands.flatMap((c) => [c, ...allCommands(c)]);
