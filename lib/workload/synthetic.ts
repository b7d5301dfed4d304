import { z } from 'zod';
import { EbbError } from '../kernel/errors.ts';
import type { Uniform } from '../kernel/random.ts';
import { drawsOf, factors, gaps, oneOf } from './draws.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import { letters, request, submissionOf, type TraceStage } from './spec.ts';

/**
 * Workload generated from a seed, without files. Jobs arrive as a Poisson process with a daily cycle. Most are runs of
 * a few templates of very different popularity. Running times and numbers of tasks are heavy-tailed. The defaults are
 * fitted to published figures of the Google trace of 2011.
 */

const PREFIX = 'synthetic';
const DAY_S = 86_400;

const settings = z.strictObject({
  jobs: z.int().min(1).max(10_000_000).default(1000),
  /** Default: the seed of the options. */
  seed: z.int().optional(),
  /** Mean arrivals. */
  perHour: z.number().gt(0).max(1_000_000).default(60),
  /** Amplitude of arrivals over a day. 0: none; 1: from nothing at its beginning up to twice the mean at noon. */
  dailyCycle: z.number().min(0).max(1).default(0.5),
  templates: z.int().min(1).max(100_000).default(50),
  /**
   * Share of jobs that are runs of templates. Google 2011: 95.3 % of finished jobs have an earlier run with the same
   * user and logical name.
   */
  recurring: z.number().min(0).max(1).default(0.95),
  /**
   * Median running time, lognormal over templates. Google 2011, finished jobs: median 109 s, 90 % 1,058 s, 99 % 10,337
   * s.
   */
  medianRuntimeS: z.number().gt(0).max(1_000_000).default(109),
  runtimeSigma: z.number().min(0).max(4).default(1.8),
  /**
   * Spread from run to run, lognormal. Google 2011: the previous run is off by 18 % in the median, ln 1.18 / (0.6745
   * sqrt 2).
   */
  runSigma: z.number().min(0).max(2).default(0.174),
  /**
   * Tail index of the number of tasks (Pareto from 1). Stratus section 3.3.1: three of four jobs have fewer than 10.
   */
  taskTail: z.number().gt(0).max(10).default(0.6),
  maxTasks: z.int().min(1).max(10_000).default(500),
  /** Share of templates with several stages. Ours. */
  dags: z.number().min(0).max(1).default(0.3),
});
type Settings = z.output<typeof settings>;

export const isSynthetic = (path: string): boolean => path === PREFIX || path.startsWith(`${PREFIX}:`);

/** Settings of `synthetic:jobs=1000,perHour=60`. Throws EbbError `usage` with the faults and all allowed keys. */
export function syntheticSettings(path: string): Settings {
  const text = path.slice(PREFIX.length + 1);
  const pairs = text === '' ? [] : text.split(',').map((pair) => pair.split('='));
  const given = Object.fromEntries(pairs.map(([key = '', value = '']) => [key.trim(), numberOf(value)]));
  const parsed = settings.safeParse(given);
  if (parsed.success && Object.keys(given).length === pairs.length) return parsed.data;
  const issues = parsed.error?.issues.map((i) => ({ at: i.path.join('.'), message: i.message })) ?? [];
  throw new EbbError('usage', {
    what: `a synthetic workload cannot be made so${issues.map((i) => `; ${i.at} ${i.message}`.trimEnd()).join('')}`,
    got: path,
    allowed: `synthetic:KEY=NUMBER,... each key once, of ${Object.keys(settings.shape).join(', ')}`,
    issues,
  });
}

const numberOf = (text: string): number => (text.trim() === '' ? NaN : Number(text));

export function syntheticReader(path: string): Reader {
  const given = syntheticSettings(path);
  return {
    format: PREFIX,
    about: 'made from a seed',
    notes: () => [
      `Made, not measured: ${given.jobs} jobs, ${given.perHour} an hour, ${given.templates} templates, seed ${given.seed ?? 'of the options'}.`,
    ],
    jobs: given.jobs,
    detects: () => false,
    read: (_files, context) => generate(given, context),
  };
}

async function* generate(of: Settings, context: ReadContext): AsyncGenerator<Submission> {
  const seed = of.seed ?? context.options.seed;
  const arrival = arrivals(of, drawsOf(seed, 'synthetic', 'arrivals'));
  const templates = new Map<number, Template>();
  const popularity = zipf(of.templates);
  for (let i = 1; i <= of.jobs; i++) {
    const key = `job-${i}`;
    const draws = drawsOf(seed, 'synthetic', key);
    // Numbers beyond the templates belong to one job each.
    const number = draws() < of.recurring ? popularity(draws()) : of.templates + i;
    const template = templates.get(number) ?? templateOf(number, of, seed);
    if (number < of.templates) templates.set(number, template);
    const job = submissionOf(
      {
        key,
        file: PREFIX,
        line: i,
        atS: arrival(),
        production: null,
        owner: template.owner,
        name: `${template.name}-${i}`,
        program: template.name,
        stages: stagesOf(template, of, draws),
      },
      context,
    );
    if (job !== null) yield job;
  }
}

