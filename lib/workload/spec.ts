import { LIMITS } from '../domain/job-file/schema.ts';
import type { Checkpoint, StageSpec } from '../domain/job.ts';
import type { Resources } from '../domain/resources.ts';
import { mib, milliCpu, seconds } from '../kernel/units.ts';
import type { ReadContext, Submission } from './reader.ts';
import type { StageTruth } from './workload.ts';

/** Stage as readers of traces give it. */
export interface TraceStage {
  readonly name: string;
  readonly dependsOn: readonly string[];
  /** Running time of each task, s; one entry per task, >= 0. */
  readonly runtimeS: Float64Array;
  readonly failures?: Uint16Array;
  readonly resources: Resources;
  readonly gang?: boolean;
  readonly expectedRuntimeS?: number | null;
  /** Default: the job's. */
  readonly program?: string;
}

export interface TraceJob {
  readonly key: string;
  readonly file: string;
  readonly line: number;
  readonly atS: number;
  readonly production: boolean | null;
  /** Names are adapted to job files. Recurring names must not differ by digits only (lib/domain/job-features.ts). */
  readonly owner: string;
  readonly name: string;
  readonly program: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly stages: readonly TraceStage[];
}

/** Replacement for a running time of 0: below the resolution of every trace (milliseconds at best), but positive. */
export const SHORTEST_S = 0.001;
/** Least CPU request: traces have requests of 0, of which an instance would hold any number. */
const LEAST_CPU_MILLI = 10;
const LEAST_MEMORY_MIB = 16;
/** Largest CPU request of a job file (lib/domain/job-file/schema.ts). */
const MOST_CPU_MILLI = 10_000_000;
const MOST_MEMORY_MIB = 2 ** 30;
const CHECKPOINT_GRACE_S = 20;

/** Request in whole amounts within the limits of a job file, rounded up. */
export const request = (vcpus: number, memoryMiB: number, gpus = 0): Resources => ({
  cpu: milliCpu(clamp(Math.ceil(vcpus * 1000 - 1e-9), LEAST_CPU_MILLI, MOST_CPU_MILLI)),
  memory: mib(clamp(Math.ceil(memoryMiB - 1e-9), LEAST_MEMORY_MIB, MOST_MEMORY_MIB)),
  gpus,
  disk: mib(0),
});

const clamp = (x: number, least: number, most: number): number => Math.min(most, Math.max(least, x));

/** Request of unknown size. */
export const ONE_CPU: Resources = request(1, 1024);

/** Number as letters: 0 is `a`, 25 `z`, 26 `aa`. Names that differ in digits only would be runs of one template. */
export function letters(n: number): string {
  let text = '';
  for (let rest = n + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    text = String.fromCharCode(97 + ((rest - 1) % 26)) + text;
  }
  return text;
}

/** Name of a job or owner: 1 to 128 letters, digits, `.`, `_`, `-`. */
export const jobName = (text: string): string => fitted(text, /[^A-Za-z0-9._-]+/g, 128);
/** Name of a stage. Of a long one the end is kept, where names of processes differ. */
export const stageName = (text: string): string => fitted(text, /[^A-Za-z0-9_-]+/g, 56);

const fitted = (text: string, others: RegExp, most: number): string => {
  const plain = text
    .replace(others, '-')
    .slice(-most)
    .replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
  return plain === '' ? 'x' : plain;
};

/**
 * Job as a job file would have it. A stage with too many tasks becomes several, and its successors wait for all of
 * them. Null if impossible; the tally has the reason.
 */
export function submissionOf(job: TraceJob, { options, tally }: ReadContext): Submission | null {
  const wrong = faultIn(job);
  if (wrong !== null) {
    tally.bad(job.file, job.line, `job ${job.key}: ${wrong}`);
    return null;
  }
  if (options.gpus === 'drop' && job.stages.some((s) => s.resources.gpus > 0)) {
    tally.dropped('job wants a GPU');
    return null;
  }
  const parts = new Map(job.stages.map((s) => [s.name, partsOf(s, job.stages)]));
  const all = [...parts.values()].flat();
  if (all.length > LIMITS.stages) {
    tally.dropped(`job has more than ${LIMITS.stages} stages`);
    return null;
  }
  if (all.length > job.stages.length) tally.adjusted(`stage of more than ${LIMITS.tasksPerStage} tasks parted`);
  const checkpoint = checkpointOf(options.checkpointEveryS);
  const truth = new Map<string, StageTruth>();
  const stages: StageSpec[] = [];
  for (const part of all) {
    const real = truthOf(part, tally);
    truth.set(part.name, real);
    stages.push(stageOf(part, { program: part.program ?? job.program, parts, checkpoint, options }));
  }
  const { key, file, line, atS, production } = job;
  return {
    key,
    file,
    line,
    atS,
    production,
    spec: {
      name: jobName(job.name),
      owner: jobName(job.owner),
      labels: job.labels ?? {},
      class: 'best-effort',
      deadline: null,
      value: { onTimeUsd: null, worthlessAfterS: null },
      after: [],
      maxCostUsd: null,
      stages,
    },
    truth,
  };
}

