/**
 * Many jobs, sent in batches one after another, because a job may depend on an earlier one by name. Each job has its
 * own idempotency key: a batch without an answer can be sent again, and known jobs are answered as repeated.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { BatchAnswer } from '../api/schemas.ts';
import { EbbError } from '../kernel/errors.ts';
import type { Client } from './client.ts';
import type { JobSource } from './job-source.ts';
import { routes } from './routes.ts';

/** Most jobs in one batch of the API (lib/api/requests.ts). */
export const MAX_JOBS = 500;
export const MAX_BYTES = 1_048_576;

/** Pauses between tries, wall ms: half a minute in all. The user decides about longer outages. */
const PAUSES_MS = [250, 500, 1000, 2000, 4000, 8000, 15_000];

export interface KeyedSource {
  readonly source: JobSource;
  readonly key: string;
  /** Index among all jobs of the command. */
  readonly index: number;
}

interface Batch {
  readonly jobs: readonly KeyedSource[];
  readonly bodyText: string;
}

/**
 * Batches in order, each as large as the API allows. A job that is too large alone is a batch of its own, which the API
 * refuses.
 */
export function* batchesOf(jobs: Iterable<KeyedSource>): Generator<Batch> {
  let batch: KeyedSource[] = [];
  let bytes = 0;
  for (const job of jobs) {
    // Quotation marks of the key, and two commas.
    const size = Buffer.byteLength(job.source.text) + job.key.length + 4;
    if (batch.length === MAX_JOBS || (batch.length > 0 && bytes + size > MAX_BYTES - ENVELOPE_BYTES)) {
      yield asBatch(batch);
      batch = [];
      bytes = 0;
    }
    batch.push(job);
    bytes += size;
  }
  if (batch.length > 0) yield asBatch(batch);
}

const ENVELOPE_BYTES = 64;

function asBatch(jobs: readonly KeyedSource[]): Batch {
  const texts = jobs.map(({ source }) => source.text).join(',');
  const keys = JSON.stringify(jobs.map(({ key }) => key));
  return { jobs, bodyText: `{"jobs":[${texts}],"keys":${keys}}` };
}

export type BatchResult = BatchAnswer['results'][number];

export interface Patience {
  /** Called once for each batch that must be sent again. */
  readonly onWait: (error: EbbError) => void;
  readonly pausesMs?: readonly number[];
}

/** Result of one job: the engine's answer, or the error of its request. */
export interface Sent {
  readonly job: KeyedSource;
  readonly answer: BatchResult | EbbError;
}

/** Results in order, a batch at a time. Throws the last error of a batch; earlier batches are accepted. */
export async function* sendBatches(
  engine: Client,
  jobs: Iterable<KeyedSource>,
  patience: Patience,
): AsyncGenerator<readonly Sent[]> {
  let isKnown = false;
  for (const batch of batchesOf(jobs)) {
    const answers = await patiently(() => answersTo(engine, batch), { ...patience, mayBeAbsent: isKnown });
    isKnown = true;
    yield batch.jobs.map((job, i) => ({ job, answer: answerAt(answers, i) }));
  }
}

async function answersTo(engine: Client, { jobs, bodyText }: Batch): Promise<readonly (BatchResult | EbbError)[]> {
  try {
    return (await engine.post<BatchAnswer>(routes.batch, { bodyText })).results;
  } catch (error) {
    // Too large alone: the other jobs go on.
    if (jobs.length === 1 && error instanceof EbbError && error.code === 'body-too-large') return [error];
    throw error;
  }
}

function answerAt(answers: readonly (BatchResult | EbbError)[], i: number): BatchResult | EbbError {
  const answer = answers[i];
  if (answer !== undefined) return answer;
  throw new EbbError('internal', { what: 'the engine did not answer for a job of the batch', got: `job ${i}` });
}

/** Tries again during outages. `mayBeAbsent`: the engine has answered before; one that never did is not waited for. */
async function patiently<T>(
  send: () => Promise<T>,
  { onWait, pausesMs = PAUSES_MS, mayBeAbsent }: Patience & { readonly mayBeAbsent: boolean },
): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await send();
    } catch (error) {
      const pauseMs = pausesMs[tries];
      if (!(error instanceof EbbError) || !error.retryable || pauseMs === undefined) throw error;
      if (error.code === 'engine.absent' && !mayBeAbsent) throw error;
      if (tries === 0) onWait(error);
      await delay(pauseMs);
    }
  }
}
