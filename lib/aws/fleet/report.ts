/** What an attempt's entrypoint leaves in the bucket when it ends (entrypoint.ts): lines of a name and a value. */
export interface TaskReport {
  /** Null where the image or the machine could not tell: unknown, and not nothing. */
  readonly usage: { readonly maxRssMiB: number; readonly cpuS: number } | null;
  /** Why it failed, for people. */
  readonly why: string | null;
}

/** A task's program can write here what it likes: no more is taken of it than a sentence. */
const MAX_WHY = 500;

/** Never throws: what is not understood is not known. */
export function parseReport(content: string): TaskReport {
  const lines = new Map(
    content.split('\n').flatMap((line) => {
      const at = line.indexOf(' ');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
  const rss = amount(lines.get('max-rss-bytes'));
  const cpu = amount(lines.get('cpu-microseconds'));
  const why = lines.get('why')?.trim() ?? '';
  return {
    usage: rss === null || cpu === null ? null : { maxRssMiB: rss / 2 ** 20, cpuS: cpu / 1e6 },
    why: why === '' ? null : why.slice(0, MAX_WHY),
  };
}

function amount(text: string | undefined): number | null {
  const value = text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : NaN;
  return Number.isFinite(value) ? value : null;
}
