import type { Blobs } from './blobs.ts';
import { bodyOf, textAt, type Item } from './codec.ts';
import {
  indexed,
  isDone,
  jobDocOf,
  newestExplained,
  NO_INSTANCE,
  NO_JOB,
  NO_RUNS,
  type ActiveDoc,
  type Doc,
  type EffectsDoc,
  type ExplainedDoc,
  type InstanceDoc,
  type JobDoc,
  type RunsDoc,
} from './documents.ts';
import type { Entry, Journal } from './journal.ts';
import { ACTIVE, EFFECTS, EXPLAINED, MEMORY, memoryPrefix, textOf, type Key } from './keys.ts';
import type { Table, Write } from './dynamo-table.ts';
import { folded, laidOver, type Tail } from './tail.ts';
import { View } from './view.ts';

/** All effects without an outcome: the items that hold them, and which item holds which. */
export interface OpenEffects {
  readonly items: ReadonlyMap<string, EffectsDoc>;
  readonly itemOf: ReadonlyMap<string, string>;
}

export interface MemoryRow {
  readonly key: string;
  readonly value: string;
}

/** What a commit wrote, as this process keeps it. */
export interface Written {
  readonly docs: ReadonlyMap<string, Doc>;
  readonly effects: OpenEffects | null;
  readonly active: ReadonlyMap<string, ActiveDoc> | null;
  readonly explained: ExplainedDoc | null;
  readonly memory: ReadonlyMap<string, MemoryRow>;
}

const parsers = {
  JOB: (item: Item | undefined): JobDoc => jobDocOf(item),
  RUN: (item: Item | undefined): RunsDoc => (item === undefined ? NO_RUNS : bodyOf<RunsDoc>(item)),
  INSTANCE: (item: Item | undefined): InstanceDoc => (item === undefined ? NO_INSTANCE : bodyOf<InstanceDoc>(item)),
};
const kindOf = ({ sk }: Key): keyof typeof parsers => (sk === 'JOB' ? 'JOB' : sk === 'INSTANCE' ? 'INSTANCE' : 'RUN');

/**
 * What the engine alone writes, as of one commit: read when first asked for, and kept. A commit computes from it on the
 * condition that no other has come between, so what is kept is never stale where it matters.
 *
 * Lifecycle: `at(view)` takes in what commits since then have written, or forgets everything when that is not known ->
 * `load` -> `accept` what a commit wrote. What is over is not kept.
 */
export class Documents {
  readonly #blobs: Blobs;
  #view: View;
  #commits = -1;
  readonly #docs = new Map<string, Doc>();
  /**
   * The items that the documents were made of, so that a commit of others is laid over them and they need not be read
   * again.
   */
  readonly #items = new Map<string, Item | undefined>();
  #effects: OpenEffects | null = null;
  #active: Map<string, ActiveDoc> | null = null;
  #explained: ExplainedDoc | null = null;
  readonly #memory = new Map<string, MemoryRow>();
  readonly #knownPrefixes = new Set<string>();

  constructor(table: Table, blobs: Blobs) {
    this.#view = new View(table, new Map());
    this.#blobs = blobs;
  }

  /** As of the newest commit that `journal` knows. */
  async at(journal: Pick<Journal, 'since' | 'viewAsKnown'>, commits: number): Promise<this> {
    const since = this.#commits < 0 ? null : journal.since(this.#commits);
    this.#view = journal.viewAsKnown();
    if (since === null) this.forget();
    else await this.#refresh(since).catch((error: unknown) => this.#fail(error));
    this.#commits = commits;
    return this;
  }

  /** What is read through. */
  get view(): View {
    return this.#view;
  }

  forget(): void {
    this.#docs.clear();
    this.#items.clear();
    this.#effects = null;
    this.#active = null;
    this.#explained = null;
    this.#memory.clear();
    this.#knownPrefixes.clear();
    this.#commits = -1;
  }

