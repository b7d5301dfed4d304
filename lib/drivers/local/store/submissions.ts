import { EbbError } from '../../../kernel/errors.ts';
import type { JobId } from '../../../kernel/ids.ts';
import { isOver, type Job } from '../../../domain/job.ts';
import type { Cancelling, Retention, Submission, SubmitOutcome, Submitted } from '../../../ports/store.ts';
import { ageOut } from './ageing.ts';
import type { Database } from './database.ts';
import { forgetEvents, putEvent } from './event-log.ts';
import { OPEN_STATES } from './job-queries.ts';
import { asFlag, bodyOf, jobOf, type JobRow } from './sqlite-rows.ts';
import { cancelEvent, submittedEvent } from '../../stores/job-events.ts';

/** Inserts a job that is not there yet; its arrival number, or null when its id is taken. */
export function insertJob(db: Database, job: Job): number | null {
  const { spec } = job;
  const arrival = db.insert(
    `INSERT INTO jobs (id, name, owner, state, cancel_requested, body) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    job.id,
    spec.name,
    spec.owner,
    job.state,
    asFlag(job.cancelRequested),
    JSON.stringify(bodyOf(job)),
  );
  if (arrival === null) return null;
  db.run('INSERT INTO job_specs VALUES (?, ?)', arrival, JSON.stringify(spec));
  for (const [key, value] of Object.entries(spec.labels)) {
    db.run('INSERT INTO job_labels VALUES (?, ?, ?)', key, value, arrival);
  }
  return arrival;
}

interface Known extends JobRow {
  readonly digest: string;
}

/** Submission under a key; null: none. */
export function submittedUnder(db: Database, key: string): Submitted | null {
  const known = db.one<Known>(
    `SELECT i.digest, j.cancel_requested, j.cancelled_by, j.released_hold_ms, j.body, s.spec FROM idempotency i
     JOIN jobs j ON j.arrival = i.job JOIN job_specs s ON s.job = i.job WHERE i.key = ?`,
    key,
  );
  if (known === undefined) return null;
  return { digest: known.digest, job: jobOf(known, JSON.parse(known.spec) as Job['spec']) };
}

function submitOne(db: Database, { job, idempotency }: Submission, nowMs: number): SubmitOutcome {
  if (idempotency !== null) {
    const known = submittedUnder(db, idempotency.key);
    if (known !== null) {
      return known.digest === idempotency.digest
        ? { status: 'repeated', job: known.job }
        : { status: 'conflict', key: idempotency.key };
    }
  }
  const arrival = insertJob(db, job);
  if (arrival === null) {
    throw new EbbError('conflict', {
      what: 'a job of this id exists already',
      got: job.id,
      next: 'submit it again: a new id is drawn',
    });
  }
  if (idempotency !== null) {
    const { key, digest } = idempotency;
    db.run('INSERT INTO idempotency (key, digest, job, at_ms) VALUES (?, ?, ?, ?)', key, digest, arrival, nowMs);
  }
  putEvent(submittedEvent(job))(db);
  return { status: 'created', job };
}

/** False when the job is unknown or over. */
export function cancelOne(db: Database, job: JobId, by: Cancelling | undefined): boolean {
  if (by === undefined) {
    return db.run(`UPDATE jobs SET cancel_requested = 1 WHERE id = ? AND state IN ${OPEN_STATES}`, job) > 0;
  }
  return db.write(() => {
    const known = db.one<{ state: Job['state']; cancelled_by: string | null; spec: string }>(
      'SELECT j.state, j.cancelled_by, s.spec FROM jobs j JOIN job_specs s ON s.job = j.arrival WHERE j.id = ?',
      job,
    );
    if (known === undefined || isOver(known.state)) return false;
    if (known.cancelled_by === null) {
      db.run('UPDATE jobs SET cancel_requested = 1, cancelled_by = ? WHERE id = ?', JSON.stringify(by.caller), job);
      putEvent(cancelEvent({ id: job, spec: JSON.parse(known.spec) as Job['spec'] }, by))(db);
    }
    return true;
  });
}

interface Call {
  readonly submissions: readonly Submission[];
  readonly resolve: (outcomes: readonly SubmitOutcome[]) => void;
  readonly reject: (error: unknown) => void;
}

type Settled = { readonly outcomes: readonly SubmitOutcome[] } | { readonly error: unknown };

/**
 * Group commit: calls that arrive while a flush is due share one transaction, and so one write to the disk. Each gets
 * its own outcome, after COMMIT; one call's fault undoes that call alone, a fault of the transaction all of them.
 * Lifecycle: submit* -> flush (end of the event loop's pass) -> ... -> close (flushes due calls).
 */
export class GroupCommit {
  readonly #db: Database;
  readonly #retention: Retention;
  readonly #nowMs: () => number;
  #due: Call[] = [];

  /** `nowMs`: wall time. */
  constructor(db: Database, retention: Retention, nowMs: () => number) {
    this.#db = db;
    this.#retention = retention;
    this.#nowMs = nowMs;
  }

  submit(submissions: readonly Submission[]): Promise<readonly SubmitOutcome[]> {
    return new Promise((resolve, reject) => {
      this.#due.push({ submissions, resolve, reject });
      // Runs after the available input has been read, so that its submissions join this transaction.
      if (this.#due.length === 1) setImmediate(() => this.flush());
    });
  }

  flush(): void {
    const calls = this.#due;
    this.#due = [];
    if (calls.length === 0) return;
    let settled: Settled[];
    try {
      settled = this.#db.write(() => {
        // A key that was used long ago can be used again.
        ageOut(this.#db, this.#retention, this.#nowMs());
        const outcomes = calls.map((call) => this.#apply(call));
        forgetEvents(this.#retention.events)(this.#db);
        return outcomes;
      });
    } catch (error) {
      for (const call of calls) call.reject(error);
      return;
    }
    calls.forEach((call, i) => {
      const result = settled[i];
      if (result !== undefined && 'outcomes' in result) call.resolve(result.outcomes);
      else call.reject(result?.error);
    });
  }

  #apply(call: Call): Settled {
    try {
      // The first write of a submission is the one that may be refused, so there is nothing to undo.
      const apply = (): SubmitOutcome[] => call.submissions.map((s) => submitOne(this.#db, s, this.#nowMs()));
      return { outcomes: call.submissions.length === 1 ? apply() : this.#db.part(apply) };
    } catch (error) {
      if (error instanceof EbbError) return { error };
      throw error;
    }
  }
}
