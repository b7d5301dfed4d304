/**
 * Writes of commits that are not compacted yet, folded by item. Readers lay them over the table's items. Compaction
 * writes each item once, however many commits changed it. Pure.
 *
 * A compacted item names its last commit (`w`). So a reader with an older state leaves the item as it is, and a late
 * compaction changes nothing that a newer commit wrote.
 * Some deleted items would be misread if an old write brought them back (`isMarked`). They leave an item with a
 * deletion marker (`d`) for a day, so the same rule protects them. The service deletes the marker (`ttl`).
 */
import { flag, number, numberOf, type Item } from './codec.ts';
import { ACTIVE, EFFECTS, LEDGER, textOf, type Key } from './keys.ts';
import type { Write } from './dynamo-table.ts';
import { SCHEMA_VERSION } from './upgrades.ts';

/** Life of a deletion marker, s: longer than that of any process that could still write the item. */
const MARK_S = 86_400;

/** Attributes that commits write and delete. */
const CONTENT = ['b', 's3', 'j', 'o', 'y', 'l', 'a', 'n'] as const;

/** Writes of consecutive commits to one item. */
export interface Fold {
  readonly key: Key;
  /** Last of these commits that wrote the item. */
  readonly commit: number;
  /** First of these commits. */
  readonly since: number;
  /** True: nothing remains of the stored item. */
  readonly isReset: boolean;
  readonly isThere: boolean;
  readonly set: NonNullable<Write['set']>;
  readonly once: NonNullable<Write['once']>;
  readonly remove: readonly string[];
}

export type Tail = ReadonlyMap<string, Fold>;

/** Folds after one more commit. */
export function folded(tail: Tail, commit: number, writes: readonly Write[]): Tail {
  const next = new Map(tail);
  for (const write of writes) next.set(textOf(write.key), foldedOnto(next.get(textOf(write.key)), write, commit));
  return next;
}

function foldedOnto(before: Fold | undefined, write: Write, commit: number): Fold {
  const of = { key: write.key, commit, since: before?.since ?? commit };
  if (write.isDeleted === true) return { ...of, isReset: true, isThere: false, set: {}, once: {}, remove: [] };
  const removed = new Set(write.remove);
  const set = {
    ...Object.fromEntries(Object.entries(before?.set ?? {}).filter(([name]) => !removed.has(name))),
    ...write.set,
  };
  return {
    ...of,
    isReset: before?.isReset === true,
    isThere: true,
    set,
    once: { ...write.once, ...before?.once },
    remove: [...new Set([...(before?.remove ?? []), ...removed])].filter((name) => set[name] === undefined),
  };
}

/** True if the item is only a deletion marker. */
export const isMark = (item: Item): boolean => item['d'] !== undefined;

/** Item after these commits; undefined if it does not exist. `item`: as stored. */
export function laidOver(item: Item | undefined, fold: Fold | undefined): Item | undefined {
  const stored = item === undefined || isMark(item) ? undefined : item;
  if (fold === undefined || numberOf(item, 'w') >= fold.commit) return stored;
  if (!fold.isThere) return undefined;
  const { key, set, once, remove, isReset } = fold;
  const under = isReset || stored === undefined ? {} : without(stored, remove);
  return { pk: { S: key.pk }, sk: { S: key.sk }, v: number(SCHEMA_VERSION), ...once, ...under, ...set };
}

const without = (item: Item, names: readonly string[]): Item =>
  Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)));

/** Compaction of one fold: repeatable, early or late. `nowS`: wall time. */
export function compactionWrite({ key, commit, isReset, isThere, set, once, remove }: Fold, nowS: number): Write {
  const condition = {
    expression: 'attribute_not_exists(w) OR w < :w',
    values: { ':w': number(commit) },
  };
  const w = number(commit);
  if (isThere && isReset) {
    const all: Fold['set'] = { ...once, ...set, w };
    const others = [...CONTENT, 'd', 'ttl'].filter((name) => all[name] === undefined);
    return { key, set: all, remove: others, condition };
  }
  if (isThere) {
    // A rewritten item loses its deletion marker. Unmarked items keep their expiry.
    const marks = isMarked(key) ? ['d', 'ttl'] : [];
    const gone = [...new Set([...remove, ...marks])].filter((name) => set[name] === undefined);
    const first = Object.fromEntries(Object.entries(once).filter(([name]) => set[name] === undefined));
    return { key, set: { ...set, w }, once: first, remove: gone, condition };
  }
  if (!isMarked(key)) return { key, isDeleted: true, condition };
  const mark = { d: flag(true), w, ttl: number(nowS + MARK_S) };
  return { key, set: mark, remove: CONTENT, condition };
}

/**
 * True for items that need a deletion marker. Old events and plans need none: nobody reads so far back, so a late
 * writer may restore them.
 */
const isMarked = ({ pk, sk }: Key): boolean => pk === EFFECTS || pk === ACTIVE || sk.startsWith(LEDGER);

/** True for effects that these commits both recorded and closed: no item is needed if nobody made one. */
export const isPassing = ({ key, isThere, since }: Fold): boolean =>
  key.pk === EFFECTS && !isThere && bornBy(key) === since;

/** Commit that made an item of effects, which is named after the commit before. */
const bornBy = ({ sk }: Key): number => Number(sk.split('#')[0]) + 1;
