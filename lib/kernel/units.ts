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

type SameUnit = <Q extends Duration | EpochMs>(a: Q, b: Q) => Q;
type Compare = <U extends string>(a: Quantity<U>, b: Quantity<U>) => boolean;
type Duration = Seconds | Usd | MiB | MilliCpu | UsdPerHour;

/** Sum of two amounts. Instants do not add; use `plus`. */
export const add = <Q extends Duration>(a: Q, b: Q): Q => (raw(a) + raw(b)) as unknown as Q;
/** Difference of two amounts. For two instants use `between`. */
export const sub = <Q extends Duration>(a: Q, b: Q): Q => (raw(a) - raw(b)) as unknown as Q;
/** An amount times a dimensionless factor. */
export const scale = <Q extends Duration>(a: Q, factor: number): Q => (raw(a) * factor) as unknown as Q;
/** Dimensionless ratio of two amounts of one unit. */
export const ratio = <U extends string>(a: Quantity<U>, b: Quantity<U>): number => raw(a) / raw(b);

export const lt: Compare = (a, b) => raw(a) < raw(b);
export const lte: Compare = (a, b) => raw(a) <= raw(b);
export const gt: Compare = (a, b) => raw(a) > raw(b);
export const gte: Compare = (a, b) => raw(a) >= raw(b);
export const least: SameUnit = (a, b) => (raw(a) <= raw(b) ? a : b);
export const most: SameUnit = (a, b) => (raw(a) >= raw(b) ? a : b);
export const ascending = <U extends string>(a: Quantity<U>, b: Quantity<U>): number => raw(a) - raw(b);

/** The instant `d` after `t`. */
export const plus = (t: EpochMs, d: Seconds): EpochMs => epochMs(raw(t) + raw(d) * 1000);
/** The instant `d` before `t`. */
export const minus = (t: EpochMs, d: Seconds): EpochMs => epochMs(raw(t) - raw(d) * 1000);
/** Time from `from` to `to`; negative when `to` is earlier. */
export const between = (from: EpochMs, to: EpochMs): Seconds => seconds((raw(to) - raw(from)) / 1000);
/** What a rate costs over a time. */
export const cost = (rate: UsdPerHour, time: Seconds): Usd => usd((raw(rate) * raw(time)) / 3600);

export const ZERO_S: Seconds = seconds(0);
export const ZERO_USD: Usd = usd(0);
export const FOREVER: EpochMs = epochMs(Number.MAX_SAFE_INTEGER);
/** Milliseconds of a day, where days are counted in plain numbers. */
export const DAY_MS = 86_400_000;
