import { readFileSync } from 'node:fs';
import { EbbError } from '../../kernel/errors.ts';
import { besideProgram } from '../../models/versions.ts';

/**
 * Scripts that `ebb completion SHELL` prints. Each passes the words of the line as typed to `ebb complete` and reads
 * its lines (candidates.ts).
 * No script evaluates, expands or splits a word, a candidate or a description: TAB on `ebb run $(rm x)` runs nothing.
 * Each works without the shell's completion packages.
 */

const FILES = { bash: 'ebb.bash', zsh: 'ebb.zsh', fish: 'ebb.fish', powershell: 'ebb.ps1' } as const;
export type Shell = keyof typeof FILES;
export const SHELLS = Object.keys(FILES) as Shell[];

export function scriptFor(shell: Shell): string {
  const path = besideProgram(`lib/cli/completion/${FILES[shell]}`);
  if (path !== null) return readFileSync(path, 'utf8');
  throw new EbbError('internal', {
    what: `the completion script for ${shell} did not come along with the program`,
    next: 'install the package again',
  });
}
