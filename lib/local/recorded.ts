import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EbbError } from '../kernel/errors.ts';
import { between, raw, type EpochMs } from '../kernel/units.ts';
import type { Attempt, Job, StageSpec } from '../domain/job.ts';
import type { Store } from '../ports/store.ts';
import { openSqliteStore } from './store/sqlite-store.ts';
import { readWorldRecord, type WorldRecord } from './world-record.ts';

/** A job that an engine ran, and how long its tasks took there. */
export interface RecordedJob {
  readonly job: Job;
  /** Running time by stage, s; one entry per task. */
  readonly runtimeS: ReadonlyMap<string, Float64Array>;
  /** Tries of each task that failed by themselves before one succeeded. */
  readonly failures: ReadonlyMap<string, Uint16Array>;
  /** Tasks that never finished: how long they take is a guess (the median of their stage, else what was expected). */
  readonly guessed: number;
}

export interface Recorded {
  readonly world: WorldRecord;
  /** By submission. */
  readonly jobs: readonly RecordedJob[];
  /** When the first instance was asked for; null where none was, or its event is no longer kept. */
  readonly firstPurchaseMs: EpochMs | null;
}

/** Where nothing tells how long a task takes. */
const UNKNOWN_S = 600;
/** Among so many events the first purchase is looked for. */
const FIRST_EVENTS = 1000;

/**
 * What an engine of local mode left in its directory. Reads only; an engine may be at work there meanwhile. Throws `not-found` for a directory
 * in which none ever was, `store.newer` and `store.corrupt`. O(jobs + attempts).
 */
export async function readRecorded(dir: string): Promise<Recorded> {
  const world = readWorldRecord(dir);
  const database = join(dir, 'ebb.db');
  if (world === null || !existsSync(database)) {
    throw new EbbError('not-found', {
      what: 'no engine has worked in this directory',
      got: dir,
      next: 'name the --dir of an earlier `ebb run` or `ebb up`',
    });
  }
  const store = openSqliteStore({ path: database });
  try {
    const jobs: RecordedJob[] = [];
    for await (const job of allJobs(store)) jobs.push(recordedJob(job, await store.attempts(job.id)));
    const purchase = (await store.events(0, FIRST_EVENTS)).find((e) => e.type === 'instance-requested');
    return {
      world,
      jobs: jobs.sort((a, b) => raw(a.job.submittedMs) - raw(b.job.submittedMs)),
      firstPurchaseMs: purchase?.atMs ?? null,
    };
  } finally {
    await store.close();
  }
}

async function* allJobs(store: Store): AsyncGenerator<Job> {
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<Store['jobs']>> = await store.jobs({}, 500, after);
    yield* page.items;
    after = page.next;
  } while (after !== null);
}

function recordedJob(job: Job, attempts: readonly Attempt[]): RecordedJob {
  const byStage = Map.groupBy(attempts, (a) => a.stage);
  const runtimeS = new Map<string, Float64Array>();
  const failures = new Map<string, Uint16Array>();
  let guessed = 0;
  for (const stage of job.spec.stages) {
    const mine = byStage.get(stage.name) ?? [];
    const found = new Float64Array(stage.tasks).fill(NaN);
    const failed = new Uint16Array(stage.tasks);
    for (const a of mine) {
      if (a.outcome === 'succeeded') found[a.index] = ranS(a);
      if (a.outcome === 'failed') failed[a.index] = (failed[a.index] ?? 0) + 1;
    }
    const guess = guessOf(stage, found);
    found.forEach((s, i) => {
      if (!Number.isNaN(s)) return;
      guessed++;
      found[i] = guess;
    });
    runtimeS.set(stage.name, found);
    failures.set(stage.name, failed);
  }
  return { job, runtimeS, failures, guessed };
}

/** From the task's beginning to its end: what its checkpoint held, and the last attempt. */
const ranS = (a: Attempt): number =>
  a.startedMs === null || a.endedMs === null
    ? NaN
    : Math.max(1, raw(a.resumedFromS) + raw(between(a.startedMs, a.endedMs)));

function guessOf(stage: StageSpec, found: Float64Array): number {
  const known = found.filter((s) => !Number.isNaN(s)).sort();
  const median = known[Math.floor(known.length / 2)];
  return median ?? (stage.expectedRuntimeS === null ? UNKNOWN_S : raw(stage.expectedRuntimeS));
}
