import type { JobId } from '../../kernel/ids.ts';
import type { Task, TaskRef } from '../../domain/job.ts';

interface Row<V> {
  value: V;
  isPut: boolean;
}

/**
 * Rows that were put, each once however often it was: a mark on the row tells, where a second map would have to be
 * searched.
 */
class Puts<V> {
  #rows: Row<V>[] = [];

  note(row: Row<V>): void {
    if (row.isPut) return;
    row.isPut = true;
    this.#rows.push(row);
  }

  get count(): number {
    return this.#rows.length;
  }

  /** Present values, in the order of their first put. */
  take(): V[] {
    const rows = this.#rows;
    this.#rows = [];
    return rows.map((row) => {
      row.isPut = false;
      return row.value;
    });
  }
}

/** Immutable values by key, in the order of first puts: a later put replaces the value and keeps its place. */
export class Rows<K, V> {
  readonly #rows = new Map<K, Row<V>>();
  readonly #puts = new Puts<V>();

  get(key: K): V | undefined {
    return this.#rows.get(key)?.value;
  }

  has(key: K): boolean {
    return this.#rows.has(key);
  }

  get size(): number {
    return this.#rows.size;
  }

  *values(): Generator<V> {
    for (const { value } of this.#rows.values()) yield value;
  }

  /** Makes nothing on the way, where `values` makes an object for each. */
  forEach(tell: (value: V) => void): void {
    this.#rows.forEach((row) => tell(row.value));
  }

  /** A value that is stored as it is. */
  load(key: K, value: V): void {
    this.#set(key, value);
  }

  /** True for a new key. */
  put(key: K, value: V): boolean {
    const known = this.#rows.size;
    this.#puts.note(this.#set(key, value));
    return this.#rows.size > known;
  }

  delete(key: K): void {
    this.#rows.delete(key);
  }

  get countPut(): number {
    return this.#puts.count;
  }

  /** Values that were put since the last call, each once. */
  takePut(): V[] {
    return this.#puts.take();
  }

  #set(key: K, value: V): Row<V> {
    let row = this.#rows.get(key);
    if (row === undefined) this.#rows.set(key, (row = { value, isPut: false }));
    else row.value = value;
    return row;
  }
}

/** Tried tasks, as `Rows`. Keyed by job, stage and index, so that a lookup builds no text. */
export class TaskRows {
  readonly #jobs = new Map<JobId, Map<string, Map<number, Row<Task>>>>();
  readonly #puts = new Puts<Task>();

  get({ job, stage, index }: TaskRef): Task | undefined {
    return this.#jobs.get(job)?.get(stage)?.get(index)?.value;
  }

  /** A task that is stored as it is. */
  load(task: Task): void {
    this.#set(task);
  }

  put(task: Task): void {
    this.#puts.note(this.#set(task));
  }

  delete({ job, stage, index }: TaskRef): void {
    this.#jobs.get(job)?.get(stage)?.delete(index);
  }

  deleteJob(job: JobId): void {
    this.#jobs.delete(job);
  }

  get countPut(): number {
    return this.#puts.count;
  }

  takePut(): Task[] {
    return this.#puts.take();
  }

  /** Tasks of one stage, in the order of their first attempts. */
  ofStage(job: JobId, stage: string): Task[] {
    return valuesOf(this.#jobs.get(job)?.get(stage));
  }

  /** Stage by stage. */
  ofJob(job: JobId): Task[] {
    const stages = this.#jobs.get(job);
    return stages === undefined ? [] : [...stages.values()].flatMap(valuesOf);
  }

  #set(value: Task): Row<Task> {
    let stages = this.#jobs.get(value.job);
    if (stages === undefined) this.#jobs.set(value.job, (stages = new Map<string, Map<number, Row<Task>>>()));
    let tasks = stages.get(value.stage);
    if (tasks === undefined) stages.set(value.stage, (tasks = new Map<number, Row<Task>>()));
    let row = tasks.get(value.index);
    if (row === undefined) tasks.set(value.index, (row = { value, isPut: false }));
    else row.value = value;
    return row;
  }
}

function valuesOf(rows: ReadonlyMap<number, Row<Task>> | undefined): Task[] {
  const values: Task[] = [];
  rows?.forEach((row) => values.push(row.value));
  return values;
}
