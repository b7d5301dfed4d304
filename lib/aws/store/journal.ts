import { randomUUID } from 'node:crypto';
import { EbbError } from '../../kernel/errors.ts';
import { isOutcomeUnknown } from '../errors.ts';
import type { Blobs } from './blobs.ts';
import { body, checkVersion, decode, encode, number, numberOf, text, textAt, type Item } from './codec.ts';
import { fed, feedOf, type Feed } from './feed.ts';
import { HEAD, type Key } from './keys.ts';
import { MAX_TRANSACTION_WRITES, type Table, type Write } from './table.ts';

/** Of the service's 4 MB for a transaction; the rest is for what surrounds the values. */
const MAX_TRANSACTION_BYTES = 3_000_000;
/** What an item weighs besides its values: names, keys, condition. */
const WRITE_OVERHEAD_BYTES = 400;

/** The item that every commit passes through. */
export interface Head {
  /** The newest fencing token. */
  readonly token: number;
  /** Commits so far. */
  readonly commits: number;
  /** Numbers of arrival given to attempts, instances and effects. */
  readonly arrivals: number;
  /** Plans so far. */
  readonly plans: number;
  /** The newest commit's own name. */
  readonly last: string;
  /** A commit that is decided and not all written yet: the object that holds its writes. */
  readonly pending: string | null;
  /** What the newest commits wrote. */
  readonly feed: Feed;
}

/** What a commit writes: `deciding` in the transaction that decides it, `writes` in the same one or right after. */
export interface Batch {
  readonly writes: readonly Write[];
  readonly deciding: readonly Write[];
  /** What of it others may have in their hands (feed.ts). */
  readonly touched: readonly Key[];
  readonly head: Pick<Head, 'arrivals' | 'plans'>;
}

export type CommitOutcome =
  | { readonly status: 'done'; readonly head: Head }
  /** HEAD is not as it was: read it, and the documents, again. */
  | { readonly status: 'stale' }
  /** A condition of the batch's own failed: that of the write at this position of `deciding`, then `writes`. */
  | { readonly status: 'refused'; readonly position: number };

/**
 * Commits of any size, all or nothing, by the newest lease only.
 *
 * A commit that fits one transaction is one: HEAD is updated on the condition that its token and its number of commits
 * are those that the changes were computed from and that nothing is pending, together with all writes.
 *
 * A larger one is staged:
 *   1. its writes are put into an object of the bucket, under a name never used before;
 *   2. one transaction updates HEAD on the same condition, names that object as pending, and writes what other writers
 *      may contend for (`deciding`). This decides the commit;
 *   3. the writes are applied in transactions of at most 99, each of which also checks that HEAD still names this object;
 *   4. HEAD lets go of the object; 5. the object is deleted.
 *
 * Crash points. Before 2: nothing has happened (an object that nobody names is left). After 2 and before 4: the commit
 * holds; whoever takes the lease, loads or commits next applies it first, from the beginning: writes are absolute, so doing
 * one again changes nothing. After 4: all is written. Two that apply at once, or one that wakes after the other has
 * finished: HEAD no longer names the object, so its next transaction is refused and it stops; hence nothing later is ever
 * overwritten. Between 2 and 4 others may see some of the entities as they were before; the cycle never does.
 *
 * A request of unknown outcome (the answer was lost, or the request is still on its way): HEAD's number of commits is
 * raised on the condition that it is unchanged. If that works, the lost request can never be carried out any more: its
 * condition fails. If not, HEAD says whose commit came through.
 */
export class Journal {
  readonly #table: Table;
  readonly #blobs: Blobs;

  constructor(table: Table, blobs: Blobs) {
    this.#table = table;
    this.#blobs = blobs;
  }

