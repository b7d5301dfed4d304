import { templateName } from '../domain/job-features.ts';
import { LIMITS } from '../domain/job-file/schema.ts';
import type { ReadContext, Submission } from './reader.ts';
import { request, stageName, submissionOf, type TraceStage } from './spec.ts';

/** Task of an executed scientific workflow. */
export interface WorkflowTask {
  readonly type: string;
  /** Seconds; 0 if the workflow system did not see it run. */
  readonly runtimeS: number;
  /** Positions of its parents in the list. */
  readonly parents: readonly number[];
  /** Null: unknown. */
  readonly cores: number | null;
  /** Average CPU use, percent of one core. */
  readonly cpuPercent: number | null;
  readonly memoryBytes: number | null;
}

export interface ExecutedWorkflow {
  readonly key: string;
  readonly file: string;
  readonly line: number;
  readonly owner: string;
  readonly name: string;
  readonly tasks: readonly WorkflowTask[];
}

/** Mean gap of a Poisson process, ours: the data has no common arrivals. */
export const WORKFLOW_INTERARRIVAL_S = 600;
/** Memory request of a task of unknown size. */
const UNKNOWN_MEMORY_MIB = 1024;
/**
 * Least memory of a task of known size. Some workflow systems wrote KiB in place of bytes. Those programs are small,
 * and below this value the error cannot matter.
 */
const LEAST_MEMORY_MIB = 128;

export const WORKFLOW_NOTES = [
  'Tasks of one type at one depth are a stage: it starts when all stages that any of its tasks waits for have ended, which is later than each task alone would.',
  `Measured memory, at least ${LEAST_MEMORY_MIB} MiB; ${UNKNOWN_MEMORY_MIB} MiB if unmeasured. Cores as stated, else by average CPU use, at least 1.`,
  `Workflows come in a drawn order, a mean of ${WORKFLOW_INTERARRIVAL_S} s apart unless said otherwise: the data have no arrivals.`,
];

/**
 * Workflow as a job. Stages are barriers, at most 100 per job; tasks of a workflow wait for tasks. So tasks of one type
 * (name without its varying part) and depth (longest path from the start) form a stage. With more than 100 such groups,
 * all tasks of a depth do. Null if unusable; the tally has the reason.
 */
export function workflowJob(workflow: ExecutedWorkflow, context: ReadContext): Submission | null {
  const { key, file, line, owner, name, tasks } = workflow;
  const depths = depthsOf(tasks);
  if (depths === null) {
    context.tally.bad(file, line, `${key}: tasks wait for one another in a circle`);
    return null;
  }
  const byType = (i: number): string => `${stageName(templateName(tasks[i]?.type ?? ''))}-${depths[i] ?? 0}`;
  const byDepth = (i: number): string => `depth-${depths[i] ?? 0}`;
  let stages = stagesBy(byType, tasks, depths);
  if (stages.length > LIMITS.stages) {
    context.tally.adjusted(`workflow of more than ${LIMITS.stages} kinds of tasks: a stage for each depth`);
    stages = stagesBy(byDepth, tasks, depths);
  }
  const program = stageName(templateName(name));
  return submissionOf({ key, file, line, atS: 0, production: null, owner, name, program, stages }, context);
}

/** Depth of each task: tasks on the longest path to it. Null for a cycle. */
function depthsOf(tasks: readonly WorkflowTask[]): Int32Array | null {
  const depths = new Int32Array(tasks.length);
  const waitsFor = Int32Array.from(tasks, (t) => t.parents.length);
  const children: number[][] = tasks.map(() => []);
  tasks.forEach((t, i) => t.parents.forEach((p) => children[p]?.push(i)));
  const free = [...tasks.keys()].filter((i) => waitsFor[i] === 0);
  // The list grows during the loop: tasks are added after their last parent.
  for (const i of free) {
    for (const child of children[i] ?? []) {
      depths[child] = Math.max(depths[child] ?? 0, (depths[i] ?? 0) + 1);
      waitsFor[child] = (waitsFor[child] ?? 0) - 1;
      if (waitsFor[child] === 0) free.push(child);
    }
  }
  return free.length === tasks.length ? depths : null;
}

/** Groups hold tasks of one depth, so their dependencies have no cycle. */
function stagesBy(nameOf: (i: number) => string, tasks: readonly WorkflowTask[], depths: Int32Array): TraceStage[] {
  const groups = new Map<string, number[]>();
  const inOrder = [...tasks.keys()].sort((a, b) => (depths[a] ?? 0) - (depths[b] ?? 0) || a - b);
  for (const i of inOrder) {
    const name = nameOf(i);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [i]);
    else group.push(i);
  }
  return [...groups].map(([name, group]): TraceStage => {
    const members = group.flatMap((i) => tasks[i] ?? []);
    return {
      name,
      dependsOn: [...new Set(members.flatMap((t) => t.parents).map(nameOf))],
      runtimeS: Float64Array.from(members, (t) => t.runtimeS),
      resources: request(Math.max(...members.map(coresOf)), Math.max(...members.map(memoryOf))),
      program: stageName(templateName(members[0]?.type ?? name)),
    };
  });
}

const coresOf = (t: WorkflowTask): number => Math.max(1, Math.ceil(t.cores ?? (t.cpuPercent ?? 100) / 100));
const memoryOf = (t: WorkflowTask): number =>
  t.memoryBytes === null ? UNKNOWN_MEMORY_MIB : Math.max(LEAST_MEMORY_MIB, t.memoryBytes / 2 ** 20);
