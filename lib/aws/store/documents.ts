import { isLive, type Instance } from '../../domain/instance.ts';
import { isOver, type Attempt, type Job, type JobSpec, type Task } from '../../domain/job.ts';
import type { Explanation, Plan } from '../../domain/plan.ts';
import type { EffectRecord } from '../../ports/store.ts';
import type { Blobs } from './blobs.ts';
import { body, bodyOf, checkVersion, decode, encode, flag, flagOf, number, text, textAt, type Item } from './codec.ts';
import { EFFECTS, EXPLAINED, textOf, type Key } from './keys.ts';
import type { Table, Write } from './table.ts';

/** A job without what lies elsewhere: its specification never changes, a cancel request is others' to write. */
export type JobBody = Omit<Job, 'spec' | 'cancelRequested'>;

/** Tasks of a job whose records lie in the job's own item: more would make each change of one rewrite too many others. */
const TASKS_WITHIN = 4;
/** Bytes of a specification that lies in the job's own item: with it a job of few tasks is below 1 KB, the unit of the bill. */
const SPEC_WITHIN_BYTES = 512;

/** `JOB`: a job as it is. Absent body: nothing is known of the job but runs of its tasks. */
export interface JobDoc {
  /** Null until the job itself is put. */
  readonly arrival: number | null;
  readonly cancelRequested: boolean;
  readonly body: JobBody | null;
  /** Null where it lies beside the job: it is long, or nothing is known of the job. */
  readonly spec: JobSpec | null;
  /** Of a small job: records of its tasks. Null where they lie beside it. */
  readonly runs: RunsDoc | null;
  /** `RUN#` items with a task or an attempt that is not over; true where it is an attempt. */
  readonly open: Readonly<Record<string, boolean>>;
}

/** `RUN#`: records of tried tasks that are neighbours, with their attempts and the attempts' numbers of arrival. */
export interface RunsDoc {
  readonly tasks: Readonly<Record<string, Task>>;
  readonly attempts: readonly (readonly [number, Attempt])[];
  /** How many items of ended attempts lie beside it. */
  readonly spills: number;
}

export interface InstanceDoc {
  readonly arrival: number | null;
  readonly instance: Instance | null;
  /** Sequence of the last observation taken in. */
  readonly cursor: number | null;
}

/** Effects recorded together that have no outcome yet, with their numbers of arrival. */
export type EffectsDoc = readonly (readonly [number, EffectRecord])[];

/** `VISITS`: attempts placed on an instance, and where their records are. */
export type VisitsDoc = readonly { readonly attempt: string; readonly runs: Key }[];

export type PlanBody = Omit<Plan, 'explanations'>;
/** A plan, and of which jobs it has ever had an explanation. */
export interface PlanDoc {
  readonly plan: PlanBody;
  readonly explained: readonly string[];
}
/** An explanation on its own, with its place in its plan. */
export interface ExplanationDoc {
  readonly plan: string;
  readonly ordinal: number;
  readonly is: Explanation;
}

/** All explanations of the newest plan. */
export interface ExplainedDoc {
  readonly plan: string;
  readonly list: readonly Explanation[];
  /** The object that holds them, when they are too large for an item. */
  readonly object: string | null;
}

export const NO_JOB: JobDoc = {
  arrival: null,
  cancelRequested: false,
  body: null,
  spec: null,
  runs: null,
  open: {},
};
export const NO_RUNS: RunsDoc = { tasks: {}, attempts: [], spills: 0 };
export const NO_INSTANCE: InstanceDoc = { arrival: null, instance: null, cursor: null };

export const isOpenTask = (task: Task): boolean => task.state === 'waiting' || task.state === 'running';
export const isOpenAttempt = (attempt: Attempt): boolean => attempt.state !== 'ended';

/** What a cycle must load. */
export const isLiveJob = (doc: JobDoc): boolean =>
  (doc.body !== null && !isOver(doc.body.state)) ||
  Object.values(doc.open).includes(true) ||
  (doc.runs !== null && hasOpen(doc.runs).attempt);
