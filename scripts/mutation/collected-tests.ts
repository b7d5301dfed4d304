/**
 * Replacement of `@jest/globals` in mutation tests. Collected tests stay loaded and run again for each mutant. It has
 * only the parts of jest that tests of lib/stages use.
 */
import { format } from 'node:util';

type Step = () => unknown;

interface Suite {
  /** Names from the outermost suite on. */
  readonly names: readonly string[];
  readonly outer: Suite | null;
  /** Steps before its first test, emptied after their run. */
  readonly first: Step[];
}

export interface CollectedTest {
  /** Names of its suites and its own, joined as in jest. */
  readonly id: string;
  readonly file: string;
  /** Position of its `it`, from 0. */
  readonly startPosition: { readonly line: number; readonly column: number };
  readonly run: () => Promise<void>;
}

export const collected: CollectedTest[] = [];

let within: Suite = { names: [], outer: null, first: [] };
let loading = '';

/** Loads a file of tests. */
export async function collect(url: URL, path: string): Promise<void> {
  loading = path;
  await import(url.href);
}

function suite(name: string, body: () => void): void {
  const outer = within;
  within = { names: [...outer.names, name], outer, first: [] };
  body();
  within = outer;
}

function test(name: string, body: Step): void {
  const own = within;
  const run = async (): Promise<void> => {
    await begin(own);
    await body();
  };
  const id = [...own.names, name].join(' ');
  if (collected.some((t) => t.id === id)) throw new Error(`two tests are named "${id}": ${loading} has the second`);
  collected.push({ id, file: loading, startPosition: callerIn(loading), run });
}

async function begin({ outer, first }: Suite): Promise<void> {
  if (outer !== null) await begin(outer);
  for (const step of first.splice(0)) await step();
}

/**
 * Position of the caller in the file. Stryker detects changed tests by the lines of their `it`; type stripping keeps
 * lines and columns.
 */
function callerIn(file: string): { line: number; column: number } {
  const frame = (new Error('place').stack ?? '').split('\n').find((line) => line.includes(file));
  const [, line, column] = /:(\d+):(\d+)\)?$/.exec(frame ?? '') ?? [];
  return { line: Number(line ?? 1) - 1, column: Number(column ?? 1) - 1 };
}

type Row = readonly unknown[];
const each =
  (declare: (name: string, body: () => void) => void) =>
  (rows: readonly unknown[]) =>
  (name: string, body: (...row: Row) => unknown): void => {
    for (const given of rows) {
      const row: Row = Array.isArray(given) ? given : [given];
      const named = format(name, ...row.slice(0, name.match(/%[sdij]/g)?.length ?? 0));
      declare(named, () => body(...row));
    }
  };

export const describe = Object.assign(suite, { each: each(suite) });
export const it = Object.assign(test, { each: each(test) });
export const beforeAll = (step: Step): void => void within.first.push(step);
/** Nothing ends before the process: the next mutant uses it again. */
export const afterAll = (_: Step): void => undefined;
export { expect } from 'expect';
