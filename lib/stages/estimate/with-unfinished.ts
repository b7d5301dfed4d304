/**
 * Forecasts with what has not ended counted beside the runs that they rest on, as censored: Kaplan and Meier,
 * "Nonparametric Estimation from Incomplete Observations", JASA 53, 1958.
 */
import { distributionOf, Doubles, type Distribution } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import { seconds, type Seconds } from '../../kernel/units.ts';
import { wordsForDuration } from './predictor.ts';
import { capped } from './prior.ts';
import { STEPS_S, lastStepAt } from './lasting.ts';
import type { Bounds } from './unfinished.ts';

/** Fewer unfinished runs than this share of those that ended move no quantile that anything is decided by. */
const TOO_FEW = 0.02;

/** What is remembered of a forecast. */
interface Remembered {
  readonly masses: Float64Array;
  /** Together. */
  readonly runs: number;
  /** What lasted less than the shortest run that ended says nothing: bounds from here on count. */
  readonly from: number;
  /** The last answer, and what was asked. */
  last: { readonly bounds: Bounds; readonly timeoutS: Seconds | null; readonly forecast: RuntimeForecast } | null;
}

/**
 * Forecasts with unfinished runs counted beside those that they rest on. The last answer is remembered for each, as
 * long as it is there.
 */
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

/**
 * What is thought of a job that no run has ended of weighs as much as so many runs: as the prior does (cold-start.ts).
 */
const UNKNOWN_RUNS = 2;

/**
 * As how many runs each point of a forecast counts. The first and the last of a history stand for what was not seen
 * yet, as one run together (unseen.ts). An exponential average hardly knows more than its last three runs: as many of
 * equal weight would have as little variance (Kish, "Survey Sampling", 1965, section 8.2).
 */
function massesOf({ runtime, basis, evidence }: RuntimeForecast): Float64Array {
  const { weight } = runtime;
  if (basis !== 'history' || evidence === undefined) return weight.map((w) => UNKNOWN_RUNS * w);
  const unseen = weight.at(-1) ?? 0;
  const seen = 1 - 2 * unseen;
  const squares = weight.subarray(1, -1).reduce((sum, w) => sum + w * w, 0);
  const runs = evidence.estimator.endsWith('rolling') && squares > 0 ? (seen * seen) / squares : seen / (2 * unseen);
  const last = weight.length - 1;
  return weight.map((w, i) => (i === 0 || i === last ? 0.5 : (runs * w) / seen));
}

/**
 * Where a run ends of which nothing is known but how long it has lasted: as likely as not within as long again, for P(>
 * x) is c / x (Harchol-Balter and Downey, "Exploiting Process Lifetime Distributions", TOCS 15, 1997). Thirds of that,
 * as multiples of c.
 */
const BEYOND = [6 / 5, 2, 6] as const;

/** From `from` on, `runs` that have lasted so long and not ended; ascending. */
interface Lasted {
  readonly atS: Float64Array;
  readonly runs: Uint32Array;
  readonly from: number;
}

/** How many, and for how long the longest; 0 where there are none. */
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
 * The product-limit estimate of runs that ended, `masses` of them at each of `atS`, and unfinished ones. What these say
 * lies beyond the last point but one is put at BEYOND, but for the share that the last point has without them.
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
