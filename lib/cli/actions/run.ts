import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptView, CostReport, InstanceList, JobCostView, JobView } from '../../api/schemas.ts';
import { EbbError, ERROR_CODES } from '../../kernel/errors.ts';
import { all, type Client } from '../client.ts';
import type { RunOptions } from '../commands/running.ts';
import { refuseElsewhere, type Action, type Context } from '../context.ts';
import type { Embedded } from '../embedded.ts';
import { embeddedOptions, NOT_BEGUN } from '../engine-options.ts';
import { plural } from '../format.ts';
import { readJobSource, type JobSource } from '../job-source.ts';
import { watchJobs } from '../monitor.ts';
import { json } from '../output.ts';
import { routes } from '../routes.ts';
import { difference, readRun, sumOf, writeRun, type Spent } from '../run-record.ts';
import { endedByStop, onStopRequest, SIGNAL_EXIT } from '../signals.ts';
import { figures, summary, verdict, type JobResult, type RunResult } from '../views/summary.ts';
import { goingOn, resumeCommand, unfinishedJobs } from '../unfinished.ts';
import { submitOne } from './submit.ts';

/** Wall time between two looks at something that is about to end. */
const POLL_MS = 100;
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
  const sources: JobSource[] = [];
  for (const file of files) sources.push(await readJobSource(file, world.cwd, world.stdin));
  const { openEmbedded } = await import('../compose.ts');
  const engine = await endedByStop(context.output, NOT_BEGUN, () =>
    openEmbedded(embeddedOptions(options, world.cwd, options.dumpModel)),
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
  if (before !== null) writeRun(order.path, { jobs, before });

  const stopping = interruptible(engine, order);
  try {
    await engine.start();
    const watching = watchJobs({
      client,
      output: context.json ? { ...context.output, live: false } : context.output,
      jobs,
      signal: stopping.signal,
      after,
      ...(before === null ? {} : { before }),
      line: (text) => (context.json ? context.output.note(text) : context.output.line(text)),
    });
    await Promise.race([watching, engine.failed]);
    const code = await stopping.finished();
    if (code !== null) return code;
    await Promise.race([instancesGone(client), engine.failed]);
    return report(context, await results(client, jobs, before));
  } finally {
    stopping.unlisten();
  }
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
  if (resume) context.output.note(await goingOn(client, open.length, dir));
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
async function results(client: Client, ids: readonly string[], before: Spent | null): Promise<RunResult> {
  const jobs: JobResult[] = [];
  for (const id of ids) {
    const [job, cost, attempts] = await Promise.all([
      client.get<JobView>(routes.job(id)),
      client.get<JobCostView>(routes.jobCosts(id)),
      all<AttemptView>(client, routes.attempts(id), { limit: 1000 }),
    ]);
    jobs.push({ job, cost, attempts });
  }
  const { total } = await client.get<CostReport>(routes.costs, { by: 'pool' });
  const times = jobs
    .flatMap(({ job }) => [job.submittedAt, job.finishedAt ?? job.submittedAt])
    .map((t) => Date.parse(t));
  const spent = before === null ? sumOf(jobs.map((j) => j.cost.total)) : difference(total, before);
  return { jobs, spent, elapsedS: (Math.max(...times) - Math.min(...times)) / 1000 };
}

function report({ output, json: asJson }: Context, result: RunResult): number {
  const verdicts = result.jobs.map(({ job }) => verdict(job));
  const worst = (['job.failed', 'job.late', 'job.cancelled'] as const).find((code) => verdicts.includes(code));
  const exit = worst === undefined ? 0 : ERROR_CODES[worst].exit;
  if (asJson) {
    const jobs = result.jobs.map(({ job, cost }) => ({ job, cost }));
    json(output, { exit, elapsedS: result.elapsedS, ...figures(result), jobs });
  } else {
    output.line(`\n${summary(output, result)}`);
  }
  return exit;
}
