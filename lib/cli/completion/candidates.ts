import type { Command, Option } from 'commander';
import type { World } from '../context.ts';
import { positionIn, visible, visibleOptions, type Position } from './position.ts';
import { valuesOf } from './values.ts';
import type { Candidate, Completion } from './candidate.ts';

/** Longest description that is printed. */
const MOST_ABOUT = 120;
/** Most candidates printed: there are more than a thousand instance types. */
const MOST_CANDIDATES = 400;

/** Candidates for the word at the cursor. `words` follow the program's name; the last one is begun, or empty. */
export async function complete(program: Command, words: readonly string[], world: World): Promise<Completion> {
  const position = positionIn(program, words);
  const { candidates, paths } = await proposed(position, program, world);
  const fitting = candidates.filter(({ value }) => value.startsWith(position.current));
  const distinct = [...new Map(fitting.map((c) => [c.value, c])).values()].slice(0, MOST_CANDIDATES);
  return {
    candidates: distinct.map(({ value, about }) => ({ value: position.prefix + value, about })),
    paths,
  };
}

async function proposed(position: Position, program: Command, world: World): Promise<Completion> {
  const { command, expects } = position;
  switch (expects.kind) {
    case 'command':
      return only(commandsOf(command));
    case 'option':
      return only(optionsOf(position));
    case 'value':
      return expects.option.argChoices !== undefined
        ? only(expects.option.argChoices.map((value) => ({ value, about: '' })))
        : valuesOf(expects.option.attributeName(), position, world);
    case 'argument':
      if (expects.argument.argChoices !== undefined) {
        return only(expects.argument.argChoices.map((value) => ({ value, about: '' })));
      }
      // `help [command]`, a command of commander.
      if (command.name() === 'help') return only(commandsOf(program));
      return valuesOf(expects.argument.name(), position, world);
    case 'nothing':
      return only([]);
  }
}

const only = (candidates: readonly Candidate[]): Completion => ({ candidates, paths: 'none' });

const commandsOf = (command: Command): Candidate[] =>
  visible(command).map((c) => ({ value: c.name(), about: c.summary() || c.description() }));

/** Long names of options, or short ones if one was typed. Options already on the line are left out. */
function optionsOf({ command, current, given }: Position): Candidate[] {
  const isRepeatable = (o: Option): boolean => o.required || o.optional;
  return visibleOptions(command)
    .filter((o) => isRepeatable(o) || !given.has(o.attributeName()))
    .flatMap((o) => {
      const name = current.startsWith('--') || current === '-' || o.short !== current ? o.long : o.short;
      return name === undefined ? [] : [{ value: name, about: o.description }];
    });
}

/**
 * Lines for the scripts of lib/cli/completion/scripts.ts: `VALUE<tab>DESCRIPTION` for each candidate, then `:files`,
 * `:folders` or `:none`. Control characters never reach the terminal.
 */
export function asLines({ candidates, paths }: Completion): string {
  const plain = (text: string): string =>
    // oxlint-disable-next-line no-control-regex
    text.replaceAll(/[\u0000-\u001F\u007F-\u009F]+/gu, ' ').trim();
  const lines = candidates.map(({ value, about }) => `${plain(value)}\t${shortened(plain(about))}`);
  return [...lines, `:${paths}`, ''].join('\n');
}

const shortened = (text: string): string => (text.length > MOST_ABOUT ? `${text.slice(0, MOST_ABOUT - 3)}...` : text);
