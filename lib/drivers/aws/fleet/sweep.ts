/**
 * Compares what EC2 and ECS have with what is recorded, for events that never came and processes that died between a
 * call and its note. O(live instances), every few minutes, besides the events that do the work.
 *
 * - EC2 has an instance of ours without a record: it is adopted. One that the store knows nothing of either is ended:
 *   nobody will ever use it. So is one that is not, by its EC2 id, that of the record which its tags name. A launch may
 *   be between the two for a moment, so only an instance of some age is unknown.
 * - A record says that an instance lives: ECS is asked about its tasks, EC2 about itself, and what is left to do is
 *   done. One that somebody stopped has ended then, and is ended in EC2 too. One that EC2 refuses to end is asked for
 *   each time, and told of.
 * - News of instances that the store has closed are taken away.
 */
import { EbbError, messageOf } from '../../../kernel/errors.ts';
import { instanceId, type InstanceId } from '../../../kernel/ids.ts';
import { raw, type EpochMs } from '../../../kernel/units.ts';
import type { Store } from '../../../ports/store.ts';
import type { Ec2, Seen } from './ec2.ts';
import type { Ecs } from './ecs.ts';
import type { Hosts } from './hosts.ts';
import type { Inbox } from './inbox.ts';
import { END_TRIES, type EndRefused, type InstanceRecord } from './instance-record.ts';
import { tasksOn, type Watch } from './watch.ts';

export interface SweepParts {
  readonly inbox: Inbox;
  readonly ec2: Ec2;
  readonly ecs: Ecs;
  readonly hosts: Hosts;
  readonly watch: Watch;
  readonly store: Pick<Store, 'loadActive'>;
  /**
   * Not by the clock of this process, which may differ from those of EC2 and ECS: what began just now would be taken
   * for old.
   */
  readonly now: EpochMs;
  /** The expected time from launch to first task times a few: an instance that is not up by then never will be. */
  readonly startPatienceS: number;
}

export interface Leak {
  readonly ec2: string;
  /** As its tags say; they may be copied from another one. */
  readonly instance: InstanceId | null;
}

/** An instance that was to be ended, and EC2 has refused it again and again. */
export interface Stuck extends EndRefused {
  readonly ec2: string;
  readonly instance: InstanceId;
}

export interface Swept {
  /** Nobody knew of them: ended, or to be ended, for which see `failed`. */
  readonly leaked: readonly Leak[];
  /** Of which something was learned that no event had told. */
  readonly repaired: readonly InstanceId[];
  readonly stuck: readonly Stuck[];
  /** What could not be done now, by instance; the others were looked after all the same. */
  readonly failed: readonly string[];
  /** There is work, or something to observe: a cycle must look. */
  readonly isWork: boolean;
  /**
   * The first error that is a defect of ours, or has kept it from its work: to be thrown, once what was found is told.
   */
  readonly defect: Error | null;
}

/** An intent is recorded before its launch; longer than this no Lambda takes from the one to the other, s. */
const UNKNOWN_FROM_S = 300;
/** One that is stopped costs money too, and can be started again. */
const isLeft = ({ state }: Seen): boolean => state !== 'shutting-down' && state !== 'terminated';

/** Throws when EC2, ECS or the table cannot be read. */
export async function sweep(parts: SweepParts): Promise<Swept> {
  const { inbox, ec2, store } = parts;
  const nowMs = raw(parts.now);
  // EC2 first: what is launched after this look is not missed in it.
  const seen = await ec2.all();
  const active = await store.loadActive();
  const known = new Set<string>(active.instances.map((i) => i.id));
  const troubles = new Troubles();
  const leaked = await endLeaks(parts, { seen, known, troubles, nowMs });
  let looked: Looked = { repaired: [], stuck: [] };
  try {
    looked = await lookAfterKnown(parts, { seen, known, troubles, nowMs });
  } catch (error) {
    // What was found before is told all the same.
    troubles.blame(error);
  }
  const news = await inbox.news();
  for (const { instance, upTo } of news) {
    if (known.has(instance)) continue;
    const [record] = await inbox.records([instanceId(instance)]);
    if (record?.isEnded === true) await inbox.applied(record, upTo);
  }
  const isWork = active.jobs.length > 0 || active.instances.length > 0 || news.some((n) => known.has(n.instance));
  return { leaked, ...looked, failed: troubles.said, isWork, defect: troubles.defect };
}

interface Sight {
  readonly seen: readonly Seen[];
  /** Instances that the store has open. */
  readonly known: ReadonlySet<string>;
  readonly troubles: Troubles;
  readonly nowMs: number;
}

/** What befell single instances: none of it keeps the rest from being looked after. */
class Troubles {
  readonly said: string[] = [];
  defect: Error | null = null;

