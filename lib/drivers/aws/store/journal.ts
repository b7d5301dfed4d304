/**
 * Commits of any size, all or nothing, by the newest lease only: a log with one item per commit.
 *
 * `LOG` `<n>` is commit n with all its writes, compressed, or a new lease, which is a commit without writes. It is put
 * on the condition that no item has that number yet, by a writer that knows all earlier commits. So commits have one
 * order, and each is based on the state after all earlier ones. None follows a newer lease that its writer did not
 * know. A commit is one write of some kilobytes, without a transaction.
 *
 * Writes of a commit count at once. Their items are written later, once for many commits. The log is compacted
 * (tail.ts) by a writer that leaves much in it, or that finds nothing left to do. HEAD says up to which commit. Readers
 * lay the rest of the log over the items (view.ts).
 *
 * Crash points. Before the put: nothing has happened, but a large commit leaves an unnamed object. After it: the commit
 * holds. During compaction: the next compaction resumes at HEAD. Its writes are absolute and name their commit, so they
 * may be repeated, concurrent and late. Before HEAD is written: the writes are repeated.
 *
 * A request with an unknown outcome (lost answer, or still on its way) is repeated under the same number. The item
 * found there is either this commit, by its id, or another one. In both cases the lost request can never take effect.
 *
 * Commits expire (`ttl`) long after their compaction. Commits with open work are compacted within some commits, others
 * at once.
 */
import { randomUUID } from 'node:crypto';
import { EbbError } from '../../../kernel/errors.ts';
import { isOutcomeUnknown } from '../errors.ts';
import type { Blobs } from './blobs.ts';
import { bytes, checkVersion, decode, decoded, encode, number, numberOf, text, textAt, type Item } from './codec.ts';
import { COMMITS_PREFIX, HEAD, KEEP_COMMITS_DAYS, LOG, logKey, padded, type Key } from './keys.ts';
import { compactionWrite, folded, isPassing, type Tail } from './tail.ts';
import { inParallel, type Table, type Write } from './dynamo-table.ts';
import { upgraded, type Place } from './upgrades.ts';
import { View } from './view.ts';

/** Number and bytes of commits from which the log is compacted. A new reader reads at most about as much. */
const COMPACT_COMMITS = 100;
const COMPACT_BYTES = 98_304;
const WRITES_AT_ONCE = 16;
/** Commits of others in a row while the lease is taken. */
const MAX_ROUNDS = 50;
/** Tries of a request whose answer is lost. */
const MAX_TRIES = 5;
/** Earlier commits that a process keeps, so that it need not read again what they wrote. */
const REMEMBERED = 256;

/** State after the newest commit, without documents. */
export interface Head {
  /** Newest fencing token. */
  readonly token: number;
  /** Commits so far, leases included. */
  readonly commits: number;
  /** Arrival numbers given to attempts, instances and effects. */
  readonly arrivals: number;
  /** Plans so far. */
  readonly plans: number;
  /** Jobs so far. */
  readonly jobs: number;
  /** Events so far, including deleted ones. */
  readonly events: number;
}

/** Writes of a commit, and the numbers of its head. */
export interface Batch {
  readonly writes: readonly Write[];
  readonly head: Pick<Head, 'arrivals' | 'plans' | 'jobs' | 'events'>;
}

export interface Entry {
  readonly commit: number;
  readonly writes: readonly Write[];
}

interface Logged extends Entry {
  readonly head: Head;
  readonly bytes: number;
}

export type CommitOutcome =
  | { readonly status: 'done'; readonly head: Head }
  /** Other commits came between: read head and documents again. */
  | { readonly status: 'stale' };

const BEGINNING: Head = { token: 0, commits: 0, arrivals: 0, plans: 0, jobs: 0, events: 0 };

export class Journal {
  readonly #table: Table;
  readonly #blobs: Blobs;
  readonly #nowMs: () => number;
  /** Head as known here; null before the first read. */
  #head: Head | null = null;
  /** Newest commits up to the head, ascending, without gaps: all that are not compacted, and some more. */
  #known: readonly Logged[] = [];
  /** Last commit that is fully in the items. */
  #compacted = 0;
  #tail: Tail = new Map();
  #lastHead: Promise<unknown> = Promise.resolve();

  /** `nowMs`: wall time, for the expiry of items. */
  constructor(table: Table, blobs: Blobs, nowMs: () => number) {
    this.#table = table;
    this.#blobs = blobs;
    this.#nowMs = nowMs;
  }

