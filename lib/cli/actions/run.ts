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
import { minusMoney, sumOfMoney, type Money } from '../../api/money.ts';
import { readRun, writeRun } from '../run-record.ts';
import { endedByStop, onStopRequest, SIGNAL_EXIT } from '../signals.ts';
import { failuresOf } from '../views/failures.ts';
import { figures, summary, verdict, type JobResult, type RunResult } from '../views/summary.ts';
import { beginAll } from '../service-source.ts';
import { amountText, goingOn, resumeCommand, servicesThere, unfinishedJobs } from '../unfinished.ts';
import { submitOne } from './submit.ts';
import type { RunOptions } from '../flags/engine-flags.ts';

/** Wall time between two polls of something that is about to end. */
const POLL_MS = 100;
/** Wall time between two polls of the free disk space. */
const ROOM_POLL_MS = 500;
/** Longest wall time that a second Ctrl-C waits for processes to end. */
const AT_ONCE_MS = 3_000;

/**
 * `ebb run`: an engine for these jobs alone. The exit code is the worst of failed, late and cancelled
 * (lib/kernel/errors.ts).
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
  const sources = await readJobSources(files, { ...world, as: 'both' });
  const { openEmbedded } = await import('../compose.ts');
  // Nothing would wait for the jobs or hear a signal any more.
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
  /** Path as the user wrote it. */
  readonly dir: string;
  /** Absolute path. */
  readonly path: string;
}

async function runOn(engine: Embedded, order: Order): Promise<number> {
  const { context, sources } = order;
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
    const services = sources.filter((s) => s.kind === 'service');
    await beginAll(client, services, context.output);
    const lasts = (await servicesThere(client)).length > 0;
    if (lasts) context.output.note('services run until Ctrl-C');
    const watching = watchJobs({
      client,
      output: context.json ? { ...context.output, live: false } : context.output,
      // With a service there is no end.
      jobs: lasts ? null : jobs,
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

/** Polls in a row without a running task: at the first one the engine may be starting something. */
const POLLS_WITHOUT_WORK = 3;

/**
 * Rejects with `store.full` once the disk budget is used up and no task runs: nothing would make room any more. Never
 * settles otherwise.
 */
async function outOfRoom(client: Client, dir: string, signal: AbortSignal): Promise<never> {
  for (let polls = 0; polls < POLLS_WITHOUT_WORK;) {
    await delay(ROOM_POLL_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return NEVER;
    const { disk } = await client.get<HealthView>(routes.health);
    if (disk?.level !== 'used-up') {
      polls = 0;
      continue;
    }
    const { items } = await client.get<JobList>(routes.jobs, { state: ['pending', 'running'], limit: 1000 });
    polls = items.length > 0 && items.every((job) => job.tasks.running === 0) ? polls + 1 : 0;
    if (polls < POLLS_WITHOUT_WORK) continue;
    throw new OutOfRoom('store.full', { what: diskText(disk, disk.level, dir), next: diskWayOut(disk, dir) });
  }
  return NEVER;
}

const NEVER = new Promise<never>(() => undefined);

class OutOfRoom extends EbbError {}

/** The error with the command that resumes: the jobs are kept. */
function withWayOn(error: EbbError, { context, dir }: Order): EbbError {
  if (error.code !== 'store.full') return error;
  const wayOut = error instanceof OutOfRoom ? `${error.facts.next};` : 'free some space,';
  const next = `${wayOut} then go on with: ${resumeCommand(dir, context.world.env)}`;
  return new EbbError(error.code, { ...error.facts, next });
}

/** Unfinished jobs to resume. Without --resume there must be none: they would run unasked, at this run's cost. */
async function unfinished(client: Client, { resume, dir, sources, context }: Order): Promise<string[]> {
  const open = await unfinishedJobs(client);
  const services = await servicesThere(client);
  const there = [...services, ...open.map((j) => `${j.name} (${j.id})`)];
  if (!resume && there.length > 0) {
    throw new EbbError('conflict', {
      what:
        services.length === 0
          ? `${dir} holds ${plural(open.length, 'unfinished job')}`
          : `${dir} holds ${amountText(open.length, services.length)} that go on`,
      got: there.slice(0, 3).join(', '),
      next: `go on with \`${resumeCommand(dir, context.world.env)}\`, or give this run a folder of its own with --dir`,
    });
  }
  if (resume && there.length === 0 && sources.length === 0) {
    throw new EbbError('not-found', { what: `${dir} holds no unfinished job`, next: 'run a job: `ebb run FILE`' });
  }
  if (resume) {
    context.output.note(await goingOn(client, amountText(open.length, services.length), dir));
    // The cause may be mended by now. If not, they are held again with its message.
    for (const { id, state } of open) if (state === 'held') await client.post(routes.release(id));
  }
  return open.map((j) => j.id);
}

/** All or none: a refusal withdraws the jobs submitted before. */
async function submitAll(engine: Embedded, { sources, context }: Order): Promise<string[]> {
  const submitted: string[] = [];
  try {
    for (const source of sources.filter((s) => s.kind === 'job')) {
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
  /** Waits for a stop that was requested. Exit code, or null without one. */
  finished(): Promise<number | null>;
  unlisten(): void;
}

/** First Ctrl-C: save, release instances, print how to resume. Second: end at once. */
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
    // `finished` waits for it a moment later and sees an error.
    stopped.catch(() => undefined);
    abort.abort();
  });
  return { signal: abort.signal, finished: async () => stopped, unlisten };
}

/** Waits for the release of all instances; their bills are then final. */
async function instancesGone(client: Client): Promise<void> {
  while ((await client.get<InstanceList>(routes.instances, { live: true, limit: 1 })).items.length > 0) {
    await delay(POLL_MS);
  }
}

/** `before`: costs before this run. Null if unknown: only the cost of the jobs themselves is then reported. */
async function results(
  client: Client,
  ids: readonly string[],
  { before, refundedUsd }: { readonly before: Money | null; readonly refundedUsd: number },
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
  const spent = before === null ? sumOfMoney(jobs.map((j) => j.cost.total)) : minusMoney(total, before);
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
