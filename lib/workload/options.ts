import { z } from 'zod';
import { EbbError } from '../kernel/errors.ts';

/**
 * Rule for class and deadline of trace jobs, since traces have no deadlines. The slack is a percentage of the job's own
 * running time (JamaisVu section 5: (deadline - submission - runtime) / runtime).
 */
const deadlineRule = z.strictObject({
  /** Share of jobs with a deadline. JamaisVu table 3: half of them in EXP1 to EXP3. */
  share: z.number().min(0).max(1).default(0.5),
  /** Slacks to draw from. JamaisVu table 3: the tightest of its mixed workloads, EXP1. */
  slackPercents: z.array(z.number().min(0).max(1_000_000)).min(1).default([20, 40, 60, 80]),
  /**
   * Unit of the draws. `seeded`: each job. `recurring`: each template (owner, name without its varying part, program),
   * so that its runs are alike. `production`: production jobs of the trace get a deadline, `share` is not used, and the
   * slack is drawn for each job.
   */
  by: z.enum(['seeded', 'recurring', 'production']).default('seeded'),
  /**
   * Time added for every stage on the longest path, as each may need new instances. Stratus section 3.3.1: 30 to 160 s.
   */
  startDelayS: z.number().min(0).max(86_400).default(160),
});
export type DeadlineRule = z.output<typeof deadlineRule>;

export const workloadOptions = z.strictObject({
  /** Name of the format; default: found by the contents. */
  format: z.string().optional(),
  /** Seed of all draws. Draws belong to a job's key: dropped jobs change nothing for the others. */
  seed: z.int().default(1),
  /**
   * Range of the trace in seconds: jobs submitted in [fromS, toS). The workload starts at `fromS`, else with its first
   * job.
   */
  fromS: z.number().optional(),
  toS: z.number().optional(),
  /**
   * Factor of the arrivals. Below 1: that fraction of the jobs. Above 1: each job that many times, repeats up to an
   * hour later.
   */
  scale: z.number().gt(0).max(1000).default(1),
  /** Most jobs of the workload. */
  jobsLimit: z.int().min(1).optional(),
  /** `none`: all jobs are best-effort. Job files keep their own class. */
  deadlines: z.union([z.literal('none'), deadlineRule]).default(deadlineRule.parse({})),
  /** Work that did not finish in the trace: dropped, or taken as done when it ended. */
  unfinished: z.enum(['drop', 'as-run']).default('drop'),
  /** Mean time between jobs of a source without times; gaps are exponential. Default: that of the format. */
  interarrivalS: z.number().min(0).optional(),
  /** Machine behind the trace's fractions. Default: that of the format. */
  machine: z.strictObject({ vcpus: z.number().gt(0), memoryGiB: z.number().gt(0) }).optional(),
  /** GPUs: rounded up to whole ones, removed, or jobs with GPUs dropped. */
  gpus: z.enum(['keep', 'ignore', 'drop']).default('keep'),
  /** Sigma of the lognormal running times about `expectedRuntime`, for job files. */
  runtimeSpread: z.number().min(0).max(3).default(0.25),
  /** Checkpoint interval of trace tasks; default: no checkpoints. Job files have their own. */
  checkpointEveryS: z.number().gt(0).optional(),
});
type Input = z.input<typeof workloadOptions>;
type RuleInput = Exclude<NonNullable<Input['deadlines']>, 'none'>;
/** Options of a caller; `deadlines` may also be given in part. */
export type WorkloadOptions = Readonly<Omit<Input, 'deadlines'>> & {
  readonly deadlines?:
    | 'none'
    | (Readonly<Omit<RuleInput, 'slackPercents'>> & { readonly slackPercents?: readonly number[] | undefined })
    | undefined;
};
export type ResolvedOptions = z.output<typeof workloadOptions>;

/** Checks and completes options. Throws EbbError `usage` with every finding. */
export function resolveOptions(options: WorkloadOptions): ResolvedOptions {
  const parsed = workloadOptions.safeParse(options);
  if (!parsed.success) {
    const issues = parsed.error.issues.map((i) => ({ at: i.path.join('.'), message: i.message }));
    throw new EbbError('usage', {
      what: `the options of the workload are not as expected: ${issues.map((i) => `${i.at} ${i.message}`.trim()).join('; ')}`,
      allowed: Object.keys(workloadOptions.shape).join(', '),
      next: 'docs/workloads.md has all options',
      issues,
    });
  }
  const { fromS, toS } = parsed.data;
  if (fromS !== undefined && toS !== undefined && !(fromS < toS)) {
    throw new EbbError('usage', {
      what: 'the window of the workload is empty',
      got: `from ${fromS} s to ${toS} s`,
      allowed: 'a start before the end',
    });
  }
  return parsed.data;
}