/** An instance that is not known, and yet is observed, is not over either. */
export const isLiveInstance = (doc: InstanceDoc): boolean =>
  doc.instance === null ? doc.cursor !== null : isLive(doc.instance);

/** What `j` holds. */
interface JobContent {
  readonly job?: JobBody;
  readonly spec?: JobSpec;
  readonly runs?: RunsDoc;
}

export function jobDocOf(item: Item | undefined): JobDoc {
  if (item === undefined) return NO_JOB;
  checkVersion(item);
  const { job = null, spec = null, runs = null } = contentOf(item);
  return {
    arrival: item['a']?.N === undefined ? null : Number(item['a'].N),
    cancelRequested: flagOf(item, 'c'),
    body: job,
    spec,
    runs,
    open: item['o']?.B === undefined ? {} : decode<JobDoc['open']>(item['o'].B),
  };
}

function contentOf(item: Item): JobContent {
  if (item['j'] !== undefined) return bodyOf<JobContent>(item, 'j');
  // As version 1 wrote it.
  return item['b'] === undefined ? {} : { job: bodyOf<JobBody>(item) };
}

/** The attributes of a job's item that the engine writes. */
export function jobAttributes({ body: job, spec, runs, open }: JobDoc): Pick<Write, 'set' | 'remove'> {
  const content: JobContent = {
    ...(job === null ? {} : { job }),
    ...(runs === null ? {} : { runs }),
    ...(spec === null ? {} : { spec }),
  };
  const isAnyOpen = Object.keys(open).length > 0;
  return {
    set: {
      ...(job === null ? {} : { st: text(job.state), j: body(content) }),
      ...(isAnyOpen ? { o: body(open) } : {}),
    },
    // `b` is version 1's.
    remove: ['b', ...(isAnyOpen ? [] : ['o'])],
  };
}

/**
 * A job as it is submitted. Small ones keep all that is theirs in one item, unless `isKnown`: there is an item of the job, so
 * records of its tasks may lie beside it already.
 */
export function newJobDoc({ spec, cancelRequested, ...job }: Job, arrival: number, isKnown: boolean): JobDoc {
  const tasks = spec.stages.reduce((sum, stage) => sum + stage.tasks, 0);
  return {
    arrival,
    cancelRequested,
    body: job,
    spec: isShort(spec) ? spec : null,
    runs: tasks <= TASKS_WITHIN && !isKnown ? NO_RUNS : null,
    open: {},
  };
}

export const isShort = (spec: JobSpec): boolean => encode(spec).length <= SPEC_WITHIN_BYTES;

/** All attributes of a job that is new: those that the engine writes, and the ones that never change. */
export const newJobAttributes = (job: Job, doc: JobDoc): NonNullable<Write['set']> => ({
  ...jobAttributes({ ...doc, open: {} }).set,
  l: text('jobs'),
  a: number(doc.arrival ?? 0),
  ow: text(job.spec.owner),
  c: flag(doc.cancelRequested),
});

const parsers = {
  JOB: (item: Item | undefined): JobDoc => jobDocOf(item),
  RUN: (item: Item | undefined): RunsDoc => (item === undefined ? NO_RUNS : bodyOf<RunsDoc>(item)),
  INSTANCE: (item: Item | undefined): InstanceDoc => (item === undefined ? NO_INSTANCE : bodyOf<InstanceDoc>(item)),
};
type Kind = keyof typeof parsers;
export type Doc = JobDoc | RunsDoc | InstanceDoc;
const kindOf = ({ sk }: Key): Kind => (sk === 'JOB' ? 'JOB' : sk === 'INSTANCE' ? 'INSTANCE' : 'RUN');

/** All effects without an outcome: the items that hold them, and which item holds which. */
export interface OpenEffects {
  readonly items: ReadonlyMap<string, EffectsDoc>;
  readonly itemOf: ReadonlyMap<string, string>;
}

