import { setTimeout as sleep } from 'node:timers/promises';
import type { EventRecord } from '../../ports/store.ts';
import { body, bodyOf, number, numberOf, textAt, type Item } from './codec.ts';
import { EVENTS, eventsKey, jobKey, padded, textOf, unpadded } from './keys.ts';
import { giveUp } from './give-up.ts';
import type { Journal } from './journal.ts';
import type { Table, Write } from './table.ts';
import type { Reader } from './view.ts';

/** Events in one item at most. */
const EVENTS_PER_ITEM = 500;
/** Events are given out in order, so a number that is taken and not there yet holds up those behind it: this long at most. */
const WAITS_FOR_GAP = 6;
const WAIT_FOR_GAP_MS = 50;
/** Old items deleted by one commit at most. */
const FORGET_AT_ONCE = 20;
/** A transaction that takes numbers away writes one item for each. */
const MAX_VOIDED = 90;

type Loose = Omit<EventRecord, 'sequence'>;

/**
 * Numbers of events are drawn from a counter before they are written, so that writers do not wait for one another. A number may
 * thus be there later than a higher one, or never. Readers close such gaps: they wait a little, and then make sure that
 * who drew it fails. A submission's event has the condition that there is none of its number, so an empty item is put in its
 * place. A commit's is in the log; it fails if any other commit comes before it, so one of nothing is made first, which
 * all those meet that had drawn their numbers by then. Either begins again with new numbers. So what a reader has passed
 * never changes, whatever clocks say.
 *
 * `covers` numbers are used up, by the events first.
 */
export function eventWrites(first: number, events: readonly Loose[], covers: number): Write[] {
  const writes: Write[] = [];
  for (let from = 0; from < Math.max(1, events.length); from += EVENTS_PER_ITEM) {
    const some = events.slice(from, from + EVENTS_PER_ITEM);
    const isLast = from + EVENTS_PER_ITEM >= events.length;
    writes.push(eventItem(first + from, some, isLast ? covers - from : some.length));
  }
  return writes;
}

/** Items of events older than the newest `keep`, given the next number: some at a time, so that a commit stays small. */
export async function forgottenEvents(view: Reader, next: number, keep: number): Promise<Write[]> {
  // An item that begins so much earlier ends below what is kept, however many events it has.
  const to = next - keep - EVENTS_PER_ITEM;
  if (to <= 0) return [];
  const items = await view.range({ pk: EVENTS, to: padded(to), limit: FORGET_AT_ONCE });
  return items.map((item) => ({ key: { pk: EVENTS, sk: textAt(item, 'sk') }, isDeleted: true }));
}

const eventItem = (first: number, events: readonly Loose[], covers: number): Write => ({
  key: eventsKey(first),
  set: { n: number(covers), b: body(events) },
  condition: { expression: 'attribute_not_exists(pk)' },
});

interface Block {
  readonly first: number;
  readonly covers: number;
  /** The job that the events are of, and without which they do not count (single.ts); '' where they always do. */
  readonly job: string;
  readonly item: Item;
}

const blockOf = (item: Item): Block => ({
  first: unpadded(textAt(item, 'sk')),
  covers: numberOf(item, 'n'),
  job: textAt(item, 'j'),
  item,
});

/** Events after a number, of the newest `keep`, ascending. */
export async function readEvents(
  { table, journal }: { readonly table: Table; readonly journal: Journal },
  range: { readonly after: number; readonly limit: number; readonly keep: number },
): Promise<readonly EventRecord[]> {
  let view = await journal.view();
  const [newest] = (await view.range({ pk: EVENTS, descending: true, limit: 1 })).map(blockOf);
  if (newest === undefined || range.limit <= 0) return [];
  const last = newest.first + newest.covers - 1;
  const after = Math.max(range.after, last - range.keep);
  if (after >= last) return [];
  let doomed: Gap | null = null;
  for (let wait = 0; ; wait++) {
    const blocks = await blocksFrom(view, after + 1, range.limit);
    const jobs = await jobsOf(table, blocks);
    const gap = firstGap(blocks, after + 1, jobs);
    if (gap === null) return pick(blocks, { after, limit: range.limit, jobs });
    if (wait < WAITS_FOR_GAP) await sleep(WAIT_FOR_GAP_MS);
    else if (gap.job !== '') await giveUp(table, gap.job, gap.first);
    else if (doomed?.first !== gap.first) {
      // No commit can bring these numbers any more that had drawn them before.
      await journal.interrupt();
      doomed = gap;
    } else {
      await close(table, { first: gap.first, count: Math.min(gap.count, doomed.count) });
      doomed = null;
    }
    view = await journal.view();
  }
}

/** Items that hold the numbers from `first` on, as many as hold `limit` events. */
async function blocksFrom(view: Reader, first: number, limit: number): Promise<Block[]> {
  const at = await view.range({ pk: EVENTS, to: padded(first), descending: true, limit: 1 });
  const blocks = at.map(blockOf).filter((b) => b.first + b.covers > first);
  const next = blocks.length === 0 ? first : first + 1;
  // Each item has at least one number, but one without an event helps nobody: some more are read.
  const more = await view.range({ pk: EVENTS, from: padded(next), limit: limit + 1 });
  return [...blocks, ...more.map(blockOf)];
}

interface Gap {
  readonly first: number;
  readonly count: number;
  /** The events are there and their job is not. */
  readonly job: string;
}

/** Whether the job of a block is there under its number; null: it is not, and may still come. */
type JobOf = (block: Block) => boolean | null;

async function jobsOf(table: Table, blocks: readonly Block[]): Promise<JobOf> {
  const ids = [...new Set(blocks.flatMap(({ job }) => (job === '' ? [] : [job])))];
  const items = await table.getMany(ids.map(jobKey));
  return ({ job, first }) => {
    if (job === '') return true;
    const item = items.get(textOf(jobKey(job)));
    if (item?.['st'] !== undefined) return numberOf(item, 'a') === first;
    return numberOf(item, 'x') >= first ? false : null;
  };
}

function firstGap(blocks: readonly Block[], from: number, jobs: JobOf): Gap | null {
  let next = from;
  for (const block of blocks) {
    const { first, covers, job } = block;
    if (first > next) return { first: next, count: first - next, job: '' };
    if (jobs(block) === null) return { first, count: covers, job };
    next = first + covers;
  }
  return null;
}

/** Every number of the gap singly: whoever was to write there, wherever its item begins, now fails. */
async function close(table: Table, gap: Pick<Gap, 'first' | 'count'>): Promise<void> {
  const count = Math.min(gap.count, MAX_VOIDED);
  await table.transact(Array.from({ length: count }, (_, i) => eventItem(gap.first + i, [], 1)));
}

function pick(
  blocks: readonly Block[],
  { after, limit, jobs }: { readonly after: number; readonly limit: number; readonly jobs: JobOf },
): EventRecord[] {
  const found: EventRecord[] = [];
  for (const { first, item } of blocks.filter((block) => jobs(block) === true)) {
    for (const [i, event] of bodyOf<readonly Loose[]>(item).entries()) {
      if (found.length < limit && first + i > after) found.push({ sequence: first + i, ...event });
    }
  }
  return found;
}
