import type { Command } from 'commander';
import { asLines, complete as completed } from '../completion/candidates.ts';
import { scriptFor, SHELLS } from '../completion/scripts.ts';
import type { Action } from '../context.ts';
import type { CompleteOptions } from '../flags/completion-flags.ts';

export const completion: Action<object> = async ({ world }, [shell]) => {
  const known = SHELLS.find((name) => name === shell);
  if (known !== undefined) world.stdout.write(scriptFor(known));
};

/** Candidates for the word at the cursor. Nothing goes to standard error: TAB must not write into the line. */
export const complete =
  (program: Command): Action<CompleteOptions> =>
  async ({ world }, words, { next }) => {
    const line = next === true || words.length === 0 ? [...words, ''] : words;
    const lines = await completed(program, line, world)
      .then(asLines)
      .catch(() => ':none\n');
    world.stdout.write(lines);
    // A request to an engine that does not answer would keep the shell waiting.
    if (world.stdout === process.stdout) process.exit(0);
  };
