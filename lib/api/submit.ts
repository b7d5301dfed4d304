import { hash } from 'node:crypto';
import { EbbError } from '../kernel/errors.ts';
import { jobId, timeOrderedText, type JobId } from '../kernel/ids.ts';
import { raw } from '../kernel/units.ts';
import type { Job, JobSpec } from '../domain/job.ts';
import { newJob } from '../cycle/new-job.ts';
import type { Backend } from '../ports/backend.ts';
import type { Submission, SubmitOutcome } from '../ports/store.ts';
import { readJobFile } from './job-input.ts';
import { problemOf } from './problem.ts';
import { idempotencyKey, MAX_BATCH_JOBS } from './requests.ts';
import type { BatchAnswer, SubmitAnswer } from './schemas.ts';
import { quoted } from './validate.ts';
import { admissionView, jobSummary } from './views.ts';

/**
 * Takes one job. Durable when it resolves; the engine is woken. Throws what the job file, the admission or a reused key
 * is refused for; then nothing is stored.
 */
export async function submitJob(
  of: Backend,
  body: unknown,
  key: string | null,
  bodyText: string,
): Promise<SubmitAnswer> {
  const idempotency = key === null ? null : { key, digest: digestOf(bodyText) };
  const known = await earlier(of, idempotency);
  if (known !== null) return answerOf(of, known);
  const job = await admitted(of, readJobFile(body, bodyText, of.submitter), NO_NAMES);
  const [outcome] = await of.store.submit([{ job, idempotency }]);
  return answerOf(of, outcome);
}

/**
 * Takes up to MAX_BATCH_JOBS jobs, each for itself: one that is refused does not hold up the others. A job may depend on
 * an earlier one of the batch by its name.
 */
export async function submitBatch(
  of: Backend,
  jobs: readonly unknown[],
  request: { readonly key: string | null; readonly id: string },
): Promise<BatchAnswer> {
  const batch = new Batch(of, request.key, request.id);
  for (const [index, body] of jobs.entries()) await batch.take(index, body);
  return batch.finish();
}

/**
 * What the key was used for before. Asked before admission: a repeated request is answered with the job that it made,
 * also when such a job would be refused by now. Two that come at once are told apart by the store.
 */
async function earlier(of: Backend, idempotency: Submission['idempotency']): Promise<SubmitOutcome | null> {
  const known = idempotency === null ? null : await of.store.submitted(idempotency.key);
  if (idempotency === null || known === null) return null;
  return known.digest === idempotency.digest
    ? { status: 'repeated', job: known.job }
    : { status: 'conflict', key: idempotency.key };
}

const NO_NAMES: ReadonlyMap<string, JobId> = new Map();

/** Jobs of one request on their way to the store: written together, but before any job that depends on one of them. */
class Batch {
  readonly #of: Backend;
  readonly #key: string | null;
  readonly #requestId: string;
  readonly #results: BatchAnswer['results'] = [];
  #waiting: { readonly index: number; readonly submission: Submission }[] = [];
  #waitingNames = new Set<string>();
  readonly #stored = new Map<string, JobId>();

  constructor(of: Backend, key: string | null, requestId: string) {
    this.#of = of;
    this.#key = key;
    this.#requestId = requestId;
  }

