/** The table as of one commit: stored items, with the writes of uncompacted commits laid over them. */
import { compareText } from '../../../kernel/compare.ts';
import { numberOf, textAt, type Item } from './codec.ts';
import { ACTIVE, COSTS, EFFECTS, EXPLAINED, JOBS, MEMORY, SERVICES, textOf, type Key, type List } from './keys.ts';
import { isMark, laidOver, type Fold, type Tail } from './tail.ts';
import type { Range, Table } from './dynamo-table.ts';

/** Reads of the engine's items. */
export type Reader = Pick<Table, 'get' | 'getMany' | 'range' | 'newest'>;

/** Reads of the table below. */
type Stored = Reader & Pick<Table, 'isExpired'>;

/** Partitions whose items commits always write whole. */
const WHOLE = new Set([ACTIVE, COSTS, EFFECTS, EXPLAINED.pk, JOBS, MEMORY, SERVICES]);

export class View implements Reader {
  readonly #table: Stored;
  readonly #tail: Tail;
  #reads = 0;

  constructor(table: Stored, tail: Tail) {
    this.#table = table;
    this.#tail = tail;
  }

  /** Number of reads of the table. If there were any, the items may be newer than this view. */
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
    // Lists with a limit have no deletion markers (tail.ts).
    const all = new Map(items.filter((item) => !isMark(item)).map((item) => [textAt(item, 'sk'), item]));
    const last = textAt(items.at(-1), 'sk');
    const isCut = items.length === limit + folds.length;
    for (const fold of folds) {
      const { sk } = fold.key;
      // Items beyond the last one read are skipped: others may come before them.
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
