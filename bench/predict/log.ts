/** Logs of past jobs, as predictors see them: what was known at submission, and what became of it. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';
import type { JobFeatures } from '../../lib/domain/forecasts.ts';
import { featuresOf } from '../../lib/domain/job-features.ts';
import { NO_RESOURCES, type Resources } from '../../lib/domain/resources.ts';
import { epochMs } from '../../lib/kernel/units.ts';
import { openWorkload } from '../../lib/workload/open.ts';
import { request } from '../../lib/workload/spec.ts';

export interface Log {
  readonly name: string;
  /** Runs, by time of submission. */
  readonly size: number;
  readonly features: (i: number) => JobFeatures;
  readonly submitS: Float64Array;
  readonly endS: Float64Array;
  /** -1: it did not end by itself, so it is neither scored nor learned from. */
  readonly runtimeS: Float64Array;
}

const MOST_JOBS = 700_000;
const COLUMNS = {
  id: 0,
  user: 1,
  program: 2,
  name: 3,
  class: 4,
  submit: 5,
  lastSchedule: 7,
  end: 8,
  event: 9,
} as const;

/** The tables are numbers and words without commas (SOURCE.txt): no quoting to parse. */
async function* rows(file: string): AsyncGenerator<readonly string[]> {
  let isHead = true;
  for await (const line of createInterface({ input: createReadStream(file).pipe(createGunzip()) })) {
    if (!isHead) yield line.split(',');
    isHead = false;
  }
}

/**
 * All jobs of the Google trace of 2011. Resources and numbers of tasks are known of the jobs of the first 19.6 hours,
 * where the table of attempts has them (requests are fractions of a machine, taken as 64 vCPUs and 256 GiB).
 */
export async function googleLog(data: string, limit = MOST_JOBS): Promise<Log> {
  const sizes = await googleSizes(join(data, 'google-2011', 'task_attempts.csv.gz'));
  const most = Math.min(limit, MOST_JOBS);
  const submitS = new Float64Array(most);
  const endS = new Float64Array(most);
  const runtimeS = new Float64Array(most).fill(-1);
  const all: JobFeatures[] = [];
  const same = new Map<string, string>();
  // One text each, as an API would have received them.
  const text = (given: string): string => {
    const known = same.get(given);
    if (known === undefined) same.set(given, given);
    return known ?? given;
  };
  for await (const cells of rows(join(data, 'google-2011', 'jobs.csv.gz'))) {
    if (all.length === most) break;
    const cell = (c: number): string => cells[c] ?? '';
    const i = all.length;
    submitS[i] = Number(cell(COLUMNS.submit));
    if (cell(COLUMNS.event) === 'FINISH') {
      endS[i] = Number(cell(COLUMNS.end));
      runtimeS[i] = (endS[i] ?? 0) - Number(cell(COLUMNS.lastSchedule));
    }
    const size = sizes.get(cell(COLUMNS.id));
    all.push({
      owner: text(`user-${cell(COLUMNS.user)}`),
      program: text(`program-${cell(COLUMNS.program)}`),
      jobName: text(`job-${cell(COLUMNS.name)}`),
      stage: 'main',
      resources: size?.resources ?? NO_RESOURCES,
      submittedMs: epochMs((submitS[i] ?? 0) * 1000),
      labels: [text(`schedClass=${cell(COLUMNS.class)}`)],
      ...(size !== undefined && size.tasks > 1 && { tasks: size.tasks }),
    });
  }
  const size = all.length;
  return { name: 'google-2011', size, features: (i) => all[i] as JobFeatures, submitS, endS, runtimeS };
}

interface Size {
  readonly resources: Resources;
  tasks: number;
}

async function googleSizes(file: string): Promise<ReadonlyMap<string, Size>> {
  const sizes = new Map<string, Size>();
  for await (const [job = '', , attempt, , , , , , , cpu, memory] of rows(file)) {
    const known = sizes.get(job);
    if (known === undefined) {
      sizes.set(job, { resources: request(Number(cpu) * 64, Number(memory) * 256 * 1024), tasks: 1 });
    } else if (attempt === '1') known.tasks++;
  }
  return sizes;
}

/**
 * Any other log that `ebb simulate` reads: one run for each stage, of its first task. It begins when the stages before
 * it have ended. Nothing waits for room: when a run ends decides only who learns of it.
 */
export async function workloadLog(name: string, path: string): Promise<Log> {
  const workload = await openWorkload(path, { seed: 1 });
  const all: { readonly features: JobFeatures; submitS: number; endS: number; runtimeS: number }[] = [];
  for await (const { spec, submittedS, truth } of workload.jobs()) {
    const ends = new Map<string, number>();
    for (const stage of spec.stages) {
      const times = truth.get(stage.name)?.runtimeS ?? Float64Array.of();
      const begin = stage.dependsOn.reduce((at, d) => Math.max(at, ends.get(d) ?? submittedS), submittedS);
      ends.set(stage.name, begin + times.reduce((a, b) => Math.max(a, b), 0));
      const runtimeS = times[0] ?? -1;
      const features = featuresOf(spec, stage, epochMs(submittedS * 1000));
      all.push({ features, submitS: submittedS, endS: begin + runtimeS, runtimeS });
    }
  }
  return {
    name,
    size: all.length,
    features: (i) => all[i]?.features as JobFeatures,
    submitS: Float64Array.from(all, (r) => r.submitS),
    endS: Float64Array.from(all, (r) => r.endS),
    runtimeS: Float64Array.from(all, (r) => r.runtimeS),
  };
}

/**
 * Submissions (number of the run) and ends (~number) from run `from` on in order of time; at one instant ends come
 * first. `submission`: each end right after its submission, as if it had been known at once.
 */
export function eventsOf(log: Log, order: string, from = 0): Int32Array {
  const numbers = Array.from({ length: log.size - from }, (_, i) => from + i);
  const isKnown = (i: number): boolean => (log.runtimeS[i] as number) >= 0;
  if (order === 'submission') return Int32Array.from(numbers.flatMap((i) => (isKnown(i) ? [i, ~i] : [i])));
  const ends = numbers.filter(isKnown).sort((a, b) => (log.endS[a] as number) - (log.endS[b] as number) || a - b);
  const events = new Int32Array(numbers.length + ends.length);
  let at = 0;
  let next = 0;
  for (const i of numbers) {
    while (next < ends.length && (log.endS[ends[next] as number] as number) <= (log.submitS[i] as number)) {
      events[at++] = ~(ends[next++] as number);
    }
    events[at++] = i;
  }
  while (next < ends.length) events[at++] = ~(ends[next++] as number);
  return events;
}
