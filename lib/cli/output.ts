import type { Colors } from 'picocolors/types.js';
import pc from 'picocolors';

/** Where a command writes, and what the reader can take. Tests give their own; the process's is made in main.ts. */
export interface Output {
  /** Results. A line end is added. */
  line(text: string): void;
  /** Results that come in pieces (logs): nothing is added. */
  write(text: string): void;
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

const USUAL_COLUMNS = 120;

/**
 * NO_COLOR (https://no-color.org) and --no-color also turn off the live view: both are asked for by people who read plain text.
 * A terminal that says it has no columns or rows (one without a window: `script`, `docker exec -t`, some CI) is not redrawn, for nothing
 * would be seen of it: it gets lines, as what is no terminal does.
 */
export function makeOutput({ stdout, stderr, env, noColor }: OutputOptions): Output {
  const isTerminal = stdout.isTTY === true;
  const isDrawable = (stream: Stream): boolean => stream.isTTY === true && stream.columns !== 0 && stream.rows !== 0;
  const plain = noColor || (env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb';
  return {
    line: (text) => void stdout.write(`${text}\n`),
    write: (text) => void stdout.write(text),
    note: (text) => void stderr.write(`${text}\n`),
    live: isDrawable(stdout) && !plain,
    liveNotes: isDrawable(stderr) && !plain,
    columns: stdout.columns === undefined || stdout.columns === 0 ? USUAL_COLUMNS : stdout.columns,
    colors: pc.createColors(isTerminal && !plain),
  };
}

/** The `--json` form: one document, indented when a person may read it. */
export const json = (output: Output, value: unknown): void =>
  output.line(JSON.stringify(value, null, output.live ? 2 : undefined));
