import { raw, vcpusIn } from '../../kernel/units.ts';
import type { Resources } from '../../domain/resources.ts';
import { MAX_LABELS, type JobFeatures } from '../../domain/forecasts.ts';
import type { AtomTable } from './atom-table.ts';
import { PARTS } from './feature-index.ts';

/** Parts of features: texts first, then numbers. */
const TEXTS = ['owner', 'job', 'stage', 'program', 'label'] as const;
type AtomName = (typeof TEXTS)[number] | 'resources' | 'tasks' | 'expected' | 'hour' | 'day';

export interface Feature {
  readonly name: string;
  /** At most PARTS. A feature with a `label` is looked up once for each label of the job. */
  readonly of: readonly AtomName[];
  /** True when it says little about the job itself: such a history weighs less against the user's own hint. */
  readonly broad: boolean;
  /** Name in explanations. */
  readonly words: string;
  /** True where the history is of running times relative to the user's guess. */
  readonly isRelative?: boolean;
}

/**
 * The features of JVuPredict, most specific first: the order decides between equally good ones.
 *
 * JamaisVu table 1: job name, logical job name (here: program), user; "all" is its fall-back for jobs without any other
 * history (section 6.2). Requested resources only refine a primary feature (section 3.2). Hour of day and day of week:
 * 3Sigma's submission-time features (SLearn section 4.2; thesis section 3.2.4: "same job name during the same hour").
 * Hour and day refine the job's name only: with the owner alone they scatter unlike jobs (0.2 points fewer within 2x on
 * the Google trace). A job's stages differ from one another, so the job's name always comes with the stage's.
 */
export const PAPER_FEATURES: readonly Feature[] = [
  { name: 'owner+job', of: ['owner', 'job', 'stage'], broad: false, words: 'owner and job name' },
  { name: 'job+resources', of: ['job', 'stage', 'resources'], broad: false, words: 'job name and requested resources' },
  { name: 'job', of: ['job', 'stage'], broad: false, words: 'job name' },
  { name: 'job+hour', of: ['job', 'stage', 'hour'], broad: false, words: 'job name and hour of day' },
  { name: 'job+day', of: ['job', 'stage', 'day'], broad: false, words: 'job name and day of week' },
  { name: 'owner+program', of: ['owner', 'program'], broad: false, words: 'owner and program' },
  { name: 'program+resources', of: ['program', 'resources'], broad: false, words: 'program and requested resources' },
  { name: 'program', of: ['program'], broad: false, words: 'program' },
  { name: 'owner+resources', of: ['owner', 'resources'], broad: true, words: 'owner and requested resources' },
  { name: 'owner', of: ['owner'], broad: true, words: 'owner' },
  { name: 'all', of: [], broad: true, words: 'all jobs' },
];

/**
 * The features of recurring runs, most specific first. Beside the paper's: number of tasks with the resources, labels
 * (group, queue, site), and the guess itself, because equal guesses of one owner are mostly equal jobs (Tsafrir, Etsion
 * and Feitelson, TPDS 18, 2007). Hour and day are left out: 0.1 points fewer within 2x on the first half of the Google
 * trace. The last three are histories of running time over guess: bias and spread of guesses.
 */
export const RECURRING_FEATURES: readonly Feature[] = [
  { name: 'owner+job', of: ['owner', 'job', 'stage'], broad: false, words: 'owner and job name' },
  { name: 'job+size', of: ['job', 'stage', 'resources', 'tasks'], broad: false, words: 'job name and size' },
  { name: 'job', of: ['job', 'stage'], broad: false, words: 'job name' },
  {
    name: 'owner+program+size',
    of: ['owner', 'program', 'resources', 'tasks'],
    broad: false,
    words: 'owner, program and size',
  },
  { name: 'owner+program+label', of: ['owner', 'program', 'label'], broad: false, words: 'owner, program and a label' },
  { name: 'owner+program', of: ['owner', 'program'], broad: false, words: 'owner and program' },
  { name: 'program+size', of: ['program', 'resources', 'tasks'], broad: false, words: 'program and size' },
  { name: 'program', of: ['program'], broad: false, words: 'program' },
  {
    name: 'owner+guess+size',
    of: ['owner', 'expected', 'resources', 'tasks'],
    broad: true,
    words: 'owner, expectedRuntime and size',
  },
  { name: 'owner+guess', of: ['owner', 'expected'], broad: true, words: 'owner and expectedRuntime' },
  { name: 'owner+size', of: ['owner', 'resources', 'tasks'], broad: true, words: 'owner and size' },
  { name: 'owner+label', of: ['owner', 'label'], broad: true, words: 'owner and a label' },
  { name: 'owner', of: ['owner'], broad: true, words: 'owner' },
  { name: 'label+size', of: ['label', 'resources', 'tasks'], broad: true, words: 'a label and size' },
  { name: 'all', of: [], broad: true, words: 'all jobs' },
  {
    name: 'guesses:owner+program',
    of: ['owner', 'program'],
    broad: false,
    words: 'owner and program, relative to expectedRuntime',
    isRelative: true,
  },
  {
    name: 'guesses:owner',
    of: ['owner'],
    broad: false,
    words: 'owner, relative to expectedRuntime',
    isRelative: true,
  },
  { name: 'guesses:all', of: [], broad: false, words: 'expectedRuntime of anyone, relative to it', isRelative: true },
];

/** True if the part is a text in the atom table; other parts are numbers themselves. */
export const isText = (name: AtomName): boolean => (TEXTS as readonly string[]).includes(name);

