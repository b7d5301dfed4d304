import type { Command } from 'commander';
import { lazily, type World } from '../context.ts';
import { path } from '../options.ts';
import type { ConfigOptions } from '../flags/settings-flags.ts';

/** Adds `config`. */
export function addSettings(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('config')
    .summary('settings of the scheduler, presets, policies, schema of the job file')
    .description('Shows the settings of the scheduler with their defaults and sources (change one with --set).')
    .option('--presets', 'list the presets: which policy decides in which stage')
    .option('--policies', 'list the policies of each stage, with their sources and settings')
    .option('--settings <file>', 'with --presets and --policies: yours too, from this file', path)
    .option('--schema', 'print the JSON Schema of the job file, for editors')
    .option('--json', 'print as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  $ ebb config --schema > ebb-job.schema.json\n\nA preset of your own stands in a file of settings, and is used with `ebb run --settings FILE`:\n  preset: thrifty\n  presets:\n    thrifty:\n      extends: ebbtide\n      scale: cheapest-spot\n      plan: { policy: milp, solverGap: 0.05 }',
    )
    .action(lazily<ConfigOptions>(world, finish, async () => (await import('../actions/config.ts')).config));
}
