/** Jobs as SLearn cuts them from the Google trace (section 4.3), a slot per task, and DAGs made of them (section 6). */
import { join } from 'node:path';
import { raw } from '../../lib/kernel/units.ts';
import { milliCpuIn } from '../../lib/domain/resources.ts';
import { randomStream, type Uniform } from '../../lib/kernel/random.ts';
import { openWorkload } from '../../lib/workload/open.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { benchJob, type BenchStage } from '../cluster/jobs.ts';

/** Jobs of the Google trace, DAGs made of them, and DAGs as other traces have them. */
export const KINDS = ['jobs', 'dags', 'alibaba', 'tpch'] as const;
export type Kind = (typeof KINDS)[number];

export interface SLearnWork {
  readonly data: string;
  readonly kind: Kind;
  readonly seed: number;
  /** Jobs that are run. */
  readonly jobs: number;
  readonly slots: number;
  /** Work of the jobs over what the slots can do in the time of their arrivals. */
  readonly load: number;
}

export interface Cut {
  /** Jobs of the first half of the trace: what is known before. */
  readonly earlier: readonly WorkloadJob[];
  readonly jobs: readonly WorkloadJob[];
}

/** Larger jobs are left out, as they would run in more than one wave (section 4.3, footnote 2). */
const MOST_TASKS = 150;
const STAGES = { least: 2, most: 5 };

/** A job of the trace, all of its tasks together. */
interface Plain {
  readonly key: string;
  readonly owner: string;
  readonly name: string;
  /** Logical name. */
  readonly program: string;
  readonly request: string;
  readonly atS: number;
  readonly runtimeS: readonly number[];
}

const read = new Map<string, Promise<readonly Plain[]>>();

/** Each time the trace is read once per process. */
function traceOf(data: string): Promise<readonly Plain[]> {
  let jobs = read.get(data);
  if (jobs === undefined) read.set(data, (jobs = plainJobs(join(data, 'google-2011', 'task_attempts.csv.gz'))));
  return jobs;
}

async function plainJobs(path: string): Promise<readonly Plain[]> {
  const jobs: Plain[] = [];
  for await (const { key, submittedS, spec, truth } of (await openWorkload(path, { deadlines: 'none' })).jobs()) {
    const runtimeS = spec.stages.flatMap((s) => [...(truth.get(s.name)?.runtimeS ?? [])]);
    if (runtimeS.length > MOST_TASKS) continue;
    const request = spec.stages.map(({ resources: r }) => `${milliCpuIn(r)}-${raw(r.memory)}`)[0] ?? '';
    jobs.push({
      key,
      owner: spec.owner,
      name: spec.name,
      program: spec.stages[0]?.command[0] ?? '',
      request,
      atS: submittedS,
      runtimeS,
    });
  }
  return jobs;
}

/** All jobs of the trace, one stage each, at their own times. `half`: index of the first job of the second half. */
export async function allJobs(data: string): Promise<{ readonly jobs: readonly WorkloadJob[]; readonly half: number }> {
  const all = await traceOf(data);
  const middleS = (all.at(-1)?.atS ?? 0) / 2;
  const jobs = all.map((of) => jobOf({ ...of, stages: inARow([of.runtimeS]) }, of.atS));
  return { jobs, half: all.findIndex((j) => j.atS >= middleS) };
}

/** Jobs drawn from the second half, with equal probability, their arrivals stretched to the load. */
export async function cutOf({ data, kind, seed, jobs: count, slots, load }: SLearnWork): Promise<Cut> {
  const draw = randomStream(seed, `slearn/${kind}`);
  const { before, after } = await halvesOf(data, kind, draw);
  const dags = drawnFrom(after, count, draw);
  const firstS = dags[0]?.atS ?? 0;
  const spanS = (dags.at(-1)?.atS ?? 0) - firstS;
  const timesOf = ({ stages }: Dag): readonly number[] => stages.flatMap(({ runtimeS }) => runtimeS);
  const workS = dags.reduce((sum, d) => sum + timesOf(d).reduce((a, b) => a + b, 0), 0);
  const stretch = workS / (load * slots) / Math.max(1, spanS);
  return {
    earlier: before.map((of) => jobOf(of, of.atS)),
    jobs: dags.map((of) => jobOf(of, (of.atS - firstS) * stretch)),
  };
}

