/** Jobs of the windows: real traces cut to jobs that begin and end within a window (Stratus, section 3.3.2). */
import { join } from 'node:path';
import { invariant } from '../../lib/kernel/errors.ts';
import { hash32 } from '../../lib/kernel/random.ts';
import { seconds } from '../../lib/kernel/units.ts';
import type { StageSpec } from '../../lib/domain/job.ts';
import { openWorkload } from '../../lib/workload/open.ts';
import type { WorkloadOptions } from '../../lib/workload/options.ts';
import type { WorkloadJob } from '../../lib/workload/workload.ts';

export type Part = 'tune' | 'report';

/** A trace, and how it is cut. */
export interface Workload {
  readonly name: string;
  readonly about: string;
  readonly folder: string;
  readonly file: string;
  readonly options: WorkloadOptions;
  /** Begin of the first window in seconds of the trace, and length of each. */
  readonly firstS: number;
  readonly windowS: number;
  readonly windows: Readonly<Record<Part, readonly number[]>>;
  /** A job belongs to one of so many samples, by its key. */
  readonly samples: number;
  readonly used: Readonly<Record<Part, readonly number[]>>;
}

/** Saves when it is told to stop, so that a move loses nothing (section 3.3.2, assumption 1); never by itself. */
const NEVER_BY_ITSELF_S = 1e7;

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'google',
    about: 'jobs of the Google trace of 2011 that begin and end within a window of 2 h, all of them',
    folder: 'google-2011',
    file: 'task_attempts.csv.gz',
    options: { deadlines: 'none', checkpointEveryS: NEVER_BY_ITSELF_S },
    firstS: 5400,
    windowS: 7200,
    windows: { tune: [0, 1, 2, 3], report: [4, 5, 6, 7, 8] },
    samples: 1,
    used: { tune: [0], report: [0] },
  },
  {
    name: 'alibaba',
    about: 'pods of the Alibaba trace of 2023 that begin and end within a day, without their GPUs',
    folder: 'alibaba-gpu-2023',
    file: 'openb_pod_list_default.csv.gz',
    options: { deadlines: 'none', checkpointEveryS: NEVER_BY_ITSELF_S, gpus: 'ignore' },
    firstS: 118 * 86_400,
    windowS: 86_400,
    windows: { tune: range(0, 15), report: range(15, 30) },
    samples: 1,
    used: { tune: [0], report: [0] },
  },
];

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

export interface Cut {
  readonly jobs: readonly WorkloadJob[];
  /** All jobs that had ended before the window: what estimates have learned. */
  readonly earlier: readonly WorkloadJob[];
}

const opened = new Map<string, Promise<readonly WorkloadJob[]>>();

/** The whole trace; read once per process. `machine`: largest instance type, of which requests are fractions. */
function traceOf(of: Workload, data: string, machine: WorkloadOptions['machine']): Promise<readonly WorkloadJob[]> {
  const key = `${of.name} ${JSON.stringify(machine)}`;
  let read = opened.get(key);
  if (read === undefined) {
    const options = { ...of.options, ...(machine && { machine }) };
    opened.set(key, (read = allOf(openWorkload(join(data, of.folder, of.file), options))));
  }
  return read;
}

async function allOf(workload: ReturnType<typeof openWorkload>): Promise<readonly WorkloadJob[]> {
  const jobs: WorkloadJob[] = [];
  for await (const job of (await workload).jobs()) jobs.push(job);
  return jobs;
}

/** Running time of a job on an idle machine: that of its longest task, as its tasks have no order. */
export const idealS = ({ truth }: WorkloadJob): number =>
  [...truth.values()].reduce((most, t) => t.runtimeS.reduce((m, s) => Math.max(m, s), most), 0);

/**
 * Jobs of one window and sample, from time 0 on. `fits`: at most as large as the largest instance.
 */
export async function cutOf(
  of: Workload,
  at: { readonly window: number; readonly sample: number },
  from: { readonly data: string; readonly machine: { readonly vcpus: number; readonly memoryGiB: number } },
): Promise<Cut> {
  const all = await traceOf(of, from.data, of.name === 'google' ? from.machine : undefined);
  // The readers count from the first job.
  const firstS = of.firstS - (await startOf(of, from.data));
  const fromS = firstS + at.window * of.windowS;
  const fits = ({ spec }: WorkloadJob): boolean => spec.stages.every((s) => fitsOn(s, from.machine));
  const within = all.filter((j) => j.submittedS >= fromS && j.submittedS + idealS(j) <= fromS + of.windowS && fits(j));
  const mine = within.filter((j) => of.samples === 1 || hash32(j.key) % of.samples === at.sample);
  return {
    jobs: mine.map((j) => ({ ...j, submittedS: j.submittedS - fromS })),
    earlier: all.filter((j) => j.submittedS + idealS(j) <= fromS),
  };
}

const fitsOn = (
  { resources }: StageSpec,
  { vcpus, memoryGiB }: { readonly vcpus: number; readonly memoryGiB: number },
): boolean => {
  const { cpu, memory } = resources as unknown as { readonly cpu: number; readonly memory: number };
  return cpu <= vcpus * 1000 && memory <= memoryGiB * 1024;
};

/** Time of the first job of a trace, in its own seconds. */
async function startOf(of: Workload, data: string): Promise<number> {
  const key = `start ${of.name}`;
  let start = starts.get(key);
  if (start === undefined) starts.set(key, (start = findStart(of, data)));
  return start;
}
const starts = new Map<string, Promise<number>>();

async function findStart(of: Workload, data: string): Promise<number> {
  const before = await openWorkload(join(data, of.folder, of.file), { ...of.options, jobsLimit: 1, fromS: 0 });
  for await (const job of before.jobs()) return job.submittedS;
  return 0;
}

/** True running times as hints, each task a job of its own: for presets that know them (section 3.3.3). */
export interface Hints {
  /** Factor of each task: uniform from [h, 1) below 1, else from [1, h] (section 3.4.4). */
  readonly h: number;
  readonly draw: (key: string) => number;
}

/** Key of the job that a task was made of. */
export const jobOf = (key: string): string => key.split('#', 1)[0] ?? key;

export function tasksAsJobs(jobs: readonly WorkloadJob[], { h, draw }: Hints): readonly WorkloadJob[] {
  return jobs.flatMap((job) =>
    job.spec.stages.flatMap((stage) => {
      const truth = invariant(job.truth.get(stage.name), `job ${job.key} has times of its stage ${stage.name}`);
      return Array.from(truth.runtimeS, (runtimeS, index): WorkloadJob => {
        const key = `${job.key}#${stage.name}/${index}`;
        const factor = h < 1 ? h + (1 - h) * draw(key) : 1 + (h - 1) * draw(key);
        const failures = truth.failures?.[index] ?? 0;
        return {
          key,
          submittedS: job.submittedS,
          spec: {
            ...job.spec,
            labels: { ...job.spec.labels, job: job.key },
            stages: [{ ...stage, tasks: 1, expectedRuntimeS: seconds(Math.max(0.001, runtimeS * factor)) }],
          },
          truth: new Map([
            [
              stage.name,
              { runtimeS: Float64Array.of(runtimeS), ...(failures > 0 && { failures: Uint16Array.of(failures) }) },
            ],
          ]),
        };
      });
    }),
  );
}
