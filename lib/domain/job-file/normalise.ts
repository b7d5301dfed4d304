import { isAbsolute, resolve } from 'pathe';
import { EbbError } from '../../kernel/errors.ts';
import { mib, milliCpu, seconds, usd } from '../../kernel/units.ts';
import { OWN_FOLDER } from '../job.ts';
import type { Checkpoint, Constraints, JobSpec, PlacementRules, StageSpec, ValueSpec } from '../job.ts';
import { impossibleRule } from '../placement-rules.ts';
import { type Resources, NO_RESOURCES } from '../resources.ts';
import { globSize } from '../globs.ts';
import { isS3Uri, parseS3Uri, s3Uri } from '../s3-uri.ts';
import { dependencyFindings } from './dependencies.ts';
import { outputFindings } from './outputs.ts';
import { findingsOf, refuse, type Finding, type Locate } from './findings.ts';
import {
  jobFileSchema,
  LIMITS,
  type ConstraintsFile,
  type JobFile,
  type PlacementFile,
  type SharedKeys,
  type StageFile,
} from './schema.ts';

export interface NormaliseOptions {
  /**
   * Absolute. Relative working directories are relative to it; null: they are refused, and a job without one gets
   * `OWN_FOLDER`.
   */
  readonly baseDir: string | null;
  readonly defaultOwner: string;
}

const DEFAULT_RETRIES = 2;
const DEFAULT_GRACE_S = 20;
const DEFAULT_RESOURCES: Resources = { ...NO_RESOURCES, cpu: milliCpu(1000), memory: mib(512) };
/** The only stage of a job that names none. */
const ONLY_STAGE = 'main';

/**
 * Job of a job file, checked, in one form. Pure. Throws only EbbError `job-file.invalid`, `job-file.dependency`,
 * `job-file.cycle` or `job.not-in-version` with every finding. Rules over several keys are checked once each key is
 * right by itself.
 */
export function normalise(json: unknown, options: NormaliseOptions, locate: Locate): JobSpec {
  if (options.baseDir !== null && !isAbsolute(options.baseDir)) {
    throw new EbbError('internal', { what: 'the folder of a job file must be absolute', got: options.baseDir });
  }
  // Its other keys would be faults, too.
  if ((json as { readonly class?: unknown } | null)?.class === 'service') throw refuse([SERVICE], locate);
  const parsed = jobFileSchema.safeParse(json);
  const hidden = hiddenKeyFindings(json);
  if (!parsed.success) throw refuse([...findingsOf(parsed.error, json), ...hidden], locate);
  const file = parsed.data;
  const stages = stagesOf(file);
  const findings = [
    ...hidden,
    ...jobFindings(file),
    ...stageFindings(file, stages, options),
    ...dependencyFindings(stages),
  ];
  if (findings.length > 0) throw refuse(findings, locate);
  const specs = stages.map((s) => stageSpec(s, file, options.baseDir));
  const collisions = outputFindings(specs, (stage, entry) =>
    stages[stage]?.outputs === undefined ? ['outputs', entry] : ['stages', stage, 'outputs', entry],
  );
  const impossible = impossibleRules(file, specs);
  if (collisions.length + impossible.length > 0) throw refuse([...collisions, ...impossible], locate);
  return {
    name: file.name,
    owner: file.owner ?? options.defaultOwner,
    labels: file.labels ?? {},
    class: file.deadline === undefined ? 'best-effort' : 'deadline',
    deadline: file.deadline ?? null,
    value: valueOf(file.value),
    ...(file.mustMeet === true ? { mustMeet: true } : {}),
    after: [...new Set(file.after ?? [])],
    maxCostUsd: file.maxCost === undefined ? null : usd(file.maxCost),
    stages: specs,
  };
}

const SERVICE: Finding = {
  code: 'job-file.invalid',
  path: ['class'],
  message: 'a service is no job: apply it by `ebb service apply FILE`; allowed here: deadline, best-effort',
};

/** Zod passes over `__proto__` in maps, so that it would be left out in silence. */
function hiddenKeyFindings(json: unknown): Finding[] {
  const { labels, env, secrets, stages, placement } = (json ?? {}) as Record<string, unknown>;
  const maps: (readonly [Finding['path'], unknown])[] = [
    [['labels'], labels],
    ...labelMaps(placement, ['placement']),
    [['env'], env],
    [['secrets'], secrets],
    ...(Array.isArray(stages) ? stages : []).flatMap((stage: StageMaps | null, i) => [
      [['stages', i, 'env'], stage?.env] as const,
      [['stages', i, 'secrets'], stage?.secrets] as const,
      ...labelMaps(stage?.placement, ['stages', i, 'placement']),
    ]),
  ];
  return maps.flatMap(([path, map]): Finding[] =>
    typeof map === 'object' && map !== null && Object.hasOwn(map, '__proto__')
      ? [
          {
            code: 'job-file.invalid',
            path: [...path, '__proto__'],
            message: 'the key __proto__ is not allowed',
            atKey: true,
          },
        ]
      : [],
  );
}

interface StageMaps {
  readonly env?: unknown;
  readonly secrets?: unknown;
  readonly placement?: unknown;
}

