import { raw, vcpusIn } from '../../kernel/units.ts';
import type { Resources } from '../../domain/resources.ts';
import type { JobFeatures } from '../../domain/forecasts.ts';
import type { AtomTable } from './atom-table.ts';

/** Parts of features. -1 stands for an unknown part; features that need it are left out. */
const ATOMS = ['owner', 'job', 'stage', 'program', 'resources', 'hour', 'day'] as const;
type AtomName = (typeof ATOMS)[number];

export interface Feature {
  readonly name: string;
  /** At most three parts. */
  readonly of: readonly AtomName[];
  /** True when it says little about the job itself: such a history weighs less against the user's own hint. */
  readonly broad: boolean;
  /** Name in explanations. */
  readonly words: string;
}

/**
 * The features that are tracked, most specific first: the order decides between equally good ones.
 *
 * JamaisVu table 1: job name, logical job name (here: program), user; "all" is its fall-back for jobs without any other
 * history (section 6.2). Requested resources only refine a primary feature (section 3.2). Hour of day and day of week:
 * 3Sigma's submission-time features (SLearn section 4.2; thesis section 3.2.4: "same job name during the same hour").
 * Hour and day refine the job's name only: with the owner alone they scatter unlike jobs (0.2 points fewer within 2x on
 * the Google trace). A job's stages differ from one another, so the job's name always comes with the stage's.
 */
export const FEATURES: readonly Feature[] = [
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
export const FEATURE_COUNT = FEATURES.length;

/** Atom positions of every feature in one array, -2 for missing parts: for the hot loop. */
const PARTS = Int8Array.from(FEATURES.flatMap((f) => [0, 1, 2].map((i) => partOf(f, i))));

function partOf(feature: Feature, i: number): number {
  const atom = feature.of[i];
  return atom === undefined ? -2 : ATOMS.indexOf(atom);
}

/** The texts of a feature-value's parts, from its three numbers. */
export function atomTexts(feature: Feature, ids: readonly number[], atoms: AtomTable): string[] {
  return feature.of.map((name, i) => {
    const id = ids[i] ?? 0;
    if (isText(name)) return atoms.text(id);
    return String(id);
  });
}

/** True if the part is a text in the atom table; other parts are numbers themselves. */
export const isText = (name: AtomName): boolean =>
  name === 'owner' || name === 'job' || name === 'stage' || name === 'program';

const DAY_MS = 86_400_000;

/**
 * Writes the three numbers of every feature of `features` to `ids` (3 x FEATURE_COUNT). A first number of -1 means that
 * the feature is not known for this job. `idOf` turns texts to numbers (-1: not known).
 */
export function resolveFeatures(features: JobFeatures, idOf: (text: string) => number, ids: Int32Array): void {
  const submittedMs = raw(features.submittedMs);
  // Same order as ATOMS.
  const parts = [
    idOf(features.owner),
    idOf(features.jobName),
    idOf(features.stage),
    idOf(features.program),
    resourceCode(features.resources),
    Math.floor((((submittedMs % DAY_MS) + DAY_MS) % DAY_MS) / 3_600_000),
    // 1970-01-01 was a Thursday: 0 = Sunday.
    (((Math.floor(submittedMs / DAY_MS) + 4) % 7) + 7) % 7,
  ];
  for (let f = 0; f < FEATURE_COUNT; f++) {
    let known = true;
    for (let i = 0; i < 3; i++) {
      const part = PARTS[f * 3 + i] as number;
      const id = part < 0 ? 0 : (parts[part] as number);
      if (id === -1) known = false;
      ids[f * 3 + i] = id;
    }
    if (!known) ids[f * 3] = -1;
  }
}

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
