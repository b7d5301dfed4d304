import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptList, AttemptView, FailureList, LogView } from '../../api/schemas.ts';
import type { Client, Query } from '../client.ts';
import type { Action } from '../context.ts';
import { EbbError } from '../../kernel/errors.ts';
import { visible } from '../../kernel/terminal-text.ts';
import { json, type Output } from '../output.ts';
import { routes } from '../routes.ts';
import type { LogsOptions } from '../flags/job-flags.ts';

/** Wall time between two polls of a log that may grow. */
const POLL_MS = 300;

export const logs: Action<LogsOptions> = async ({ output, json: asJson, client }, [job = ''], options) => {
  const engine = await client();
  const of: LogQuery = {
    stage: options.stage,
    task: options.task,
    attempt: options.attempt,
    stream: options.stderr === true ? 'stderr' : 'stdout',
  };
  const follow = options.follow === true;
  const waits = (): void => output.note('no such task has started yet; waiting for it (Ctrl-C ends the wait)');
  let isFirst = true;
  let last: LogView | null = null;
  for await (const piece of pieces(engine, job, of, follow ? waits : null)) {
    if (!asJson && isFirst && !('started' in piece)) {
      if (piece.merged && of['stream'] === 'stderr') output.note(MERGED);
      if (piece.url !== null && output.live) output.note(`log: ${piece.url}`);
      isFirst = false;
    }
    if (asJson) json(output, piece);
    else if ('started' in piece) output.note(`--- attempt ${piece.started} ---`);
    else output.write(piece.text);
    if (!('started' in piece)) last = piece;
  }
  if (!asJson && last !== null) await noteFailure(engine, { job, last, output });
};

/** Reason of a failed attempt on standard error, with the end of its own standard error unless that was asked for. */
async function noteFailure(
  engine: Client,
  { job, last, output }: { readonly job: string; readonly last: LogView; readonly output: Output },
): Promise<void> {
  if (last.outcome !== 'failed' && last.outcome !== 'timed-out') return;
  const how = last.outcome === 'failed' ? 'failed' : 'timed out';
  output.note(`--- attempt ${last.number} ${how}${last.reason === null ? '' : `: ${visible(last.reason)}`} ---`);
  if (last.stream === 'stderr' || last.merged) return;
  const query = { stage: last.stage, task: last.index };
  const [failure] = (await engine.get<FailureList>(routes.failures(job), query)).items;
  // The reason of an earlier attempt is not known here.
  if (failure?.attempt !== last.number) return;
  if (failure.stderr === null) output.note('it wrote nothing to standard error');
  else
    output.note(
      `the end of its standard error (all of it with --stderr):\n${failure.stderr
        .split('\n')
        .map((line) => `| ${visible(line)}`)
        .join('\n')}`,
    );
}

const MERGED = 'standard output and standard error are one log in this deployment; this is both';

type LogQuery = Query & { readonly attempt: number | undefined };
type Piece = { readonly started: number } | LogView;

/**
 * One attempt's log from its beginning; where it is followed, on through the attempts that come to decide the task,
 * until the deciding one has ended and the job will start no other. `waits`: null when not following; else called
 * once when there is nothing to read yet.
 */
async function* pieces(engine: Client, job: string, of: LogQuery, waits: (() => void) | null): AsyncGenerator<Piece> {
  const follow = waits !== null;
  const query = { ...of };
  let told = false;
  let offset = 0;
  let number: number | null = null;
  const seen = new Set<number>();
  for (;;) {
    const view = await read(engine, job, { ...query, attempt: query.attempt ?? number ?? undefined, offset }, follow);
    if (view === null) {
      if (!told) waits?.();
      told = true;
      await delay(POLL_MS);
      continue;
    }
    if (number === null) number = view.number;
    seen.add(number);
    if (view.text !== '' || (offset === 0 && view.ended)) yield view;
    offset = view.nextOffset;
    if (offset < view.totalBytes) continue;
    if (!follow || (view.ended && (of.attempt !== undefined || (view.latest && (await taskIsOver(engine, job, view))))))
      return;
    const next = view.ended && !view.latest ? await read(engine, job, { ...query, offset: 0 }, follow) : null;
    if (next !== null && !seen.has(next.number)) {
      number = next.number;
      offset = 0;
      yield { started: number };
      continue;
    }
    // An attempt that was read before decides: nothing more is to come.
    if (next?.ended === true && (await taskIsOver(engine, job, view))) return;
    await delay(POLL_MS);
  }
}

/** Log of a task's attempt. Null when following a task that has not started. */
async function read(engine: Client, job: string, query: Query, follow: boolean): Promise<LogView | null> {
  try {
    return await engine.get<LogView>(routes.logs(job), query);
  } catch (error) {
    const early = error instanceof EbbError && error.code === 'not-found' && /not started yet/.test(error.facts.what);
    if (follow && early && !(await jobIsOver(engine, job))) return null;
    throw error;
  }
}

async function jobIsOver(engine: Client, job: string): Promise<boolean> {
  const { finishedAt } = await engine.get<{ finishedAt: string | null }>(routes.job(job));
  return finishedAt !== null;
}

/**
 * True once the task has no further attempt. A failed task may be tried again; the job's state tells that its retries
 * are used up.
 */
async function taskIsOver(engine: Client, job: string, view: LogView): Promise<boolean> {
  const { items } = await engine.get<AttemptList>(routes.attempts(job), { stage: view.stage, task: view.index });
  if (items.some((a) => a.outcome === 'succeeded')) return true;
  const newest = items.reduce<AttemptView | null>((a, b) => (a === null || b.number > a.number ? b : a), null);
  if (newest?.outcome === 'cancelled') return true;
  return jobIsOver(engine, job);
}
