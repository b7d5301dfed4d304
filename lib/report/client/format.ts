/** Formats of numbers and times in the report, in its page and its tables. Pure. */

const groups = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export const NONE = '–';

/** `1,204`; at most `digits` decimals for small ones. */
export function count(n: number, digits = 0): string {
  if (Number.isNaN(n)) return NONE;
  return digits > 0 && Math.abs(n) < 100 ? String(Number(n.toFixed(digits))) : groups.format(n);
}

/** `$0.0312`, `$12.40`, `$1,204`: more digits for small amounts, so that spot bills do not read as zero. */
export function dollars(usd: number): string {
  if (Number.isNaN(usd)) return NONE;
  const size = Math.abs(usd);
  const sign = usd < 0 ? '−' : '';
  if (size === 0) return '$0';
  if (size < 0.000001) return `${sign}<$0.000001`;
  if (size < 1) return `${sign}$${size.toFixed(size >= 0.01 ? 4 : 6)}`;
  return `${sign}$${size < 1000 ? size.toFixed(2) : groups.format(size)}`;
}

/** `45 s`, `12.5 min`, `3.3 h`, `2.1 d`. */
export function duration(totalS: number): string {
  if (Number.isNaN(totalS)) return NONE;
  const s = Math.abs(totalS);
  const sign = totalS < 0 ? '−' : '';
  if (s < 60) return `${sign}${short(s)} s`;
  if (s < 3600) return `${sign}${short(s / 60)} min`;
  if (s < 2 * 86_400) return `${sign}${short(s / 3600)} h`;
  return `${sign}${short(s / 86_400)} d`;
}

const short = (x: number): string => String(Number(x.toFixed(x < 10 ? 1 : 0)));

/** `3.1 %`; `<0.1 %` rather than a false zero. */
export function percent(fraction: number): string {
  if (Number.isNaN(fraction)) return NONE;
  const size = Math.abs(fraction);
  const sign = fraction < 0 ? '−' : '';
  if (size > 0 && size < 0.001) return `${sign}<0.1 %`;
  return `${sign}${(size * 100).toFixed(size === 0 || size >= 0.1 ? 0 : 1)} %`;
}

/** `0.214`: three digits, for ratios. */
export const ratio = (x: number): string => (Number.isNaN(x) ? NONE : x >= 10 ? count(x) : x.toPrecision(3));

/** `2026-03-01 12:00` in UTC. */
export const minute = (ms: number): string =>
  Number.isNaN(ms) ? NONE : new Date(ms).toISOString().slice(0, 16).replace('T', ' ');

/** `2026-03-01 12:00:05` in UTC. */
export const second = (ms: number): string =>
  Number.isNaN(ms) ? NONE : new Date(ms).toISOString().slice(0, 19).replace('T', ' ');

export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;
