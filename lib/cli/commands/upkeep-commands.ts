import type { Command } from 'commander';
import { lazily, type World } from '../context.ts';
import { path } from '../options.ts';
import type { BackupOptions, RestoreOptions } from '../flags/upkeep-flags.ts';

/** Adds `backup` and `restore`. */
export function addUpkeep(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('backup')
    .summary("save an engine's folder to one file, while it runs")
    .description(
      'Writes all that is needed to go on to one file: jobs, history, costs, models and checkpoints, as they are at one moment. The engine may run meanwhile. What tasks printed is left out unless --logs is given; a market that the engine replays is a file of its own and is never part of it.',
    )
    .argument('<file>', 'file to write; it must not exist', path)
    .option('--dir <path>', 'folder of the engine', path, '.ebb')
    .option('--logs', 'the logs of tasks as well')
    .option('--json', 'print the saved parts as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb backup ebb-$(date +%F).backup')
    .action(lazily<BackupOptions>(world, finish, async () => (await import('../actions/upkeep.ts')).backup));
  program
    .command('restore')
    .summary('make the folder of an engine out of a backup')
    .description(
      'Makes a new folder out of a file that `ebb backup` wrote. Tasks that ran then were lost with their instances: they go on from their checkpoints with `ebb run --resume` or `ebb up`.',
    )
    .argument('<file>', 'file that `ebb backup` wrote', path)
    .option('--dir <path>', 'folder to make; it must not exist, or be empty', path, '.ebb')
    .option('--json', 'print the restored parts as JSON')
    .addHelpText('after', '\nExample:\n  $ ebb restore ebb-2026-01-05.backup && ebb run --resume')
    .action(lazily<RestoreOptions>(world, finish, async () => (await import('../actions/upkeep.ts')).restore));
}
