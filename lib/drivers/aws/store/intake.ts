import { EbbError } from '../../../kernel/errors.ts';
import { jobId } from '../../../kernel/ids.ts';
import type { Job } from '../../../domain/job.ts';
import type { Submission, SubmitOutcome, Submitted } from '../../../ports/store.ts';
import { arrivalWrite, heldJobs, isSameArrival, keyWrite, objectOf } from './arrivals.ts';
import { ObjectMissing, type Blobs } from './blobs.ts';
import { textAt, type Item } from './codec.ts';
import type { Expiry } from './expiry.ts';
import type { Jobs } from './job-items.ts';
import { submittedKey, textOf } from './keys.ts';
import { inParallel, type Table, type Write } from './dynamo-table.ts';

/** Rounds in which other processes may take the same keys. */
const MAX_ROUNDS = 20;
const KEYS_AT_ONCE = 16;
/** Keys per transaction, which has at most 100 items and 4 MB. A key with its job has at most some 16 KB. */
const KEYS_PER_WRITE = 100;
const WRITES_AT_ONCE = 4;

interface Call {
  readonly submissions: readonly Submission[];
  readonly resolve: (outcomes: readonly SubmitOutcome[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Jobs that were stored before. */
interface Known {
  readonly taken: Set<string>;
  readonly used: Map<string, Submitted>;
  /** Keys without a job: it is still to be written. */
  readonly unfinished: ReadonlySet<string>;
}

const nothingKnown = (): Known => ({ taken: new Set(), used: new Map(), unfinished: new Set() });

/** Job to be written. Without `key`: it has none, or an earlier call left it at the key. */
interface Due {
  readonly job: Job;
  readonly key: Submission['idempotency'];
}

/** Decision on a call: jobs to write, and the outcome of each submission afterwards. */
interface Ruling {
  readonly call: Call;
  readonly due: readonly Due[];
  readonly outcomes: readonly SubmitOutcome[];
}

export interface IntakeParts {
  readonly table: Table;
  readonly blobs: Blobs;
  readonly jobs: Jobs;
  /** Commits earlier submissions. */
  readonly takeIn: () => Promise<void>;
  /** Wall time. */
  readonly nowMs: () => number;
  readonly expiry: () => Expiry;
}

/**
 * Submissions (arrivals.ts). Calls that arrive during a write are handled together next, so a process never contends
 * with itself. A call makes one item of any size, whole or not at all.
 *
 * A single submission, the usual case, writes its key and itself and reads nothing. Ids are random (40 bits within a
 * second). If two are equal, the second submission is refused while the first is not committed yet. Afterwards it would
 * be taken for the same job.
 */
export class Intake {
  readonly #parts: IntakeParts;
  #due: Call[] = [];
  #isBusy = false;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  submit(submissions: readonly Submission[]): Promise<readonly SubmitOutcome[]> {
    return new Promise((resolve, reject) => {
      this.#due.push({ submissions, resolve, reject });
      if (!this.#isBusy) void this.#work();
    });
  }

  /** Jobs of keys. Keys without a job are left out. */
  async submitted(keys: readonly string[]): Promise<ReadonlyMap<string, Submitted>> {
    const { table, jobs, takeIn } = this.#parts;
    const items = await table.getMany(keys.map(submittedKey));
    const ids = new Map<string, { readonly id: string; readonly digest: string }>();
    for (const key of keys) {
      const item = items.get(textOf(submittedKey(key)));
      if (item !== undefined) ids.set(key, { id: textAt(item, 'job'), digest: textAt(item, 'digest') });
    }
    const wanted = [...ids.values()].map(({ id }) => id);
    let there = await jobs.getMany(wanted);
    if (wanted.some((id) => !there.has(id))) {
      await takeIn();
      there = await jobs.getMany(wanted);
    }
    const found = new Map<string, Submitted>();
    for (const [key, { id, digest }] of ids) {
      const job = there.get(id);
      if (job !== undefined) found.set(key, { digest, job });
    }
    return found;
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
          what: 'other processes keep submitting under the same keys',
          next: 'try again in some seconds',
        });
      }
      const all = left.flatMap((c) => c.submissions);
      const rulings = this.#rule(left, await this.#knownOf(all, round));
      const again: Call[] = [];
      for (const ruling of rulings) {
        // Repeated: an earlier call, on which these decisions depend, may not have been written.
        const isWritten = again.length === 0 && (await this.#write(ruling));
        if (isWritten) ruling.call.resolve(ruling.outcomes);
        else again.push(ruling.call);
      }
      left = again;
    }
  }

