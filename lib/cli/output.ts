import type { Colors } from 'picocolors/types.js';
import pc from 'picocolors';
import { ForeignOutput, plainJson, terminalText, textFor } from '../kernel/terminal-text.ts';

/**
 * Output of a command, without terminal control sequences, and the abilities of its reader. Tests pass their own;
 * main.ts makes that of the process.
 */
export interface Output {
  /** Writes a line of the result. */
  line(text: string): void;
  /** Writes a piece of a program's output, unchanged. */
  write(text: string): void;
  /** Text as a redrawn display may show it. */
  drawn(text: string): string;
  /** Writes progress and remarks to standard error: they are not part of the result. */
  note(text: string): void;
  /** True if results go to a terminal that can be redrawn. */
  readonly live: boolean;
  /** True if remarks go to such a terminal. */
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
  /** True with --no-color. */
  readonly noColor: boolean;
}

/** Default width: of a terminal that does not tell, and of other outputs without COLUMNS. */
const USUAL_COLUMNS = 80;
/** Bounds of a plausible width. */
const [LEAST_COLUMNS, MOST_COLUMNS] = [40, 1000];

/**
 * Output of the process. NO_COLOR (https://no-color.org) and --no-color also turn off the live view, because people who
 * set them read plain text. A terminal without columns or rows (`script`, `docker exec -t`, some CI) gets lines, as
 * nothing could be redrawn there.
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

/** Output with `--json`: one document, indented for people. */
export const json = (output: Output, value: unknown): void =>
  output.line(plainJson(JSON.stringify(value, null, output.live ? 2 : undefined)));
