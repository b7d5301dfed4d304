import { compareText } from '../kernel/compare.ts';
import type { BadLine, WorkloadReport } from './workload.ts';

/** Most bad lines with details; all are counted. */
const NAMED = 20;
const MAX_SHOWN = 160;

/** Counts of dropped and adjusted input, by reason. */
export class Tally {
  #jobs = 0;
  #tasks = 0;
  #badLines = 0;
  readonly #first: BadLine[] = [];
  readonly #dropped = new Map<string, number>();
  readonly #adjusted = new Map<string, number>();

  handedOut(tasks: number): void {
    this.#jobs++;
    this.#tasks += tasks;
  }

  /** Counts an unusable line; `what`: its fault. */
  bad(file: string, line: number, what: string): void {
    this.#badLines++;
    if (this.#first.length < NAMED) this.#first.push({ file, line, what: shorten(what) });
  }

  dropped(why: string, count = 1): void {
    if (count > 0) this.#dropped.set(why, (this.#dropped.get(why) ?? 0) + count);
  }

  adjusted(how: string, count = 1): void {
    if (count > 0) this.#adjusted.set(how, (this.#adjusted.get(how) ?? 0) + count);
  }

  report(): WorkloadReport {
    return {
      jobs: this.#jobs,
      tasks: this.#tasks,
      bad: {
        count: this.#badLines,
        first: this.#first.toSorted((a, b) => compareText(a.file, b.file) || a.line - b.line),
      },
      dropped: new Map(this.#dropped),
      adjusted: new Map(this.#adjusted),
    };
  }
}

const shorten = (text: string): string => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 3)}...` : text);
export const quote = (text: string | undefined): string =>
  text === undefined || text === '' ? 'nothing' : `'${shorten(text)}'`;
