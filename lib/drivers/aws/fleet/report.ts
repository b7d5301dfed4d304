/**
 * What an attempt's entrypoint says when it ends (entrypoint.ts): one line of the attempt's log, `MARK [max-rss-bytes N
 * cpu-microseconds N] [why ...]`, that nobody is shown. A log costs by its bytes and nothing to be read; an object of
 * S3 cost as much as a fifth of all else that is done for a job.
 */
export interface TaskReport {
  /** Null where the image or the machine could not tell: unknown, and not nothing. */
  readonly usage: { readonly maxRssMiB: number; readonly cpuS: number } | null;
  /** Why it failed, for people. */
  readonly why: string | null;
}

/** A task's program can write here what it likes: no more is taken of it than a sentence. */
const MAX_WHY = 500;

/** Whether a line of a log is an attempt's report, by the mark of that attempt (marks.ts). */
export const isReport = (line: string, mark: string): boolean => line.startsWith(`${mark} `);

/** Of the line. Never throws: what is not understood is not known. */
export function parseReport(line: string): TaskReport {
  const [, rssBytes, cpuMicros, reason = ''] =
    /^\S+(?: max-rss-bytes (\S+) cpu-microseconds (\S+))?(?: why (.*))?$/s.exec(line) ?? [];
  const rss = amount(rssBytes);
  const cpu = amount(cpuMicros);
  const why = reason.trim();
  return {
    usage: rss === null || cpu === null ? null : { maxRssMiB: rss / 2 ** 20, cpuS: cpu / 1e6 },
    why: why === '' ? null : why.slice(0, MAX_WHY),
  };
}

function amount(text: string | undefined): number | null {
  const value = text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  return Number.isFinite(value) ? value : null;
}