function labelMaps(placement: unknown, path: Finding['path']): (readonly [Finding['path'], unknown])[] {
  const rules = (placement ?? {}) as Record<string, unknown>;
  return ['affinity', 'antiAffinity'].flatMap((key) => {
    const list: readonly unknown[] = Array.isArray(rules[key]) ? rules[key] : [rules[key]];
    return list.map((rule, i) => {
      const at = Array.isArray(rules[key]) ? [key, i, 'labels'] : [key, 'labels'];
      return [[...path, ...at], (rule as { labels?: unknown } | null | undefined)?.labels] as const;
    });
  });
}

/** The stages as written, or the one that the keys at the top make. */
function stagesOf(file: JobFile): readonly StageFile[] {
  if (file.stages !== undefined) return file.stages;
  return [{ name: ONLY_STAGE, tasks: file.tasks, gang: file.gang }];
}

function jobFindings(file: JobFile): Finding[] {
  const findings: Finding[] = [];
  const invalid = (path: Finding['path'], message: string): void => {
    findings.push({ code: 'job-file.invalid', path, message });
  };
  if (file.class === 'deadline' && file.deadline === undefined) {
    invalid(['deadline'], 'is missing: a job of class `deadline` has one');
  }
  if (file.class === 'best-effort' && file.deadline !== undefined) {
    invalid(['deadline'], 'a best-effort job has no deadline: leave it out, or use class `deadline`');
  }
  if (file.value?.worthlessAfter !== undefined && file.deadline === undefined) {
    invalid(['value', 'worthlessAfter'], 'needs a deadline after which the worth falls');
  }
  if (file.mustMeet === true && file.deadline === undefined) {
    invalid(['mustMeet'], 'needs a deadline that must be met');
  }
  const entries = [file, ...(file.stages ?? [])].reduce((sum, keys) => sum + constraintEntries(keys), 0);
  if (entries > LIMITS.constraintEntries) {
    invalid(
      [],
      `constraints and preferences name ${entries} zones, types, families and labels in all, at most ${LIMITS.constraintEntries} are allowed: use \`*\``,
    );
  }
  const slowest = [file, ...(file.stages ?? [])].reduce((most, { preferences = [] }) => {
    const product = preferences.reduce((all, { slowdown = 1 }) => all * slowdown, 1);
    return Math.max(most, product);
  }, 1);
  if (slowest > LIMITS.slowdown) {
    invalid(
      [],
      `the slowdowns of preferences multiply to ${Number(slowest.toPrecision(3))}, at most ${LIMITS.slowdown} is allowed in all`,
    );
  }
  const characters = patternCharacters(file);
  if (characters > LIMITS.patternCharacters) {
    invalid(
      [],
      `inputs and outputs of all stages have ${characters} characters, braces written out, at most ${LIMITS.patternCharacters} are allowed: use \`*\` or folders`,
    );
  }
  if (file.stages !== undefined) {
    for (const key of ['tasks', 'gang'] as const) {
      if (file[key] !== undefined) invalid([key], 'belongs into each stage where there are `stages`');
    }
  }
  return findings;
}

/** Entries that are compared with each pool. */
const constraintEntries = ({ constraints, preferences }: SharedKeys): number =>
  [constraints, ...(preferences ?? []).map((p) => p.prefer)].reduce(
    (sum, c) =>
      sum +
      (c?.zones?.length ?? 0) +
      (c?.instanceTypes?.length ?? 0) +
      (c?.families?.length ?? 0) +
      Object.values(c?.labels ?? {}).flat().length,
    0,
  );

/** Each list is measured once, however many stages take it from the top. */
function patternCharacters(file: JobFile): number {
  const of = (patterns: readonly string[] = []): number =>
    patterns.reduce((sum, pattern) => sum + globSize(pattern).characters, 0);
  const top = { inputs: of(file.inputs), outputs: of(file.outputs) };
  return stagesOf(file).reduce(
    (sum, { inputs, outputs }) =>
      sum + (inputs === undefined ? top.inputs : of(inputs)) + (outputs === undefined ? top.outputs : of(outputs)),
    0,
  );
}

function stageFindings(file: JobFile, stages: readonly StageFile[], options: NormaliseOptions): Finding[] {
  return stages.flatMap((stage, i): Finding[] => {
    const findings: Finding[] = [];
    const at = file.stages === undefined ? [] : ['stages', i];
    if (stage.command === undefined && file.command === undefined) {
      findings.push({ code: 'job-file.invalid', path: [...at, 'command'], message: 'is missing' });
    }
    const env = { ...file.env, ...stage.env };
    for (const name of Object.keys({ ...file.secrets, ...stage.secrets })) {
      if (!Object.hasOwn(env, name)) continue;
      const message = 'is in `env` as well: leave it out there';
      const holder = stage.secrets !== undefined && Object.hasOwn(stage.secrets, name) ? at : [];
      findings.push({ code: 'job-file.invalid', path: [...holder, 'secrets', name], message });
    }
    const workdir = stage.workdir ?? file.workdir;
    const path = stage.workdir === undefined ? ['workdir'] : [...at, 'workdir'];
    if (workdir !== undefined && isS3Uri(workdir)) {
      if (parseS3Uri(workdir) === null) {
        const message = `must be a path, or a URI such as s3://bucket/folder; got ${JSON.stringify(workdir)}`;
        findings.push({ code: 'job-file.invalid', path, message });
      }
    } else if (options.baseDir === null && workdir !== undefined && !isAbsolute(workdir)) {
      findings.push({
        code: 'job-file.invalid',
        path,
        message: `must be an absolute path or s3://bucket/folder, or left out: then the job has a folder of its own; got ${JSON.stringify(workdir)}`,
      });
    }
    return findings;
  });
}

