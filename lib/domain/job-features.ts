import type { JobSpec, StageSpec } from './job.ts';
import { MAX_LABELS, type JobFeatures } from './forecasts.ts';
import type { EpochMs } from '../kernel/units.ts';

/**
 * Patterns of texts that differ between runs, most telling first. Versions like `v2` and sizes like `64k` count too:
 * runs of two versions are more alike than a new version is to no history at all; the requested resources still
 * separate sizes.
 */
const VARYING: readonly RegExp[] = [
  // UUIDs.
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi,
  // Dates and times: 2026-11-21, 20261121T0510Z, 2026-11-21T05:10:22.123+01:00, 05:10.
  /\d{4}-?\d{2}-?\d{2}(?:[t_ -]?\d{2}[:-]?\d{2}(?:[:-]?\d{2}(?:\.\d+)?)?(?:z|[+-]\d{2}:?\d{2})?)?/gi,
  /\d{1,2}:\d{2}(?::\d{2})?/g,
  // Hashes and random ids: at least seven hexadecimal digits standing alone, with a digit among them (`deadbeef` is a
  // word). Twenty-six characters of Crockford's base 32 (ULIDs) likewise.
  /(?<![a-z0-9])(?=[a-f]*\d)[0-9a-f]{7,}(?![a-z0-9])/gi,
  /(?<![a-z0-9])[0-7][0-9a-hjkmnp-tv-z]{25}(?![a-z0-9])/gi,
  // Any other number, with its fraction.
  /\d+(?:\.\d+)*/g,
];

/**
 * A name with varying parts replaced by `#`: `train-2026-11-21-3f9a1c07` and `train-2026-11-22-77b0e2d1` are both
 * `train-#`. Neighbouring replacements become one. Idempotent; never empty for a non-empty name.
 */
export function templateName(name: string): string {
  let text = name.slice(0, MAX_NAME).trim().toLowerCase();
  for (const pattern of VARYING) text = text.replace(pattern, '#');
  return text.replace(/#(?:[\s._:+-]*#)+/g, '#');
}

/** Characters of a name that count. Job names are shorter; a program may be a whole line without spaces. */
const MAX_NAME = 256;

/**
 * Base name of a command's program. Interpreters are skipped for their script, `sh -c` for the first word of its text,
 * `env` and assignments for the next word. `/usr/bin/python3 -u train.py --epochs 3` is `train.py`.
 */
export function programOf(command: readonly string[]): string {
  let words = [...command];
  for (let depth = 0; depth < 8; depth++) {
    const first = words.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word));
    words = first < 0 ? [] : words.slice(first);
    const name = baseName(words[0] ?? '');
    const rest = words.slice(1);
    if (SHELLS.has(name) && rest[0]?.startsWith('-') === true && rest[0].includes('c')) {
      words = (rest[1] ?? '').trim().split(/[\s;&|]+/);
    } else if (WRAPPERS.has(name) || SHELLS.has(name) || INTERPRETER.test(name)) {
      const inner = afterOptions(rest);
      if (inner.length === 0) return name;
      // `python -m module` and `node -e text`: the module names the program, a text does not.
      if (INTERPRETER.test(name) && rest[0] === '-m') return `${name} -m ${rest[1] ?? ''}`.trim();
      if (INTERPRETER.test(name) && (rest[0] === '-c' || rest[0] === '-e')) return name;
      words = inner;
      if (INTERPRETER.test(name) || SHELLS.has(name)) return baseName(words[0] ?? '');
    } else return name;
  }
  return baseName(words[0] ?? '');
}

const SHELLS: ReadonlySet<string> = new Set(['sh', 'bash', 'zsh', 'dash', 'ksh']);
const WRAPPERS: ReadonlySet<string> = new Set([
  'env',
  'exec',
  'nice',
  'nohup',
  'time',
  'timeout',
  'sudo',
  'xvfb-run',
  'cd',
]);
const INTERPRETER = /^(?:python|node|ruby|perl|rscript|java|php|deno|bun|julia)[\d.]*$/i;

function baseName(path: string): string {
  return path.replace(/["']/g, '').split('/').at(-1) ?? '';
}

/** Skips options, assignments and bare numbers (`nice -n 10`, `timeout 60`, `env A=1`) in front of a program. */
function afterOptions(words: readonly string[]): string[] {
  const first = words.findIndex((w) => !/^-|^\d+[smhd]?$|^[A-Za-z_]\w*=/.test(w));
  return first === -1 ? [] : words.slice(first);
}

/** Template of recurring jobs, as the ledger groups them: owner / templated name / program of the first stage. */
export function templateOf(spec: JobSpec): string {
  return `${spec.owner}/${templateName(spec.name)}/${templateName(programOf(spec.stages[0]?.command ?? []))}`;
}

type Named = Pick<JobSpec, 'name' | 'owner'> & Partial<Pick<JobSpec, 'labels'>>;
type Described = Pick<StageSpec, 'name' | 'command' | 'resources'> &
  Partial<Pick<StageSpec, 'tasks' | 'expectedRuntimeS'>>;

/** Input of a forecast for the tasks of a stage. */
export function featuresOf(spec: Named, stage: Described, submittedMs: EpochMs): JobFeatures {
  const labels = labelTexts(spec.labels ?? {});
  const { tasks = 1, expectedRuntimeS: guess = null } = stage;
  return {
    owner: spec.owner,
    jobName: templateName(spec.name),
    program: templateName(programOf(stage.command)),
    stage: stage.name,
    resources: stage.resources,
    submittedMs,
    ...(tasks > 1 && { tasks }),
    ...(labels.length > 0 && { labels }),
    ...(guess !== null && { expectedRuntimeS: guess }),
  };
}

/** `key=value` of the first labels. Values stay as they are: `queue=2` and `queue=3` are two queues. */
const labelTexts = (labels: Readonly<Record<string, string>>): readonly string[] =>
  Object.keys(labels)
    .sort()
    .slice(0, MAX_LABELS)
    .map((key) => `${key}=${labels[key] ?? ''}`.slice(0, MAX_NAME));

/** `featuresOf`, remembered by stage for as long as it is there: asked in each cycle, and for each task that ends. */
export class FeaturesByStage {
  readonly #known = new WeakMap<Described, { readonly spec: Named; readonly features: JobFeatures }>();

  /** The arguments must not be changed afterwards. */
  of(spec: Named, stage: Described, submittedMs: EpochMs): JobFeatures {
    const known = this.#known.get(stage);
    if (known?.spec === spec && known.features.submittedMs === submittedMs) return known.features;
    const features = featuresOf(spec, stage, submittedMs);
    this.#known.set(stage, { spec, features });
    return features;
  }
}
