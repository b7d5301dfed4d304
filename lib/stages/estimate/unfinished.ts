/**
 * Unfinished runs are lower bounds of running times. A history of ended runs alone is too short if many runs began
 * together: five minutes after a job's start it knows no run above five minutes. So running tasks, and interrupted ones
 * that wait to run again, are counted as well (with-unfinished.ts).
 * Runs count with the histories of their shared features, except hour and day: all of them run at this hour. Bounds are
 * kept in STEPS, so that a forecast stays the same from cycle to cycle until a run passes the next one.
 */
import type { StageSpec } from '../../domain/job.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import type { JobFeatures } from '../../domain/forecasts.ts';
import { doneOnceS } from '../../domain/work-to-do.ts';
import type { JobId } from '../../kernel/ids.ts';
import { raw } from '../../kernel/units.ts';
import { FEATURES } from '../../policy/features.ts';
import { slot } from '../../policy/memory.ts';
import { resourceCode } from './features.ts';
import { Lasting, STEPS, lastStepAt } from './lasting.ts';
import type { FeaturesByStage } from '../../domain/job-features.ts';

/** Number of unfinished runs that have lasted each of STEPS_S. Immutable. */
export type Bounds = Uint32Array;

/** Value of a feature as text, time left out. */
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
  'job+size': (f) => `${f.jobName}\n${f.stage}\n${sizeOf(f)}`,
  'owner+program+size': (f) => `${f.owner}\n${f.program}\n${sizeOf(f)}`,
  'program+size': (f) => `${f.program}\n${sizeOf(f)}`,
  'owner+size': (f) => `${f.owner}\n${sizeOf(f)}`,
};

const sizeOf = (f: JobFeatures): string => `${resourceCode(f.resources)}/${f.tasks ?? 1}`;

/** Runs with equal features, time left out. */
interface Alike {
  readonly features: JobFeatures;
  /** One per feature. */
  readonly sharing: readonly Sharing[];
  bounds: Bounds;
  /** Counts in the snapshot being observed; zero otherwise. */
  counting: Uint32Array;
  runs: number;
}

/** Runs that share a feature. */
interface Sharing {
  readonly feature: string;
  readonly key: string;
  readonly alike: Set<Alike>;
  /** Null: to be summed on first use. */
  bounds: Bounds | null;
}

type Shown = Pick<Snapshot, 'jobs' | 'running' | 'tasks' | 'nowMs'>;

/**
 * Unfinished runs of the last snapshot.
 * Lifecycle: one per engine; it observes snapshot after snapshot, in any order. Unchanged bounds are the same record,
 * so that results derived from them can be cached. Memory: O(running tasks). Time: O(running tasks), in columns
 * (lasting.ts), + O(tried tasks that wait), and for each feature asked about O(distinct jobs) if one of them has
 * changed.
 */
export class Unfinished {
  readonly #running = new Lasting<Alike>();
  readonly #alike = new Map<string, Alike>();
  readonly #sharing = new Map<string, Map<string, Sharing>>();
  readonly #features: FeaturesByStage;
  readonly #likenesses = new WeakMap<JobFeatures, string>();
  #shown: Shown | null = null;

  constructor(features: FeaturesByStage) {
    this.#features = features;
  }

