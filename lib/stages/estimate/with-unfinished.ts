/**
 * Forecasts that count unfinished runs beside ended ones, as censored observations: Kaplan and Meier, "Nonparametric
 * Estimation from Incomplete Observations", JASA 53, 1958.
 */
import { distributionOf, Doubles, type Distribution } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import { wordsForDuration } from '../../kernel/duration-words.ts';
import { seconds, type Seconds } from '../../kernel/units.ts';
import { slot } from '../../policy/memory.ts';
import { capped } from './prior.ts';
import { STEPS_S, lastStepAt } from './lasting.ts';
import type { Bounds } from './unfinished.ts';

/** Share of unfinished runs, relative to ended ones, below which no quantile in use moves. */
const TOO_FEW = 0.02;

/** Cache entry of a forecast. */
interface Remembered {
  readonly masses: Float64Array;
  /** Together. */
  readonly runs: number;
  /** First step that counts: shorter times than the shortest ended run say nothing. */
  readonly from: number;
  /** Last answer, with its question. */
  last: { readonly bounds: Bounds; readonly timeoutS: Seconds | null; readonly forecast: RuntimeForecast } | null;
}

/** Forecasts that count unfinished runs. The last answer is cached for each forecast, while the forecast exists. */
export class CensoredForecasts {
  readonly #remembered = new WeakMap<RuntimeForecast, Remembered>();
  readonly #doubles = new Doubles();

