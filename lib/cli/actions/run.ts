import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type {
  AttemptView,
  CostReport,
  HealthView,
  InstanceList,
  InstanceView,
  JobCostView,
  JobList,
  JobView,
} from '../../api/schemas.ts';
import { diskText, diskWayOut } from '../../domain/disk-budget.ts';
import { EbbError, ERROR_CODES } from '../../kernel/errors.ts';
import { all, type Client } from '../client.ts';
import { refuseElsewhere, type Action, type Context } from '../context.ts';
import type { Embedded } from '../embedded.ts';
import { embeddedOptions, NOT_BEGUN } from '../engine-options.ts';
import { asEbbError } from '../failure.ts';
import { plural } from '../format.ts';
import { readJobSources, type JobSource } from '../job-source.ts';
import { watchJobs } from '../monitor.ts';
import { json } from '../output.ts';
import { routes } from '../routes.ts';
import { difference, readRun, sumOf, writeRun, type Spent } from '../run-record.ts';
import { endedByStop, onStopRequest, SIGNAL_EXIT } from '../signals.ts';
import { failuresOf } from '../views/failures.ts';
import { figures, summary, verdict, type JobResult, type RunResult } from '../views/summary.ts';
import { goingOn, resumeCommand, unfinishedJobs } from '../unfinished.ts';
import { submitOne } from './submit.ts';
import type { RunOptions } from '../flags/engine-flags.ts';

/** Wall time between two looks at something that is about to end. */
const POLL_MS = 100;
/** Wall time between two looks at whether there is room on the disk. */
const LOOK_MS = 500;
/** Longest wall time that a second Ctrl-C waits for processes to be gone. */
const AT_ONCE_MS = 3_000;

/**
 * `ebb run`: an engine for these jobs alone. Its exit code says how they ended (lib/kernel/errors.ts): the worst of
 * failed, late and cancelled.
 */
export const run: Action<RunOptions> = async (context, files, options) => {
  const { world } = context;
  refuseElsewhere(options, 'hand jobs to a deployment or to a running engine by `ebb submit FILE`');
  const resume = options.resume === true;
  if (files.length === 0 && !resume) {
    throw new EbbError('usage', {
      what: 'no job file was named',
      next: 'name one, e.g. `ebb run examples/hello.yaml`, or go on with `ebb run --resume`',
    });
  }
  const sources = await readJobSources(files, world);
  const { openEmbedded } = await import('../compose.ts');
  // Nobody would wait for the jobs any more, nor hear a signal.
  const onInterrupted = (afterS: number): void => {
    const next = `the jobs are kept; go on with: ${resumeCommand(options.dir, world.env)}`;
    context.output.note(`error: ebb run did not come back from its own work within ${afterS} s\n  next:    ${next}`);
    const exit = (): never => process.exit(1);
    engine.stop('checkpoint').then(exit, exit);
  };
  const engine: Embedded = await endedByStop(context.output, NOT_BEGUN, () =>
    openEmbedded({
      ...embeddedOptions(options, world.cwd, options.dumpModel),
      resumes: resume && sources.length === 0,
      ...(world.isOwn === true && { onInterrupted }),
    }),
  );
  try {
    return await runOn(engine, { context, sources, resume, dir: options.dir, path: resolve(world.cwd, options.dir) });
  } finally {
    await engine.stop('drained');
  }
};

interface Order {
  readonly context: Context;
  readonly sources: readonly JobSource[];
  readonly resume: boolean;
  /** As the user wrote it. */
  readonly dir: string;
  /** Absolute. */
  readonly path: string;
}

