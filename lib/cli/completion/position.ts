import type { Argument, Command, Option } from 'commander';

/**
 * Position of the cursor on an unfinished command line. Words are taken as typed: nothing is unquoted, expanded or run.
 */

/** Candidates for the word at the cursor, by kind. */
export interface Position {
  /** The deepest command that the line names. */
  readonly command: Command;
  /** Word at the cursor up to the cursor, without `prefix`. */
  readonly current: string;
  /** Text before `current` in the same word: `--preset=` of `--preset=eb`. */
  readonly prefix: string;
  readonly expects:
    | { readonly kind: 'command' }
    | { readonly kind: 'option' }
    | { readonly kind: 'value'; readonly option: Option }
    | { readonly kind: 'argument'; readonly argument: Argument }
    | { readonly kind: 'nothing' };
  /** Last value of each option given so far, by attribute name. */
  readonly given: ReadonlyMap<string, string>;
  /** Arguments given so far. */
  readonly args: readonly string[];
}

/** Reads the words after the program's name. The last one is at the cursor, and empty if none is begun. */
export function positionIn(program: Command, words: readonly string[]): Position {
  const current = words.at(-1) ?? '';
  const line = new Line(program);
  for (const word of words.slice(0, -1)) line.take(word);
  return line.at(current);
}

class Line {
  #command: Command;
  readonly #args: string[] = [];
  readonly #given = new Map<string, string>();
  /** Option whose value the next word is, or can be. */
  #open: Option | null = null;
  #onlyArguments = false;

  constructor(program: Command) {
    this.#command = program;
  }

  take(word: string): void {
    const isOption = !this.#onlyArguments && isOptionLike(word);
    if (this.#open !== null && (this.#open.required || !isOption)) {
      this.#given.set(this.#open.attributeName(), word);
      // `--state <state...>` requires one value and allows more.
      if (!this.#open.variadic) this.#open = null;
      else if (isOption) this.#takeOption(word);
      return;
    }
    this.#open = null;
    if (!this.#onlyArguments && word === '--') this.#onlyArguments = true;
    else if (isOption) this.#takeOption(word);
    else this.#takeArgument(word);
  }

  #takeOption(word: string): void {
    const { name, value } = parted(word);
    const option = optionOf(this.#command, name);
    this.#open = null;
    if (option === undefined) return;
    const takesValue = option.required || option.optional;
    if (takesValue && value === null) this.#open = option;
    this.#given.set(option.attributeName(), value ?? '');
  }

  #takeArgument(word: string): void {
    const isFirst = this.#args.length === 0 && !this.#onlyArguments;
    const next = isFirst ? subcommand(this.#command, word) : undefined;
    if (next === undefined) this.#args.push(word);
    else this.#command = next;
  }

  at(current: string): Position {
    const place = (expects: Position['expects'], prefix = ''): Position => ({
      command: this.#command,
      current: current.slice(prefix.length),
      prefix,
      expects,
      given: this.#given,
      args: this.#args,
    });
    const isOption = !this.#onlyArguments && current.startsWith('-');
    const { name, value } = parted(current);
    if (isOption && value !== null) {
      const option = optionOf(this.#command, name);
      return option === undefined || isFlag(option)
        ? place({ kind: 'nothing' })
        : place({ kind: 'value', option }, `${name}=`);
    }
    if (this.#open !== null && (this.#open.required || !isOption)) {
      const isAnother = isOption && this.#open.variadic && this.#given.get(this.#open.attributeName()) !== '';
      if (!isAnother) return place({ kind: 'value', option: this.#open });
    }
    if (isOption) return place({ kind: 'option' });
    if (this.#args.length === 0 && visible(this.#command).length > 0) return place({ kind: 'command' });
    const argument = argumentAt(this.#command, this.#args.length);
    return place(argument === undefined ? { kind: 'nothing' } : { kind: 'argument', argument });
  }
}

const isOptionLike = (word: string): boolean => word.startsWith('-') && word !== '-';
const isFlag = (option: Option): boolean => !option.required && !option.optional;

/** Name and value of `--name=value`. The value of a short option is a word of its own. */
function parted(word: string): { readonly name: string; readonly value: string | null } {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at === -1 ? { name: word, value: null } : { name: word.slice(0, at), value: word.slice(at + 1) };
}

/** A command and its parents: options of the program may follow the command. */
function chain(command: Command): Command[] {
  const found: Command[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) found.push(at);
  return found;
}

const optionOf = (command: Command, name: string): Option | undefined =>
  chain(command)
    .flatMap((c) => c.options)
    .find((o) => o.long === name || o.short === name);

/** Subcommands as in help, with `help` itself. */
export const visible = (command: Command): readonly Command[] => command.createHelp().visibleCommands(command);

const subcommand = (command: Command, word: string): Command | undefined =>
  visible(command).find((c) => c.name() === word || c.aliases().includes(word));

function argumentAt(command: Command, place: number): Argument | undefined {
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  return registeredArguments[place] ?? (last?.variadic === true ? last : undefined);
}

/** Options as in help, those of parent commands last. */
export function visibleOptions(command: Command): readonly Option[] {
  const help = command.createHelp();
  const all = chain(command)
    .flatMap((c) => help.visibleOptions(c))
    // Only the program itself has a version.
    .filter((o) => o.long !== '--version' || command.parent === null);
  return all.filter((option, i) => all.findIndex((o) => o.long === option.long) === i);
}
