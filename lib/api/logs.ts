import type { z } from 'zod';
import { EbbError } from '../kernel/errors.ts';
import type { Attempt, Job } from '../domain/job.ts';
import type { Backend } from '../ports/backend.ts';
import { decisiveAttempt, isFailed } from './decisive-attempt.ts';
import { findJob } from './find-job.ts';
import type { logsQuery } from './requests.ts';
import type { LogView } from './schemas.ts';
import { nearestName } from '../domain/nearest-name.ts';
import { quoted } from './validate.ts';

type LogsQuery = z.output<typeof logsQuery>;

/** Part of an attempt's log. To follow, ask again from `nextOffset`. */
export async function readLogs(of: Backend, ref: string, query: LogsQuery): Promise<LogView> {
  const job = await findJob(of, ref);
  const stage = stageOf(job, query.stage);
  const tries = (await of.store.attempts(job.id)).filter((a) => a.stage === stage && a.index === query.task);
  const isOpen = tries.some(isFailed) && !tries.some((a) => a.outcome === 'succeeded' || a.state !== 'ended');
  const hasFailed = isOpen && (await isTaskFailed(of, job, { stage, index: query.task }));
  const decisive = decisiveAttempt(tries, hasFailed);
  const attempt = attemptOf(tries, { job, stage, decisive }, query);
  const chunk = await of.fleet.logs(attempt.id, query.stream, query.offset, query.limit);
  return {
    job: job.id,
    stage,
    index: query.task,
    attempt: attempt.id,
    number: attempt.number,
    stream: query.stream,
    offset: query.offset,
    text: chunk.text,
    nextOffset: chunk.nextOffset,
    totalBytes: chunk.totalBytes,
    merged: chunk.isMerged === true,
    url: chunk.url ?? null,
    ended: attempt.state === 'ended',
    latest: attempt === decisive,
    outcome: attempt.outcome,
    reason: attempt.reason,
  };
}

function stageOf(job: Job, wanted: string | undefined): string {
  const names = job.spec.stages.map((s) => s.name);
  const [only] = names;
  if (wanted === undefined && only !== undefined && names.length === 1) return only;
  if (wanted !== undefined && names.includes(wanted)) return wanted;
  const near = wanted === undefined ? null : nearestName(wanted, names);
  throw new EbbError(wanted === undefined ? 'usage' : 'not-found', {
    what: wanted === undefined ? 'the job has several stages and none was named' : `the job has no such stage`,
    ...(wanted === undefined ? {} : { got: quoted(wanted) }),
    at: 'query.stage',
    allowed: names.slice(0, 20).join(', '),
    next: near === null ? 'Name one of its stages.' : `Did you mean ${quoted(near)}?`,
  });
}

async function isTaskFailed(
  { store }: Backend,
  { id }: Job,
  { stage, index }: { readonly stage: string; readonly index: number },
): Promise<boolean> {
  return (await store.tasks(id)).some((t) => t.state === 'failed' && t.stage === stage && t.index === index);
}

interface LogOf {
  readonly job: Job;
  readonly stage: string;
  readonly decisive: Attempt | null;
}

function attemptOf(tries: readonly Attempt[], { job, stage, decisive }: LogOf, query: LogsQuery): Attempt {
  const found = query.attempt === undefined ? decisive : (tries.find((a) => a.number === query.attempt) ?? null);
  if (found !== null) return found;
  const tasks = job.spec.stages.find((s) => s.name === stage)?.tasks ?? 0;
  if (query.task >= tasks) {
    throw new EbbError('not-found', {
      what: `stage ${stage} has no task ${query.task}`,
      at: 'query.task',
      allowed: `0 to ${tasks - 1}`,
      next: 'List the tasks: `ebb status JOB`.',
    });
  }
  throw new EbbError('not-found', {
    what: query.attempt === undefined ? 'the task has not started yet' : `the task has no attempt ${query.attempt}`,
    ...(decisive === null ? {} : { allowed: `1 to ${Math.max(...tries.map((a) => a.number))}` }),
    next: decisive === null ? 'Ask why it waits: `ebb explain JOB`.' : 'Leave the attempt out for the one that counts.',
  });
}
