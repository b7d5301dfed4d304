import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { z } from 'zod';
import { EbbError } from '../kernel/errors.ts';
import { jobId, timeOrderedText, type JobId } from '../kernel/ids.ts';
import { recordOf, type Asker } from '../domain/caller.ts';
import type { Job, JobSpec } from '../domain/job.ts';
import { newJob } from '../cycle/admit/new-job.ts';
import type { Backend, Placed } from '../ports/backend.ts';
import type { Submission, SubmitOutcome, Submitted } from '../ports/store.ts';
import type { NormaliseOptions } from '../domain/job-file/normalise.ts';
import { checkOwner } from './access.ts';
import { readJobFile, UNKNOWN_SUBMITTER } from './job-input.ts';
import { problemOf } from './problem.ts';
import { batchEnvelope, idempotencyKey, MAX_BATCH_JOBS } from './requests.ts';
import type { BatchAnswer, SubmitAnswer } from './schemas.ts';
import { quoted } from './validate.ts';
import { admissionView, jobSummary } from './views.ts';

/** Common data of the jobs in a request. */
interface Submitting {
  /** Value of the Idempotency-Key header. */
  readonly key: string | null;
  readonly caller: Asker | null;
}

/**
 * Submits one job. Durable when it resolves; the engine is woken. Throws errors of the job file, of admission or of a
 * reused key; then nothing is stored.
 */
export async function submitJob(
  of: Backend,
  body: unknown,
  request: Submitting & { readonly bodyText: string },
): Promise<SubmitAnswer> {
  const { key, bodyText, caller } = request;
  const idempotency = key === null ? null : { key, digest: digestOf(bodyText) };
  const used = key === null ? new Map<string, Submitted>() : await of.store.submitted([key]);
  const known = earlier(used, idempotency);
  if (known !== null) return answered(of, known);
  const job = await admitted(of, readJobFile(body, bodyText, submitterOf(of, caller)), { names: NO_NAMES, caller });
  const [outcome] = await of.store.submit([{ job, idempotency }]);
  return answered(of, outcome);
}

/**
 * Submits the jobs of a batch. Each is judged alone: refused jobs do not stop the others. A job may name an earlier one
 * of the batch in `after`. Jobs answered as created are durable. Every SLICE_MS other requests get the thread.
 */
export async function submitBatch(
  of: Backend,
  { jobs, keys }: BatchOrder,
  request: { readonly id: string; readonly caller: Asker | null },
): Promise<BatchAnswer> {
  const known = await of.store.submitted(keys.filter((key) => key !== null));
  const batch = new Batch(of, new Map(known), request);
  for (const [index, body] of jobs.entries()) {
    await batch.take(index, body, keys[index] ?? null);
    await batch.breathe();
  }
  return batch.finish();
}

/**
 * Earlier use of a key. Read before admission: a repeated request gets its job even if admission would refuse it now.
 * The store distinguishes two simultaneous ones.
 */
function earlier(known: ReadonlyMap<string, Submitted>, idempotency: Submission['idempotency']): SubmitOutcome | null {
  const before = idempotency === null ? undefined : known.get(idempotency.key);
  if (idempotency === null || before === undefined) return null;
  return before.digest === idempotency.digest
    ? { status: 'repeated', job: before.job }
    : { status: 'conflict', key: idempotency.key };
}

const NO_NAMES: ReadonlyMap<string, JobId> = new Map();

/** Longest time that a batch keeps the thread between writes, wall ms. */
const SLICE_MS = 10;
/** Most characters of notes and findings in the answer to a batch, which must fit into an answer (bounded.ts). */
const MAX_BATCH_REMARKS = 1_000_000;

/**
 * Jobs of one request on their way to the store. They are written together, but before any job that depends on one of
 * them.
 */
class Batch {
  readonly #of: Backend;
  /** Known submissions by key, with those of this batch. */
  readonly #known: Map<string, Submitted>;
  readonly #requestId: string;
  readonly #caller: Asker | null;
  readonly #results: BatchAnswer['results'] = [];
  #waiting: { readonly index: number; readonly submission: Submission }[] = [];
  #waitingNames = new Set<string>();
  #waitingKeys = new Set<string>();
  readonly #stored = new Map<string, JobId>();
  #sliceMs = performance.now();
  #remarks = 0;
  #mustWake = false;

  constructor(
    of: Backend,
    known: Map<string, Submitted>,
    { id, caller }: { readonly id: string; readonly caller: Asker | null },
  ) {
    this.#of = of;
    this.#known = known;
    this.#requestId = id;
    this.#caller = caller;
  }

