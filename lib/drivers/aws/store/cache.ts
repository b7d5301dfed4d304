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

/** All effects without an outcome: their items, and the item of each effect. */
export interface OpenEffects {
  readonly items: ReadonlyMap<string, EffectsDoc>;
  readonly itemOf: ReadonlyMap<string, string>;
}

export interface MemoryRow {
  readonly key: string;
  readonly value: string;
}

/** Documents that a commit wrote, for this process's cache. */
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
 * Documents that only the engine writes, as of one commit, cached at first use. A commit requires that no other commit
 * came between, so a stale cache can do no harm.
 *
 * Lifecycle: `at(view)` applies the commits since then, or clears the cache if they are unknown -> `load` -> `accept` a
 * commit's documents. Finished work is not kept.
 */
export class Documents {
  readonly #blobs: Blobs;
  #view: View;
  #commits = -1;
  readonly #docs = new Map<string, Doc>();
  /** Items behind the documents. Commits of other processes are laid over them without a read. */
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

  /** Documents as of the newest commit that `journal` knows. */
  async at(journal: Pick<Journal, 'since' | 'viewAsKnown'>, commits: number): Promise<this> {
    const since = this.#commits < 0 ? null : journal.since(this.#commits);
    this.#view = journal.viewAsKnown();
    if (since === null) this.forget();
    else await this.#refresh(since).catch((error: unknown) => this.#fail(error));
    this.#commits = commits;
    return this;
  }

  /** View that reads use. */
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

  /** A partial refresh matches no commit. */
  #fail(error: unknown): never {
    this.forget();
    throw error;
  }

  async #refresh(commits: readonly Entry[]): Promise<void> {
    const tail = commits.reduce<Tail>((all, c) => folded(all, c.commit, c.writes), new Map());
    const effects = new Map(this.#effects?.items);
    for (const [name, fold] of tail) {
      const { key } = fold;
      // Commits write these items whole.
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

  /** Reads documents that are not cached. */
  async load(keys: readonly Key[]): Promise<void> {
    const missing = keys.filter((key) => !this.has(key));
    if (missing.length === 0) return;
    const found = await this.#view.getMany(missing);
    for (const key of missing) this.#keep(key, found.get(textOf(key)));
  }

  /** Job that was loaded. */
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

  /** Open jobs and instances, as commits know them. */
  async active(): Promise<ReadonlyMap<string, ActiveDoc>> {
    if (this.#active === null) {
      const items = await this.#view.range({ pk: ACTIVE });
      this.#active = new Map(items.map((item) => [textAt(item, 'sk'), bodyOf<ActiveDoc>(item)]));
    }
    return this.#active;
  }

  /** Explanations of the newest plan. */
  async explained(): Promise<ExplainedDoc> {
    this.#explained ??= await newestExplained(this.#view, this.#blobs);
    return this.#explained;
  }

  /** Rows of memory with this key prefix, including values from the bucket. */
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

  /** Applies documents of a commit, which become the state of `commits`. */
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

/** Partitions of open jobs or instances with this prefix, for readers other than the engine. */
export async function activePartitions(view: View, prefix: string): Promise<readonly string[]> {
  const items = await view.range({ pk: ACTIVE });
  const known = items.flatMap((item) => Object.keys(bodyOf<ActiveDoc>(item)));
  return known.filter((partition) => partition.startsWith(prefix));
}
