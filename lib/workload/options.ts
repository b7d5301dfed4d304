import { z } from 'zod';
import { EbbError } from '../kernel/errors.ts';

/**
 * Traces have no deadlines: this rule gives them some. A job is of class `deadline` or `best-effort`; the slack of a
 * deadline is a percentage of its own running time (JamaisVu section 5: (deadline - submission - runtime) / runtime).
 */
const deadlineRule = z.strictObject({
  /** Share of the jobs that get a deadline. JamaisVu table 3: half of them in EXP1 to EXP3. */
  share: z.number().min(0).max(1).default(0.5),
  /** One of these is drawn for each. JamaisVu table 3: the tightest of its mixed workloads, EXP1. */
  slackPercents: z.array(z.number().min(0).max(1_000_000)).min(1).default([20, 40, 60, 80]),
  /**
   * What decides on class and slack. `seeded`: a draw for each job. `recurring`: a draw for each template (owner, name
   * less what varies, program), so that runs of one template are alike. `production`: jobs that the trace calls
   * production get a deadline, and `share` is not used; the slack is drawn for each job.
   */
  by: z.enum(['seeded', 'recurring', 'production']).default('seeded'),
  /**
   * Added once for every stage along the longest path: new instances may have to start for each. Stratus section 3.3.1:
   * 30 to 160 s.
   */
  startDelayS: z.number().min(0).max(86_400).default(160),
});
export type DeadlineRule = z.output<typeof deadlineRule>;

export const workloadOptions = z.strictObject({
  /** Name of the format; default: found by the contents. */
  format: z.string().optional(),
  /** Of everything that is drawn. Draws belong to a job's key: leaving jobs out changes nothing for the others. */
  seed: z.int().default(1),
  /** Seconds of the trace: jobs submitted in [fromS, toS). The workload starts at `fromS`, else with its first job. */
  fromS: z.number().optional(),
  toS: z.number().optional(),
  /** Of the arrivals: below 1 that fraction of the jobs; above 1 each job so often, the repeats up to an hour later. */
  scale: z.number().gt(0).max(1000).default(1),
  /** Most jobs to hand out. */
  jobsLimit: z.int().min(1).optional(),
  /** `none`: all jobs are best-effort. Job files keep their own class. */
  deadlines: z.union([z.literal('none'), deadlineRule]).default(deadlineRule.parse({})),
  /** Work that did not finish in the trace: left out, or taken as if it had been done when it ended. */
  unfinished: z.enum(['drop', 'as-run']).default('drop'),
  /** Mean time between jobs of a source that has no times; the gaps are exponential. Default: the format's. */
  interarrivalS: z.number().min(0).optional(),
  /** The machine that a trace's fractions are of. Default: the format's. */
  machine: z.strictObject({ vcpus: z.number().gt(0), memoryGiB: z.number().gt(0) }).optional(),
  /** GPUs: asked for as whole ones, taken off, or the jobs that want any left out. */
  gpus: z.enum(['keep', 'ignore', 'drop']).default('keep'),
  /** Sigma of the lognormal running times about `expectedRuntime`, for job files. */
  runtimeSpread: z.number().min(0).max(3).default(0.25),
  /** Tasks of traces save their state so often; default: they save nothing. Job files say it themselves. */
  checkpointEveryS: z.number().gt(0).optional(),
});
type Input = z.input<typeof workloadOptions>;
type RuleInput = Exclude<NonNullable<Input['deadlines']>, 'none'>;
/** What a caller may leave out or give; `deadlines` too may be given in part. */
export type WorkloadOptions = Readonly<Omit<Input, 'deadlines'>> & {
  readonly deadlines?:
    | 'none'
    | (Readonly<Omit<RuleInput, 'slackPercents'>> & { readonly slackPercents?: readonly number[] | undefined })
    | undefined;
};
export type ResolvedOptions = z.output<typeof workloadOptions>;

/** Checks and completes. Throws EbbError `usage` with every finding. */
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
