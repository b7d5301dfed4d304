import TinyQueue from 'tinyqueue';
import { withDeadline } from './deadlines.ts';
import { drawsOf, factors } from './draws.ts';
import type { ReadContext, Reader, Submission } from './reader.ts';
import type { StageTruth, WorkloadJob } from './workload.ts';

/** Longest delay of a repeated job, which so stays within its hour of the day. */
const REPEAT_WITHIN_S = 3600;
/**
 * Spread of the running time of repeats. In the Google trace of 2011 the previous running time is off by 18 % in the
 * median: ln 1.18 / 0.6745.
 */
const REPEAT_SIGMA = 0.245;

type Stream = AsyncIterable<Submission>;

/** Jobs of a reader as the options ask for them. Memory: the keys, and repeats not yet due. */
export async function* arrange(found: Stream, reader: Reader, context: ReadContext): AsyncGenerator<WorkloadJob> {
  const { options, tally } = context;
  let startS: number | null = options.fromS ?? null;
  let left = options.jobsLimit ?? Infinity;
  const rule = reader.keepsClass === true || options.deadlines === 'none' ? null : options.deadlines;
  const started = async function* (): Stream {
    for await (const job of windowed(checked(found, context), context)) {
      startS ??= job.atS;
      yield job;
    }
  };
  for await (const job of scaled(started(), context)) {
    const spec = rule === null ? job.spec : withDeadline(job, rule, options.seed);
    tally.handedOut(spec.stages.reduce((sum, s) => sum + s.tasks, 0));
    yield { key: job.key, submittedS: job.atS - (startS ?? job.atS), spec, truth: job.truth };
    if (--left <= 0) return;
  }
}

/** Jobs without duplicates and without steps back in time, which count as bad lines. */
async function* checked(found: Stream, { tally }: ReadContext): Stream {
  const keys = new Set<string | number>();
  let lastS = -Infinity;
  for await (const job of found) {
    // Traces number their jobs; a set of numbers takes a third of the memory.
    const key = /^[1-9]\d{0,14}$/.test(job.key) ? Number(job.key) : job.key;
    if (keys.has(key)) tally.bad(job.file, job.line, `job ${job.key} is there already`);
    else if (job.atS < lastS) {
      const back = `job ${job.key} was submitted at ${job.atS} s, before the job above it (${lastS} s)`;
      tally.bad(job.file, job.line, `${back}: sort the file by submission`);
    } else {
      keys.add(key);
      lastS = job.atS;
      yield job;
    }
  }
}

async function* windowed(jobs: Stream, { options, tally }: ReadContext): Stream {
  const { fromS = -Infinity, toS = Infinity } = options;
  for await (const job of jobs) {
    if (job.atS >= toS) return;
    if (job.atS < fromS) tally.dropped('job submitted before the window');
    else yield job;
  }
}

interface Due {
  readonly job: Submission;
  readonly sequence: number;
}

/** Jobs dropped at random, or repeated. */
async function* scaled(jobs: Stream, { options, tally }: ReadContext): Stream {
  const { seed, scale, toS = Infinity } = options;
  if (scale === 1) {
    yield* jobs;
    return;
  }
  const due = new TinyQueue<Due>([], (a, b) => a.job.atS - b.job.atS || a.sequence - b.sequence);
  let sequence = 0;
  for await (const job of jobs) {
    while ((due.peek()?.job.atS ?? Infinity) <= job.atS) yield (due.pop() as Due).job;
    const draws = drawsOf(seed, 'scale', job.key);
    const times = Math.floor(scale) + (draws() < scale - Math.floor(scale) ? 1 : 0);
    if (times === 0) tally.dropped('job left out by the scale');
    else yield job;
    for (let i = 2; i <= times; i++) {
      const repeat = repeated(job, i, seed);
      if (repeat.atS < toS) due.push({ job: repeat, sequence: sequence++ });
      else tally.dropped('repeat that comes after the window');
    }
  }
  for (let next = due.pop(); next !== undefined; next = due.pop()) yield next.job;
}

/** Repeat of a job: a little later, with all running times off by one factor. */
function repeated(job: Submission, number: number, seed: number): Submission {
  const key = `${job.key}~${number}`;
  const draws = drawsOf(seed, 'repeat', key);
  const atS = job.atS + draws() * REPEAT_WITHIN_S;
  const factor = factors(draws, REPEAT_SIGMA)();
  const truth = new Map(
    [...job.truth].map(([name, t]): [string, StageTruth] => [
      name,
      { ...t, runtimeS: t.runtimeS.map((s) => s * factor) },
    ]),
  );
  return { ...job, key, atS, truth };
}