  /** State as of a snapshot; O(1) for the last one. */
  at(snapshot: Shown): Pick<this, 'sharing'> {
    if (this.#shown !== snapshot) this.#observe(snapshot);
    this.#shown = snapshot;
    return this;
  }

  #observe({ jobs, running, tasks, nowMs }: Shown): void {
    // Tasks that begin together are of one stage: the last answer serves most of them.
    let last: { readonly id: JobId; readonly stage: StageSpec; readonly alike: Alike } | null = null;
    const alikeTo = (id: JobId, stage: StageSpec | undefined): Alike | null => {
      if (last !== null && last.id === id && last.stage === stage) return last.alike;
      const job = jobs.get(id);
      if (job === undefined || stage === undefined) return null;
      const alike = this.#alikeTo(this.#features.of(job.spec, stage, job.submittedMs));
      last = { id, stage, alike };
      return alike;
    };
    this.#running.follow(running, (r) => alikeTo(r.attempt.job, r.stage));
    this.#running.each(nowMs, count);
    for (const task of tasks) {
      const stage = jobs.get(task.job)?.spec.stages.find((s) => s.name === task.stage);
      const alike = alikeTo(task.job, stage);
      if (alike !== null) count(alike, lastStepAt(raw(doneOnceS(task))));
    }
    for (const alike of this.#alike.values()) this.#conclude(alike);
  }

  /**
   * Bounds of runs that share a feature with a job; null: none. Features that are not in SHARED (labels, guesses) count
   * as owner and job name.
   */
  sharing(feature: string, features: JobFeatures): Bounds | null {
    const name = Object.hasOwn(SHARED, feature) ? feature : 'owner+job';
    const sharing = this.#sharing.get(name)?.get(SHARED[name]?.(features) ?? '');
    return sharing === undefined ? null : (sharing.bounds ??= sumOf(sharing.alike));
  }

  #alikeTo(features: JobFeatures): Alike {
    const likeness = this.#likeness(features);
    const known = this.#alike.get(likeness);
    if (known !== undefined) return known;
    const sharing = Object.entries(SHARED).map(([feature, shared]) => this.#sharingOf(feature, shared(features)));
    const alike = { features, sharing, bounds: new Uint32Array(STEPS), counting: new Uint32Array(STEPS), runs: 0 };
    this.#alike.set(likeness, alike);
    for (const of of sharing) of.alike.add(alike);
    return alike;
  }

  /** All features but time as one text; built once per stage. */
  #likeness(features: JobFeatures): string {
    let text = this.#likenesses.get(features);
    if (text === undefined) this.#likenesses.set(features, (text = likenessOf(features)));
    return text;
  }

  #sharingOf(feature: string, key: string): Sharing {
    let byKey = this.#sharing.get(feature);
    if (byKey === undefined) this.#sharing.set(feature, (byKey = new Map<string, Sharing>()));
    let sharing = byKey.get(key);
    if (sharing === undefined) byKey.set(key, (sharing = { feature, key, alike: new Set(), bounds: null }));
    return sharing;
  }

  /** Ends the count of a class: runs that have gone are forgotten. */
  #conclude(alike: Alike): void {
    const { bounds, counting, runs } = alike;
    if (!isSame(counting, bounds)) {
      alike.bounds = counting;
      alike.counting = new Uint32Array(STEPS);
      for (const sharing of alike.sharing) sharing.bounds = null;
    } else counting.fill(0);
    alike.runs = 0;
    if (runs === 0) this.#forget(alike);
  }

  #forget(alike: Alike): void {
    this.#alike.delete(this.#likeness(alike.features));
    for (const { feature, key, alike: all } of alike.sharing) {
      all.delete(alike);
      if (all.size === 0) this.#sharing.get(feature)?.delete(key);
    }
  }
}

/** Of the engine's snapshots, for all estimate policies. */
export const UNFINISHED = slot((memory) => new Unfinished(memory.of(FEATURES)));

function isSame(a: Bounds, b: Bounds): boolean {
  for (let k = 0; k < STEPS; k++) if (a[k] !== b[k]) return false;
  return true;
}

function count(alike: Alike, step: number): void {
  alike.runs++;
  if (step >= 0) alike.counting[step] = (alike.counting[step] as number) + 1;
}

function sumOf(all: ReadonlySet<Alike>): Bounds {
  if (all.size === 1) for (const { bounds } of all) return bounds;
  const sum = new Uint32Array(STEPS);
  for (const { bounds } of all) for (let k = 0; k < STEPS; k++) sum[k] = (sum[k] as number) + (bounds[k] as number);
  return sum;
}

const likenessOf = (f: JobFeatures): string => [f.owner, f.jobName, f.stage, f.program, sizeOf(f)].join('\n');