/**
 * What the engine alone writes, as of one commit: read when first asked for, kept while nobody else commits. A commit
 * computes from it on the condition that HEAD has not moved, so what is kept is never stale where it matters.
 * Lifecycle: `at(commits)` forgets everything when the number is another -> `load` -> `accept` what a commit wrote.
 */
export class Documents {
  readonly #table: Table;
  readonly #blobs: Blobs;
  #commits = -1;
  readonly #docs = new Map<string, Doc>();
  #effects: OpenEffects | null = null;
  #explained: ExplainedDoc | null = null;

  constructor(table: Table, blobs: Blobs) {
    this.#table = table;
    this.#blobs = blobs;
  }

  at(commits: number): this {
    if (commits !== this.#commits) {
      this.#docs.clear();
      this.#effects = null;
      this.#explained = null;
      this.#commits = commits;
    }
    return this;
  }

  has(key: Key): boolean {
    return this.#docs.has(textOf(key));
  }

  /** Reads those that are not at hand. */
  async load(keys: readonly Key[]): Promise<void> {
    const missing = keys.filter((key) => !this.has(key));
    if (missing.length === 0) return;
    const found = await this.#table.getMany(missing);
    for (const key of missing) this.#docs.set(textOf(key), parsers[kindOf(key)](found.get(textOf(key))));
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
      for (const item of await this.#table.range({ pk: EFFECTS })) items.set(textAt(item, 'sk'), bodyOf(item));
      this.#effects = { items, itemOf: indexed(items) };
    }
    return this.#effects;
  }

  /** What the newest plan explains. */
  async explained(): Promise<ExplainedDoc> {
    this.#explained ??= await newestExplained(this.#table, this.#blobs);
    return this.#explained;
  }

  /** What a commit wrote is the state of `commits` now. What is over is let go. */
  accept(
    commits: number,
    written: {
      readonly docs: ReadonlyMap<string, Doc>;
      readonly effects: OpenEffects | null;
      readonly explained: ExplainedDoc | null;
    },
  ): void {
    this.#commits = commits;
    for (const [key, doc] of written.docs) {
      if (isDone(doc)) this.#docs.delete(key);
      else this.#docs.set(key, doc);
    }
    if (written.effects !== null) this.#effects = written.effects;
    if (written.explained !== null) this.#explained = written.explained;
  }

  /** Known to be over. What is not there yet is not. */
  isOver(key: Key): boolean {
    const doc = this.#docs.get(textOf(key));
    if (doc === undefined || 'tasks' in doc) return false;
    if ('open' in doc) return doc.body !== null && !isLiveJob(doc);
    return doc.instance !== null && !isLiveInstance(doc);
  }

  /** A job that was not there may have been submitted. */
  forgetAbsent(key: Key): void {
    if (this.job(key).body === null) this.#docs.delete(textOf(key));
  }

  /** A cancel request came between commits. */
  cancelled(key: Key): void {
    this.#docs.set(textOf(key), { ...this.job(key), cancelRequested: true });
  }
}

function isDone(doc: Doc): boolean {
  if ('tasks' in doc) return !hasOpen(doc).any;
  return 'open' in doc ? !isLiveJob(doc) : !isLiveInstance(doc);
}

export function hasOpen({ tasks, attempts }: RunsDoc): { readonly any: boolean; readonly attempt: boolean } {
  const attempt = attempts.some(([, a]) => isOpenAttempt(a));
  return { attempt, any: attempt || Object.values(tasks).some(isOpenTask) };
}

export const indexed = (items: ReadonlyMap<string, EffectsDoc>): Map<string, string> =>
  new Map([...items].flatMap(([sk, doc]) => doc.map(([, e]) => [e.key, sk] as const)));

/** The explanations of the newest plan. */
export async function newestExplained(table: Table, blobs: Blobs): Promise<ExplainedDoc> {
  const item = await table.get(EXPLAINED);
  if (item === undefined) return { plan: '', list: [], object: null };
  return { ...(await blobs.valueOf<Omit<ExplainedDoc, 'object'>>(item)), object: item['s3']?.S ?? null };
}
