/** The table as of one commit: what is stored, and over it what commits have written since it was last carried over. */
import { compareText } from '../../../kernel/compare.ts';
import { numberOf, textAt, type Item } from './codec.ts';
import { ACTIVE, COSTS, EFFECTS, EXPLAINED, JOBS, MEMORY, textOf, type Key, type List } from './keys.ts';
import { isMark, laidOver, type Fold, type Tail } from './tail.ts';
import type { Range, Table } from './dynamo-table.ts';

/** What the engine's items are read through. */
export type Reader = Pick<Table, 'get' | 'getMany' | 'range' | 'newest'>;

/** What it lies over. */
type Stored = Reader & Pick<Table, 'isExpired'>;

/** Of these a commit always writes all there is. */
const WHOLE = new Set([ACTIVE, COSTS, EFFECTS, EXPLAINED.pk, JOBS, MEMORY]);

export class View implements Reader {
  readonly #table: Stored;
  readonly #tail: Tail;
  #reads = 0;

  constructor(table: Stored, tail: Tail) {
    this.#table = table;
    this.#tail = tail;
  }

  /** How often the table was asked: what it shows may be newer than this view. */
  get reads(): number {
    return this.#reads;
  }

  async get(key: Key): Promise<Item | undefined> {
    return (await this.getMany([key])).get(textOf(key));
  }

  async getMany(keys: readonly Key[]): Promise<Map<string, Item>> {
    const isWhole = (key: Key): boolean => {
      const fold = this.#tail.get(textOf(key));
      return fold !== undefined && (WHOLE.has(key.pk) || fold.isReset);
    };
    const asked = keys.filter((key) => !isWhole(key));
    if (asked.length > 0) this.#reads += 1;
    const stored = await this.#table.getMany(asked);
    const found = new Map<string, Item>();
    for (const key of keys) {
      const item = this.#laidOver(stored.get(textOf(key)), this.#tail.get(textOf(key)));
      if (item !== undefined) found.set(textOf(key), item);
    }
    return found;
  }

  async range(range: Range): Promise<Item[]> {
    const { pk, limit = Infinity, descending = false } = range;
    const folds = [...this.#tail.values()].filter((fold) => fold.key.pk === pk && isWithin(fold.key.sk, range));
    this.#reads += 1;
    const items = await this.#table.range({ ...range, limit: limit + folds.length });
    // Where a limit is asked for there are no marks of what was deleted (tail.ts).
    const all = new Map(items.filter((item) => !isMark(item)).map((item) => [textAt(item, 'sk'), item]));
    const last = textAt(items.at(-1), 'sk');
    const isCut = items.length === limit + folds.length;
    for (const fold of folds) {
      const { sk } = fold.key;
      // Beyond what was read there may be others before it.
      if (isCut && (descending ? sk < last : sk > last)) continue;
      const item = this.#laidOver(all.get(sk), fold);
      if (item === undefined) all.delete(sk);
      else all.set(sk, item);
    }
    const sign = descending ? -1 : 1;
    return [...all.values()].sort((a, b) => sign * compareText(textAt(a, 'sk'), textAt(b, 'sk'))).slice(0, limit);
  }

  #laidOver(stored: Item | undefined, fold: Fold | undefined): Item | undefined {
    const item = laidOver(stored, fold);
    return item === undefined || this.#table.isExpired(item) ? undefined : item;
  }

  async newest(list: List, before: number, limit: number): Promise<{ readonly key: Key; readonly arrival: number }[]> {
    const folds = [...this.#tail.values()];
    this.#reads += 1;
    const listed = await this.#table.newest(list, before, limit + folds.length);
    const all = new Map(listed.map((entry) => [textOf(entry.key), entry]));
    for (const fold of folds) {
      if (!fold.isThere) all.delete(textOf(fold.key));
      else if (isListed(fold, list)) {
        const arrival = numberOf({ ...fold.once, ...fold.set }, 'a');
        if (arrival < before && !all.has(textOf(fold.key))) all.set(textOf(fold.key), { key: fold.key, arrival });
      }
    }
    return [...all.values()].sort((a, b) => b.arrival - a.arrival).slice(0, limit);
  }
}

const isWithin = (sk: string, { prefix = '', from = '', to }: Range): boolean =>
  sk.startsWith(prefix) && sk >= from && (to === undefined || sk <= to);

const isListed = ({ once, set }: Fold, list: List): boolean => textAt({ ...once, ...set }, 'l') === list;
