/** Formats of numbers and times for people. Pure; each parameter's suffix names its unit. */

/** `$0.0312`, `$12.40`: more digits for small amounts, so that spot bills do not read as zero. */
export function dollars(usd: number): string {
  const size = Math.abs(usd);
  const sign = usd < 0 ? '-' : '';
  if (size === 0) return '$0.00';
  if (size >= 1) return `${sign}$${size.toFixed(2)}`;
  return `${sign}$${size.toFixed(size >= 0.01 ? 4 : 6)}`;
}

/** `$0.0340/h`. */
export const rate = (usdPerHour: number | null): string => (usdPerHour === null ? '-' : `$${usdPerHour.toFixed(4)}/h`);

/** `45s`, `12m 05s`, `3h 20m`, `2d 4h`: the two largest parts. Negative durations carry a minus. */
export function duration(totalS: number): string {
  const s = Math.round(Math.abs(totalS));
  const sign = totalS < 0 && s > 0 ? '-' : '';
  const two = (n: number): string => String(n).padStart(2, '0');
  if (s < 60) return `${sign}${s}s`;
  if (s < 3600) return `${sign}${Math.floor(s / 60)}m ${two(s % 60)}s`;
  if (s < 86_400) return `${sign}${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
  return `${sign}${Math.floor(s / 86_400)}d ${Math.floor((s % 86_400) / 3600)}h`;
}

/** `2026-03-01 12:00:05` in UTC; `-` for no time. */
export const instant = (iso: string | null): string => (iso === null ? '-' : iso.slice(0, 19).replace('T', ' '));

/** `12:00:05`: for successive lines of one day. */
export const clock = (iso: string): string => iso.slice(11, 19);

/** `3.1%`; `<0.1%` rather than a false zero. */
export function percent(fraction: number): string {
  const size = Math.abs(fraction);
  const sign = fraction < 0 ? '-' : '';
  if (size > 0 && size < 0.001) return `${sign}<0.1%`;
  return `${sign}${(size * 100).toFixed(size === 0 || size >= 0.1 ? 0 : 1)}%`;
}

export const plural = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;

/** Progress bar of `width` cells: done, under way, to come. */
export function bar(
  parts: { readonly done: number; readonly active: number; readonly total: number },
  width: number,
): string {
  const cells = (n: number): number =>
    parts.total === 0 ? 0 : Math.round((Math.min(n, parts.total) / parts.total) * width);
  const done = cells(parts.done);
  const active = Math.max(cells(parts.done + parts.active) - done, 0);
  return '█'.repeat(done) + '▒'.repeat(active) + '░'.repeat(width - done - active);
}

/** Text of at most `width` characters; an ellipsis replaces a longer end. */
export const shorten = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(width - 1, 0))}…`;

/** One word of a shell's command line, quoted if needed. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