  /** A half refreshed cache is of no commit. */
  #fail(error: unknown): never {
    this.forget();
    throw error;
  }

  async #refresh(commits: readonly Entry[]): Promise<void> {
    const tail = commits.reduce<Tail>((all, c) => folded(all, c.commit, c.writes), new Map());
    const effects = new Map(this.#effects?.items);
    for (const [name, fold] of tail) {
      const { key } = fold;
      // Of these a commit writes all there is.
      const item = laidOver(undefined, fold);
      if (key.pk === EXPLAINED.pk) this.#explained = null;
      else if (key.pk === EFFECTS) put(effects, key.sk, item);
      else if (key.pk === ACTIVE && this.#active !== null) put(this.#active, key.sk, item);
      else if (key.pk === MEMORY && this.#isKnown(key.sk)) await this.#takeMemory(key.sk, item);
      else if (this.has(key)) this.#keep(key, laidOver(this.#items.get(name), fold));
    }
    if (this.#effects !== null) this.#effects = { items: effects, itemOf: indexed(effects) };
  }

  #keep(key: Key, item: Item | undefined): void {
    this.#items.set(textOf(key), item);
    this.#docs.set(textOf(key), parsers[kindOf(key)](item));
  }

  #drop(name: string): void {
    this.#docs.delete(name);
    this.#items.delete(name);
  }

  has(key: Key): boolean {
    return this.#docs.has(textOf(key));
  }

  /** Reads those that are not at hand. */
  async load(keys: readonly Key[]): Promise<void> {
    const missing = keys.filter((key) => !this.has(key));
    if (missing.length === 0) return;
    const found = await this.#view.getMany(missing);
    for (const key of missing) this.#keep(key, found.get(textOf(key)));
  }

  /** One that was loaded. */
  job(key: Key): JobDoc {
    return (this.#docs.get(textOf(key)) as JobDoc | undefined) ?? NO_JOB;
  }

  runs(key: Key): RunsDoc {
    return (this.#docs.get(textOf(key)) as RunsDoc | undefined) ?? NO_RUNS;
  }

  instance(key: Key): InstanceDoc {
    return (this.#docs.get(textOf(key)) as InstanceDoc | undefined) ?? NO_INSTANCE;
  }

  async effects(): Promise<OpenEffects> {
    if (this.#effects === null) {
      const items = new Map<string, EffectsDoc>();
      for (const item of await this.#view.range({ pk: EFFECTS })) items.set(textAt(item, 'sk'), bodyOf(item));
      this.#effects = { items, itemOf: indexed(items) };
    }
    return this.#effects;
  }

  /** What is not over, as commits know it. */
  async active(): Promise<ReadonlyMap<string, ActiveDoc>> {
    if (this.#active === null) {
      const items = await this.#view.range({ pk: ACTIVE });
      this.#active = new Map(items.map((item) => [textAt(item, 'sk'), bodyOf<ActiveDoc>(item)]));
    }
    return this.#active;
  }

  /** What the newest plan explains. */
  async explained(): Promise<ExplainedDoc> {
    this.#explained ??= await newestExplained(this.#view, this.#blobs);
    return this.#explained;
  }

  /** Rows of memory whose key begins so. Values of the bucket are kept, too. */
  async memory(prefix: string): Promise<readonly MemoryRow[]> {
    const start = memoryPrefix(prefix);
    if (!this.#isKnown(start)) {
      for (const item of await this.#view.range({ pk: MEMORY, prefix: start }))
        await this.#takeMemory(textAt(item, 'sk'), item);
      this.#knownPrefixes.add(start);
    }
    return [...this.#memory.values()].filter((row) => row.key.startsWith(prefix));
  }

  #isKnown(sk: string): boolean {
    return [...this.#knownPrefixes].some((prefix) => sk.startsWith(prefix));
  }

  async #takeMemory(sk: string, item: Item | undefined): Promise<void> {
    if (item === undefined) this.#memory.delete(sk);
    else this.#memory.set(sk, await this.#blobs.valueOf<MemoryRow>(item));
  }

  /** What a commit wrote is the state of `commits` now. */
  accept(commits: number, { docs, effects, active, explained, memory }: Written, writes: readonly Write[]): void {
    this.#commits = commits;
    const folds = folded(new Map(), commits, writes);
    for (const [name, doc] of docs) {
      if (isDone(doc)) this.#drop(name);
      else {
        this.#docs.set(name, doc);
        this.#items.set(name, laidOver(this.#items.get(name), folds.get(name)));
      }
    }
    if (effects !== null) this.#effects = effects;
    if (active !== null) this.#active = new Map(active);
    if (explained !== null) this.#explained = explained;
    for (const [sk, row] of memory) if (this.#isKnown(sk)) this.#memory.set(sk, row);
  }
}

function put<T>(into: Map<string, T>, sk: string, item: Item | undefined): void {
  if (item === undefined) into.delete(sk);
  else into.set(sk, bodyOf<T>(item));
}

/** Partitions of all that is not over, those that begin with `prefix`: for who is not the engine. */
export async function activePartitions(view: View, prefix: string): Promise<readonly string[]> {
  const items = await view.range({ pk: ACTIVE });
  const known = items.flatMap((item) => Object.keys(bodyOf<ActiveDoc>(item)));
  return known.filter((partition) => partition.startsWith(prefix));
}
