import { readFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import { z } from 'zod';
import { arriving, shuffled } from './arrivals.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import type { SourceFile } from './source.ts';
import { jobName } from './spec.ts';
import {
  WORKFLOW_INTERARRIVAL_S,
  WORKFLOW_NOTES,
  workflowJob,
  type ExecutedWorkflow,
  type WorkflowTask,
} from './workflow.ts';

/**
 * WfFormat, the JSON of WfCommons: one executed workflow per document. Since 1.5 specification and execution are
 * separate and joined by task id. Up to 1.4 each task has both, and names its parents by name.
 */

const amount = z.number().min(0).nullish().transform(orNull);
const text = z
  .string()
  .nullish()
  .transform((v) => (v === '' ? null : orNull(v)));
function orNull<T>(value: T | null | undefined): T | null {
  return value ?? null;
}
/** Task keys of all versions; each task has those of its own. */
const task = z.object({
  id: text,
  name: text,
  category: text,
  parents: z.array(z.string()).nullish(),
  runtimeInSeconds: amount,
  runtime: amount,
  coreCount: amount,
  cores: amount,
  avgCPU: amount,
  memoryInBytes: amount,
  memory: amount,
});
type Task = z.output<typeof task>;
const tasks = z.array(task).min(1);
const schema = z.object({
  name: z.string().min(1),
  schemaVersion: text,
  runtimeSystem: z.object({ name: text }).nullish(),
  wms: z.object({ name: text }).nullish(),
  workflow: z.object({
    specification: z.object({ tasks }).nullish(),
    execution: z.object({ tasks }).nullish(),
    tasks: tasks.nullish(),
    jobs: tasks.nullish(),
  }),
});

export const wfFormat: Reader = {
  format: 'wfformat',
  about: 'a WfFormat document (WfCommons), or a folder of them',
  notes: () => WORKFLOW_NOTES,
  takesFolders: true,
  // Only the beginning may have been read: it names the format.
  detects: ({ head }) => /^\s*\{/.test(head) && head.includes('"workflow"') && /"schemaVersion"|"makespan/.test(head),
  read: readWorkflows,
};

async function* readWorkflows(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  const { seed, interarrivalS } = context.options;
  const jobs: Submission[] = [];
  for (const file of files) {
    const workflow = await workflowOf(file, context);
    const job = workflow === null ? null : workflowJob(workflow, context);
    if (job !== null) jobs.push(job);
  }
  yield* arriving(shuffled(jobs, seed), interarrivalS ?? WORKFLOW_INTERARRIVAL_S, seed);
}

async function workflowOf(file: SourceFile, { tally }: ReadContext): Promise<ExecutedWorkflow | null> {
  const bad = (what: string): null => {
    tally.bad(file.label, 0, what);
    return null;
  };
  let json: unknown;
  try {
    const bytes = await readFile(file.path);
    json = JSON.parse((file.gzip ? gunzipSync(bytes) : bytes).toString('utf8').replace(/^\uFEFF/, ''));
  } catch (error) {
    return bad(`not JSON: ${(error as Error).message}`);
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return bad(`${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is not WfFormat'}`);
  }
  const { runtimeSystem, wms } = parsed.data;
  const joined = tasksOf(parsed.data.workflow);
  if (typeof joined === 'string') return bad(joined);
  return {
    key: file.label,
    file: file.label,
    line: 0,
    name: jobName((file.label.split(/[/\\]/).at(-1) ?? file.label).replace(/\.json(\.gz)?$/, '')),
    owner: jobName((runtimeSystem?.name ?? wms?.name ?? 'workflows').toLowerCase()),
    tasks: joined,
  };
}

/** Tasks with the positions of their parents, or the reason why not. */
function tasksOf(workflow: z.output<typeof schema>['workflow']): readonly WorkflowTask[] | string {
  const specified = workflow.specification?.tasks ?? workflow.tasks ?? workflow.jobs;
  if (specified === null || specified === undefined) return 'the workflow has no tasks';
  const executed = new Map((workflow.execution?.tasks ?? []).map((t) => [t.id ?? t.name ?? '', t]));
  const places = new Map<string, number>();
  // Names first: ids win if one task's name is another's id.
  for (const key of ['name', 'id'] as const) {
    for (const [i, t] of specified.entries()) if (t[key] !== null) places.set(t[key], i);
  }
  const found: WorkflowTask[] = [];
  for (const t of specified) {
    const label = t.id ?? t.name ?? '';
    const ran: Task = { ...t, ...withoutNothing(executed.get(label) ?? {}) };
    const runtimeS = ran.runtimeInSeconds ?? ran.runtime;
    if (runtimeS === null) return `task ${label} has no running time: it was not executed`;
    const parents = (t.parents ?? []).map((p) => places.get(p));
    if (parents.includes(undefined)) return `task ${label} waits for one that is not there`;
    found.push({
      type: t.category ?? t.name ?? label,
      runtimeS,
      parents: parents.flatMap((p) => p ?? []),
      cores: ran.coreCount ?? ran.cores ?? null,
      cpuPercent: ran.avgCPU ?? null,
      memoryBytes: ran.memoryInBytes ?? ran.memory ?? null,
    });
  }
  return found;
}

const withoutNothing = (t: Partial<Task>): Partial<Task> =>
  Object.fromEntries(Object.entries(t).filter(([, value]) => value !== null));
