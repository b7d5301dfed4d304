/**
 * Workloads of JamaisVu's evaluation (section 5): classes of jobs from the Google trace, and from them jobs with and
 * without deadlines at a given load.
 */
import { join } from 'node:path';
import { randomExponential, randomNormal } from 'd3-random';
import { ckmeans } from 'simple-statistics';
import { invariant } from '../../lib/kernel/errors.ts';
import { randomStream, type Uniform } from '../../lib/kernel/random.ts';
import { seconds } from '../../lib/kernel/units.ts';
import { openWorkload } from '../../lib/workload/open.ts';
import { request } from '../../lib/workload/spec.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { benchJob } from '../cluster/jobs.ts';

/** 256 nodes in 8 racks, each of four cores and 16 GB (section 5, SC256). A task has a node to itself. */
export const NODES = 256;
export const RACKS = 8;
export const CLUSTER = `${NODES}x{cpu: 4, memory: 16GiB, rack: ${RACKS}}`;

/** A composition of table 3. */
export interface Composition {
  readonly name: string;
  /** Part of the jobs that have a deadline. The rest is best-effort work. */
  readonly deadlines: number;
  /** Deadline slack, per cent of the running time; one of them for each job. */
  readonly slacks: readonly number[];
}

export const deadlineN = (n: number): Composition => ({ name: `DEADLINE-${n}`, deadlines: 0.5, slacks: [n] });

/** Number of classes; the paper does not say. */
const CLASSES = 8;
/** Runtimes of whole jobs that a run of some hours can hold. */
const LONGEST_S = 7200;
const SHORTEST_S = 20;

/** What a job of the trace is like. */
interface Template {
  readonly owner: string;
  readonly program: string;
  readonly runtimeS: number;
  readonly tasks: number;
}

interface JobClass {
  /** Part of all jobs. */
  readonly weight: number;
  readonly members: readonly Template[];
  /** Mean and spread of ln(runtime). */
  readonly mean: number;
  readonly spread: number;
}

const read = new Map<string, Promise<readonly JobClass[]>>();

/** Once per process. */
export function classesOf(data: string): Promise<readonly JobClass[]> {
  let classes = read.get(data);
  if (classes === undefined) read.set(data, (classes = clusteredJobs(data)));
  return classes;
}

async function clusteredJobs(data: string): Promise<readonly JobClass[]> {
  const jobs: Template[] = [];
  const path = join(data, 'google-2011', 'task_attempts.csv.gz');
  for await (const { spec, truth } of (await openWorkload(path, { deadlines: 'none' })).jobs()) {
    const times = [...truth.values()].flatMap((t) => [...t.runtimeS]);
    const runtimeS = times.reduce((a, b) => Math.max(a, b), 0);
    if (times.length > NODES || runtimeS > LONGEST_S || runtimeS < SHORTEST_S) continue;
    jobs.push({ owner: spec.owner, program: spec.stages[0]?.command[0] ?? '', runtimeS, tasks: times.length });
  }
  const logs = jobs.map((j) => Math.log(j.runtimeS));
  const edges = ckmeans(logs, CLASSES).map((of) => Math.max(...of));
  const byClass = Map.groupBy(jobs, (j) => edges.findIndex((edge) => Math.log(j.runtimeS) <= edge));
  return [...byClass]
    .sort(([a], [b]) => a - b)
    .map(([, members]): JobClass => {
      const of = members.map((m) => Math.log(m.runtimeS));
      const mean = of.reduce((a, b) => a + b, 0) / of.length;
      const spread = Math.sqrt(of.reduce((sum, x) => sum + (x - mean) ** 2, 0) / of.length);
      return { weight: members.length / jobs.length, members, mean, spread };
    });
}

export interface JamaisVuWork {
  readonly data: string;
  readonly composition: Composition;
  readonly seed: number;
  readonly jobs: number;
  /** Jobs that have ended before, for predictions. */
  readonly earlier: number;
  /** Mean demand for nodes over the nodes. */
  readonly load: number;
}

export async function jamaisVuJobs({ data, composition, seed, jobs, earlier, load }: JamaisVuWork): Promise<{
  readonly jobs: readonly WorkloadJob[];
  readonly earlier: readonly WorkloadJob[];
}> {
  const classes = await classesOf(data);
  const draw = randomStream(seed, `jamaisvu/${composition.name}`);
  const drawn = Array.from({ length: earlier + jobs }, () => drawnFrom(classes, draw));
  const work = drawn.slice(earlier).reduce((sum, j) => sum + j.runtimeS * j.tasks, 0);
  const gap = randomExponential.source(draw)(jobs / (work / (load * NODES)));
  let atS = 0;
  const made = drawn.map((of, n) => {
    if (n >= earlier) atS += gap();
    return jobOf(of, { key: `job-${n}`, submittedS: n >= earlier ? atS : 0, composition, draw });
  });
  return { jobs: made.slice(earlier), earlier: made.slice(0, earlier) };
}

/** A class by its weight, a member's features and width, and a running time from the class's distribution. */
function drawnFrom(classes: readonly JobClass[], draw: Uniform): Template {
  let left = draw();
  const of = invariant(classes.find(({ weight }) => (left -= weight) < 0) ?? classes.at(-1), 'the trace has jobs');
  const member = invariant(of.members[Math.floor(draw() * of.members.length)], 'a class has members');
  return { ...member, runtimeS: Math.exp(randomNormal.source(draw)(of.mean, of.spread)()) };
}

function jobOf(
  { owner, program, runtimeS, tasks }: Template,
  at: { readonly key: string; readonly submittedS: number; readonly composition: Composition; readonly draw: Uniform },
): WorkloadJob {
  const { composition, draw } = at;
  const isDeadline = draw() < composition.deadlines;
  const slack = composition.slacks[Math.floor(draw() * composition.slacks.length)] ?? 0;
  return benchJob({
    key: at.key,
    submittedS: at.submittedS,
    stages: [
      {
        name: 'main',
        runtimeS: Array.from({ length: tasks }, () => runtimeS),
        over: { command: [program], resources: request(4, 8192) },
      },
    ],
    over: {
      owner,
      name: program === '' ? 'job' : program,
      ...(isDeadline
        ? { class: 'deadline', deadline: { afterS: seconds(runtimeS * (1 + slack / 100)) } }
        : { class: 'best-effort' }),
    },
  });
}
