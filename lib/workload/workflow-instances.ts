import { z } from 'zod';
import { arriving, shuffled } from './arrivals.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { linesOf, type Line, type SourceFile } from './source.ts';
import { jobName } from './spec.ts';
import { WORKFLOW_INTERARRIVAL_S, WORKFLOW_NOTES, workflowJob, type ExecutedWorkflow } from './workflow.ts';

/** Executed workflows of WfInstances, one per line, with the task data that a scheduler needs (docs/datasets.md). */

const optionalAmount = z.number().min(0).nullish();
const schema = z.object({
  path: z.string().min(1),
  wms: z.string().nullish(),
  tasks: z
    .array(
      z.object({
        n: z.string(),
        rt: z.number().min(0),
        p: z.array(z.int().min(0)),
        c: optionalAmount,
        cpu: optionalAmount,
        mem: optionalAmount,
      }),
    )
    .min(1),
});

export const workflowInstances: Reader = {
  format: 'workflow-instances',
  about: 'executed scientific workflows, one a line (JSON lines)',
  notes: () => WORKFLOW_NOTES,
  detects: ({ head }) => /^\s*\{"path":/.test(head) && head.includes('"tasks":[{"n":'),
  read: readWorkflows,
};

async function* readWorkflows(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  const { seed, interarrivalS } = context.options;
  const jobs: Submission[] = [];
  for (const file of files) {
    for await (const line of linesOf(file, context.tally)) {
      const workflow = workflowOf(line, file, context);
      const job = workflow === null ? null : workflowJob(workflow, context);
      if (job !== null) jobs.push(job);
    }
  }
  yield* arriving(shuffled(jobs, seed), interarrivalS ?? WORKFLOW_INTERARRIVAL_S, seed);
}

function workflowOf({ line, text }: Line, file: SourceFile, { tally }: ReadContext): ExecutedWorkflow | null {
  const bad = (what: string): null => {
    tally.bad(file.label, line, what);
    return null;
  };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return bad(`not JSON: ${(error as Error).message}`);
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return bad(`${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is not a workflow'}`);
  }
  const { path, wms, tasks } = parsed.data;
  const beyond = tasks.flatMap((t) => t.p).find((p) => p >= tasks.length);
  if (beyond !== undefined) return bad(`${path}: a task waits for task ${beyond} of ${tasks.length}`);
  return {
    key: path,
    file: file.label,
    line,
    // Runs of one configuration differ by the number at the end, which templates ignore.
    name: jobName((path.split('/').at(-1) ?? path).replace(/\.json$/, '')),
    owner: jobName((wms ?? '') === '' ? 'workflows' : (wms ?? '').toLowerCase()),
    tasks: tasks.map((t) => ({
      type: t.n,
      runtimeS: t.rt,
      parents: t.p,
      cores: t.c ?? null,
      cpuPercent: t.cpu ?? null,
      memoryBytes: t.mem ?? null,
    })),
  };
}
