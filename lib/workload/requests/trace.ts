/** Requests that reach a service, per minute. */

export interface RequestTrace {
  readonly name: string;
  /** Requests in each minute from the start of the trace; NaN where the trace does not say. */
  readonly perMinute: Float64Array;
  /** Assumptions about the trace, and rows or minutes that were left out; one line each. */
  readonly notes: readonly string[];
}

const SECONDS_PER_MINUTE = 60;

/** Mean over the minutes that are known, requests per second; 0 without any. */
export function meanRps({ perMinute }: Pick<RequestTrace, 'perMinute'>): number {
  const known = perMinute.filter((n) => !Number.isNaN(n));
  return known.length === 0 ? 0 : known.reduce((sum, n) => sum + n, 0) / known.length / SECONDS_PER_MINUTE;
}

/**
 * The same shape at another mean, as Tributary scales its traces (section 2.4.1). Counts are no longer whole. Throws a
 * RangeError for a trace without requests, or a mean that is not positive.
 */
export function scaledTo<T extends Pick<RequestTrace, 'perMinute'>>(trace: T, rps: number): T {
  const mean = meanRps(trace);
  if (!(mean > 0)) throw new RangeError('a trace without requests cannot be scaled');
  if (!(rps > 0)) throw new RangeError(`a mean rate is above 0 requests per second; got ${rps}`);
  return { ...trace, perMinute: trace.perMinute.map((n) => (n * rps) / mean) };
}

/** The first minutes of a trace; all of it if it is shorter. */
export const firstMinutes = <T extends Pick<RequestTrace, 'perMinute'>>(trace: T, minutes: number): T => ({
  ...trace,
  perMinute: trace.perMinute.slice(0, minutes),
});