  async take(index: number, body: unknown): Promise<void> {
    try {
      // Its own text, whatever the rest of the batch is: what the key stands for.
      const text = JSON.stringify(body);
      const idempotency = this.#key === null ? null : { key: `${this.#key}/${index}`, digest: digestOf(text) };
      const known = await earlier(this.#of, idempotency);
      if (known !== null) {
        this.#answer(index, known);
        return;
      }
      const spec = readJobFile(body, text, this.#of.submitter);
      if (spec.after.some((ref) => this.#waitingNames.has(ref))) await this.#write();
      const job = await admitted(this.#of, spec, this.#stored);
      this.#waiting.push({ index, submission: { job, idempotency } });
      this.#waitingNames.add(spec.name);
    } catch (error) {
      this.#refuse(index, error);
    }
  }

  async finish(): Promise<BatchAnswer> {
    await this.#write();
    const results = this.#results.sort((a, b) => a.index - b.index);
    const count = (outcome: string): number => results.filter((r) => r.outcome === outcome).length;
    return { created: count('created'), repeated: count('repeated'), refused: count('refused'), results };
  }

  async #write(): Promise<void> {
    const writing = this.#waiting;
    if (writing.length === 0) return;
    this.#waiting = [];
    this.#waitingNames = new Set();
    const outcomes = await this.#of.store.submit(writing.map((w) => w.submission));
    for (const [i, { index }] of writing.entries()) {
      try {
        this.#answer(index, outcomes[i]);
      } catch (error) {
        this.#refuse(index, error);
      }
    }
  }

  #answer(index: number, of: SubmitOutcome | undefined): void {
    const { outcome, job, admission } = answerOf(this.#of, of);
    this.#stored.set(job.name, jobId(job.id));
    this.#results.push({ index, outcome, job, admission, problem: null });
  }

  /** A defect is no outcome of a job: it ends the request. */
  #refuse(index: number, error: unknown): void {
    if (!(error instanceof EbbError) || error.code === 'internal') throw error;
    const problem = problemOf(error, this.#requestId);
    this.#results.push({ index, outcome: 'refused', job: null, admission: null, problem });
  }
}

/** A job that may be stored. `names`: jobs of the same request that are stored already. */
async function admitted(of: Backend, asked: JobSpec, names: ReadonlyMap<string, JobId>): Promise<Job> {
  const after = asked.after.length === 0 ? [] : await dependencies(of, asked.after, names);
  const id = jobId(`j-${timeOrderedText(raw(of.clock.now()), of.random)}`);
  const { spec, notes } = of.place?.(asked, id) ?? { spec: asked, notes: [] };
  const { feasible, notes: known } = await of.admit(spec);
  return newJob(spec, { id, at: of.clock.now(), after, admission: { feasible, notes: [...known, ...notes] } });
}

async function dependencies(
  of: Backend,
  refs: readonly string[],
  names: ReadonlyMap<string, JobId>,
): Promise<readonly JobId[]> {
  const unknown = refs.filter((ref) => !names.has(ref));
  const stored = unknown.length === 0 ? new Map<string, Job>() : await of.store.findJobs(unknown);
  const missing = unknown.filter((ref) => !stored.has(ref));
  if (missing.length > 0) {
    throw new EbbError('job-file.dependency', {
      what: 'the job depends on a job that does not exist',
      at: 'after',
      got: missing.slice(0, 5).map(quoted).join(', '),
      allowed: 'ids or names of jobs that were submitted before',
      next: 'Submit those jobs first, or take them out of `after`.',
    });
  }
  return [...new Set(refs.flatMap((ref) => names.get(ref) ?? stored.get(ref)?.id ?? []))];
}

function answerOf(of: Backend, outcome: SubmitOutcome | undefined): SubmitAnswer {
  if (outcome === undefined) throw new EbbError('internal', { what: 'the store gave no outcome for a submission' });
  if (outcome.status === 'conflict') {
    throw new EbbError('conflict', {
      what: 'this Idempotency-Key was used with another body',
      got: quoted(outcome.key),
      allowed: 'the same key with the same body, to repeat; a new key, for a new job',
      next: 'Send the changed job under a new key.',
    });
  }
  // Who submitted it before may have died before anybody was told.
  if (outcome.status === 'created' || outcome.job.state === 'pending') of.wake();
  return { outcome: outcome.status, job: jobSummary(outcome.job), admission: admissionView(outcome.job) };
}

/** SHA-256 of the text: what tells a repeated body from another one. */
const digestOf = (text: string): string => hash('sha256', text, 'base64url');

/** The header's value, checked; null without the header. */
export function keyOf(header: string | undefined): string | null {
  if (header === undefined) return null;
  const parsed = idempotencyKey.safeParse(header);
  if (parsed.success) return parsed.data;
  throw new EbbError('usage', {
    what: `the header Idempotency-Key is not usable: ${parsed.error.issues.map((i) => i.message).join('; ')}`,
    at: 'header.idempotency-key',
    got: quoted(header),
    allowed: '1 to 200 visible ASCII characters',
    next: 'Use a UUID.',
  });
}

export function jobsOfBatch(body: unknown): readonly unknown[] {
  const jobs = (body as { jobs?: unknown } | null)?.jobs;
  const extra = typeof body === 'object' && body !== null ? Object.keys(body).filter((k) => k !== 'jobs') : [];
  if (Array.isArray(jobs) && jobs.length >= 1 && jobs.length <= MAX_BATCH_JOBS && extra.length === 0) return jobs;
  throw new EbbError('usage', {
    what: 'the request body is not a batch of jobs',
    got: Array.isArray(jobs)
      ? extra.length > 0
        ? `unknown keys ${extra.slice(0, 5).map(quoted).join(', ')}`
        : `${jobs.length} jobs`
      : 'no list `jobs`',
    allowed: `{"jobs": [...]} with 1 to ${MAX_BATCH_JOBS} job files`,
    next: 'Split larger batches.',
  });
}