/** The texts of a feature-value's parts, from its numbers. */
export const atomTexts = (feature: Feature, ids: readonly number[], atoms: AtomTable): string[] =>
  feature.of.map((name, i) => (isText(name) ? atoms.text(ids[i] ?? 0) : String(ids[i] ?? 0)));

/** Places of the parts in `#parts`; labels come last. */
const PLACES: readonly AtomName[] = [
  'owner',
  'job',
  'stage',
  'program',
  'resources',
  'tasks',
  'expected',
  'hour',
  'day',
  'label',
];
const NO_PART = -2;
const EXPECTED = PLACES.indexOf('expected');
const LABEL = PLACES.indexOf('label');
const DAY_MS = 86_400_000;

/** Features that are tracked together. A lookup is a feature, or a feature with one of the job's labels. */
export class FeatureSet {
  readonly features: readonly Feature[];
  /** Index of each lookup's feature. */
  readonly featureOf: Int8Array;
  readonly lookups: number;
  /** Places of each lookup's parts: for the hot loop. */
  readonly #places: Int8Array;
  readonly #isRelative: readonly boolean[];
  readonly #hasLabels: boolean;
  readonly #parts = new Float64Array(PLACES.length + MAX_LABELS);

  constructor(features: readonly Feature[]) {
    this.features = features;
    const lookups = features.flatMap((f, feature) =>
      Array.from({ length: f.of.includes('label') ? MAX_LABELS : 1 }, (_, label) => ({ f, feature, label })),
    );
    this.lookups = lookups.length;
    this.#hasLabels = features.some((f) => f.of.includes('label'));
    this.featureOf = Int8Array.from(lookups, ({ feature }) => feature);
    this.#isRelative = lookups.map(({ f }) => f.isRelative ?? false);
    this.#places = Int8Array.from(
      lookups.flatMap(({ f, label }) => Array.from({ length: PARTS }, (_, i) => placeOf(f.of[i], label))),
    );
  }

  /**
   * Writes the numbers of every lookup to `ids` (PARTS x lookups). A first number of -1 means that the feature is not
   * known for this job. `idOf` turns texts to numbers (-1: not known).
   */
  resolve(features: JobFeatures, idOf: (text: string) => number, ids: Int32Array): void {
    this.#read(features, idOf);
    const hasGuess = this.#parts[EXPECTED] !== -1;
    for (let lookup = 0; lookup < this.lookups; lookup++) {
      let known = hasGuess || !(this.#isRelative[lookup] as boolean);
      for (let i = lookup * PARTS; i < (lookup + 1) * PARTS; i++) {
        const place = this.#places[i] as number;
        const id = place === NO_PART ? 0 : (this.#parts[place] as number);
        if (id === -1) known = false;
        ids[i] = id;
      }
      if (!known) ids[lookup * PARTS] = -1;
    }
  }

  /** Texts of a job that some feature may have as a part. */
  textsOf({ owner, jobName, stage, program, labels = [] }: JobFeatures): readonly string[] {
    return this.#hasLabels ? [owner, jobName, stage, program, ...labels] : [owner, jobName, stage, program];
  }

  /** Parts of the job, in the order of PLACES. */
  #read(features: JobFeatures, idOf: (text: string) => number): void {
    const submittedMs = raw(features.submittedMs);
    const parts = this.#parts;
    parts[0] = idOf(features.owner);
    parts[1] = idOf(features.jobName);
    parts[2] = idOf(features.stage);
    parts[3] = idOf(features.program);
    parts[4] = resourceCode(features.resources);
    parts[5] = features.tasks ?? 1;
    parts[6] = guessCode(features);
    parts[7] = Math.floor((((submittedMs % DAY_MS) + DAY_MS) % DAY_MS) / 3_600_000);
    // 1970-01-01 was a Thursday: 0 = Sunday.
    parts[8] = (((Math.floor(submittedMs / DAY_MS) + 4) % 7) + 7) % 7;
    for (let label = 0; this.#hasLabels && label < MAX_LABELS; label++) {
      const text = features.labels?.[label];
      parts[LABEL + label] = text === undefined ? -1 : idOf(text);
    }
  }
}

function placeOf(atom: AtomName | undefined, label: number): number {
  if (atom === undefined) return NO_PART;
  return atom === 'label' ? LABEL + label : PLACES.indexOf(atom);
}

/** The guess in steps of 2 %, from a second on; -1 without one. */
const guessCode = ({ expectedRuntimeS: guess }: JobFeatures): number =>
  guess === undefined ? -1 : Math.max(0, Math.round(50 * Math.log(raw(guess))));

/**
 * Requested resources as one number, discretised as in JamaisVu section 3.2: below 1 to the nearest tenth, above to the
 * nearest integer (vCPUs, GiB, GPUs). -1 without a request. Disk is left out: it does not tell runs apart.
 */
export function resourceCode(r: Resources): number {
  const cpu = discretised(vcpusIn(r.cpu));
  const memory = discretised(raw(r.memory) / 1024);
  if (cpu + memory + r.gpus === 0) return -1;
  return Math.min(cpu, 2047) * (1 << 20) + Math.min(memory, 32767) * 32 + Math.min(Math.round(r.gpus), 31);
}

/** 0, 0.1 .. 0.9, 1, 2, 3 .. as 0, 1 .. 9, 10, 11, 12 .. */
const discretised = (x: number): number => (x < 1 ? Math.round(x * 10) : 9 + Math.round(x));
