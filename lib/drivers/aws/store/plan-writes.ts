import type { Plan } from '../../../domain/plan.ts';
import { ownName, type Blobs } from './blobs.ts';
import { bytes, encode, number, text, textAt } from './codec.ts';
import type { ExplainedDoc, ExplanationDoc, PlanDoc } from './documents.ts';
import type { Expiry } from './expiry.ts';
import { EXPLAINED, explanationKey, jobKey, planKey, PLANS_PREFIX, textOf } from './keys.ts';
import type { Write } from './dynamo-table.ts';
import type { Reader } from './view.ts';
import type { Retention } from '../../../ports/store.ts';

/** Most plans that one commit deletes. */
const FORGET_AT_ONCE = 10;

interface Before {
  /** Numbers from HEAD: commits, and plans including those of this commit. */
  readonly commits: number;
  readonly plans: number;
  /** Explanations of the newest plan so far. */
  readonly former: ExplainedDoc;
  /** Writes of this commit so far, by `textOf` of their keys. */
  readonly pending: ReadonlyMap<string, Write>;
  /** True if the job was open before this commit. */
  readonly isLive: (job: string) => boolean;
  readonly expiry: Expiry;
}

interface PlanWrites {
  readonly writes: readonly Write[];
  /** Superseded objects. */
  readonly dropped: readonly string[];
  readonly explained: ExplainedDoc;
  readonly isNew: boolean;
}

/**
 * Writes of a plan. Explanations of the newest plan are stored together; those of jobs that it no longer explains move
 * to the jobs.
 */
export async function planWrites(
  parts: { readonly view: Reader; readonly blobs: Blobs; readonly retention: Retention },
  { explanations, ...plan }: Plan,
  { commits, plans, former, pending, isLive, expiry }: Before,
): Promise<PlanWrites> {
  const { view, blobs } = parts;
  const key = planKey(plan.id);
  const ofThisCommit = pending.get(textOf(key));
  const known = ofThisCommit === undefined ? await view.get(key) : undefined;
  const numbered = ofThisCommit?.once?.['a'] ?? known?.['a'];
  const isNew = numbered === undefined;
  const now = new Set<string>(explanations.map((e) => e.job));
  const moved = former.list.flatMap((is, ordinal) => (now.has(is.job) ? [] : [{ plan: former.plan, ordinal, is }]));
  const earlier = known === undefined ? [] : (await blobs.valueOf<PlanDoc>(known)).explained;
  const ofFormer = former.plan === plan.id ? former.list.map((e) => e.job as string) : [];
  const doc: PlanDoc = { plan, explained: [...new Set([...earlier, ...ofFormer, ...now])] };
  const name = (what: string): string => ownName(`${PLANS_PREFIX}${plan.id}/${what}-${commits}`);
  const held = await blobs.held(doc, name('plan'));
  const explained = await blobs.held({ plan: plan.id, list: explanations }, name('explained'));
  const old = await forgotten(parts, isNew ? plans + 1 : plans, pending);
  return {
    writes: [
      ...moved.flatMap((doc) => explanationWrites(doc, isLive(doc.is.job), expiry)),
      { key, ...held, once: { l: text('plans'), a: numbered ?? number(plans + 1) } },
      { key: EXPLAINED, ...explained },
      ...old.writes,
    ],
    dropped: [...(former.object === null ? [] : [former.object]), ...old.dropped],
    explained: { plan: plan.id, list: explanations, object: explained.set['s3']?.S ?? null },
    isNew,
  };
}

/**
 * Largest explanation in the job's own item, bytes. That item is written at about the same time, and stays below a
 * kilobyte.
 */
const WITHIN_JOB_BYTES = 480;

/** Writes of an explanation. The item of a finished job may have expired, so what this makes of it must expire too. */
function explanationWrites(doc: ExplanationDoc, isLive: boolean, expiry: Expiry): readonly Write[] {
  const once = isLive ? {} : expiry.over;
  const content = encode(doc);
  const key = jobKey(doc.is.job);
  if (content.length <= WITHIN_JOB_BYTES) return [{ key, set: { y: bytes(content) }, once }];
  return [
    { key, remove: ['y'], once },
    { key: explanationKey(doc.is.job), set: { b: bytes(content), ...(isLive ? expiry.beside : expiry.over) } },
  ];
}

/** Deletions of old plans. Numbers of plans have no gaps, so old ones are known by number. */
async function forgotten(
  { view, retention }: { readonly view: Reader; readonly retention: Retention },
  plans: number,
  pending: Before['pending'],
): Promise<Pick<PlanWrites, 'writes' | 'dropped'>> {
  const tooOld = plans - retention.plans;
  if (tooOld <= 0) return { writes: [], dropped: [] };
  const listed = (await view.newest('plans', tooOld + 1, FORGET_AT_ONCE)).map((p) => p.key);
  const old = listed.filter((key) => !pending.has(textOf(key)));
  const items = [...(await view.getMany(old)).values()];
  return {
    writes: old.map((key) => ({ key, isDeleted: true })),
    dropped: items.flatMap((item) => (item['s3'] === undefined ? [] : [textAt(item, 's3')])),
  };
}
