import { InvalidArgumentError } from 'commander';
import { LEAST_BUDGET_BYTES } from '../domain/disk-budget.ts';
import { parseDuration, parseSize } from '../domain/job-file/amounts.ts';
import { raw } from '../kernel/units.ts';

/** Parsers of option values. Commander puts the option's name before their messages. */

export function positive(text: string): number {
  const n = Number(text);
  if (text.trim() === '' || !Number.isFinite(n) || n <= 0) throw new InvalidArgumentError('Allowed: a number above 0.');
  return n;
}

export function whole(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Allowed: a whole number from 0.');
  return Number(text);
}

export function fromOne(text: string): number {
  const n = parsedBy(whole, text);
  if (n === null || n < 1) throw new InvalidArgumentError('Allowed: a whole number from 1.');
  return n;
}

/** vCPU limit. Admission of gangs takes time and memory in proportion to it. */
export function vcpuCount(text: string): number {
  const n = parsedBy(whole, text);
  if (n === null || n < 1 || n > MOST_VCPUS) {
    throw new InvalidArgumentError(`Allowed: a whole number from 1 to ${MOST_VCPUS}.`);
  }
  return n;
}
const MOST_VCPUS = 1_000_000;

/** Bytes of a disk budget. */
export function diskBytes(text: string): number {
  const size = parseSize(text);
  const bytes = size === null ? 0 : raw(size) * 1024 ** 2;
  if (bytes >= LEAST_BUDGET_BYTES && bytes <= Number.MAX_SAFE_INTEGER) return bytes;
  const least = `${LEAST_BUDGET_BYTES / 1024 ** 2}MiB`;
  throw new InvalidArgumentError(`Allowed: a size with a unit, from ${least}, such as 500MB, 20GB or 1.5TiB.`);
}

/** Fraction of a whole. */
export function share(text: string): number {
  const n = text.trim() === '' ? NaN : Number(text);
  if (!(n >= 0 && n < 1)) throw new InvalidArgumentError('Allowed: a share, from 0 to below 1.');
  return n;
}

/** Number within inclusive bounds; `what` names it in messages. */
export const between =
  (least: number, most: number, what: string, parse: (text: string) => number) =>
  (text: string): number => {
    const n = parsedBy(parse, text);
    // The parser alone allows more.
    if (n === null || n < least || n > most) {
      throw new InvalidArgumentError(`Allowed: ${what} from ${least} to ${most}.`);
    }
    return n;
  };

function parsedBy(parse: (text: string) => number, text: string): number | null {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof InvalidArgumentError) return null;
    throw error;
  }
}

/** Path of a file or folder. An empty one would silently mean the working directory. */
export function path(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('Allowed: the path of a file or folder.');
  if (text.includes('\0')) throw new InvalidArgumentError('Allowed: a path without NUL characters.');
  return text;
}

/** Duration in seconds: a number of them, or with a unit. */
export function durationS(text: string): number {
  const parsed = parseDuration(/^\d+(\.\d+)?$/.test(text) ? Number(text) : text);
  if (parsed !== null && raw(parsed) > 0) return raw(parsed);
  throw new InvalidArgumentError('Allowed: a duration above 0, such as 30s, 10m or 1h.');
}

export function port(text: string): number {
  const n = whole(text);
  if (n > 65_535) throw new InvalidArgumentError('Allowed: 0 (any free port) to 65535.');
  return n;
}

/** Instant in ISO 8601. A date alone means midnight UTC; a time without a zone is UTC. */
export function instantMs(text: string): number {
  const ISO = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;
  const zoned = /(?:Z|[+-]\d{2}:?\d{2})$/.test(text.slice(10)) || text.length === 10 ? text : `${text}Z`;
  const ms = ISO.test(text) ? Date.parse(zoned) : NaN;
  if (Number.isNaN(ms)) throw new InvalidArgumentError('Allowed: ISO 8601, e.g. 2016-04-09 or 2016-04-09T12:00:00Z.');
  return ms;
}

/** Collector of repeated `key=value` options into a record. Values are JSON where possible. */
export function setting(text: string, previous: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Allowed: KEY=VALUE, e.g. maxLateProbability=0.01.');
  return { ...previous, [text.slice(0, at)]: jsonOrText(text.slice(at + 1)) };
}

export function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
