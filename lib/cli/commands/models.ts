import type { Command } from 'commander';
import { lazily, type World } from '../context.ts';

interface DirOptions {
  readonly dir: string;
}
export type ListOptions = DirOptions;
export type ShowOptions = DirOptions;
export interface UseOptions extends DirOptions {
  readonly rollback?: boolean;
  readonly why?: string;
}

const actions = () => import('../actions/models.ts');

/** Adds `models`: trained forecasts of price losses, their versions and their life. */
export function addModels(program: Command, world: World, finish: (code: number) => void): void {
  const models = program
    .command('models')
    .summary('trained forecasts: list, judge, train and choose versions')
    .description(
      'Versions of the trained model that forecasts how likely a bid is lost. Some came with the program; an engine’s directory can have its own, trained on its own market. `ebb up --set forecast=model` (also `run` and `simulate`) asks the version in use.',
    );
  addLooking(models, world, finish);
  addChoosing(models, world, finish);
}

/** What every command here has: which directory’s versions, history and choices. */
export const ofDirectory = (command: Command): Command =>
  command
    .option('--dir <path>', 'directory of the engine: its versions, its choices, its market', '.ebb')
    .option('--json', 'print as JSON');

function addLooking(models: Command, world: World, finish: (code: number) => void): void {
  ofDirectory(
    models
      .command('list')
      .summary('versions, what they were trained on and how good they are')
      .description(
        'Lists the versions that came with the program and those of the directory, with the figures that each was found to have on its held-out range (lost within the hour; 95 % intervals with `show`).',
      ),
  )
    .addHelpText('after', '\nExample:\n  $ ebb models list')
    .action(lazily<ListOptions>(world, finish, async () => (await actions()).list));

  ofDirectory(
    models
      .command('show')
      .summary('one version: where it comes from, whether it is whole, how good it is')
      .description(
        'Shows a version: what it was trained on, its horizons and features, its figures; checks the hash of its file and that it answers here what it answered where it was trained.',
      )
      .argument('[version]', 'version (default: the one in use)'),
  )
    .addHelpText('after', '\nExamples:\n  $ ebb models show\n  $ ebb models show 2026-11-21-trees --json')
    .action(lazily<ShowOptions>(world, finish, async () => (await actions()).show));
}

function addChoosing(models: Command, world: World, finish: (code: number) => void): void {
  ofDirectory(
    models
      .command('use')
      .summary('choose which version `forecast=model` means, or take the last choice back')
      .description(
        'Records which version `--set forecast=model` means in this directory from now on. A running engine takes it up with its next decision. With --rollback the choice before is in force again; before the first one it is the newest version that came with the program.',
      )
      .argument('[version]', 'version to use'),
  )
    .option('--rollback', 'take the last choice back')
    .option('--why <text>', 'reason, kept with the choice')
    .addHelpText(
      'after',
      '\nExamples:\n  $ ebb models use 2026-11-21-trees --why "better on our pools"\n  $ ebb models use --rollback\n  $ ebb models history',
    )
    .action(lazily<UseOptions>(world, finish, async () => (await actions()).use));

  ofDirectory(
    models
      .command('history')
      .summary('which versions were chosen, when, by whom and why')
      .description('Lists every choice of a version in the directory, rollbacks included, newest last.'),
  )
    .addHelpText('after', '\nExample:\n  $ ebb models history --json')
    .action(lazily<DirOptions>(world, finish, async () => (await actions()).history));
}
