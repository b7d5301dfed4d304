import { isLive, type Instance } from '../../../domain/instance.ts';
import type { Caller } from '../../../domain/caller.ts';
import { isOver, type Attempt, type Job, type JobSpec, type Task } from '../../../domain/job.ts';
import type { Explanation, Plan } from '../../../domain/plan.ts';
import type { EffectRecord } from '../../../ports/store.ts';
import type { Blobs } from './blobs.ts';
import { body, bodyOf, checkVersion, encode, flag, flagOf, number, text, type Item } from './codec.ts';
import { EXPLAINED, type Key } from './keys.ts';
import type { Write } from './dynamo-table.ts';
import type { Reader } from './view.ts';

/**
 * A job without what lies elsewhere: its specification never changes, requests to cancel and to release are others' to
 * write.
 */
export type JobBody = Omit<Job, 'spec' | 'cancelRequested' | 'cancelledBy'>;

/**
 * Tasks of a job whose records lie in the job's own item: more would make each change of one rewrite too many others.
 */
const TASKS_WITHIN = 4;
/**
 * Bytes of a specification that lies in the job's own item: with it a job of few tasks is below 1 KB, the unit of the
 * bill.
 */
const SPEC_WITHIN_BYTES = 512;

/** `JOB`: a job as it is. Absent body: nothing is known of the job but runs of its tasks. */
export interface JobDoc {
  /** Null until the job itself is put. */
  readonly arrival: number | null;
  readonly cancelRequested: boolean;
  /** Who asked first that it be cancelled. */
  readonly cancelledBy?: Caller;
  /** The hold that a person asked to end (`Job.releasedHoldMs`); null for none. */
  readonly releasedHoldMs: number | null;
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
}

/** `ACTIVE`: partitions of jobs and instances that are not over; of instances with the last observation taken in. */
export type ActiveDoc = Readonly<Record<string, number | null>>;

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
  releasedHoldMs: null,
  body: null,
  spec: null,
  runs: null,
  open: {},
};
export const NO_RUNS: RunsDoc = { tasks: {}, attempts: [], spills: 0 };
export const NO_INSTANCE: InstanceDoc = { arrival: null, instance: null };

export const isOpenTask = (task: Task): boolean => task.state === 'waiting' || task.state === 'running';
export const isOpenAttempt = (attempt: Attempt): boolean => attempt.state !== 'ended';

/** What a cycle must load. */
export const isLiveJob = (doc: JobDoc): boolean =>
  (doc.body !== null && !isOver(doc.body.state)) ||
  Object.values(doc.open).includes(true) ||
  (doc.runs !== null && hasOpen(doc.runs).attempt);
export const isLiveInstance = (doc: InstanceDoc): boolean => doc.instance !== null && isLive(doc.instance);

/** A job that is over, with all its attempts. */
export const isFinal = (doc: JobDoc): boolean => doc.body !== null && isOver(doc.body.state) && !isLiveJob(doc);
/** An instance that has ended and is paid for. */
export const isSettled = ({ instance }: InstanceDoc): boolean =>
  instance?.state === 'ended' && instance.costUsd !== null;

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
    ...(item['cb'] === undefined ? {} : { cancelledBy: bodyOf<Caller>(item, 'cb') }),
    releasedHoldMs: item['rh']?.N === undefined ? null : Number(item['rh'].N),
    body: job,
    spec,
    runs,
    open: item['o'] === undefined ? {} : bodyOf<JobDoc['open']>(item, 'o'),
  };
}

function contentOf(item: Item): JobContent {
  return item['j'] === undefined ? {} : bodyOf<JobContent>(item, 'j');
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
    remove: isAnyOpen ? [] : ['o'],
  };
}

/**
 * A job that is new. Small ones keep all that is theirs in one item, unless `isKnown`: there is an item of the job, so
 * records of its tasks may lie beside it already.
 */
export function newJobDoc(
  { spec, cancelRequested, cancelledBy: _, ...job }: Job,
  arrival: number,
  isKnown: boolean,
): JobDoc {
  const tasks = spec.stages.reduce((sum, stage) => sum + stage.tasks, 0);
  return {
    arrival,
    cancelRequested,
    releasedHoldMs: null,
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
  a: number(doc.arrival ?? 0),
  ow: text(job.spec.owner),
  c: flag(doc.cancelRequested),
});

/** `JOBS`: jobs that came one after another; before the first came the item's number times `JOBS_PER_ITEM`. */
export type JobsDoc = readonly ListedJob[];
export interface ListedJob {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
}

export type Doc = JobDoc | RunsDoc | InstanceDoc;

export function hasOpen({ tasks, attempts }: RunsDoc): { readonly any: boolean; readonly attempt: boolean } {
  const attempt = attempts.some(([, a]) => isOpenAttempt(a));
  return { attempt, any: attempt || Object.values(tasks).some(isOpenTask) };
}

/** A document that the engine has nothing left to do with. */
export function isDone(doc: Doc): boolean {
  if ('tasks' in doc) return !hasOpen(doc).any;
  return 'open' in doc ? !isLiveJob(doc) : !isLiveInstance(doc);
}

export const indexed = (items: ReadonlyMap<string, EffectsDoc>): Map<string, string> =>
  new Map([...items].flatMap(([sk, doc]) => doc.map(([, e]) => [e.key, sk] as const)));

/** The explanations of the newest plan. */
export async function newestExplained(view: Reader, blobs: Blobs): Promise<ExplainedDoc> {
  const item = await view.get(EXPLAINED);
  if (item === undefined) return { plan: '', list: [], object: null };
  return { ...(await blobs.valueOf<Omit<ExplainedDoc, 'object'>>(item)), object: item['s3']?.S ?? null };
}
