import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EbbError } from '../../../kernel/errors.ts';
import { ascending, epochMs, type EpochMs } from '../../../kernel/units.ts';
import { billedUsd } from '../../../domain/costs.ts';
import type { Attempt, Job } from '../../../domain/job.ts';
import type { Store } from '../../../ports/store.ts';
import { earlierLife } from './earlier-life.ts';
import { stageRuntimes } from './recorded-runtimes.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';
import { readWorldRecord, type WorldRecord } from '../market/world-record.ts';

/** A job that an engine ran, and how long its tasks took there. */
export interface RecordedJob {
  readonly job: Job;
  /** Running time by stage, s; one entry per task. */
  readonly runtimeS: ReadonlyMap<string, Float64Array>;
  /** Tries of each task that failed by themselves before one succeeded. */
  readonly failures: ReadonlyMap<string, Uint16Array>;
  /** Tasks that never finished, whose running time is a guess (`stageRuntimes`). */
  readonly guessed: number;
}

export interface Recorded {
  readonly world: WorldRecord;
  /** By submission. */
  readonly jobs: readonly RecordedJob[];
  /** Time of the first request for an instance; null if there was none, or its event is no longer kept. */
  readonly firstPurchaseMs: EpochMs | null;
  /** True if some jobs were unfinished. */
  readonly open: boolean;
  /** Cost of the directory's instances so far. */
  readonly billedUsd: number;
}

/** Number of events searched for the first purchase. */
const FIRST_EVENTS = 1000;

/**
 * Record of a local engine in its directory. Reads only; an engine may be at work there meanwhile. Throws `not-found`
 * for a directory without one, `store.newer` and `store.corrupt`. O(jobs + attempts).
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
    const { lastMs, open } = await earlierLife(store);
    const jobs: RecordedJob[] = [];
    for await (const job of allJobs(store)) {
      jobs.push(recordedJob(job, await store.attempts(job.id), epochMs(lastMs ?? 0)));
    }
    const costs = await store.costs('pool');
    const purchase = (await store.events(0, FIRST_EVENTS)).find((e) => e.type === 'instance-requested');
    return {
      world,
      jobs: jobs.sort((a, b) => ascending(a.job.submittedMs, b.job.submittedMs)),
      firstPurchaseMs: purchase?.atMs ?? null,
      open,
      billedUsd: costs.reduce((sum, c) => sum + billedUsd(c), 0),
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

function recordedJob(job: Job, attempts: readonly Attempt[], untilMs: EpochMs): RecordedJob {
  const byStage = Map.groupBy(attempts, (a) => a.stage);
  const stages = job.spec.stages.map(
    (stage) => [stage.name, stageRuntimes(stage, byStage.get(stage.name) ?? [], untilMs)] as const,
  );
  return {
    job,
    runtimeS: new Map(stages.map(([name, { runtimeS }]) => [name, runtimeS])),
    failures: new Map(stages.map(([name, { failures }]) => [name, failures])),
    guessed: stages.reduce((n, [, { guessed }]) => n + guessed, 0),
  };
}
