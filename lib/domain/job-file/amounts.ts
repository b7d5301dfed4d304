import { convert } from 'convert';
import { mib, milliCpu, seconds, type MiB, type MilliCpu, type Seconds } from '../../kernel/units.ts';

/** Spellings of units of time, and the library's name of each. Months and years differ in length and are left out. */
const TIME_UNITS = {
  ms: 'ms',
  s: 's',
  sec: 's',
  secs: 's',
  second: 's',
  seconds: 's',
  m: 'min',
  min: 'min',
  mins: 'min',
  minute: 'min',
  minutes: 'min',
  h: 'h',
  hr: 'h',
  hrs: 'h',
  hour: 'h',
  hours: 'h',
  d: 'd',
  day: 'd',
  days: 'd',
  w: 'week',
  week: 'week',
  weeks: 'week',
} as const;

/**
 * Spellings of units of memory and disk: powers of 1000, powers of 1024, and Kubernetes' short forms. Bits are left
 * out.
 */
const SIZE_UNITS = {
  B: 'B',
  kB: 'kB',
  KB: 'kB',
  k: 'kB',
  MB: 'MB',
  M: 'MB',
  GB: 'GB',
  G: 'GB',
  TB: 'TB',
  T: 'TB',
  KiB: 'KiB',
  Ki: 'KiB',
  MiB: 'MiB',
  Mi: 'MiB',
  GiB: 'GiB',
  Gi: 'GiB',
  TiB: 'TiB',
  Ti: 'TiB',
} as const;

const NUMBER = String.raw`(?:\d+(?:\.\d+)?|\.\d+)`;
const oneOf = (units: object): string =>
  Object.keys(units)
    .sort((a, b) => b.length - a.length)
    .join('|');

/** Patterns of these strings, for the job file's schema and for parsing. */
export const DURATION_PATTERN = new RegExp(`^(?:\\s*${NUMBER}\\s*(?:${oneOf(TIME_UNITS)}))+\\s*$`);
export const SIZE_PATTERN = new RegExp(`^\\s*${NUMBER}\\s*(?:${oneOf(SIZE_UNITS)})\\s*$`);
export const CPU_PATTERN = new RegExp(`^\\s*${NUMBER}m?\\s*$`);

export const ALLOWED_DURATION =
  'a number of seconds or a text such as 90s, 20m, 1h30m or 2 days (units ms, s, m, h, d, w)';
export const ALLOWED_SIZE =
  'a text with a unit such as 512MiB, 2GiB, 4GB or 4Gi (units B, KiB, MiB, GiB, TiB, kB, MB, GB, TB)';
export const ALLOWED_CPU = 'a number of vCPUs such as 2 or 0.5, or thousandths such as 500m';

const PART = new RegExp(`(${NUMBER})\\s*([A-Za-z]+)`, 'g');

/** Sum of the parts; a plain number is seconds. Null for anything else. */
export function parseDuration(text: string | number): Seconds | null {
  if (typeof text === 'number') return Number.isFinite(text) && text >= 0 ? seconds(text) : null;
  if (!DURATION_PATTERN.test(text)) return null;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(PART)) {
    total += convert(Number(amount), TIME_UNITS[unit as keyof typeof TIME_UNITS]).to('s');
  }
  return seconds(total);
}

/** Rounded up to a whole MiB. Null without a unit, or with one that is not known. */
export function parseSize(text: string): MiB | null {
  if (!SIZE_PATTERN.test(text)) return null;
  const [, amount, unit] = [...text.matchAll(PART)][0] ?? [];
  const size = convert(Number(amount), SIZE_UNITS[unit as keyof typeof SIZE_UNITS]).to('MiB');
  // Less the rounding of the division, so that 1024KiB is 1 and not 2.
  return mib(Math.ceil(size - size * 1e-12));
}

/** `1.5 GB`: three digits, in powers of 1000. */
export function sizeText(bytes: number): string {
  // The library's smallest unit is the bit.
  if (bytes < 1) return '0 B';
  const { quantity, unit } = convert(bytes, 'B').to('best');
  return `${Number(quantity.toPrecision(3))} ${unit}`;
}

/** Whole thousandths of a vCPU, rounded up. Null if the text is not an amount. */
export function parseCpu(text: string | number): MilliCpu | null {
  if (typeof text === 'string' && !CPU_PATTERN.test(text)) return null;
  const isThousandths = typeof text === 'string' && text.trim().endsWith('m');
  const amount = typeof text === 'number' ? text : Number(text.trim().replace(/m$/, ''));
  if (!Number.isFinite(amount) || amount < 0) return null;
  const thousandths = isThousandths ? amount : amount * 1000;
  return milliCpu(Math.ceil(thousandths - thousandths * 1e-12));
}