async function runOn(engine: Embedded, order: Order): Promise<number> {
  const { context } = order;
  const { client } = engine;
  const { total } = await client.get<CostReport>(routes.costs, { by: 'pool' });
  const after = await client.lastEvent();
  const open = await unfinished(client, order);
  const jobs = [...open, ...(await submitAll(engine, order))];
  const before = open.length === 0 ? total : (readRun(order.path, open)?.before ?? null);
  const stopping = interruptible(engine, order);
  let refundedUsd = 0;
  const watched = new AbortController();
  try {
    if (before !== null) writeRun(order.path, { jobs, before });
    await engine.start();
    const watching = watchJobs({
      client,
      output: context.json ? { ...context.output, live: false } : context.output,
      jobs,
      signal: stopping.signal,
      after,
      ...(before === null ? {} : { before }),
      onRefund: (usd) => (refundedUsd += usd),
      line: (text) => (context.json ? context.output.note(text) : context.output.line(text)),
    });
    const signal = AbortSignal.any([stopping.signal, watched.signal]);
    await Promise.race([watching, engine.failed, outOfRoom(client, order.path, signal)]);
    const code = await stopping.finished();
    if (code !== null) return code;
    await Promise.race([instancesGone(client), engine.failed]);
    return report(context, await results(client, jobs, { before, refundedUsd }));
  } catch (error) {
    throw withWayOn(asEbbError(error), order);
  } finally {
    watched.abort();
    stopping.unlisten();
  }
}

/** Looks in a row at which nothing runs: the engine may just have started something when the first one is made. */
const LOOKS_WITHOUT_WORK = 3;

/**
 * Rejects with `store.full` once the disk budget is used up and the last task that ran has ended: nothing that this
 * process waits for makes room any more. Never settles otherwise.
 */
async function outOfRoom(client: Client, dir: string, signal: AbortSignal): Promise<never> {
  for (let looks = 0; looks < LOOKS_WITHOUT_WORK;) {
    await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return NEVER;
    const { disk } = await client.get<HealthView>(routes.health);
    if (disk?.level !== 'used-up') {
      looks = 0;
      continue;
    }
    const { items } = await client.get<JobList>(routes.jobs, { state: ['pending', 'running'], limit: 1000 });
    looks = items.length > 0 && items.every((job) => job.tasks.running === 0) ? looks + 1 : 0;
    if (looks < LOOKS_WITHOUT_WORK) continue;
    throw new OutOfRoom('store.full', { what: diskText(disk, disk.level, dir), next: diskWayOut(disk, dir) });
  }
  return NEVER;
}

const NEVER = new Promise<never>(() => undefined);

class OutOfRoom extends EbbError {}

/** The jobs are kept: what stands in the way is said with how to go on once it is gone. */
function withWayOn(error: EbbError, { context, dir }: Order): EbbError {
  if (error.code !== 'store.full') return error;
  const wayOut = error instanceof OutOfRoom ? `${error.facts.next};` : 'free some space,';
  const next = `${wayOut} then go on with: ${resumeCommand(dir, context.world.env)}`;
  return new EbbError(error.code, { ...error.facts, next });
}

/** Jobs to go on with. Without --resume there must be none: they would run unasked, and on this run's bill. */
async function unfinished(client: Client, { resume, dir, sources, context }: Order): Promise<string[]> {
  const open = await unfinishedJobs(client);
  if (!resume && open.length > 0) {
    throw new EbbError('conflict', {
      what: `${dir} holds ${plural(open.length, 'unfinished job')}`,
      got: open
        .slice(0, 3)
        .map((j) => `${j.name} (${j.id})`)
        .join(', '),
      next: `go on with \`${resumeCommand(dir, context.world.env)}\`, or give this run a folder of its own with --dir`,
    });
  }
  if (resume && open.length === 0 && sources.length === 0) {
    throw new EbbError('not-found', { what: `${dir} holds no unfinished job`, next: 'run a job: `ebb run FILE`' });
  }
  if (resume) {
    context.output.note(await goingOn(client, open.length, dir));
    // What held them may be mended since; else they are held again, and say so.
    for (const { id, state } of open) if (state === 'held') await client.post(routes.release(id));
  }
  return open.map((j) => j.id);
}

/** All or none: when one is refused, those before it are taken back. */
async function submitAll(engine: Embedded, { sources, context }: Order): Promise<string[]> {
  const submitted: string[] = [];
  try {
    for (const source of sources) {
      const { job, admission } = await submitOne(engine.client, source, undefined);
      submitted.push(job.id);
      const warning = admission.feasible ? '' : context.output.colors.yellow('warning: ');
      for (const note of admission.notes) context.output.note(`${warning}${job.name}: ${note}`);
    }
    return submitted;
  } catch (error) {
    if (submitted.length > 0) await takeBack(engine, submitted);
    throw error;
  }
}

