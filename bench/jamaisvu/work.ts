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
import type { StageSpec } from '../../lib/domain/job.ts';
import { openWorkload } from '../../lib/workload/open.ts';
import { request } from '../../lib/workload/spec.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';
import { benchJob } from '../cluster/jobs.ts';

/**
 * 256 nodes in 8 racks, each of four cores and 16 GB (section 5, SC256). A task has a node to itself. Half of the racks
 * have the preferred nodes, as in figure 6: the load on them is that on all. The paper does not say how many there are.
 */
export const NODES = 256;
const PREFERRED = 128;
export const CLUSTER = `${NODES - PREFERRED}x{cpu: 4, memory: 16GiB, rack: 4, name: plain} + ${PREFERRED}x{cpu: 4, memory: 16GiB, rack: 4, name: preferred}`;

/** A composition of table 3. */
export interface Composition {
  readonly name: string;
  /** Parts of the jobs that have a deadline, by the constraint to preferred nodes. The rest is best-effort work. */
  readonly hard: number;
  readonly soft: number;
  readonly free: number;
  /** Of soft constraints that are not met. */
  readonly slowdown: number;
  /** Deadline slack, per cent of the running time; one of them for each job. */
  readonly slacks: readonly number[];
}

const MIXED: readonly Composition[] = [
  { name: 'EXP1', hard: 0.25, soft: 0.25, free: 0, slowdown: 1.5, slacks: [20, 40, 60, 80] },
  { name: 'EXP2', hard: 1 / 6, soft: 1 / 3, free: 0, slowdown: 1.4, slacks: [25, 50, 75] },
  { name: 'EXP3', hard: 0, soft: 0.5, free: 0, slowdown: 1.4, slacks: [50, 60, 70, 80] },
];

/** `EXP1` to `EXP3`, or `DEADLINE-n`: half of the jobs have a deadline with that slack and no constraint. */
export function compositionNamed(name: string): Composition {
  const slack = Number(/^DEADLINE-(\d+)$/.exec(name)?.[1]);
  if (Number.isFinite(slack)) return { name, hard: 0, soft: 0, free: 0.5, slowdown: 1, slacks: [slack] };
  return invariant(
    MIXED.find((of) => of.name === name),
    `no workload ${name}: EXP1, EXP2, EXP3, or DEADLINE-n with a slack of n per cent`,
  );
}

/** Number of classes; the paper does not say. */
const CLASSES = 8;
/**
 * Runtimes of jobs: those that a run of some hours can hold, and whose least slack is longer than the time between two
 * decisions and a stop.
 */
const LONGEST_S = 7200;
const SHORTEST_S = 60;

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

type Kind = 'hard' | 'soft' | 'free' | 'best-effort';

/** A job that is too wide for the preferred nodes has no constraint to them. */
function kindOf({ hard, soft, free }: Composition, drawn: number, tasks: number): Kind {
  if (drawn >= hard + soft + free) return 'best-effort';
  if (tasks > PREFERRED) return 'free';
  return drawn < hard ? 'hard' : drawn < hard + soft ? 'soft' : 'free';
}

function constraintsOf(kind: Kind, { slowdown }: Composition): Partial<StageSpec> {
  const labels = { labels: { machine: ['preferred'] } };
  if (kind === 'hard') return { constraints: labels };
  return kind === 'soft' ? { preferences: [{ prefer: labels, weight: 0, slowdown }] } : {};
}

function jobOf(
  { owner, program, runtimeS, tasks }: Template,
  at: { readonly key: string; readonly submittedS: number; readonly composition: Composition; readonly draw: Uniform },
): WorkloadJob {
  const { composition, draw } = at;
  const kind = kindOf(composition, draw(), tasks);
  const slack = composition.slacks[Math.floor(draw() * composition.slacks.length)] ?? 0;
  return benchJob({
    key: at.key,
    submittedS: at.submittedS,
    stages: [
      {
        name: 'main',
        runtimeS: Array.from({ length: tasks }, () => runtimeS),
        over: { command: [program], resources: request(4, 8192), ...constraintsOf(kind, composition) },
      },
    ],
    over: {
      owner,
      name: program === '' ? 'job' : program,
      ...(kind !== 'best-effort'
        ? { class: 'deadline', deadline: { afterS: seconds(runtimeS * (1 + slack / 100)) } }
        : { class: 'best-effort' }),
    },
  });
}