interface Dag extends Omit<Plain, 'runtimeS'> {
  readonly stages: readonly Pick<BenchStage, 'name' | 'dependsOn' | 'runtimeS'>[];
}

/** Stages one after the other. */
const inARow = (times: readonly (readonly number[])[]): Dag['stages'] =>
  times.map((runtimeS, i) => ({ name: `s${i}`, ...(i === 0 ? {} : { dependsOn: [`s${i - 1}`] }), runtimeS }));

/** Jobs before and after the middle of the trace's time. */
async function halvesOf(
  data: string,
  kind: Kind,
  draw: Uniform,
): Promise<{ readonly before: readonly Dag[]; readonly after: readonly Dag[] }> {
  if (kind === 'alibaba' || kind === 'tpch') {
    const { path, mostTasks } = TRACES[kind];
    const all = await dagsIn(join(data, path), mostTasks);
    const middleS = (all.at(-1)?.atS ?? 0) / 2;
    return { before: all.filter((d) => d.atS < middleS), after: all.filter((d) => d.atS >= middleS) };
  }
  const all = await traceOf(data);
  const middleS = (all.at(-1)?.atS ?? 0) / 2;
  const made = (jobs: readonly Plain[]): readonly Dag[] =>
    kind === 'dags' ? dagsOf(jobs, draw) : jobs.map((of): Dag => ({ ...of, stages: inARow([of.runtimeS]) }));
  return { before: made(all.filter((j) => j.atS < middleS)), after: made(all.filter((j) => j.atS >= middleS)) };
}

/** Stages of TPC-H are wide, and run in waves. */
const TRACES = {
  alibaba: { path: 'alibaba-2018-dags/alibaba2018_random_6600_jobs.csv.gz', mostTasks: MOST_TASKS },
  tpch: { path: 'tpch-spark-dags/tpch_dags.jsonl.gz', mostTasks: 1000 },
} as const;

/** DAGs of a trace whose stages have at most so many tasks each. */
async function dagsIn(path: string, mostTasks: number): Promise<readonly Dag[]> {
  const dags: Dag[] = [];
  for await (const { key, submittedS, spec, truth } of (await openWorkload(path, { deadlines: 'none' })).jobs()) {
    const stages = spec.stages.map(({ name, dependsOn }) => ({
      name,
      dependsOn,
      runtimeS: [...(truth.get(name)?.runtimeS ?? [])],
    }));
    if (stages.some(({ runtimeS }) => runtimeS.length > mostTasks)) continue;
    const program = spec.stages[0]?.command[0] ?? '';
    dags.push({ key, owner: spec.owner, name: spec.name, program, request: '', atS: submittedS, stages });
  }
  return dags.sort((a, b) => a.atS - b.atS);
}

function jobOf({ key, owner, name, program, request, stages }: Dag, submittedS: number): WorkloadJob {
  return benchJob({
    key,
    submittedS,
    stages: stages.map((stage): BenchStage => ({ ...stage, over: { command: [program] } })),
    over: { owner, name, labels: { request } },
  });
}

function drawnFrom<T extends { readonly atS: number }>(all: readonly T[], count: number, draw: Uniform): readonly T[] {
  const rest = [...all];
  const drawn: T[] = [];
  while (drawn.length < count && rest.length > 0) {
    const i = Math.floor(draw() * rest.length);
    drawn.push(rest[i] as T);
    rest[i] = rest.at(-1) as T;
    rest.pop();
  }
  return drawn.sort((a, b) => a.atS - b.atS);
}

/** Jobs of one user and name in a row become stages of one job, two to five of them. */
function dagsOf(jobs: readonly Plain[], draw: Uniform): readonly Dag[] {
  const dags: Dag[] = [];
  for (const [, alike] of Map.groupBy(jobs, (j) => `${j.owner} ${j.program}`)) {
    for (let at = 0; at < alike.length;) {
      const length = STAGES.least + Math.floor(draw() * (STAGES.most - STAGES.least + 1));
      const part = alike.slice(at, at + length);
      at += length;
      const [first] = part;
      if (first !== undefined && part.length >= STAGES.least)
        dags.push({ ...first, stages: inARow(part.map((j) => j.runtimeS)) });
    }
  }
  return dags.sort((a, b) => a.atS - b.atS);
}