  /** Whether `work` was done. */
  async attempt(who: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      this.said.push(`${who}: ${messageOf(error)}`);
      if (!(error instanceof EbbError) || error.code === 'internal') this.blame(error);
      return false;
    }
  }

  blame(error: unknown): void {
    this.defect ??= error instanceof Error ? error : new Error(String(error));
  }
}

/**
 * Ends each instance with the stack's tag that is not, by its EC2 id, the one of an open record of an instance that the
 * store knows. Tags alone prove nothing: a launch by hand from the template bears the stack's, a copy of an instance
 * bears all.
 */
async function endLeaks(parts: SweepParts, { seen, known, troubles, nowMs }: Sight): Promise<readonly Leak[]> {
  const { inbox, ec2, hosts } = parts;
  const left = seen.filter(isLeft);
  const owned = await hosts.owned(left);
  const names = [...new Set([...owned.values()].map((s) => instanceId(s.instance)))];
  const records = new Map((await inbox.records(names)).map((r) => [r.instance as string, r]));
  const leaked: Leak[] = [];
  // Of several with the tags of one that has no record the first was launched for it.
  for (const each of left.toSorted((a, b) => a.launchedMs - b.launchedMs)) {
    await troubles.attempt(`${each.ec2} (${each.instance ?? 'no tag of an instance'})`, async () => {
      const shown = owned.get(each.ec2);
      const own = shown === undefined ? null : (records.get(shown.instance) ?? (await hosts.adopt(shown)));
      if (own !== null) records.set(own.instance, own);
      const isOwn = own !== null && own.ec2 === each.ec2;
      const isKnown = isOwn && known.has(own.instance) && !isLongGone(own, nowMs);
      if (isKnown || nowMs - each.launchedMs < UNKNOWN_FROM_S * 1000) return;
      leaked.push({ ec2: each.ec2, instance: own?.instance ?? null });
      await ec2.end(each.ec2);
      if (isOwn) {
        await hosts.take(own.instance, [
          { is: 'release', atMs: nowMs },
          { is: 'end-asked', atMs: nowMs },
        ]);
      }
    });
  }
  return leaked;
}

/** EC2 may still show as running what it has ended. */
const isLongGone = ({ gone }: InstanceRecord, nowMs: number): boolean =>
  gone !== null && nowMs - gone.atMs >= UNKNOWN_FROM_S * 1000;

type Looked = Pick<Swept, 'repaired' | 'stuck'>;

/** Asks EC2 and ECS about the instances that live by their records; those of which something was learned. */
async function lookAfterKnown(parts: SweepParts, { seen, known, troubles, nowMs }: Sight): Promise<Looked> {
  const { inbox, ecs, watch } = parts;
  const byEc2 = new Map(seen.map((s) => [s.ec2, s]));
  const open = (await inbox.records([...known].map(instanceId))).filter((r) => !r.isEnded && r.refused === null);
  const coming = open.flatMap((r) => (r.readyMs === null && r.ec2 !== null ? [r.ec2] : []));
  const registered = new Map((await ecs.hosts(coming)).map((h) => [h.ec2, h]));
  // Of all instances together: ECS shows a hundred tasks at once, and lets an account ask some twenty times a second.
  const tasks = new Map((await ecs.describe(open.flatMap(tasksOn))).map((t) => [t.taskArn ?? '', t]));
  const repaired: InstanceId[] = [];
  const ended: InstanceId[] = [];
  const stuck: Stuck[] = [];
  for (const record of open) {
    const shown = byEc2.get(record.ec2 ?? '');
    // EC2 may not show what it has just made.
    const isNew = shown === undefined && nowMs - (record.launchedMs ?? nowMs) < UNKNOWN_FROM_S * 1000;
    if (isNew) continue;
    const host = registered.get(record.ec2 ?? '');
    const isDone = await troubles.attempt(record.instance, async () => {
      if (await watch.lookAfter(record, { shown, host, tasks }, nowMs)) repaired.push(record.instance);
      if (host === undefined && (await neverCameUp(record, parts, nowMs))) ended.push(record.instance);
    });
    const now = isDone && record.endRefused === null ? null : await inbox.record(record.instance);
    const { endRefused = null, ec2 = null } = now ?? {};
    if (endRefused !== null && ec2 !== null && endRefused.tries >= END_TRIES) {
      stuck.push({ ...endRefused, ec2, instance: record.instance });
    }
  }
  return { repaired: [...repaired, ...ended], stuck };
}

/**
 * An instance that runs and never registers with ECS costs money and takes no task: it is ended, and another is bought.
 */
async function neverCameUp(
  record: InstanceRecord,
  { hosts, startPatienceS }: SweepParts,
  nowMs: number,
): Promise<boolean> {
  const { readyMs, launchedMs, isReleased } = record;
  if (readyMs !== null || launchedMs === null || isReleased) return false;
  if (nowMs - launchedMs < startPatienceS * 1000) return false;
  await hosts.take(record.instance, [{ is: 'release', atMs: nowMs }]);
  return true;
}
