import { EbbError } from '../../kernel/errors.ts';
import type { Job } from '../../domain/job.ts';
import type { Submission, SubmitOutcome, Submitted } from '../../ports/store.ts';
import { submittedEvent } from '../../ports/store-events.ts';
import type { Blobs } from './blobs.ts';
import { besideJob } from './changes.ts';
import { numberOf, textAt } from './codec.ts';
import { newJobDoc } from './documents.ts';
import { eventWrites } from './events.ts';
import type { Jobs } from './jobs.ts';
import { COUNTER, jobKey, submittedKey, textOf } from './keys.ts';
import { announcement, giveUpKey, jobWrite, keyWrite, writeSingly, type Created } from './single.ts';
import { MAX_TRANSACTION_WRITES, type Table, type Write } from './table.ts';

/** Writes of one job at most: itself, specification, name, life, idempotency key. */
const WRITES_PER_JOB = 5;
/** One more is the item of their events. */
const JOBS_PER_TRANSACTION = Math.floor((MAX_TRANSACTION_WRITES - 1) / WRITES_PER_JOB);
/** Times that other processes may take the same keys or numbers in a row. */
const MAX_ROUNDS = 20;

interface Call {
  readonly submissions: readonly Submission[];
  readonly resolve: (outcomes: readonly SubmitOutcome[]) => void;
  readonly reject: (error: unknown) => void;
}

/** What a call comes to: jobs to be written, and an outcome for each submission once they are. */
interface Ruling {
  readonly call: Call;
  readonly created: readonly Created[];
  readonly outcomes: readonly SubmitOutcome[];
}

/**
 * Takes submissions. Calls that arrive while others are being written are written together next, so that a process never
 * contends with itself. Calls of up to 19 jobs are one transaction. Of a larger one a crash or a fault may leave the first
 * jobs behind, each of them whole: repeated under the same keys it completes the rest.
 *
 * A single job, which is the rule, takes no transaction (single.ts): half the price.
 */
export class Intake {
  readonly #table: Table;
  readonly #blobs: Blobs;
  readonly #jobs: Jobs;
  #due: Call[] = [];
  #isBusy = false;

  constructor(table: Table, blobs: Blobs, jobs: Jobs) {
    this.#table = table;
    this.#blobs = blobs;
    this.#jobs = jobs;
  }

  submit(submissions: readonly Submission[]): Promise<readonly SubmitOutcome[]> {
    return new Promise((resolve, reject) => {
      this.#due.push({ submissions, resolve, reject });
      if (!this.#isBusy) void this.#work();
    });
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    while (this.#due.length > 0) {
      const calls = this.#due;
      this.#due = [];
      try {
        await this.#take(calls);
      } catch (error) {
        for (const call of calls) call.reject(error);
      }
    }
    this.#isBusy = false;
  }

  async #take(calls: readonly Call[]): Promise<void> {
    let left = calls;
    for (let round = 0; left.length > 0; round++) {
      if (round === MAX_ROUNDS) {
        throw new EbbError('too-many-requests', {
          what: 'others keep submitting under the same keys',
          next: 'try again in some seconds',
        });
      }
      const rulings = await this.#rule(left);
      const again: Call[] = [];
      for (const group of inGroups(rulings)) {
        // Later calls may have been decided by an earlier one that is not written after all.
        const isWritten = again.length === 0 && (await this.#write(group));
        for (const { call, outcomes } of group) {
          if (isWritten) call.resolve(outcomes);
          else again.push(call);
        }
      }
      left = again;
    }
  }

  /** Decides each call by what is stored and by the calls before it, and rejects those with an id that is taken. */
  async #rule(calls: readonly Call[]): Promise<readonly Ruling[]> {
    const known = await this.#known(calls.flatMap((c) => c.submissions));
    const rulings: Ruling[] = [];
    for (const call of calls) {
      const refused = takenId(call.submissions, known);
      if (refused === null) rulings.push(rule(call, known));
      else {
        call.reject(
          new EbbError('conflict', {
            what: 'a job of this id exists already',
            got: refused,
            next: 'submit it again: a new id is drawn',
          }),
        );
      }
    }
    return rulings;
  }

  async #known(submissions: readonly Submission[]): Promise<Known> {
    const keys = submissions.flatMap((s) => (s.idempotency === null ? [] : [s.idempotency.key]));
    const ids = submissions.map((s) => s.job.id as string);
    const items = await this.#table.getMany([...ids.map(jobKey), ...keys.map(submittedKey)]);
    const there = ids.filter((id) => items.has(textOf(jobKey(id))));
    const used = new Map<string, Submitted>();
    const byKey = new Map(
      keys.flatMap((k) => {
        const item = items.get(textOf(submittedKey(k)));
        return item === undefined ? [] : [[k, item] as const];
      }),
    );
    const jobs = await this.#jobs.getMany([...byKey.values()].map((item) => textAt(item, 'job')));
    for (const [key, item] of byKey) {
      const job = jobs.get(textAt(item, 'job'));
      if (job !== undefined) used.set(key, { digest: textAt(item, 'digest'), job });
      // Its writer is still at it, or has died before it wrote the job. It may have been this very call.
      else if (!ids.includes(textAt(item, 'job'))) await giveUpKey(this.#table, key, textAt(item, 'job'));
    }
    return {
      taken: new Set(there.filter((id) => items.get(textOf(jobKey(id)))?.['st'] !== undefined)),
      there: new Map(there.map((id) => [id, numberOf(items.get(textOf(jobKey(id))), 'x')])),
      used,
    };
  }

