/**
 * Runs that have not ended say how long they take at least. A history of those that ended alone is one of the short ones wherever many
 * began together: of a job that began five minutes ago it knows no run above five minutes. So what runs, and what ran and waits to
 * begin again, is counted as censored: Kaplan and Meier, "Nonparametric Estimation from Incomplete Observations", JASA 53, 1958.
 *
 * Runs count with the histories of the features that they share, hour and day left out: what runs now runs at this hour. Bounds are kept in STEPS, so
 * that a forecast stays the same from cycle to cycle until a run passes the next one.
 */
import { distribution, type Distribution } from '../domain/distribution.ts';
import type { RuntimeForecast } from '../domain/forecast.ts';
import type { StageSpec } from '../domain/job.ts';
import type { Snapshot } from '../domain/snapshot.ts';
import type { JobFeatures } from '../domain/stages.ts';
import { begunBy, doneOnceS } from '../domain/work-to-do.ts';
import type { JobId } from '../kernel/ids.ts';
import { raw, type Seconds } from '../kernel/units.ts';
import { wordsForDuration } from './predictor.ts';
import { capped } from './prior.ts';
import { resourceCode } from './features.ts';
import { featuresOf } from './template.ts';

/** Bounds are rounded down to steps of a fifth, from half a minute on: start-up and cycles tell no less apart. */
const LEAST_S = 30;
const STEP = 1.2;
const LOG_STEP = Math.log(STEP);
/** A week; what runs longer counts as that. */
const STEPS = Math.ceil(Math.log((7 * 86_400) / LEAST_S) / LOG_STEP);
const STEPS_S = Float64Array.from({ length: STEPS }, (_, k) => LEAST_S * STEP ** k);
/** Fewer unfinished runs than this share of those that ended move no quantile that anything is decided by. */
const TOO_FEW = 0.02;

/** How many unfinished runs have lasted each of STEPS_S. */
type Bounds = Uint32Array;

/** By parts that features are made of. */
type Shared = (features: JobFeatures) => string;
const SHARED: Readonly<Record<string, Shared>> = {
  'owner+job': (f) => `${f.owner}\n${f.jobName}\n${f.stage}`,
  'job+resources': (f) => `${f.jobName}\n${f.stage}\n${resourceCode(f.resources)}`,
  job: (f) => `${f.jobName}\n${f.stage}`,
  'job+hour': (f) => `${f.jobName}\n${f.stage}`,
  'job+day': (f) => `${f.jobName}\n${f.stage}`,
  'owner+program': (f) => `${f.owner}\n${f.program}`,
  'program+resources': (f) => `${f.program}\n${resourceCode(f.resources)}`,
  program: (f) => f.program,
  'owner+resources': (f) => `${f.owner}\n${resourceCode(f.resources)}`,
  owner: (f) => f.owner,
  all: () => '',
};

/** What has begun and not ended, as of a snapshot. O(running tasks + tried tasks that wait), and for each feature asked about O(distinct jobs). */
export class Unfinished {
  readonly #alike = new Map<string, { readonly features: JobFeatures; readonly bounds: Bounds }>();
  readonly #byFeature = new Map<string, ReadonlyMap<string, Bounds>>();

  constructor({ jobs, running, tasks, nowMs }: Pick<Snapshot, 'jobs' | 'running' | 'tasks' | 'nowMs'>) {
    // Tasks of a stage come one after the other, so that most are counted where the last one was.
    let last: { readonly job: JobId; readonly stage: StageSpec; readonly bounds: Bounds } | null = null;
    for (const r of running) {
      const { job: id } = r.attempt;
      if (last === null || last.stage !== r.stage || last.job !== id) {
        const job = jobs.get(id);
        if (job === undefined) continue;
        last = { job: id, stage: r.stage, bounds: this.#boundsOf(featuresOf(job.spec, r.stage, job.submittedMs)) };
      }
      count(last.bounds, doneOnceS(begunBy(r, nowMs)));
    }
    for (const task of tasks) {
      const job = jobs.get(task.job);
      const stage = job?.spec.stages.find((s) => s.name === task.stage);
      if (job !== undefined && stage !== undefined)
        count(this.#boundsOf(featuresOf(job.spec, stage, job.submittedMs)), doneOnceS(task));
    }
  }

  /** Of runs that share a feature with a job; null: of none. */
  sharing(feature: string, features: JobFeatures): Bounds | null {
    const shared = SHARED[feature];
    if (shared === undefined) return null;
    let known = this.#byFeature.get(feature);
    if (known === undefined) this.#byFeature.set(feature, (known = this.#by(shared)));
    return known.get(shared(features)) ?? null;
  }

  #boundsOf(features: JobFeatures): Bounds {
    const key = likeness(features);
    let alike = this.#alike.get(key);
    if (alike === undefined) this.#alike.set(key, (alike = { features, bounds: new Uint32Array(STEPS) }));
    return alike.bounds;
  }

  #by(shared: Shared): ReadonlyMap<string, Bounds> {
    const sums = new Map<string, Bounds>();
    for (const { features, bounds } of this.#alike.values()) {
      const key = shared(features);
      let sum = sums.get(key);
      if (sum === undefined) sums.set(key, (sum = new Uint32Array(STEPS)));
      for (let k = 0; k < STEPS; k++) sum[k] = (sum[k] ?? 0) + (bounds[k] ?? 0);
    }
    return sums;
  }
}

function count(bounds: Bounds, lastedS: Seconds): void {
  const step = stepOf(raw(lastedS));
  if (step >= 0) bounds[step] = (bounds[step] ?? 0) + 1;
}