  async take(index: number, body: unknown, key: string | null): Promise<void> {
    // Text of the job alone, independent of the batch: the key stands for it.
    const text = JSON.stringify(body);
    const idempotency = key === null ? null : { key, digest: digestOf(text) };
    try {
      if (key !== null && this.#waitingKeys.has(key)) await this.#write();
      const known = earlier(this.#known, idempotency);
      if (known !== null) {
        this.#answer(index, known);
        return;
      }
      const spec = readJobFile(body, text, submitterOf(this.#of, this.#caller));
      if (spec.after.some((ref) => this.#waitingNames.has(ref))) await this.#write();
      const job = await admitted(this.#of, spec, { names: this.#stored, caller: this.#caller });
      this.#waiting.push({ index, submission: { job, idempotency } });
      this.#waitingNames.add(spec.name);
      if (key !== null) this.#waitingKeys.add(key);
    } catch (error) {
      this.#refuse(index, error);
    }
  }

  /** Yields the thread if this batch has had it for long. */
  async breathe(): Promise<void> {
    if (performance.now() - this.#sliceMs < SLICE_MS) return;
    await nextTurn();
    this.#sliceMs = performance.now();
  }

  async finish(): Promise<BatchAnswer> {
    await this.#write();
    const results = this.#results.sort((a, b) => a.index - b.index);
    const count = (outcome: string): number => results.filter((r) => r.outcome === outcome).length;
    return { created: count('created'), repeated: count('repeated'), refused: count('refused'), results };
  }

  /** Faults of the store are not outcomes of jobs: the batch can be sent again under its keys without loss. */
  async #write(): Promise<void> {
    const writing = this.#waiting;
    if (writing.length > 0) {
      this.#waiting = [];
      this.#waitingNames = new Set();
      this.#waitingKeys = new Set();
      const outcomes = await this.#of.store.submit(writing.map((w) => w.submission)).catch((error: unknown) => {
        throw new StoreFault(error);
      });
      for (const [i, { index, submission }] of writing.entries()) {
        try {
          const outcome = outcomes[i];
          const { idempotency } = submission;
          if (idempotency !== null && outcome !== undefined && outcome.status !== 'conflict') {
            this.#known.set(idempotency.key, { digest: idempotency.digest, job: outcome.job });
          }
          this.#answer(index, outcome);
        } catch (error) {
          this.#refuse(index, error);
        }
      }
    }
    if (this.#mustWake) this.#of.wake();
    this.#mustWake = false;
  }

  #answer(index: number, of: SubmitOutcome | undefined): void {
    const { outcome, job, admission, isOpen } = answerOf(of);
    this.#mustWake ||= isOpen;
    this.#stored.set(job.name, jobId(job.id));
    const notes = this.#fitting(admission.notes, (note) => note.length);
    this.#results.push({ index, outcome, job, admission: { ...admission, notes }, problem: null });
  }

  /** Defects are not outcomes of jobs: they end the request. */
  #refuse(index: number, error: unknown): void {
    if (error instanceof StoreFault) throw error.cause;
    if (!(error instanceof EbbError) || error.code === 'internal') throw error;
    const { issues, ...problem } = problemOf(error, this.#requestId);
    const shown = this.#fitting(issues ?? [], ({ at, message }) => at.length + message.length);
    const told = shown.length === 0 ? problem : { ...problem, issues: shown };
    this.#results.push({ index, outcome: 'refused', job: null, admission: null, problem: told });
  }

  /** First remarks that the answer has room for. */
  #fitting<T>(remarks: readonly T[], sizeOf: (remark: T) => number): T[] {
    return remarks.filter((remark) => (this.#remarks += sizeOf(remark)) <= MAX_BATCH_REMARKS);
  }
}

class StoreFault extends Error {
  constructor(cause: unknown) {
    super('the store did not take the jobs', { cause });
  }
}

/** Default owner of a job: its submitter. */
function submitterOf({ submitter }: Backend, caller: Asker | null): NormaliseOptions {
  const { baseDir, defaultOwner } = submitter ?? UNKNOWN_SUBMITTER;
  return { baseDir, defaultOwner: caller === null ? defaultOwner : (caller.name ?? caller.id) };
}

interface Admitting {
  /** Stored jobs of the same request, by name. */
  readonly names: ReadonlyMap<string, JobId>;
  readonly caller: Asker | null;
}

/** Job after admission. */
async function admitted(of: Backend, asked: JobSpec, { names, caller }: Admitting): Promise<Job> {
  checkOwner(of.access, asked, caller);
  const after = asked.after.length === 0 ? [] : await dependencies(of, asked.after, names);
  const id = jobId(`j-${timeOrderedText(of.clock.now(), of.random)}`);
  const { spec, notes, undo }: Placed = (await of.place?.(asked, id)) ?? { spec: asked, notes: [] };
  const { feasible, notes: known } = await of.admit(spec).catch((error: unknown) => {
    undo?.();
    throw error;
  });
  const admission = { feasible, notes: [...known, ...notes] };
  return newJob(spec, { id, at: of.clock.now(), after, admission, by: caller === null ? null : recordOf(caller) });
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

function answered(of: Backend, outcome: SubmitOutcome | undefined): SubmitAnswer {
  const { isOpen, ...answer } = answerOf(outcome);
  if (isOpen) of.wake();
  return answer;
}

/** `isOpen`: the engine must be woken. */
function answerOf(outcome: SubmitOutcome | undefined): SubmitAnswer & { readonly isOpen: boolean } {
  if (outcome === undefined) throw new EbbError('internal', { what: 'the store gave no outcome for a submission' });
  if (outcome.status === 'conflict') {
    throw new EbbError('conflict', {
      what: 'this Idempotency-Key was used with another body',
      got: quoted(outcome.key),
      allowed: 'the same key with the same body, to repeat; a new key, for a new job',
      next: 'Send the changed job under a new key.',
    });
  }
  // The earlier submitter may have died before it woke the engine.
  const isOpen = outcome.status === 'created' || outcome.job.state === 'pending';
  return { outcome: outcome.status, job: jobSummary(outcome.job), admission: admissionView(outcome.job), isOpen };
}

/** SHA-256 of the text, which distinguishes repeated bodies from others. */
const digestOf = (text: string): string => hash('sha256', text, 'base64url');

/** Checked value of the header; null without the header. */
export function keyOf(header: string | undefined): string | null {
  if (header === undefined) return null;
  const parsed = idempotencyKey.safeParse(header);
  if (parsed.success) return parsed.data;
  const is = 'the header Idempotency-Key';
  throw unusableKey({ at: 'header.idempotency-key', is, got: quoted(header) }, parsed.error);
}

/** Jobs of one request with their keys. */
export interface BatchOrder {
  readonly jobs: readonly unknown[];
  readonly keys: readonly (string | null)[];
}

/** Jobs of a batch. `key`: of the request's header; job number i has `key/i`. Throws `usage` or `body-too-large`. */
export function batchOf(body: unknown, key: string | null): BatchOrder {
  const { jobs, keys } = (body ?? {}) as { jobs?: unknown; keys?: unknown };
  const extra = typeof body === 'object' && body !== null ? Object.keys(body).filter((k) => !ENVELOPE.has(k)) : [];
  if (Array.isArray(jobs) && jobs.length > MAX_BATCH_JOBS) {
    throw new EbbError('body-too-large', {
      what: 'the batch has too many jobs',
      at: 'jobs',
      got: `${jobs.length} jobs`,
      allowed: `1 to ${MAX_BATCH_JOBS} job files`,
      next: 'Split larger batches, as `ebb submit` does.',
    });
  }
  if (!Array.isArray(jobs) || jobs.length === 0 || extra.length > 0) {
    throw new EbbError('usage', {
      what: 'the request body is not a batch of jobs',
      got: Array.isArray(jobs)
        ? extra.length > 0
          ? `unknown keys ${extra.slice(0, 5).map(quoted).join(', ')}`
          : 'no jobs'
        : 'no list `jobs`',
      allowed: `{"jobs": [...]} with 1 to ${MAX_BATCH_JOBS} job files`,
      next: 'See /api/openapi.json for what this route takes.',
    });
  }
  if (keys === undefined) return { jobs, keys: jobs.map((_, i) => (key === null ? null : `${key}/${i}`)) };
  if (key !== null) {
    throw new EbbError('usage', {
      what: 'the batch has `keys` and the header Idempotency-Key',
      at: 'keys',
      allowed: 'one of them',
      next: 'Leave out the header: each job has a key of its own.',
    });
  }
  return { jobs, keys: checkedKeys(keys, jobs.length) };
}

const ENVELOPE: ReadonlySet<string> = new Set(Object.keys(batchEnvelope.shape));

function checkedKeys(keys: unknown, count: number): readonly (string | null)[] {
  const isList = Array.isArray(keys);
  if (!isList || keys.length !== count) {
    throw new EbbError('usage', {
      what: '`keys` is not a list with one entry for each job',
      at: 'keys',
      got: isList ? `${keys.length} keys for ${count} jobs` : `${keys === null ? 'null' : typeof keys}`,
      allowed: 'for each job a key or null, or no `keys` at all',
      next: 'Give each job a key, such as a UUID.',
    });
  }
  return keys.map((key: unknown, i) => {
    if (key === null) return null;
    const parsed = idempotencyKey.safeParse(key);
    if (parsed.success) return parsed.data;
    throw unusableKey(
      { at: `keys[${i}]`, is: `key ${i}`, got: quoted(typeof key === 'string' ? key : JSON.stringify(key)) },
      parsed.error,
    );
  });
}

function unusableKey(
  { at, is, got }: { readonly at: string; readonly is: string; readonly got: string },
  error: z.ZodError,
): EbbError {
  return new EbbError('usage', {
    what: `${is} is not usable: ${error.issues.map((i) => i.message).join('; ')}`,
    at,
    got,
    allowed: '1 to 200 visible ASCII characters',
    next: 'Use a UUID.',
  });
}