/** Times of a Poisson process with a daily rate: candidates at the highest rate, thinned. The first is 0. */
function arrivals(of: Settings, draws: Uniform): () => number {
  const highest = (of.perHour * (1 + of.dailyCycle)) / 3600;
  const gap = gaps(draws, 1 / highest);
  let atS = 0;
  let isFirst = true;
  return () => {
    if (isFirst) {
      isFirst = false;
      return 0;
    }
    do atS += gap();
    while (draws() >= (1 - of.dailyCycle * Math.cos((2 * Math.PI * atS) / DAY_S)) / (1 + of.dailyCycle));
    return atS;
  };
}

/** Sampler of 0 .. n - 1, with weight 1 / (k + 1) for k. */
function zipf(n: number): (u: number) => number {
  const sums = new Float64Array(n);
  let sum = 0;
  for (let k = 0; k < n; k++) sums[k] = sum += 1 / (k + 1);
  return (u) => {
    let [low, high] = [0, n - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] ?? 0) > u * sum) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

/** Stages of a shape: their dependencies, and whether they have many tasks. */
type Shape = readonly { readonly dependsOn: readonly number[]; readonly wide: boolean }[];
const SINGLE: Shape = [{ dependsOn: [], wide: true }];
const SHAPES: readonly [Shape, ...Shape[]] = [
  // Map and reduce.
  [
    { dependsOn: [], wide: true },
    { dependsOn: [0], wide: true },
  ],
  // Prepare, work, join.
  [
    { dependsOn: [], wide: false },
    { dependsOn: [0], wide: true },
    { dependsOn: [1], wide: false },
  ],
  // A chain of single tasks.
  [
    { dependsOn: [], wide: false },
    { dependsOn: [0], wide: false },
    { dependsOn: [1], wide: false },
    { dependsOn: [2], wide: false },
  ],
  // A diamond with two different branches.
  [
    { dependsOn: [], wide: false },
    { dependsOn: [0], wide: true },
    { dependsOn: [0], wide: true },
    { dependsOn: [1, 2], wide: false },
  ],
];

interface Template {
  readonly owner: string;
  readonly name: string;
  /** Sigma of a stage's tasks about its median. */
  readonly taskSigma: number;
  readonly stages: readonly {
    readonly dependsOn: readonly number[];
    readonly tasks: number;
    readonly medianS: number;
    readonly resources: TraceStage['resources'];
  }[];
}

/** Templates per owner. */
const TEMPLATES_PER_OWNER = 5;
/**
 * Distribution of requests, small ones more often. Ours, in EC2's ratios of GiB to vCPU (c: 2, m: 4, r: 8), less the
 * memory of the host.
 */
const VCPUS: readonly [number, ...number[]] = [1, 1, 1, 2, 2, 4, 8];
const GIB_PER_VCPU: readonly [number, ...number[]] = [1.75, 1.75, 3.5, 3.5, 7];
/**
 * Most memory of a task: what a host of 32 GiB has free, which any market sells. Work that fits nowhere tells nothing.
 */
const MOST_GIB = 28;
/**
 * Spread of a stage's tasks, lognormal over templates. Google 2011, jobs of at least ten tasks: the slowest takes 1.43
 * times the median in half of them, 3.14 times in a tenth. Of some 50 tasks the slowest is 2.25 sigma out.
 */
const TASK_SIGMA = { median: Math.log(1.43) / 2.25, sigma: 0.9, most: Math.log(13.4) / 2.25 };

function templateOf(number: number, of: Settings, seed: number): Template {
  const draws = drawsOf(seed, 'synthetic-template', String(number));
  const shape = draws() < of.dags ? oneOf(draws, SHAPES) : SINGLE;
  const runtime = factors(draws, of.runtimeSigma);
  const taskSigma = Math.min(TASK_SIGMA.most, TASK_SIGMA.median * factors(draws, TASK_SIGMA.sigma)());
  return {
    owner: `team-${letters(Math.floor(number / TEMPLATES_PER_OWNER))}`,
    name: `work-${letters(number)}`,
    taskSigma,
    stages: shape.map(({ dependsOn, wide }) => {
      const vcpus = oneOf(draws, VCPUS);
      // Pareto from 1: the inverse of its distribution function at a uniform draw in (0, 1].
      const tasks = wide ? Math.min(of.maxTasks, Math.floor((1 - draws()) ** (-1 / of.taskTail))) : 1;
      return {
        dependsOn,
        tasks,
        medianS: of.medianRuntimeS * runtime(),
        resources: request(vcpus, Math.min(MOST_GIB, vcpus * oneOf(draws, GIB_PER_VCPU)) * 1024),
      };
    }),
  };
}

/** Stages of one run: one factor for all tasks, and one for each. */
function stagesOf(template: Template, of: Settings, draws: Uniform): TraceStage[] {
  const run = factors(draws, of.runSigma)();
  const task = factors(draws, template.taskSigma);
  return template.stages.map(({ dependsOn, tasks, medianS, resources }, i) => ({
    name: `stage-${letters(i)}`,
    dependsOn: dependsOn.map((d) => `stage-${letters(d)}`),
    runtimeS: Float64Array.from({ length: tasks }, () => medianS * run * task()),
    resources,
  }));
}
