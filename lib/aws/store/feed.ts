/**
 * What the newest commits changed, so that a process which knows the state of an earlier one reads only that: the cycle's
 * functions take turns committing, and each would else read everything that is not over whenever it is its turn.
 *
 * HEAD, which every commit writes anyway, holds the names of the items that the last commits wrote, as many as leave it below a
 * kilobyte; a commit of more than fit has an item of its own, written with it. Names only of what a process may keep
 * (cache.ts). What a reader cannot account for without a gap makes it read everything anew: commits of an earlier version, a
 * process that was away for long.
 */
import { body, bodyOf, decode, encode, numberOf, number, type Item } from './codec.ts';
import { feedKey, keyNamed, textOf, type Key } from './keys.ts';
import type { Table, Write } from './table.ts';

/** Of HEAD's kilobyte. */
const IN_HEAD_BYTES = 640;
/** Of one commit; more are in an item of its own. */
const OF_COMMIT_BYTES = 320;

/** Per commit, oldest first, its number and what it wrote; null: see its item. */
export type Feed = readonly (readonly [number, readonly string[] | null])[];

export const feedOf = (item: Item | undefined): Feed =>
  item?.['feed']?.B === undefined ? [] : decode<Feed>(item['feed'].B);

/** The feed after a commit, and what to write beside HEAD. */
export function fed(
  feed: Feed,
  commit: number,
  touched: readonly Key[],
): { readonly feed: Feed; readonly beside: Write[] } {
  const names = touched.map(textOf);
  const isLong = encode(names).length > OF_COMMIT_BYTES;
  const all: Feed = [...feed, [commit, isLong ? null : names]];
  let from = 0;
  while (from < all.length - 1 && encode(all.slice(from)).length > IN_HEAD_BYTES) from += 1;
  const beside: Write[] = isLong ? [{ key: feedKey(commit), set: { n: number(commit), b: body(names) } }] : [];
  return { feed: all.slice(from), beside };
}

/** What commits after `since` up to `until` wrote; null when that is not known. */
export async function touchedSince(
  table: Table,
  feed: Feed,
  { since, until }: { readonly since: number; readonly until: number },
): Promise<readonly Key[] | null> {
  const wanted = feed.filter(([commit]) => commit > since && commit <= until);
  if (wanted.length < until - since) return null;
  const beside = wanted.filter(([, names]) => names === null).map(([commit]) => commit);
  const items = await table.getMany(beside.map(feedKey));
  const found = wanted.flatMap(([, names]) => names ?? []);
  for (const commit of beside) {
    const item = items.get(textOf(feedKey(commit)));
    // A later commit has taken its place.
    if (item === undefined || numberOf(item, 'n') !== commit) return null;
    found.push(...bodyOf<readonly string[]>(item));
  }
  return [...new Set(found)].map(keyNamed);
}