/** The last step that is not above `s`; -1: there is none. */
const stepOf = (s: number): number =>
  s < LEAST_S ? -1 : Math.min(STEPS - 1, Math.floor(Math.log(s / LEAST_S) / LOG_STEP + 1e-9));

/** All that features are made of but the time, as one text; put together once for each stage. */
const likenesses = new WeakMap<JobFeatures, string>();
function likeness(f: JobFeatures): string {
  let text = likenesses.get(f);
  if (text === undefined)
    likenesses.set(f, (text = [f.owner, f.jobName, f.stage, f.program, resourceCode(f.resources)].join('\n')));
  return text;
}

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

const remembered = new WeakMap<RuntimeForecast, Remembered>();

function remember(ended: RuntimeForecast): Remembered {
  let of = remembered.get(ended);
  if (of === undefined) {
    const masses = massesOf(ended);
    const runs = masses.reduce((sum, n) => sum + n, 0);
    of = { masses, runs, from: Math.max(0, stepOf(ended.runtime.atS[0] ?? 0)), last: null };
    remembered.set(ended, of);
  }
  return of;
}

/**
 * A forecast with unfinished runs counted beside those that it rests on; the very same where they change nothing. No attempt runs longer
 * than `timeoutS`. O(STEPS) where the bounds are those of the last time, which they are for most stages in most cycles.
 */
export function withUnfinished(
  ended: RuntimeForecast,
  bounds: Bounds | null,
  timeoutS: Seconds | null,
): RuntimeForecast {
  const of = remember(ended);
  const asked = bounds ?? NONE;
  if (of.last?.timeoutS === timeoutS && isSame(of.last.bounds, asked, of.from)) return of.last.forecast;
  const forecast = counted(ended, of, { lasted: lastedOf(asked, of.from), timeoutS });
  of.last = { bounds: asked, timeoutS, forecast };
  return forecast;
}

function isSame(a: Bounds, b: Bounds, from: number): boolean {
  if (a === b) return true;
  for (let k = from; k < STEPS; k++) if (a[k] !== b[k]) return false;
  return true;
}

function counted(
  ended: RuntimeForecast,
  { masses, runs }: Remembered,
  { lasted, timeoutS }: { readonly lasted: Lasted; readonly timeoutS: Seconds | null },
): RuntimeForecast {
  const count = lasted.reduce((sum, [, n]) => sum + n, 0);
  if (count < TOO_FEW * runs && !isRolling(ended)) return ended;
  const words = `${count} unfinished, the longest for ${wordsForDuration(lasted.at(-1)?.[0] ?? 0)} so far`;
  return {
    ...ended,
    runtime: capped(productLimit(ended.runtime.atS, masses, lasted), timeoutS),
    reason: count === 0 ? ended.reason : `${ended.reason}; ${words}`,
  };
}

const NONE: Bounds = new Uint32Array(STEPS);

const isRolling = ({ evidence }: RuntimeForecast): boolean => evidence?.estimator.endsWith('rolling') ?? false;

/** What is thought of a job that no run has ended of weighs as much as so many runs: as the prior does (cold-start.ts). */
const UNKNOWN_RUNS = 2;

/**
 * As how many runs each point of a forecast counts. The first and the last of a history stand for what was not seen yet, as one run
 * together (unseen.ts). An exponential average hardly knows more than its last three runs: as many of equal weight would have
 * as little variance (Kish, "Survey Sampling", 1965, section 8.2).
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
 * Where a run ends of which nothing is known but how long it has lasted: as likely as not within as long again, for P(> x) is c / x
 * (Harchol-Balter and Downey, "Exploiting Process Lifetime Distributions", TOCS 15, 1997). Thirds of that, as multiples of c.
 */
const BEYOND = [6 / 5, 2, 6] as const;

/** So many runs that have lasted so long and not ended; ascending. */
type Lasted = readonly (readonly [seconds: number, runs: number])[];

const lastedOf = (bounds: Bounds, from: number): Lasted =>
  [...bounds].flatMap((n, k) => (n === 0 || k < from ? [] : [[STEPS_S[k] ?? 0, n] as const]));

/**
 * The product-limit estimate of runs that ended, `masses` of them at each of `atS`, and unfinished ones. What these say lies beyond the last
 * point but one is put at BEYOND, but for the share that the last point has without them.
 */
export function productLimit(atS: Float64Array, masses: Float64Array, lasted: Lasted): Distribution {
  const last = atS.length - 1;
  const ended = masses.reduce((sum, n) => sum + n, 0);
  let atRisk = ended + lasted.reduce((sum, [, n]) => sum + n, 0);
  let survival = 1;
  let next = 0;
  const points: [number, number][] = [];
  for (let i = 0; i < last; i++) {
    const s = atS[i] ?? 0;
    for (; (lasted[next]?.[0] ?? Infinity) < s; next++) atRisk -= lasted[next]?.[1] ?? 0;
    const events = masses[i] ?? 0;
    const mass = (survival * events) / Math.max(atRisk, events);
    points.push([s, mass]);
    survival -= mass;
    atRisk -= events;
  }
  const fromS = Math.max(atS[last - 1] ?? 0, lasted.at(-1)?.[0] ?? 0);
  const unseen = Math.min(survival, (masses[last] ?? 0) / ended);
  points.push([Math.max(atS[last] ?? 0, fromS), unseen]);
  for (const times of BEYOND) points.push([times * fromS, (survival - unseen) / BEYOND.length]);
  return distribution(points);
}
