/**
 * Reads of values from users' policies, which no type checker saw. Each reads a field once and gives a plain value, so
 * that neither a getter nor a later change by the policy has an effect. Each throws `Unusable` for another form.
 */
import { epochMs, type EpochMs } from '../../kernel/units.ts';

/** The first fault in an answer, for people. */
export class Unusable extends Error {}

export function refuse(why: string): never {
  throw new Unusable(why);
}

/** Most of any quantity: a million such numbers still have a finite, exact enough sum. */
const MOST = 1e15;
/** Longest text, characters. Reasons of shipped policies have a few hundred. */
const LONGEST_TEXT = 10_000;

/** One line of printable characters, fit for lists. Never throws, whatever the value. */
export function shown(value: unknown, most = 80): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return typeof value === 'function' ? 'a function' : oneLine(String(value), most);
}

export const oneLine = (value: string, most: number): string => value.replace(/[\s\p{C}]+/gu, ' ').slice(0, most);

export function text(value: unknown, what: string): string {
  if (typeof value !== 'string') return refuse(`${what} is ${shown(value)}, not text`);
  return value.length <= LONGEST_TEXT ? value : refuse(`${what} has more than ${LONGEST_TEXT} characters`);
}

/** A number, negative ones too. */
export function figure(value: unknown, what: string): number {
  if (typeof value === 'number' && Math.abs(value) <= MOST) return value;
  return refuse(`${what} is ${shown(value)}, not a number within ±${MOST}`);
}

/** A number of at least 0. */
export function amount(value: unknown, what: string): number {
  const is = figure(value, what);
  return is >= 0 ? is : refuse(`${what} is ${is}, less than 0`);
}

export function whole(value: unknown, what: string, least = 0): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
  return refuse(`${what} is ${shown(value)}, not a whole number of at least ${least}`);
}

export function chance(value: unknown, what: string): number {
  const is = figure(value, what);
  return is >= 0 && is <= 1 ? is : refuse(`${what} is ${is}, outside 0 to 1`);
}

export function instant(value: unknown, what: string): EpochMs {
  const isOne = typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  return isOne ? epochMs(value) : refuse(`${what} is ${shown(value)}, not an instant`);
}

export const orNull = <T>(value: unknown, read: (value: unknown) => T): T | null =>
  value === null ? null : read(value);

export function oneOf<T>(value: unknown, allowed: readonly T[], what: string): T {
  const found = allowed.find((of) => of === value);
  return found ?? refuse(`${what} is ${shown(value)}, not one of ${allowed.join(', ')}`);
}

export type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown, what: string): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : refuse(`${what} is ${shown(value)}`);
}

/** The answer of a stage, an object with these fields. */
export function answerWith(value: unknown, names: readonly string[]): Fields {
  const isOne = typeof value === 'object' && value !== null && names.every((name) => name in value);
  return isOne ? (value as Fields) : refuse(`the answer is not {${names.join(', ')}}`);
}

/** Shorter lists are read whatever they can hold, because what is wrong with an entry says more than their length. */
const SHORT = 1000;

/** What a list or map is, for people, and most entries that it can have. */
interface Bounded {
  readonly what: string;
  readonly most: number;
}

/** A copy of a list. */
export function list(value: unknown, { what, most }: Bounded): unknown[] {
  if (!Array.isArray(value)) return refuse(`${what} is no list`);
  const { length } = value;
  if (length > Math.max(most, SHORT)) return refuse(`${what} has ${length} entries, more than ${most}`);
  return Array.from({ length }, (_, i) => value[i] as unknown);
}

/** Entries of a map, or of anything that is read like one. */
export function entries(value: unknown, { what, most }: Bounded): (readonly [unknown, unknown])[] {
  const map = value as ReadonlyMap<unknown, unknown> | null | undefined;
  if (typeof map?.get !== 'function' || typeof map[Symbol.iterator] !== 'function') return refuse(`${what} is no map`);
  const found: (readonly [unknown, unknown])[] = [];
  for (const [key, of] of map) {
    if (found.length === Math.max(most, SHORT)) return refuse(`${what} has more than ${most} keys`);
    found.push([key, of]);
  }
  return found;
}

export const isThenable = (answer: unknown): boolean =>
  typeof (answer as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function';

/** How far into an answer promises are looked for: a list of them in one of its fields. */
const DEEP = 3;

/**
 * Takes up what an unusable answer leaves behind: a promise that is rejected later, with nobody to hear of it, would
 * end the process.
 */
export function hush(answer: unknown, deep = DEEP): void {
  if (typeof answer !== 'object' || answer === null) return;
  try {
    if (isThenable(answer)) void Promise.resolve(answer).catch(() => undefined);
    else if (deep > 0) for (const part of Object.values(answer)) hush(part, deep - 1);
  } catch {
    // A getter that throws has handed out nothing.
  }
}
