/**
 * Rows of the archive from changes of the table. Each thing is archived once: when it is over, or when it came. Pure,
 * except for reads of large values from the bucket. docs/archive.md describes rows and queries.
 */
import { z } from 'zod';
import { isOver, type JobSpec } from '../../../domain/job.ts';
import type { LedgerRow } from '../../../domain/ledger.ts';
import { ObjectMissing, type Blobs } from '../store/blobs.ts';
import { bodyOf, textAt, type Item } from '../store/codec.ts';
import { isOpenAttempt, jobDocOf, NO_RUNS, type InstanceDoc, type PlanDoc, type RunsDoc } from '../store/documents.ts';
import { LEDGER, RUNS } from '../store/keys.ts';

/** Kinds of rows, and so folders of the archive. */
export const ARCHIVE_KINDS = ['jobs', 'specs', 'attempts', 'instances', 'ledger', 'plans'] as const;
export type ArchiveKind = (typeof ARCHIVE_KINDS)[number];

/**
 * Lambda event filters for changes that give rows. Other items (prices, leases, histories) start no function.
 * https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
 */
const changed = ['INSERT', 'MODIFY'];
const within = (pk: string, ...sk: (string | { readonly prefix: string })[]): object => ({
  eventName: changed,
  dynamodb: { Keys: { pk: { S: [{ prefix: pk }] }, sk: { S: sk } } },
});
export const ARCHIVED: readonly object[] = [
  within('J#', 'JOB', 'SPEC', { prefix: RUNS }),
  within('I#', 'INSTANCE', { prefix: LEDGER }),
  within('P#', 'PLAN'),
];

/** Attribute as the Lambda service writes it: bytes as base64. */
const attribute = z
  .record(z.string(), z.unknown())
  .transform((value) => ('B' in value ? { B: Buffer.from(String(value['B']), 'base64') } : value));
const image = z.record(z.string(), attribute).transform((item) => item as unknown as Item);

export const streamRecord = z.object({
  eventID: z.string().min(1),
  eventName: z.enum(['INSERT', 'MODIFY', 'REMOVE']),
  eventSource: z.literal('aws:dynamodb'),
  dynamodb: z.object({
    /** Unix time, seconds. */
    ApproximateCreationDateTime: z.number(),
    SequenceNumber: z.string().min(1),
    NewImage: image.optional(),
    OldImage: image.optional(),
  }),
});
export type StreamRecord = z.output<typeof streamRecord>;

export interface ArchiveRow {
  readonly kind: ArchiveKind;
  /** Id of the subject. Repeated rows of one subject have the same id. */
  readonly id: string;
  readonly value: object;
}

/**
 * Rows for one change of an item; most changes give none. Throws `store.newer` and `store.corrupt` for an unreadable
 * value.
 */
export async function rowsOf({ dynamodb }: StreamRecord, blobs: Pick<Blobs, 'valueOf'>): Promise<ArchiveRow[]> {
  const { NewImage: now, OldImage: before } = dynamodb;
  if (now === undefined) return [];
  const [pk, sk] = [textAt(now, 'pk'), textAt(now, 'sk')];
  if (pk.startsWith('J#')) {
    const job = pk.slice(2);
    if (sk === 'JOB') return jobRows(job, now, before);
    if (sk === 'SPEC') return before === undefined ? [specRow(job, await blobs.valueOf<JobSpec>(now))] : [];
    return attemptRows(bodyOf<RunsDoc>(now), before === undefined ? NO_RUNS : bodyOf<RunsDoc>(before));
  }
  if (pk.startsWith('I#')) {
    if (sk === 'INSTANCE') return instanceRows(bodyOf<InstanceDoc>(now), before && bodyOf<InstanceDoc>(before));
    return ledgerRows(`${pk.slice(2)}/${sk.slice(LEDGER.length)}`, bodyOf<readonly LedgerRow[]>(now));
  }
  return before === undefined ? planRows(pk.slice(2), now, blobs) : [];
}

/** Row of a finished job, and its specification if the item holds it. A small job's item holds its attempts too. */
function jobRows(job: string, item: Item, former: Item | undefined): ArchiveRow[] {
  const now = jobDocOf(item);
  const before = jobDocOf(former);
  const rows = attemptRows(now.runs ?? NO_RUNS, before.runs ?? NO_RUNS);
  if (now.spec !== null && before.spec === null) rows.unshift(specRow(job, now.spec));
  const wasOver = before.body !== null && isOver(before.body.state);
  if (now.body === null || wasOver || !isOver(now.body.state)) return rows;
  const { body, cancelRequested, cancelledBy } = now;
  const value = {
    ...body,
    job,
    owner: textAt(item, 'ow'),
    cancelRequested,
    ...(cancelledBy === undefined ? {} : { cancelledBy }),
  };
  return [...rows, { kind: 'jobs', id: job, value }];
}

/** Specification without values of `env`: the archive outlives the job and has other readers. */
function specRow(job: string, spec: JobSpec): ArchiveRow {
  const stages = spec.stages.map(({ env, ...stage }) => ({ ...stage, envNames: Object.keys(env) }));
  return { kind: 'specs', id: job, value: { job, ...spec, stages } };
}

/** Attempts that ended with this change. */
function attemptRows(now: RunsDoc, before: RunsDoc): ArchiveRow[] {
  const known = new Set(before.attempts.flatMap(([, a]) => (isOpenAttempt(a) ? [] : [a.id as string])));
  return now.attempts.flatMap(([, attempt]) =>
    isOpenAttempt(attempt) || known.has(attempt.id)
      ? []
      : [{ kind: 'attempts' as const, id: attempt.id, value: attempt }],
  );
}

/** Row of an instance once its bill is settled. */
function instanceRows({ instance: now }: InstanceDoc, before: InstanceDoc | undefined): ArchiveRow[] {
  const isSettled = (instance: InstanceDoc['instance']): boolean =>
    instance !== null && instance.state === 'ended' && instance.costUsd !== null;
  if (now === null || !isSettled(now) || isSettled(before?.instance ?? null)) return [];
  return [{ kind: 'instances', id: now.id, value: now }];
}

/** Ledger rows of one instance. They replace earlier rows with the same id. */
const ledgerRows = (part: string, rows: readonly LedgerRow[]): ArchiveRow[] =>
  rows.map((row, n) => ({ kind: 'ledger', id: `${part}/${n}`, value: row }));

/** Row of a plan. If its object has been deleted, the row only says that the plan existed. */
async function planRows(plan: string, item: Item, blobs: Pick<Blobs, 'valueOf'>): Promise<ArchiveRow[]> {
  try {
    const { plan: value } = await blobs.valueOf<PlanDoc>(item);
    return [{ kind: 'plans', id: plan, value }];
  } catch (error) {
    if (!(error instanceof ObjectMissing)) throw error;
    return [{ kind: 'plans', id: plan, value: { id: plan } }];
  }
}