  /** False when another process took a key or an id meanwhile: then nothing is written. */
  async #write(group: readonly Ruling[]): Promise<boolean> {
    const created = group.flatMap((r) => r.created);
    const [only] = created;
    if (only !== undefined && created.length === 1) return writeSingly(this.#table, this.#blobs, only);
    for (let from = 0; from < created.length; from += JOBS_PER_TRANSACTION) {
      const isTaken = !(await this.#writeSome(created.slice(from, from + JOBS_PER_TRANSACTION)));
      if (isTaken && from === 0) return false;
      if (isTaken) {
        throw new EbbError('conflict', {
          what: 'another call used the same ids or keys while this one was being stored',
          got: `${created.length} jobs, of which ${from} are stored`,
          next: 'submit it again under the same keys: what is stored is not stored twice',
        });
      }
    }
    return true;
  }

  async #writeSome(some: readonly Created[]): Promise<boolean> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const item = await this.#table.add(COUNTER, 'n', some.length);
      const first = Number(item['n']?.N ?? 0) - some.length + 1;
      const events = some.map((s) => submittedEvent(s.job));
      const writes = eventWrites(first, events, some.length);
      for (const [i, submission] of some.entries()) writes.push(...(await this.#writesOf(submission, first + i)));
      const outcome = await this.#table.transact(writes);
      if (outcome.status === 'done') return true;
      // The numbers were taken away by a reader that had waited for them: others are drawn.
      const isNumbersOnly = outcome.failed.every((f, i) => f === null || i === 0);
      if (!isNumbersOnly) return false;
    }
    return false;
  }

  async #writesOf({ job, idempotency, givenUp }: Created, arrival: number): Promise<Write[]> {
    const doc = newJobDoc(job, arrival, givenUp !== null);
    return [
      jobWrite(job, doc, givenUp),
      announcement(job, arrival),
      ...(await besideJob(this.#blobs, job, doc)),
      ...(idempotency === null ? [] : [keyWrite(job.id, idempotency)]),
    ];
  }

  async submitted(key: string): Promise<Submitted | null> {
    const item = await this.#table.get(submittedKey(key));
    const job: Job | null = item === undefined ? null : await this.#jobs.get(textAt(item, 'job'));
    return job === null ? null : { digest: textAt(item, 'digest'), job };
  }
}

interface Known {
  readonly taken: Set<string>;
  /** Ids of which there is an item, be it that of a job or not, with what was given up of them. */
  readonly there: ReadonlyMap<string, number>;
  readonly used: Map<string, Submitted>;
}

/** The first id of the call that is taken already; submissions whose key was used make no job and need none. */
function takenId(submissions: readonly Submission[], known: Known): string | null {
  const ids = new Set<string>();
  const keys = new Set(known.used.keys());
  for (const { job, idempotency } of submissions) {
    if (idempotency !== null && keys.has(idempotency.key)) continue;
    if (idempotency !== null) keys.add(idempotency.key);
    if (ids.has(job.id) || known.taken.has(job.id)) return job.id;
    ids.add(job.id);
  }
  return null;
}

function rule(call: Call, known: Known): Ruling {
  const created: Created[] = [];
  const outcomes = call.submissions.map((submission): SubmitOutcome => {
    const { job, idempotency } = submission;
    const before = idempotency === null ? undefined : known.used.get(idempotency.key);
    if (idempotency !== null && before !== undefined) {
      return before.digest === idempotency.digest
        ? { status: 'repeated', job: before.job }
        : { status: 'conflict', key: idempotency.key };
    }
    if (idempotency !== null) known.used.set(idempotency.key, { digest: idempotency.digest, job });
    known.taken.add(job.id);
    created.push({ ...submission, givenUp: known.there.get(job.id) ?? null });
    return { status: 'created', job };
  });
  return { call, created, outcomes };
}

/** Calls that fit a transaction together; a larger call is a group of its own. */
function* inGroups(rulings: readonly Ruling[]): Generator<Ruling[]> {
  let group: Ruling[] = [];
  let size = 0;
  for (const ruling of rulings) {
    if (group.length > 0 && size + ruling.created.length > JOBS_PER_TRANSACTION) {
      yield group;
      group = [];
      size = 0;
    }
    group.push(ruling);
    size += ruling.created.length;
  }
  if (group.length > 0) yield group;
}