  /**
   * The very same forecast where unfinished runs change nothing. No attempt runs longer than `timeoutS`. O(steps) where
   * the bounds are those of the last time, which they are for most stages in most cycles.
   */
  of(ended: RuntimeForecast, bounds: Bounds | null, timeoutS: Seconds | null): RuntimeForecast {
    const of = this.#remember(ended);
    const asked = bounds ?? NONE;
    if (of.last?.timeoutS === timeoutS && isSame(of.last.bounds, asked, of.from)) return of.last.forecast;
    const lasted = { atS: STEPS_S, runs: asked, from: of.from };
    const forecast = counted(ended, of, { lasted, timeoutS, doubles: this.#doubles });
    of.last = { bounds: asked, timeoutS, forecast };
    return forecast;
  }

  #remember(ended: RuntimeForecast): Remembered {
    let of = this.#remembered.get(ended);
    if (of === undefined) {
      const masses = massesOf(ended);
      const runs = masses.reduce((sum, n) => sum + n, 0);
      of = { masses, runs, from: Math.max(0, lastStepAt(ended.runtime.atS[0] ?? 0)), last: null };
      this.#remembered.set(ended, of);
    }
    return of;
  }
}

/** For all estimate policies of an engine. */
export const CENSORED = slot(() => new CensoredForecasts());

function isSame(a: Bounds, b: Bounds, from: number): boolean {
  if (a === b) return true;
  for (let k = from; k < a.length; k++) if (a[k] !== b[k]) return false;
  return true;
}

function counted(
  ended: RuntimeForecast,
  { masses, runs }: Remembered,
  { lasted, timeoutS, doubles }: { readonly lasted: Lasted; readonly timeoutS: Seconds | null; doubles: Doubles },
): RuntimeForecast {
  const { count, longestS } = together(lasted);
  if (count < TOO_FEW * runs && !isRolling(ended)) return ended;
  const words = `${count} unfinished, the longest for ${wordsForDuration(seconds(longestS))} so far`;
  return {
    ...ended,
    runtime: capped(productLimit(ended.runtime.atS, masses, lasted, doubles), timeoutS, doubles),
    reason: count === 0 ? ended.reason : `${ended.reason}; ${words}`,
  };
}

const NONE: Bounds = Uint32Array.from(STEPS_S, () => 0);

const isRolling = ({ evidence }: RuntimeForecast): boolean => evidence?.estimator.endsWith('rolling') ?? false;

/** Weight, in runs, of the prior on a job without ended runs; the same as in cold-start.ts. */
const UNKNOWN_RUNS = 2;

/**
 * Number of runs that each point of a forecast stands for. The first and the last point of a history stand for unseen
 * times, together one run (unseen.ts). An exponential average knows hardly more than its last three runs: three of
 * equal weight would have as little variance (Kish, "Survey Sampling", 1965, section 8.2). Smoothed forecasts name
 * their number of runs.
 */
function massesOf({ runtime, basis, evidence }: RuntimeForecast): Float64Array {
  const { weight } = runtime;
  if (basis !== 'history' || evidence === undefined) return weight.map((w) => UNKNOWN_RUNS * w);
  const { worthRuns } = evidence;
  if (worthRuns !== undefined) return weight.map((w) => worthRuns * w);
  const unseen = weight.at(-1) ?? 0;
  const seen = 1 - 2 * unseen;
  const squares = weight.subarray(1, -1).reduce((sum, w) => sum + w * w, 0);
  const runs = evidence.estimator.endsWith('rolling') && squares > 0 ? (seen * seen) / squares : seen / (2 * unseen);
  const last = weight.length - 1;
  return weight.map((w, i) => (i === 0 || i === last ? 0.5 : (runs * w) / seen));
}

/**
 * Remaining time of a run of which only the elapsed time is known: it is as likely as not to end within as long again,
 * for P(> x) is c / x (Harchol-Balter and Downey, "Exploiting Process Lifetime Distributions", TOCS 15, 1997). Thirds
 * of that, as multiples of c.
 */
const BEYOND = [6 / 5, 2, 6] as const;

/** Unfinished runs from index `from` on: `runs` of them at each elapsed time; ascending. */
interface Lasted {
  readonly atS: Float64Array;
  readonly runs: Uint32Array;
  readonly from: number;
}

/** Their number and longest time; 0 if there are none. */
function together({ atS, runs, from }: Lasted): { readonly count: number; readonly longestS: number } {
  let count = 0;
  let longestS = 0;
  for (let k = from; k < runs.length; k++) {
    const n = runs[k] as number;
    if (n === 0) continue;
    count += n;
    longestS = atS[k] as number;
  }
  return { count, longestS };
}

/**
 * Product-limit estimate from ended runs, `masses` of them at each of `atS`, and unfinished ones. The probability that
 * unfinished runs put beyond the last point but one goes to BEYOND, except the share that the last point has without
 * them.
 */
export function productLimit(
  endedS: Float64Array,
  masses: Float64Array,
  lasted: Lasted,
  doubles: Doubles,
): Distribution {
  const last = endedS.length - 1;
  const { count, longestS } = together(lasted);
  let ended = 0;
  for (const mass of masses) ended += mass;
  const atS = doubles.take(last + 1 + BEYOND.length);
  const weight = doubles.take(last + 1 + BEYOND.length);
  let atRisk = ended + count;
  let survival = 1;
  let next = lasted.from;
  for (let i = 0; i < last; i++) {
    const s = endedS[i] as number;
    for (; next < lasted.runs.length && (lasted.atS[next] as number) < s; next++) atRisk -= lasted.runs[next] as number;
    const events = masses[i] as number;
    const mass = (survival * events) / Math.max(atRisk, events);
    atS[i] = s;
    weight[i] = mass;
    survival -= mass;
    atRisk -= events;
  }
  const fromS = Math.max(endedS[last - 1] ?? 0, longestS);
  const unseen = Math.min(survival, (masses[last] ?? 0) / ended);
  atS[last] = Math.max(endedS[last] ?? 0, fromS);
  weight[last] = unseen;
  for (const [i, times] of BEYOND.entries()) {
    atS[last + 1 + i] = times * fromS;
    weight[last + 1 + i] = (survival - unseen) / BEYOND.length;
  }
  return distributionOf(atS, weight);
}