function stageOf(
  part: TraceStage,
  of: {
    readonly program: string;
    readonly parts: ReadonlyMap<string, readonly TraceStage[]>;
    readonly checkpoint: Checkpoint | null;
    readonly options: ReadContext['options'];
  },
): StageSpec {
  return {
    name: part.name,
    dependsOn: part.dependsOn.flatMap((d) => (of.parts.get(d) ?? []).map((p) => p.name)),
    tasks: part.runtimeS.length,
    gang: part.gang ?? false,
    command: [of.program],
    env: {},
    workdir: '/',
    inputs: [],
    outputs: [],
    resources: of.options.gpus === 'ignore' ? { ...part.resources, gpus: 0 } : part.resources,
    // Equal for all jobs: policies must not know the true failure rate.
    retries: LIMITS.retries,
    timeoutS: null,
    checkpoint: of.checkpoint,
    expectedRuntimeS: guess(part.expectedRuntimeS),
    constraints: {},
    preferences: [],
  };
}

const guess = (s: number | null | undefined): StageSpec['expectedRuntimeS'] =>
  s === null || s === undefined || !(s > 0) ? null : seconds(Math.min(s, LIMITS.durationS));

const checkpointOf = (everyS: number | undefined): Checkpoint | null =>
  everyS === undefined ? null : { signal: 'SIGUSR1', graceS: seconds(CHECKPOINT_GRACE_S), everyS: seconds(everyS) };

function faultIn(job: TraceJob): string | null {
  if (job.stages.length === 0) return 'it has no stage';
  if (!Number.isFinite(job.atS)) return 'its submission is no time';
  for (const { name, runtimeS } of job.stages) {
    if (runtimeS.length === 0) return `stage ${name} has no task`;
    for (const s of runtimeS) {
      if (!(s >= 0)) return `a running time is >= 0 s; got ${s}`;
      if (s > LIMITS.durationS) return `a running time is at most 10 years; got ${s} s`;
    }
  }
  return null;
}

/** Parts of a stage within the limits of a job file; the first keeps its name. */
function partsOf(stage: TraceStage, all: readonly TraceStage[]): readonly TraceStage[] {
  const tasks = stage.runtimeS.length;
  const most = LIMITS.tasksPerStage;
  // Gangs cannot be split: readers drop larger ones.
  if (tasks <= most) return [stage];
  const taken = new Set(all.map((s) => s.name));
  return Array.from({ length: Math.ceil(tasks / most) }, (_, i): TraceStage => {
    let name = i === 0 ? stage.name : `${stage.name}-${i + 1}`;
    while (i > 0 && taken.has(name)) name += 'x';
    taken.add(name);
    const failures = stage.failures?.subarray(i * most, (i + 1) * most);
    return {
      ...stage,
      name,
      runtimeS: stage.runtimeS.subarray(i * most, (i + 1) * most),
      ...(failures === undefined ? {} : { failures }),
    };
  });
}

function truthOf(stage: TraceStage, tally: ReadContext['tally']): StageTruth {
  let shortened = 0;
  const runtimeS = stage.runtimeS.map((s) => {
    if (s >= SHORTEST_S) return s;
    shortened++;
    return SHORTEST_S;
  });
  tally.adjusted(`task of less than ${SHORTEST_S} s taken as so long`, shortened);
  const { failures } = stage;
  if (failures === undefined || failures.every((n) => n === 0)) return { runtimeS };
  const tooMany = failures.reduce((n, f) => (f > LIMITS.retries ? n + 1 : n), 0);
  tally.adjusted(`task of more than ${LIMITS.retries} failures, cut to that number`, tooMany);
  return { runtimeS, failures: failures.map((n) => Math.min(n, LIMITS.retries)) };
}