async function takeBack(engine: Embedded, jobs: readonly string[]): Promise<void> {
  for (const id of jobs) await engine.client.post(routes.cancel(id));
  await engine.start();
  for (const id of jobs) {
    while ((await engine.client.get<JobView>(routes.job(id))).finishedAt === null) {
      await Promise.race([delay(POLL_MS), engine.failed]);
    }
  }
}

interface Interruptible {
  readonly signal: AbortSignal;
  /** Waits for a stop that was asked for; its exit code, or null when none was. */
  finished(): Promise<number | null>;
  unlisten(): void;
}

/** First Ctrl-C: save, give back, say how to go on. Second: end at once. */
function interruptible(engine: Embedded, { context, dir }: Order): Interruptible {
  const abort = new AbortController();
  let stopped: Promise<number> | null = null;
  const unlisten = onStopRequest((count, signal) => {
    const code = SIGNAL_EXIT[signal];
    if (count > 1) {
      context.output.note('stopping at once');
      const exit = (): never => process.exit(code);
      engine.stop('at-once').then(exit, exit);
      setTimeout(exit, AT_ONCE_MS).unref();
      return;
    }
    context.output.note('\nasking the tasks to save their state (Ctrl-C again stops at once) ...');
    stopped = engine.stop('checkpoint').then(() => {
      context.output.note(`stopped; nothing is left running. Go on with: ${resumeCommand(dir, context.world.env)}`);
      return code;
    });
    // Who waits for it is `finished`, a moment later; an error is seen there.
    stopped.catch(() => undefined);
    abort.abort();
  });
  return { signal: abort.signal, finished: async () => stopped, unlisten };
}

/** After the last job the engine gives its instances back; then their bills are final. */
async function instancesGone(client: Client): Promise<void> {
  while ((await client.get<InstanceList>(routes.instances, { live: true, limit: 1 })).items.length > 0) {
    await delay(POLL_MS);
  }
}

/** `before`: null where it is not known; then only what the jobs themselves cost can be told. */
async function results(
  client: Client,
  ids: readonly string[],
  { before, refundedUsd }: { readonly before: Spent | null; readonly refundedUsd: number },
): Promise<RunResult> {
  const jobs: JobResult[] = [];
  for (const id of ids) {
    const job = await client.get<JobView>(routes.job(id));
    const [failures, cost, attempts] = await Promise.all([
      failuresOf(client, job),
      client.get<JobCostView>(routes.jobCosts(id)),
      all<AttemptView>(client, routes.attempts(id), { limit: 1000 }),
    ]);
    jobs.push({ job, cost, attempts, failures: failures?.items ?? [] });
  }
  const { total } = await client.get<CostReport>(routes.costs, { by: 'pool' });
  const times = jobs
    .flatMap(({ job }) => [job.submittedAt, job.finishedAt ?? job.submittedAt])
    .map((t) => Date.parse(t));
  const spent = before === null ? sumOf(jobs.map((j) => j.cost.total)) : difference(total, before);
  const ended = await all<InstanceView>(client, routes.instances, { live: false, limit: 1000 });
  const isLost = (i: InstanceView): boolean =>
    i.endCause === 'interrupted' && Date.parse(i.requestedAt) >= Math.min(...times);
  const instancesLost = ended.filter(isLost).length;
  return { jobs, spent, instancesLost, refundedUsd, elapsedS: (Math.max(...times) - Math.min(...times)) / 1000 };
}

function report({ output, json: asJson }: Context, result: RunResult): number {
  const verdicts = result.jobs.map(({ job }) => verdict(job));
  const worst = (['job.failed', 'job.held', 'job.late', 'job.cancelled'] as const).find((code) =>
    verdicts.includes(code),
  );
  const exit = worst === undefined ? 0 : ERROR_CODES[worst].exit;
  if (asJson) {
    const jobs = result.jobs.map(({ job, cost, failures }) => ({ job, cost, failures }));
    json(output, { exit, elapsedS: result.elapsedS, ...figures(result), jobs });
  } else {
    output.line(`\n${summary(output, result)}`);
  }
  return exit;
}
