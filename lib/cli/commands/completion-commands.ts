import { Argument, Command, Option } from 'commander';
import { lazily, type World } from '../context.ts';
import type { CompleteOptions } from '../flags/completion-flags.ts';

const SUMMARY = 'print a completion script for bash, zsh, fish or powershell';

/** Adds `completion SHELL`, and the hidden `complete` that its scripts call. */
export function addCompletion(program: Command, world: World, finish: (code: number) => void): void {
  program
    .command('completion')
    .summary(SUMMARY)
    .description(
      'Prints a script that completes commands, options, their values, files, and jobs of the engine that --url names. TAB asks `ebb` for candidates; no word of the line is evaluated. Deployments on AWS are not asked for their jobs.',
    )
    .addArgument(
      new Argument('<shell>', 'shell to print the script for').choices(['bash', 'zsh', 'fish', 'powershell']),
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ source <(ebb completion bash)     # in ~/.bashrc\n  $ source <(ebb completion zsh)      # in ~/.zshrc\n  $ ebb completion fish > ~/.config/fish/completions/ebb.fish',
    )
    .action(lazily<object>(world, finish, async () => (await import('../actions/completion.ts')).completion));

  const complete = new Command('complete')
    .usage('-- [words...]')
    .argument('[words...]', 'the line up to the cursor, without the name of the program')
    .addOption(new Option('--next', 'the word at the cursor is not begun'))
    .action(
      lazily<CompleteOptions>(world, finish, async () => (await import('../actions/completion.ts')).complete(program)),
    );
  program.addCommand(complete, { hidden: true });
}
