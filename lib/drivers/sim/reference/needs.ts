/**
 * Needs of a workload: what its tasks ask for, how long they run, and the window in which they may run. The reference
 * and the lower bound are computed from needs and the market alone; no preset has a part in them.
 */
import { brokenConstraint } from '../../../domain/constraints.ts';
import type { Constraints, StageSpec } from '../../../domain/job.ts';
import type { Pool } from '../../../domain/pool.ts';
import { fits, vector, type Resources } from '../../../domain/resources.ts';
import { raw, type EpochMs } from '../../../kernel/units.ts';
import type { WorkloadJob } from '../../../workload/workload.ts';
import type { Span } from './rates.ts';

/** Tasks of one stage. Times in ms since the epoch. */
export interface StageNeed {
  /** Position of the job among the admitted ones. */
  readonly job: number;
  readonly name: string;
  readonly dependsOn: readonly string[];
  readonly resources: Resources;
  readonly constraints: Constraints;
  /** True if the work of an ended attempt can be kept. */
  readonly saves: boolean;
  /** Running time of each task, without set-up. */
  readonly runtimeMs: Float64Array;
  /** Tries that fail before one succeeds, by task; absent: none. */
  readonly failures?: Uint16Array;
  /** Submission plus the longest chain of earlier stages. */
  readonly releaseMs: number;
  /** Deadline, or the end of patience without one, less the longest chain of later stages. */
  readonly dueMs: number;
}

export interface Needs {
  readonly stages: readonly StageNeed[];
  readonly tasks: number;
  readonly submittedMs: readonly number[];
  /** Set-up of each attempt. */
  readonly setupMs: number;
  /** Time that is paid before the work of a stay, at least: the set-up, and a start-up where nothing else runs. */
  readonly changeoverMs: number;
}

/** Time within which work without a deadline is to be done, past its longest chain of stages. */
const PATIENCE_MS = 86_400_000;

/** Shortest start-up of an instance (Stratus, section 3.3.1). */
const LEAST_START_MS = 30_000;

/** O(stages^2) per job. */
export function needsOf(
  jobs: readonly WorkloadJob[],
  of: { readonly fromMs: EpochMs; readonly setupS: number },
): Needs {
  const setupMs = of.setupS * 1000;
  const submittedMs = jobs.map((job) => raw(of.fromMs) + job.submittedS * 1000);
  const stages = jobs.flatMap((job, j) => stagesOf(job, { job: j, submittedMs: submittedMs[j] ?? 0, setupMs }));
  const tasks = stages.reduce((n, s) => n + s.runtimeMs.length, 0);
  return { stages, tasks, submittedMs, setupMs, changeoverMs: setupMs + (tasks === 1 ? LEAST_START_MS : 0) };
}

/** Window of the tasks of a stage; without an end if there is no deadline, or one that cannot be met. */
export function windowOf({ releaseMs, dueMs, runtimeMs }: StageNeed, setupMs: number): Span {
  const possible = runtimeMs.every((ms) => releaseMs + setupMs + ms <= dueMs);
  return { fromMs: releaseMs, toMs: possible ? dueMs : Infinity };
}

function stagesOf(
  { spec, truth }: WorkloadJob,
  of: { readonly job: number; readonly submittedMs: number; readonly setupMs: number },
): StageNeed[] {
  const runtimes = new Map(spec.stages.map(({ name }) => [name, inMs(truth.get(name)?.runtimeS)]));
  const longestMs = (name: string): number =>
    (runtimes.get(name) ?? new Float64Array(0)).reduce((longest, ms) => Math.max(longest, ms), 0) + of.setupMs;
  const before = chains(spec.stages, (s) => s.dependsOn, longestMs);
  const after = chains(
    spec.stages,
    (s) => spec.stages.filter((later) => later.dependsOn.includes(s.name)).map((later) => later.name),
    longestMs,
  );
  const wholeMs = spec.stages.reduce((most, s) => Math.max(most, longestMs(s.name) + (after.get(s.name) ?? 0)), 0);
  const deadlineMs = deadlineOf(spec.deadline, of.submittedMs) ?? of.submittedMs + wholeMs + PATIENCE_MS;
  return spec.stages.map((s) => {
    const failures = truth.get(s.name)?.failures;
    return {
      job: of.job,
      name: s.name,
      dependsOn: s.dependsOn,
      resources: s.resources,
      constraints: s.constraints,
      saves: s.checkpoint !== null,
      runtimeMs: runtimes.get(s.name) ?? new Float64Array(0),
      ...(failures === undefined ? {} : { failures }),
      releaseMs: of.submittedMs + (before.get(s.name) ?? 0),
      dueMs: deadlineMs - (after.get(s.name) ?? 0),
    };
  });
}

const inMs = (runtimeS: Float64Array | undefined): Float64Array => Float64Array.from(runtimeS ?? [], (s) => s * 1000);

function deadlineOf(deadline: WorkloadJob['spec']['deadline'], submittedMs: number): number | null {
  if (deadline === null) return null;
  return 'atMs' in deadline ? raw(deadline.atMs) : submittedMs + raw(deadline.afterS) * 1000;
}

/** Time of the longest chain of neighbours of each stage, itself left out. */
function chains(
  stages: readonly StageSpec[],
  neighbours: (stage: StageSpec) => readonly string[],
  longestMs: (name: string) => number,
): ReadonlyMap<string, number> {
  const byName = new Map(stages.map((s) => [s.name, s]));
  const known = new Map<string, number>();
  const chain = (stage: StageSpec): number => {
    const before = known.get(stage.name);
    if (before !== undefined) return before;
    const ms = neighbours(stage).reduce((most, name) => {
      const next = byName.get(name);
      return next === undefined ? most : Math.max(most, longestMs(name) + chain(next));
    }, 0);
    known.set(stage.name, ms);
    return ms;
  };
  for (const stage of stages) chain(stage);
  return known;
}

/** Equal for stages that may use the same pools with the same shares. */
export const kindKey = (need: Pick<StageNeed, 'resources' | 'constraints'>): string =>
  `${vector(need.resources).join(' ')} ${JSON.stringify(need.constraints)}`;

/** True if an instance of the pool holds a task of the stage, and its constraints allow the pool. */
export const mayUse = (need: Pick<StageNeed, 'resources' | 'constraints'>, pool: Pool): boolean =>
  fits(need.resources, pool.type.capacity) && brokenConstraint(need.constraints, pool) === null;
