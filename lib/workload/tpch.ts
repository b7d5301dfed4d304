import { z } from 'zod';
import { dependencyFindings } from '../domain/job-file/dependencies.ts';
import { arriving, shuffled } from './arrivals.ts';
import { drawsOf } from './draws.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { linesOf, type Line, type SourceFile } from './source.ts';
import { letters, request, submissionOf, type TraceStage } from './spec.ts';

/**
 * TPC-H queries on Spark as measured for Decima: one DAG per line, each stage's task times in MILLISECONDS by number of
 * executors. The smallest number is used, because tasks disturb one another least there. Times of its first wave and of
 * later ones together give one time per task.
 */

const measured = z.record(z.string(), z.array(z.number()));
const schema = z.object({
  input: z.string().min(1),
  query: z.int().min(0),
  edges: z.array(z.tuple([z.int().min(0), z.int().min(0)])),
  stages: z
    .array(z.object({ n_tasks: z.int().min(1).max(1_000_000), first_wave_ms: measured, rest_wave_ms: measured }))
    .min(1),
});
type Dag = z.output<typeof schema>;

/** Mean gap of a Poisson process, ours: the data has no arrivals. */
const INTERARRIVAL_S = 60;
const RESOURCES = request(1, 4096);

export const tpch: Reader = {
  format: 'tpch-spark-dags',
  about: 'TPC-H queries on Spark with measured task times (JSON lines)',
  notes: () => [
    'Task times are those on the fewest executors that were measured. Each task asks for 1 vCPU and 4 GiB: the data have no requests.',
    `Jobs come in a drawn order, a mean of ${INTERARRIVAL_S} s apart unless said otherwise: the data have no arrivals.`,
  ],
  detects: ({ head }) => /^\s*\{"input":/.test(head) && head.includes('"first_wave_ms"'),
  read: readDags,
};

async function* readDags(files: readonly SourceFile[], context: ReadContext): AsyncGenerator<Submission> {
  const { seed, interarrivalS } = context.options;
  for (const file of files) {
    const jobs: Submission[] = [];
    for await (const line of linesOf(file, context.tally)) {
      const dag = dagOf(line, file, context);
      const job = dag === null ? null : jobOf(dag, line.line, file, context);
      if (job !== null) jobs.push(job);
    }
    yield* arriving(shuffled(jobs, seed), interarrivalS ?? INTERARRIVAL_S, seed);
  }
}

function dagOf({ line, text }: Line, file: SourceFile, { tally }: ReadContext): Dag | null {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    tally.bad(file.label, line, `not JSON: ${(error as Error).message}`);
    return null;
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  tally.bad(file.label, line, `${issue?.path.join('.') ?? ''} ${issue?.message ?? 'is not a DAG'}`);
  return null;
}

function jobOf(dag: Dag, line: number, file: SourceFile, context: ReadContext): Submission | null {
  const key = `q${dag.query}-${dag.input}`;
  const bad = (what: string): null => {
    context.tally.bad(file.label, line, `${key}: ${what}`);
    return null;
  };
  const beyond = dag.edges.flat().find((i) => i >= dag.stages.length);
  if (beyond !== undefined) return bad(`an edge names stage ${beyond} of ${dag.stages.length}`);
  const stages: TraceStage[] = [];
  for (const i of dag.stages.keys()) {
    const runtimeS = runtimes(dag, i, context);
    if (runtimeS === null) return bad(`stage ${i} has no task times, or a negative one`);
    const parents = dag.edges.filter(([, child]) => child === i).map(([parent]) => `s${parent}`);
    stages.push({ name: `s${i}`, dependsOn: [...new Set(parents)], runtimeS, resources: RESOURCES });
  }
  const [wrong] = dependencyFindings(stages);
  if (wrong !== undefined) return bad(wrong.message);
  // Letters for the query's number make each query a template; input sizes are its runs.
  const query = `query-${letters(Math.max(0, dag.query - 1))}`;
  return submissionOf(
    {
      key,
      file: file.label,
      line,
      atS: 0,
      production: null,
      owner: 'tpch',
      name: `${query}-${dag.input}`,
      program: query,
      stages,
    },
    context,
  );
}

/** Seconds of each task of a stage; null if a time is missing or negative. */
function runtimes(dag: Dag, i: number, { options, tally }: ReadContext): Float64Array | null {
  const stage = dag.stages[i];
  if (stage === undefined) return null;
  const counts = Object.keys(stage.first_wave_ms)
    .filter((c) => (stage.first_wave_ms[c]?.length ?? 0) > 0)
    .sort((a, b) => Number(a) - Number(b));
  const fewest = counts[0];
  if (fewest === undefined) return null;
  const ms = [...(stage.first_wave_ms[fewest] ?? []), ...(stage.rest_wave_ms[fewest] ?? [])];
  if (ms.some((t) => t < 0)) return null;
  if (ms.length !== stage.n_tasks) tally.adjusted('stage with more or fewer task times than tasks: cut or drawn again');
  const draws = drawsOf(options.seed, 'tpch', `q${dag.query}-${dag.input}/${i}`);
  return Float64Array.from(
    { length: stage.n_tasks },
    (_, t) => (ms[t] ?? ms[Math.floor(draws() * ms.length)] ?? 0) / 1000,
  );
}