  /** Decides each call by the store and the calls before it. Calls with an id in use are refused. */
  #rule(calls: readonly Call[], known: Known): readonly Ruling[] {
    const rulings: Ruling[] = [];
    for (const call of calls) {
      const refused = takenId(call.submissions, known);
      if (refused === null) rulings.push(rule(call, known));
      else call.reject(idTaken(refused));
    }
    return rulings;
  }

  /** Known jobs. For a single submission the writes themselves show whether its key or id is used. */
  async #knownOf(submissions: readonly Submission[], round: number): Promise<Known> {
    return round === 0 && submissions.length === 1 ? nothingKnown() : this.#known(submissions);
  }

  async #known(submissions: readonly Submission[]): Promise<Known> {
    const { table, jobs, takeIn } = this.#parts;
    await takeIn();
    const taken = await jobs.there(submissions.map((s) => s.job.id));
    const keys = submissions.flatMap((s) => (s.idempotency === null ? [] : [s.idempotency.key]));
    const items = await table.getMany(keys.map(submittedKey));
    const used = new Map<string, Submitted>();
    const unfinished = new Set<string>();
    const found = keys.flatMap((key): (readonly [string, Item])[] => {
      const item = items.get(textOf(submittedKey(key)));
      return item === undefined ? [] : [[key, item]];
    });
    const there = await jobs.getMany(found.map(([, item]) => textAt(item, 'job')));
    for (const [key, item] of found) {
      const digest = textAt(item, 'digest');
      const known = there.get(textAt(item, 'job'));
      if (known !== undefined) {
        used.set(key, { digest, job: known });
        continue;
      }
      const same = submissions.find((s) => s.idempotency?.key === key);
      const { job, isUnfinished } = await this.#lacking(item, same?.job);
      if (isUnfinished) unfinished.add(key);
      if (job !== undefined) used.set(key, { digest, job });
    }
    return { taken, used, unfinished };
  }

  /**
   * Job of a key without a stored job. Its writer is still working, or died, and may have been this very call. `asked`:
   * the job that is submitted under the key now.
   */
  async #lacking(
    item: Item,
    asked: Job | undefined,
  ): Promise<{ readonly job: Job | undefined; readonly isUnfinished: boolean }> {
    const { blobs, jobs, takeIn } = this.#parts;
    try {
      return { job: (await blobs.valueOf<readonly Job[]>(item))[0], isUnfinished: true };
    } catch (error) {
      if (!(error instanceof ObjectMissing)) throw error;
      await takeIn();
      const id = jobId(textAt(item, 'job'));
      const job = await jobs.get(id);
      if (job !== null) return { job, isUnfinished: false };
      // Expired object of an incomplete call. The same body makes the same job; another one is a conflict.
      return { job: asked === undefined ? undefined : { ...asked, id }, isUnfinished: true };
    }
  }

  /** False if another process was first: the store must be read again. */
  async #write({ due }: Ruling): Promise<boolean> {
    const { table, blobs, nowMs, takeIn } = this.#parts;
    const jobs = due.map((d) => d.job);
    const [first] = jobs;
    if (first === undefined) return true;
    const held = await heldJobs(blobs, jobs, objectOf(jobs.length === 1 ? first.id : `${first.id}.all`));
    if (!(await this.#writeKeys(due, jobs.length === 1 ? held : null))) return false;
    const { status, item } = await table.write(arrivalWrite(first, held, nowMs()));
    // Conflict: another process completes the same call, or has its id.
    if (status === 'refused' && !isSameArrival(item, held)) return false;
    // Several ids: not all of them are in the item's name, so they are committed now. A single one waits for the next
    // reader.
    if (jobs.length > 1) await takeIn().catch(afterwards);
    return true;
  }

  /** `shared`: attributes of the call's only job. False if another process took a key. */
  async #writeKeys(due: readonly Due[], shared: Awaited<ReturnType<typeof heldJobs>> | null): Promise<boolean> {
    const { table, blobs, expiry } = this.#parts;
    const writes: Write[] = [];
    await inParallel(due, KEYS_AT_ONCE, async ({ job, key }) => {
      if (key === null) return;
      const held = shared ?? (await heldJobs(blobs, [job], objectOf(job.id)));
      writes.push(keyWrite({ job: job.id, key }, held, expiry()));
    });
    // True for our own write: a request that seemed lost may have been carried out.
    const isOurs = (item: Item, write: Write | undefined): boolean => item['job']?.S === write?.set?.['job']?.S;
    const [only] = writes;
    if (writes.length === 1 && only !== undefined) {
      const { status, item } = await table.write(only, 'nothing');
      return status === 'done' || isOurs(item, only);
    }
    let areOurs = true;
    const groups: Write[][] = [];
    for (let i = 0; i < writes.length; i += KEYS_PER_WRITE) groups.push(writes.slice(i, i + KEYS_PER_WRITE));
    await inParallel(groups, WRITES_AT_ONCE, async (group) => {
      const outcome = await table.transact(group);
      if (outcome.status === 'refused' && !outcome.failed.every((item, i) => isOurs(item ?? {}, group[i])))
        areOurs = false;
    });
    return areOurs;
  }
}

const idTaken = (id: string): EbbError =>
  new EbbError('conflict', {
    what: 'a job of this id exists already',
    got: id,
    next: 'submit it again: a new id is drawn',
  });

/** Submissions are durable here. Later faults must not fail the request. */
function afterwards(error: unknown): void {
  if (!(error instanceof EbbError)) throw error;
}

/** First id of the call that is in use. Submissions with a used key make no job and need none. */
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
  const due = new Map<string, Due>();
  const outcomes = call.submissions.map((submission): SubmitOutcome => {
    const { job, idempotency } = submission;
    const before = idempotency === null ? undefined : known.used.get(idempotency.key);
    if (idempotency !== null && before !== undefined) {
      if (before.digest !== idempotency.digest) return { status: 'conflict', key: idempotency.key };
      const isUnfinished = known.unfinished.has(idempotency.key);
      if (isUnfinished) due.set(before.job.id, { job: before.job, key: null });
      return { status: isUnfinished && before.job.id === job.id ? 'created' : 'repeated', job: before.job };
    }
    if (idempotency !== null) known.used.set(idempotency.key, { digest: idempotency.digest, job });
    known.taken.add(job.id);
    due.set(job.id, { job, key: idempotency });
    return { status: 'created', job };
  });
  return { call, due: [...due.values()], outcomes };
}
