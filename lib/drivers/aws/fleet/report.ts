/**
 * Report of an attempt's entrypoint at its end (entrypoint.ts): one line of the log, `MARK [max-rss-bytes N
 * cpu-microseconds N] [why ...]`. Readers of the log do not see it. A log line costs by its bytes, and its reading
 * nothing. An S3 object cost a fifth of everything else per job.
 */
export interface TaskReport {
  /** Usage; null if the image or the machine could not tell. */
  readonly usage: { readonly maxRssMiB: number; readonly cpuS: number } | null;
  /** Reason of a failure, for people. */
  readonly why: string | null;
}

/** Longest reason, characters. A task's program could write anything here. */
const MAX_WHY = 500;

/** True for the report of the attempt with this mark (request-names.ts). */
export const isReport = (line: string, mark: string): boolean => line.startsWith(`${mark} `);

/** Report in a line. Never throws: unreadable parts become unknown. */
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
