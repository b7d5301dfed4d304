/**
 * Quantities that cannot be mixed up. At run time each is a plain number; to the compiler each unit is an opaque
 * type that is NOT assignable to `number`, so `seconds < millis` and `seconds + millis` do not compile (a branded
 * `number & {…}` would let both through). Hot numeric loops unwrap with `raw` into typed arrays at their edge.
 *
 * Suffixes in names repeat the unit: `deadlineMs` (instant), `runtimeS` (duration), `memMiB`, `priceUsdPerHour`.
 */
declare const unit: unique symbol;

export interface Quantity<U extends string> {
  readonly [unit]: U;
}

/** Instant: milliseconds since 1970-01-01T00:00:00Z. */
export type EpochMs = Quantity<'instant in ms'>;
/** Duration in seconds. */
export type Seconds = Quantity<'duration in s'>;
export type Usd = Quantity<'USD'>;
export type UsdPerHour = Quantity<'USD per hour'>;
/** Memory or disk in mebibytes (2^20 bytes). */
export type MiB = Quantity<'MiB'>;
/** Thousandths of a vCPU. */
export type MilliCpu = Quantity<'mCPU'>;

export const epochMs = (ms: number): EpochMs => ms as unknown as EpochMs;
export const seconds = (s: number): Seconds => s as unknown as Seconds;
export const usd = (dollars: number): Usd => dollars as unknown as Usd;
export const usdPerHour = (dollars: number): UsdPerHour => dollars as unknown as UsdPerHour;
export const mib = (mebibytes: number): MiB => mebibytes as unknown as MiB;
export const milliCpu = (thousandths: number): MilliCpu => thousandths as unknown as MilliCpu;

/** The number inside, in the unit that the type names. */
export const raw = (q: Quantity<string>): number => q as unknown as number;

/** The number inside, or null: for JSON and rows with an empty value. */
export const rawOrNull = (q: Quantity<string> | null): number | null => (q === null ? null : raw(q));

/** Quantities that add up. Instants do not. */
type Amount = Seconds | Usd | MiB | MilliCpu | UsdPerHour;
type OneOf = <Q extends Amount | EpochMs>(a: Q, b: Q) => Q;
type Compare = <Q extends Amount | EpochMs>(a: Q, b: Q) => boolean;
type Order = <Q extends Amount | EpochMs>(a: Q, b: Q) => number;

/** Sum of two amounts. Instants do not add; use `plus`. */
export const add = <Q extends Amount>(a: Q, b: Q): Q => (raw(a) + raw(b)) as unknown as Q;
/** Difference of two amounts. For two instants use `between`. */
export const sub = <Q extends Amount>(a: Q, b: Q): Q => (raw(a) - raw(b)) as unknown as Q;
/** An amount times a dimensionless factor. */
export const scale = <Q extends Amount>(a: Q, factor: number): Q => (raw(a) * factor) as unknown as Q;
/** Dimensionless ratio of two amounts of one unit. */
export const ratio = <Q extends Amount>(a: Q, b: Q): number => raw(a) / raw(b);

export const same: Compare = (a, b) => raw(a) === raw(b);
export const lt: Compare = (a, b) => raw(a) < raw(b);
export const lte: Compare = (a, b) => raw(a) <= raw(b);
export const gt: Compare = (a, b) => raw(a) > raw(b);
export const gte: Compare = (a, b) => raw(a) >= raw(b);
export const isPositive = (a: Amount): boolean => raw(a) > 0;
export const isZero = (a: Amount): boolean => raw(a) === 0;

export const least: OneOf = (a, b) => (raw(a) <= raw(b) ? a : b);
export const most: OneOf = (a, b) => (raw(a) >= raw(b) ? a : b);
export const atLeastZero = <Q extends Amount>(a: Q): Q => (raw(a) < 0 ? 0 : a) as unknown as Q;
/** What `a` has more than `b`, as a plain number; 0 where it has less. */
export const excess = <Q extends Amount>(a: Q, b: Q): number => Math.max(0, raw(a) - raw(b));
/** For `sort`: the smallest or earliest first. */
export const ascending: Order = (a, b) => raw(a) - raw(b);
/** For `sort`: the largest or latest first. */
export const descending: Order = (a, b) => raw(b) - raw(a);

/** The instant `d` after `t`. */
export const plus = (t: EpochMs, d: Seconds): EpochMs => epochMs(raw(t) + raw(d) * 1000);
/** The instant `d` before `t`. */
export const minus = (t: EpochMs, d: Seconds): EpochMs => epochMs(raw(t) - raw(d) * 1000);
/** Time from `from` to `to`; negative when `to` is earlier. */
export const between = (from: EpochMs, to: EpochMs): Seconds => seconds((raw(to) - raw(from)) / 1000);
/** `between` as a plain number, for names that end in `S`. */
export const secondsBetween = (from: EpochMs, to: EpochMs): number => (raw(to) - raw(from)) / 1000;
/** `between` in milliseconds: for windows and shares of them. */
export const msBetween = (from: EpochMs, to: EpochMs): number => raw(to) - raw(from);
/** Cost of a rate over a time. */
export const cost = (rate: UsdPerHour, time: Seconds): Usd => usd((raw(rate) * raw(time)) / 3600);

/** Plain numbers in the units that people read. */
export const hoursIn = (d: Seconds): number => raw(d) / 3600;
/** Decimal megabytes, as rates of transfer count them. */
export const megabytes = (memory: MiB): number => (raw(memory) * 1_048_576) / 1_000_000;
export const vcpusIn = (cpu: MilliCpu): number => raw(cpu) / 1000;
/** `2026-03-01T12:00:00.000Z`. Instants that no date can hold are refused with a `RangeError`. */
export const isoOf = (t: EpochMs): string => new Date(raw(t)).toISOString();

export const ZERO_S: Seconds = seconds(0);
export const ZERO_USD: Usd = usd(0);
export const FOREVER: EpochMs = epochMs(Number.MAX_SAFE_INTEGER);
/** Milliseconds of a day, where days are counted in plain numbers. */
export const DAY_MS = 86_400_000;
