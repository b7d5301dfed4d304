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
 * Job without parts that are stored elsewhere: its specification never changes, and others write requests to cancel and
 * release.
 */
export type JobBody = Omit<Job, 'spec' | 'cancelRequested' | 'cancelledBy'>;

/** Most tasks whose records are in the job's own item. With more, each change would rewrite too many others. */
const TASKS_WITHIN = 4;
/** Largest specification in the job's own item, bytes. So a job of few tasks stays below 1 KB, the unit of billing. */
const SPEC_WITHIN_BYTES = 512;

/** `JOB`: the current job. Absent body: only task records are known. */
export interface JobDoc {
  /** Null until the job itself is written. */
  readonly arrival: number | null;
  readonly cancelRequested: boolean;
  /** First caller who asked to cancel. */
  readonly cancelledBy?: Caller;
  /** Hold that a person asked to end (`Job.releasedHoldMs`); null: none. */
  readonly releasedHoldMs: number | null;
  readonly body: JobBody | null;
  /** Null if it is stored beside the job, because it is long or the job is unknown. */
  readonly spec: JobSpec | null;
  /** Task records of a small job. Null if they are stored beside the job. */
  readonly runs: RunsDoc | null;
  /** `RUN#` items with an open task or attempt; true for an attempt. */
  readonly open: Readonly<Record<string, boolean>>;
}

/** `RUN#`: records of neighbouring tasks that were tried, with attempts and their arrival numbers. */
export interface RunsDoc {
  readonly tasks: Readonly<Record<string, Task>>;
  readonly attempts: readonly (readonly [number, Attempt])[];
  /** Number of items with moved attempts beside it. */
  readonly spills: number;
}

export interface InstanceDoc {
  readonly arrival: number | null;
  readonly instance: Instance | null;
}

/** `ACTIVE`: partitions of open jobs and instances; for instances, their last applied observation. */
export type ActiveDoc = Readonly<Record<string, number | null>>;

/** Effects of one commit without an outcome, with arrival numbers. */
export type EffectsDoc = readonly (readonly [number, EffectRecord])[];

/** `VISITS`: attempts on an instance, and the keys of their records. */
export type VisitsDoc = readonly { readonly attempt: string; readonly runs: Key }[];

export type PlanBody = Omit<Plan, 'explanations'>;
/** Plan, with all jobs that it ever explained. */
export interface PlanDoc {
  readonly plan: PlanBody;
  readonly explained: readonly string[];
}
/** Explanation with its position in its plan. */
export interface ExplanationDoc {
  readonly plan: string;
  readonly ordinal: number;
  readonly is: Explanation;
}

/** All explanations of the newest plan. */
export interface ExplainedDoc {
  readonly plan: string;
  readonly list: readonly Explanation[];
  /** Object with the explanations, if they are too large for an item. */
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

/** True if a cycle must load the job. */
export const isLiveJob = (doc: JobDoc): boolean =>
  (doc.body !== null && !isOver(doc.body.state)) ||
  Object.values(doc.open).includes(true) ||
  (doc.runs !== null && hasOpen(doc.runs).attempt);
export const isLiveInstance = (doc: InstanceDoc): boolean => doc.instance !== null && isLive(doc.instance);

/** True if the job and all its attempts are over. */
export const isFinal = (doc: JobDoc): boolean => doc.body !== null && isOver(doc.body.state) && !isLiveJob(doc);
/** True if the instance has ended and is paid for. */
export const isSettled = ({ instance }: InstanceDoc): boolean =>
  instance?.state === 'ended' && instance.costUsd !== null;

/** Content of the attribute `j`. */
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

/** Attributes of a job's item that the engine writes. */
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
 * Document of a new job. A small one keeps everything in one item, unless `isKnown`: an item of the job exists, so task
 * records may already be beside it.
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

/** All attributes of a new job, including those that never change. */
export const newJobAttributes = (job: Job, doc: JobDoc): NonNullable<Write['set']> => ({
  ...jobAttributes({ ...doc, open: {} }).set,
  a: number(doc.arrival ?? 0),
  ow: text(job.spec.owner),
  c: flag(doc.cancelRequested),
});

/** `JOBS`: consecutive jobs. The item's number times `JOBS_PER_ITEM` jobs came before them. */
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

/** True if the engine has nothing left to do with the document. */
export function isDone(doc: Doc): boolean {
  if ('tasks' in doc) return !hasOpen(doc).any;
  return 'open' in doc ? !isLiveJob(doc) : !isLiveInstance(doc);
}

export const indexed = (items: ReadonlyMap<string, EffectsDoc>): Map<string, string> =>
  new Map([...items].flatMap(([sk, doc]) => doc.map(([, e]) => [e.key, sk] as const)));

/** Explanations of the newest plan. */
export async function newestExplained(view: Reader, blobs: Blobs): Promise<ExplainedDoc> {
  const item = await view.get(EXPLAINED);
  if (item === undefined) return { plan: '', list: [], object: null };
  return { ...(await blobs.valueOf<Omit<ExplainedDoc, 'object'>>(item)), object: item['s3']?.S ?? null };
}
