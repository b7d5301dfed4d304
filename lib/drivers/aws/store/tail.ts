/**
 * What commits have written and nobody has carried over to the items yet, folded by item: a reader lays it over what it
 * finds in the table, and whoever carries it over writes each item once, however many commits changed it. Pure.
 *
 * Every item that is carried over says by which commit it was last written (`w`). So a reader whose picture is older
 * than the item leaves the item as it is, and one who carries over late changes nothing that a newer commit wrote. What
 * is deleted and would be taken for something if it came back so (`isMarked`) leaves an item with a mark (`d`) for a
 * day, by which the same is true of it; the service takes it away (`ttl`).
 */
import { flag, number, numberOf, type Item } from './codec.ts';
import { ACTIVE, EFFECTS, LEDGER, textOf, type Key } from './keys.ts';
import type { Write } from './dynamo-table.ts';
import { SCHEMA_VERSION } from './upgrades.ts';

/** How long the mark of what was deleted stays, s: longer than any process that could still write it lives. */
const MARK_S = 86_400;

/** Attributes of what commits write and delete again. */
const CONTENT = ['b', 's3', 'j', 'o', 'y', 'l', 'a', 'n'] as const;

/** What some commits in a row make of one item. */
export interface Fold {
  readonly key: Key;
  /** The last of these commits that wrote it. */
  readonly commit: number;
  /** The first. */
  readonly since: number;
  /** Nothing of what was stored before them remains. */
  readonly isReset: boolean;
  readonly isThere: boolean;
  readonly set: NonNullable<Write['set']>;
  readonly once: NonNullable<Write['once']>;
  readonly remove: readonly string[];
}

export type Tail = ReadonlyMap<string, Fold>;

/** The folds after one more commit. */
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

/** Whether the item is only the mark of one that was deleted. */
export const isMark = (item: Item): boolean => item['d'] !== undefined;

/** The item as these commits leave it; undefined where it is not there. `item`: as it is stored. */
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

/** How a fold is carried over, done once or often, early or late. `nowS`: wall time. */
export function carriedOver({ key, commit, isReset, isThere, set, once, remove }: Fold, nowS: number): Write {
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
    // What is left of a mark: what may not be marked may expire, and goes on doing so.
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
 * Of old events and plans it does no harm if a process that was away for long makes them once more: nobody looks so far
 * back.
 */
const isMarked = ({ pk, sk }: Key): boolean => pk === EFFECTS || pk === ACTIVE || sk.startsWith(LEDGER);

/**
 * Effects that were recorded and closed by the commits that are carried over need no item at all, if nobody made one.
 */
export const isPassing = ({ key, isThere, since }: Fold): boolean =>
  key.pk === EFFECTS && !isThere && bornBy(key) === since;

/** The commit that made an item of effects: it is named by the one before. */
const bornBy = ({ sk }: Key): number => Number(sk.split('#')[0]) + 1;