  /** Takes the lease; commits under older tokens fail from now on. */
  async takeLease(holder: string): Promise<Head> {
    const head = headOf(await this.#table.add(HEAD, 'fence', 1, { holder: text(holder) }));
    return this.#settled(head);
  }

  /** HEAD as it is, with nothing pending. */
  async head(): Promise<Head> {
    return this.#settled(headOf((await this.#table.get(HEAD)) ?? {}));
  }

  async #settled(head: Head): Promise<Head> {
    let settled = head;
    while (settled.pending !== null) {
      await this.#apply(settled.pending);
      settled = headOf((await this.#table.get(HEAD)) ?? {});
    }
    return settled;
  }

  async commit(head: Head, batch: Batch): Promise<CommitOutcome> {
    const { feed, beside } = fed(head.feed, head.commits + 1, batch.touched);
    const decisive = [...batch.deciding, ...beside];
    const all = [...decisive, ...batch.writes];
    const isWhole = all.length < MAX_TRANSACTION_WRITES && sizeOf(all) < MAX_TRANSACTION_BYTES;
    if (decisive.length >= MAX_TRANSACTION_WRITES || sizeOf(decisive) >= MAX_TRANSACTION_BYTES) {
      throw new EbbError('internal', {
        what: 'a commit has more events than one transaction takes',
        got: `${batch.deciding.length} items of events`,
      });
    }
    const name = `commits/${randomUUID()}`;
    if (!isWhole) await this.#blobs.put(name, encode(batch.writes.map(packed)));
    const next: Head = {
      ...head,
      ...batch.head,
      commits: head.commits + 1,
      last: name,
      pending: isWhole ? null : name,
      feed,
    };
    const deciding = isWhole ? all : decisive;
    const outcome = await this.#decide(head, next, deciding);
    if (outcome.status !== 'done' || isWhole) return outcome;
    // The commit holds from here on: a fault while it is applied is not the caller's, the next call goes on with it.
    try {
      await this.#apply(name);
      return { status: 'done', head: { ...next, pending: null } };
    } catch (error) {
      if (error instanceof EbbError && error.retryable) return outcome;
      throw error;
    }
  }

  async #decide(head: Head, next: Head, writes: readonly Write[]): Promise<CommitOutcome> {
    const guard: Write = {
      key: HEAD,
      set: {
        commits: number(next.commits),
        arrivals: number(next.arrivals),
        plans: number(next.plans),
        last: text(next.last),
        feed: body(next.feed),
        ...(next.pending === null ? {} : { pending: text(next.pending) }),
      },
      condition: unchangedSince(head),
    };
    try {
      const outcome = await this.#table.transact([guard, ...writes]);
      if (outcome.status === 'done') return { status: 'done', head: next };
      return outcome.failed[0] !== null
        ? { status: 'stale' }
        : { status: 'refused', position: outcome.failed.findIndex((item) => item !== null) - 1 };
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error;
      return this.#findOut(head, next);
    }
  }

  /** Makes sure that a request either was carried out or never will be. */
  async #findOut(head: Head, next: Head): Promise<CommitOutcome> {
    const { feed } = fed(head.feed, head.commits + 1, []);
    const raised = await this.#table.transact([
      {
        key: HEAD,
        set: { commits: number(head.commits + 1), last: text(''), feed: body(feed) },
        condition: unchangedSince(head),
      },
    ]);
    if (raised.status === 'done') return { status: 'stale' };
    const found = headOf((await this.#table.get(HEAD)) ?? {});
    return found.last === next.last ? { status: 'done', head: found } : { status: 'stale' };
  }

  async #apply(name: string): Promise<void> {
    const isPending = { expression: 'pending = :pending', values: { ':pending': text(name) } };
    let content: Uint8Array;
    try {
      content = await this.#blobs.get(name);
    } catch (error) {
      // Another one has finished it and deleted the object.
      if (headOf((await this.#table.get(HEAD)) ?? {}).pending !== name) return;
      throw error;
    }
    const writes = decode<PackedWrite[]>(content).map(unpacked);
    for (const group of inGroups(writes)) {
      const outcome = await this.#table.transact([{ key: HEAD, isCheck: true, condition: isPending }, ...group]);
      if (outcome.status === 'refused') return;
    }
    await this.#table.transact([{ key: HEAD, remove: ['pending'], condition: isPending }]);
    await this.#blobs.delete(name);
  }
}

/** The state that the changes were computed from is still the newest, and the lease is still held. */
function unchangedSince(head: Head): Write['condition'] & object {
  // A table that nobody committed to has a HEAD with a token alone.
  const commits = head.commits === 0 ? '(attribute_not_exists(commits) OR commits = :commits)' : 'commits = :commits';
  return {
    expression: `fence = :token AND ${commits} AND attribute_not_exists(pending)`,
    values: { ':token': number(head.token), ':commits': number(head.commits) },
  };
}

function headOf(item: Item): Head {
  checkVersion(item);
  return {
    token: numberOf(item, 'fence'),
    commits: numberOf(item, 'commits'),
    arrivals: numberOf(item, 'arrivals'),
    plans: numberOf(item, 'plans'),
    last: textAt(item, 'last'),
    pending: item['pending']?.S ?? null,
    feed: feedOf(item),
  };
}

/** Groups that fit a transaction each, HEAD's check included. */
function* inGroups(writes: readonly Write[]): Generator<Write[]> {
  let group: Write[] = [];
  let size = 0;
  for (const write of writes) {
    const more = sizeOf([write]);
    if (group.length === MAX_TRANSACTION_WRITES - 1 || (group.length > 0 && size + more > MAX_TRANSACTION_BYTES)) {
      yield group;
      group = [];
      size = 0;
    }
    group.push(write);
    size += more;
  }
  if (group.length > 0) yield group;
}

function sizeOf(writes: readonly Write[]): number {
  let size = 0;
  for (const { set, once } of writes) {
    size += WRITE_OVERHEAD_BYTES;
    for (const value of [...Object.values(set ?? {}), ...Object.values(once ?? {})]) {
      size += value.B?.length ?? Buffer.byteLength(value.S ?? '');
    }
  }
  return size;
}

/** A write as JSON: only the kinds of values that the store writes. */
type PackedValue = { s: string } | { n: string } | { f: boolean } | { b: string };
interface PackedWrite extends Omit<Write, 'set' | 'once' | 'condition'> {
  readonly set?: Record<string, PackedValue>;
  readonly once?: Record<string, PackedValue>;
}

function packed({ set, once, condition, ...rest }: Write): PackedWrite {
  if (condition !== undefined) throw new EbbError('internal', { what: 'a staged write has a condition' });
  return {
    ...rest,
    ...(set === undefined ? {} : { set: mapped(set, packValue) }),
    ...(once === undefined ? {} : { once: mapped(once, packValue) }),
  };
}

function unpacked({ set, once, ...rest }: PackedWrite): Write {
  return {
    ...rest,
    ...(set === undefined ? {} : { set: mapped(set, unpackValue) }),
    ...(once === undefined ? {} : { once: mapped(once, unpackValue) }),
  };
}

const mapped = <A, B>(record: Readonly<Record<string, A>>, of: (value: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, of(value)]));

function packValue(value: Item[string]): PackedValue {
  if (value.S !== undefined) return { s: value.S };
  if (value.N !== undefined) return { n: value.N };
  if (value.B !== undefined) return { b: Buffer.from(value.B).toString('base64') };
  return { f: value.BOOL === true };
}

function unpackValue(value: PackedValue): Item[string] {
  if ('s' in value) return { S: value.s };
  if ('n' in value) return { N: value.n };
  if ('b' in value) return { B: Buffer.from(value.b, 'base64') };
  return { BOOL: 'f' in value && value.f };
}
