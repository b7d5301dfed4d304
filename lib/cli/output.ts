import type { Colors } from 'picocolors/types.js';
import pc from 'picocolors';
import { ForeignOutput, plainJson, terminalText, textFor } from '../kernel/terminal-text.ts';

/**
 * Where a command writes, cleaned of what a terminal would obey, and what the reader can take. Tests give their own;
 * the process's is made in main.ts.
 */
export interface Output {
  /** Results. A line end is added. */
  line(text: string): void;
  /** Output of a program, in pieces: nothing is added. */
  write(text: string): void;
  /** What a display that is redrawn may show of a text. */
  drawn(text: string): string;
  /** Progress and remarks: never part of the result, so they go to standard error. */
  note(text: string): void;
  /** Results go to a terminal that can be redrawn. */
  readonly live: boolean;
  /** Remarks go to one. */
  readonly liveNotes: boolean;
  readonly columns: number;
  readonly colors: Colors;
}

interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

export interface OutputOptions {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** --no-color was given. */
  readonly noColor: boolean;
}

/** Of a terminal that does not say, and of what is no terminal, unless COLUMNS says otherwise. */
const USUAL_COLUMNS = 80;
/** Narrower than this no table can be read; wider is no terminal. */
const [LEAST_COLUMNS, MOST_COLUMNS] = [40, 1000];

/**
 * NO_COLOR (https://no-color.org) and --no-color also turn off the live view: both are asked for by people who read
 * plain text. A terminal that says it has no columns or rows (one without a window: `script`, `docker exec -t`, some
 * CI) is not redrawn, for nothing would be seen of it: it gets lines, as what is no terminal does.
 */
export function makeOutput({ stdout, stderr, env, noColor }: OutputOptions): Output {
  const isTerminal = stdout.isTTY === true;
  const isDrawable = (stream: Stream): boolean => stream.isTTY === true && stream.columns !== 0 && stream.rows !== 0;
  const plain = noColor || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  const foreign = new ForeignOutput();
  return {
    line: (text) => void stdout.write(`${textFor(stdout, text)}\n`),
    write: (text) => void stdout.write(isTerminal ? foreign.take(text) : text),
    note: (text) => void stderr.write(`${textFor(stderr, text)}\n`),
    drawn: terminalText,
    live: isDrawable(stdout) && !plain,
    liveNotes: isDrawable(stderr) && !plain,
    columns: columnsOf(stdout, env),
    colors: pc.createColors(isTerminal && !plain),
  };
}

export function columnsOf(stdout: Pick<Stream, 'columns'>, env: OutputOptions['env']): number {
  const own = stdout.columns ?? 0;
  const said = /^\d{1,4}$/.test(env['COLUMNS'] ?? '') ? Number(env['COLUMNS']) : 0;
  const columns = own > 0 ? own : said > 0 ? said : USUAL_COLUMNS;
  return Math.min(MOST_COLUMNS, Math.max(LEAST_COLUMNS, columns));
}

/** The `--json` form: one document, indented when a person may read it. */
export const json = (output: Output, value: unknown): void =>
  output.line(plainJson(JSON.stringify(value, null, output.live ? 2 : undefined)));