  /** Takes the lease; commits under older tokens fail from now on. */
  async takeLease(holder: string): Promise<Head> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const head = await this.head();
      const next = { ...head, token: head.token + 1, commits: head.commits + 1 };
      if (await this.#append(next, { writes: [], holder })) return next;
    }
    throw new EbbError('too-many-requests', {
      what: 'other processes keep taking the lease of the engine',
      next: 'try again in some seconds',
    });
  }

  /** Newest head, with every commit made before this call. Reads run one after another. */
  head(): Promise<Head> {
    const head = this.#lastHead.then(async () => {
      if (this.#head === null) await this.#begin();
      await this.#follow();
      return this.#head ?? BEGINNING;
    });
    this.#lastHead = head.catch(() => undefined);
    return head;
  }

  /** State as of the newest commit. */
  async view(): Promise<View> {
    await this.head();
    return this.viewAsKnown();
  }

  /** State as of the newest commit known here. */
  viewAsKnown(): View {
    return new View(this.#table, this.#tail);
  }

  /** Commits after one, up to the head; null if some are no longer kept. */
  since(commit: number): readonly Entry[] | null {
    const head = this.#head?.commits ?? 0;
    const found = this.#known.filter((e) => e.commit > commit);
    return found.length === head - commit ? found : null;
  }

  async commit(head: Head, { writes, head: numbers }: Batch): Promise<CommitOutcome> {
    if (head.commits !== this.#head?.commits) return { status: 'stale' };
    const wasDue = this.#isDue();
    const next: Head = { ...head, ...numbers, commits: head.commits + 1 };
    if (!(await this.#append(next, { writes }))) return { status: 'stale' };
    // The commit holds from here on. A fault of compaction is not the caller's: the next one resumes.
    if (this.#isDue()) await this.#compact({ mayPass: !wasDue, isAsked: false }).catch(passing);
    return { status: 'done', head: next };
  }

  /** Compacts the log, when nothing is left to do. */
  async settle(): Promise<void> {
    if (this.#tail.size > 0) await this.#compact({ mayPass: !this.#isDue(), isAsked: true }).catch(passing);
  }

  #isDue(): boolean {
    const open = this.#known.filter((e) => e.commit > this.#compacted);
    return open.length >= COMPACT_COMMITS || open.reduce((sum, e) => sum + e.bytes, 0) >= COMPACT_BYTES;
  }

  /** False if another commit has that number. */
  async #append(
    head: Head,
    { writes, holder }: Pick<Entry, 'writes'> & { readonly holder?: string },
  ): Promise<boolean> {
    const { commits } = head;
    const id = randomUUID();
    const content = encode(writes.map(packed));
    const isEmpty = writes.length === 0;
    const held = isEmpty ? { set: {} } : await this.#blobs.heldBytes(content, `${COMMITS_PREFIX}${commits}-${id}`);
    const write: Write = {
      key: logKey(commits),
      set: {
        ...held.set,
        id: text(id),
        t: number(head.token),
        r: number(head.arrivals),
        p: number(head.plans),
        j: number(head.jobs),
        e: number(head.events),
        c: number(this.#compacted),
        ttl: number(Math.floor(this.#nowMs() / 1000) + KEEP_COMMITS_DAYS * 86_400),
        ...(holder === undefined ? {} : { holder: text(holder) }),
      },
      condition: { expression: 'attribute_not_exists(pk)' },
    };
    if (!(await this.#isPut(write, id))) return false;
    this.#take({ commit: commits, writes, head, bytes: content.length });
    return true;
  }

  async #isPut(write: Write, id: string): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        const { status, item } = await this.#table.write(write, 'nothing');
        return status === 'done' || textAt(item, 'id') === id;
      } catch (error) {
        if (!isOutcomeUnknown(error) || tries === MAX_TRIES) throw error;
      }
    }
  }

  /** Idempotent: this process may read its own commit before its put is answered. */
  #take(entry: Logged): void {
    if (entry.commit < this.#next) return;
    this.#head = entry.head;
    const from = Math.min(this.#compacted + 1, entry.commit - REMEMBERED);
    this.#known = [...this.#known.filter((e) => e.commit >= from), entry];
    this.#tail = folded(this.#tail, entry.commit, entry.writes);
  }

  async #begin(): Promise<void> {
    const item = await this.#table.get(HEAD);
    if (item !== undefined) checkVersion(item);
    const head = headOf(item);
    this.#head = head;
    this.#compacted = head.commits;
    this.#known = [];
    this.#tail = new Map();
  }

  /** Reads newer commits. */
  async #follow(): Promise<void> {
    const { commits } = this.#head ?? BEGINNING;
    const items = await this.#table.range({ pk: LOG, from: padded(commits + 1) });
    const isGap = items.length > 0 && Number(textAt(items[0], 'sk')) !== commits + 1;
    // Gap: this process was away so long that commits have expired. They are in the items.
    if (isGap) await this.#begin();
    for (const item of isGap ? await this.#table.range({ pk: LOG, from: padded(this.#next) }) : items) {
      const logged = await this.#logged(item);
      if (logged.commit > this.#next) {
        throw new EbbError('store.corrupt', {
          what: 'a commit is missing in the log',
          got: `${textAt(item, 'sk')} where ${this.#next} should be`,
          next: 'restore the table from its point-in-time backup',
        });
      }
      this.#take(logged);
      this.#compactedTo(numberOf(item, 'c'));
    }
  }

  get #next(): number {
    return (this.#head?.commits ?? 0) + 1;
  }

  async #logged(item: Item): Promise<Logged> {
    checkVersion(item);
    const isEmpty = item['b'] === undefined && item['s3'] === undefined;
    const content = isEmpty ? null : await this.#blobs.bytesOf(item);
    const writes = content === null ? [] : unpackedAll(content);
    const commits = Number(textAt(item, 'sk'));
    const head = {
      token: numberOf(item, 't'),
      commits,
      arrivals: numberOf(item, 'r'),
      plans: numberOf(item, 'p'),
      jobs: numberOf(item, 'j'),
      events: numberOf(item, 'e'),
    };
    return { commit: commits, writes, head, bytes: content?.length ?? 0 };
  }

  #compactedTo(commit: number): void {
    if (commit <= this.#compacted) return;
    this.#compacted = commit;
    const open = this.#known.filter((e) => e.commit > commit);
    this.#tail = open.reduce<Tail>((tail, e) => folded(tail, e.commit, e.writes), new Map());
  }

  /** `mayPass`: nobody can have started a compaction before the newest commit. */
  async #compact({ mayPass, isAsked }: { readonly mayPass: boolean; readonly isAsked: boolean }): Promise<void> {
    const head = this.#head ?? BEGINNING;
    const nowS = Math.floor(this.#nowMs() / 1000);
    // Progress of other processes.
    this.#compactedTo(Math.min(head.commits, numberOf(await this.#table.get(HEAD), 'commits')));
    if (!isAsked && !this.#isDue()) return;
    const folds = [...this.#tail.values()].filter((fold) => !(mayPass && isPassing(fold)));
    await inParallel(folds, WRITES_AT_ONCE, async (fold) => {
      await this.#table.write(compactionWrite(fold, nowS), 'nothing');
    });
    await this.#table.write({
      key: HEAD,
      set: {
        fence: number(head.token),
        commits: number(head.commits),
        arrivals: number(head.arrivals),
        plans: number(head.plans),
        jobs: number(head.jobs),
        events: number(head.events),
      },
      condition: {
        expression: 'attribute_not_exists(commits) OR commits < :commits',
        values: { ':commits': number(head.commits) },
      },
    });
    this.#compactedTo(head.commits);
  }
}

/** Retryable faults are not the caller's. */
function passing(error: unknown): void {
  if (!(error instanceof EbbError) || !error.retryable) throw error;
}

const headOf = (item: Item | undefined): Head => ({
  token: numberOf(item, 'fence'),
  commits: numberOf(item, 'commits'),
  arrivals: numberOf(item, 'arrivals'),
  plans: numberOf(item, 'plans'),
  jobs: numberOf(item, 'jobs'),
  events: numberOf(item, 'events'),
});

/**
 * Writes as JSON, for the kinds of values that the store writes. Encoded values are decoded, so that the whole commit
 * is compressed together.
 */
type PackedValue = { readonly s: string } | { readonly n: string } | { readonly f: boolean } | { readonly j: unknown };
interface PackedWrite extends Omit<Write, 'set' | 'once' | 'condition'> {
  readonly set?: Record<string, PackedValue>;
  readonly once?: Record<string, PackedValue>;
}

function packed({ set, once, condition, ...rest }: Write): PackedWrite {
  if (condition !== undefined) throw new EbbError('internal', { what: 'a write of a commit has a condition' });
  return {
    ...rest,
    ...(set === undefined ? {} : { set: mapped(set, rest.key, packValue) }),
    ...(once === undefined ? {} : { once: mapped(once, rest.key, packValue) }),
  };
}

/** Writes of a commit. Values in it have no version of their own: the commit's holds. */
function unpackedAll(content: Uint8Array): readonly Write[] {
  const { value, version } = decoded(content);
  const unpack = (of: PackedValue, at: Place): Item[string] => unpackValue(of, at, version);
  return (value as readonly PackedWrite[]).map(({ set, once, ...rest }) => ({
    ...rest,
    ...(set === undefined ? {} : { set: mapped(set, rest.key, unpack) }),
    ...(once === undefined ? {} : { once: mapped(once, rest.key, unpack) }),
  }));
}

const mapped = <A, B>(
  record: Readonly<Record<string, A>>,
  key: Key,
  of: (value: A, at: Place) => B,
): Record<string, B> =>
  Object.fromEntries(Object.entries(record).map(([attribute, value]) => [attribute, of(value, { ...key, attribute })]));

function packValue(value: Item[string], at: Place): PackedValue {
  if (value.S !== undefined) return { s: value.S };
  if (value.N !== undefined) return { n: value.N };
  if (value.B !== undefined) return { j: decode(value.B, at) };
  return { f: value.BOOL === true };
}

function unpackValue(value: PackedValue, at: Place, version: number): Item[string] {
  if ('s' in value) return { S: value.s };
  if ('n' in value) return { N: value.n };
  if ('j' in value) return bytes(encode(upgraded(value.j, at, version)));
  return { BOOL: value.f };
}
