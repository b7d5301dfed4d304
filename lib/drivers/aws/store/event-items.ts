import type { EventRecord } from '../../../ports/store.ts';
import { body, bodyOf, number, numberOf, textAt, type Item } from './codec.ts';
import { EVENTS, eventsKey, padded, unpadded } from './keys.ts';
import type { Head } from './journal.ts';
import type { Write } from './dynamo-table.ts';
import type { Reader } from './view.ts';

/** Most events per item. */
const EVENTS_PER_ITEM = 500;
/** Most old items that one commit deletes. */
const FORGET_AT_ONCE = 20;

type Loose = Omit<EventRecord, 'sequence'>;

/**
 * Writes of events. Commits write all events and follow one another, so numbers have no gaps and earlier events never
 * change.
 */
export function eventWrites(first: number, events: readonly Loose[]): Write[] {
  const writes: Write[] = [];
  for (let from = 0; from < events.length; from += EVENTS_PER_ITEM) {
    const some = events.slice(from, from + EVENTS_PER_ITEM);
    writes.push({ key: eventsKey(first + from), set: { n: number(some.length), b: body(some) } });
  }
  return writes;
}

/** Deletions of items with events older than the newest `keep`, a few per commit. `next`: number of the next event. */
export async function forgottenEvents(view: Reader, next: number, keep: number): Promise<Write[]> {
  // Start of the newest item that can go: however many events it has, it ends below the kept ones.
  const to = next - keep - EVENTS_PER_ITEM;
  if (to <= 0) return [];
  const items = await view.range({ pk: EVENTS, to: padded(to), limit: FORGET_AT_ONCE });
  return items.map((item) => ({ key: { pk: EVENTS, sk: textAt(item, 'sk') }, isDeleted: true }));
}

/** Events after a number, among the newest `keep`, ascending. */
export async function readEvents(
  view: Reader,
  { events: last }: Pick<Head, 'events'>,
  range: { readonly after: number; readonly limit: number; readonly keep: number },
): Promise<readonly EventRecord[]> {
  const after = Math.max(range.after, last - range.keep);
  if (after >= last || range.limit <= 0) return [];
  const found: EventRecord[] = [];
  for (const item of await itemsFrom(view, after + 1, range.limit)) {
    const first = unpadded(textAt(item, 'sk'));
    for (const [i, event] of bodyOf<readonly Loose[]>(item).entries()) {
      if (found.length < range.limit && first + i > after) found.push({ sequence: first + i, ...event });
    }
  }
  return found;
}

/** Items with numbers from `first`, enough for `limit` events: each item has at least one. */
async function itemsFrom(view: Reader, first: number, limit: number): Promise<readonly Item[]> {
  const at = await view.range({ pk: EVENTS, to: padded(first), descending: true, limit: 1 });
  const begun = at.filter((item) => unpadded(textAt(item, 'sk')) + numberOf(item, 'n') > first);
  const next = begun.length === 0 ? first : first + 1;
  return [...begun, ...(await view.range({ pk: EVENTS, from: padded(next), limit }))];
}