function impossibleRules(file: JobFile, specs: readonly StageSpec[]): readonly Finding[] {
  return specs.flatMap((spec, i): Finding[] => {
    const why = impossibleRule({ labels: file.labels ?? {} }, spec);
    if (why === null) return [];
    const path = file.stages?.[i]?.placement === undefined ? ['placement'] : ['stages', i, 'placement'];
    return [{ code: 'job-file.invalid', path, message: why }];
  });
}

function valueOf(value: JobFile['value']): ValueSpec {
  const after = value !== undefined && 'worthlessAfter' in value ? value.worthlessAfter : undefined;
  return { onTimeUsd: value?.onTime === undefined ? null : usd(value.onTime), worthlessAfterS: after ?? null };
}

/** Missing keys of a stage come from the top of the file, then from the defaults; env and resources key by key. */
function stageSpec(stage: StageFile, top: SharedKeys, baseDir: string | null): StageSpec {
  const workdir = stage.workdir ?? top.workdir;
  const image = stage.image ?? top.image;
  const secrets = { ...top.secrets, ...stage.secrets };
  return {
    name: stage.name,
    dependsOn: [...new Set(stage.dependsOn ?? [])],
    tasks: stage.tasks ?? 1,
    gang: stage.gang ?? false,
    command: stage.command ?? top.command ?? [],
    env: { ...top.env, ...stage.env },
    ...(Object.keys(secrets).length === 0 ? {} : { secrets }),
    workdir: resolvedWorkdir(workdir, baseDir),
    inputs: stage.inputs ?? top.inputs ?? [],
    outputs: stage.outputs ?? top.outputs ?? [],
    ...(image === undefined ? {} : { image }),
    resources: resourcesOf({ ...top.resources, ...stage.resources }),
    retries: stage.retries ?? top.retries ?? DEFAULT_RETRIES,
    timeoutS: stage.timeout ?? top.timeout ?? null,
    checkpoint: checkpointOf(stage.checkpoint ?? top.checkpoint),
    expectedRuntimeS: stage.expectedRuntime ?? top.expectedRuntime ?? null,
    constraints: constraintsOf(stage.constraints ?? top.constraints ?? {}),
    preferences: (stage.preferences ?? top.preferences ?? []).map(({ prefer, weight = 0, slowdown }) => ({
      prefer: constraintsOf(prefer),
      weight,
      ...(slowdown === undefined ? {} : { slowdown }),
    })),
    ...placementOf(stage.placement ?? top.placement),
  };
}

function resolvedWorkdir(workdir: string | undefined, baseDir: string | null): string {
  if (workdir === undefined) return baseDir === null ? OWN_FOLDER : resolve(baseDir);
  const uri = parseS3Uri(workdir);
  if (uri !== null) return s3Uri(uri);
  return baseDir === null ? resolve(workdir) : resolve(baseDir, workdir);
}

const resourcesOf = (r: NonNullable<SharedKeys['resources']>): Resources => ({
  cpu: r.cpu ?? DEFAULT_RESOURCES.cpu,
  memory: r.memory ?? DEFAULT_RESOURCES.memory,
  gpus: r.gpu ?? DEFAULT_RESOURCES.gpus,
  disk: r.disk ?? DEFAULT_RESOURCES.disk,
});

const checkpointOf = (c: SharedKeys['checkpoint']): Checkpoint | null =>
  c === undefined
    ? null
    : { signal: c.signal ?? 'SIGUSR1', graceS: c.grace ?? seconds(DEFAULT_GRACE_S), everyS: c.every ?? null };

/** Rules without absent keys and empty lists. */
function placementOf(file: PlacementFile | undefined): Pick<StageSpec, 'placement'> {
  const { maxPerInstance, spread = [], affinity = [], antiAffinity = [] } = file ?? {};
  const rules: PlacementRules = {
    ...(maxPerInstance === undefined ? {} : { maxPerInstance }),
    ...(spread.length === 0 ? {} : { spread: spread.map(({ over, maxSkew = 1 }) => ({ over, maxSkew })) }),
    ...(affinity.length === 0 ? {} : { affinity }),
    ...(antiAffinity.length === 0 ? {} : { antiAffinity }),
  };
  return Object.keys(rules).length === 0 ? {} : { placement: rules };
}

/** Constraints without absent keys: an absent list allows all. */
const constraintsOf = (c: ConstraintsFile): Constraints =>
  Object.fromEntries(Object.entries(c).filter(([, value]) => value !== undefined));
