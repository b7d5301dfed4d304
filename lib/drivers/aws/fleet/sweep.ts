/**
 * Comparison of EC2 and ECS with our records. It covers lost events, and processes that died between a call and its
 * note. O(live instances), every few minutes.
 *
 * - An instance of ours without a record is adopted. If the store does not know it either, it is ended, because nobody
 *   will use it. The same holds if its record names another EC2 id. A launch may be between the two for a moment, so
 *   instances count as unknown only from some age.
 * - For each live record, ECS is asked about its tasks and EC2 about itself, and open duties are performed. A stopped
 *   instance has ended, and is ended in EC2 too. An instance that EC2 refuses to end is tried each time and reported.
 * - Observations of instances that the store has closed are dropped.
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
  /** Time of the tick. This process's clock may differ from those of EC2 and ECS, so new things would look old. */
  readonly now: EpochMs;
  /** Multiple of the expected time from launch to first task. An instance that is not up by then never will be. */
  readonly startPatienceS: number;
}

export interface Leak {
  readonly ec2: string;
  /** Instance id in its tags, which may be a copy. */
  readonly instance: InstanceId | null;
}

/** Instance that EC2 has refused to end several times. */
export interface Stuck extends EndRefused {
  readonly ec2: string;
  readonly instance: InstanceId;
}

export interface Swept {
  /** Unknown instances, ended or about to be; see `failed`. */
  readonly leaked: readonly Leak[];
  /** Instances about which something was learned that no event had told. */
  readonly repaired: readonly InstanceId[];
  readonly stuck: readonly Stuck[];
  /** Work that failed for now, by instance. Work on other instances went on. */
  readonly failed: readonly string[];
  /** True if there is work or something to observe: a cycle is needed. */
  readonly isWork: boolean;
  /** First defect, or fault that stopped the sweep. The caller throws it after reporting the rest. */
  readonly defect: Error | null;
}

/** Age from which an instance without a record is unknown, s. No Lambda takes longer from the intent to its launch. */
const UNKNOWN_FROM_S = 300;
/** Stopped instances count as well: their volumes cost money, and they can start again. */
const isLeft = ({ state }: Seen): boolean => state !== 'shutting-down' && state !== 'terminated';

/** Throws when EC2, ECS or the table cannot be read. */
export async function sweep(parts: SweepParts): Promise<Swept> {
  const { inbox, ec2, store } = parts;
  const nowMs = raw(parts.now);
  // EC2 before the store: a launch in between is then not missing in the store.
  const seen = await ec2.all();
  const active = await store.loadActive();
  const known = new Set<string>(active.instances.map((i) => i.id));
  const troubles = new Troubles();
  const leaked = await endLeaks(parts, { seen, known, troubles, nowMs });
  let repairs: Repairs = { repaired: [], stuck: [] };
  try {
    repairs = await repairKnown(parts, { seen, known, troubles, nowMs });
  } catch (error) {
    // Findings so far are still reported.
    troubles.blame(error);
  }
  const news = await inbox.news();
  for (const { instance, upTo } of news) {
    if (known.has(instance)) continue;
    const [record] = await inbox.records([instanceId(instance)]);
    if (record?.isEnded === true) await inbox.applied(record, upTo);
  }
  const isWork = active.jobs.length > 0 || active.instances.length > 0 || news.some((n) => known.has(n.instance));
  return { leaked, ...repairs, failed: troubles.said, isWork, defect: troubles.defect };
}

interface Compared {
  readonly seen: readonly Seen[];
  /** Instances that are open in the store. */
  readonly known: ReadonlySet<string>;
  readonly troubles: Troubles;
  readonly nowMs: number;
}

/** Failures by instance; others are still repaired. */
class Troubles {
  readonly said: string[] = [];
  defect: Error | null = null;

  /** True if `work` succeeded. */
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
 * Ends each instance with the stack's tag whose EC2 id is not in the open record of a known instance. Tags alone prove
 * nothing: a manual launch from the template has the stack's tag, and a copied instance has all of them.
 */
async function endLeaks(parts: SweepParts, { seen, known, troubles, nowMs }: Compared): Promise<readonly Leak[]> {
  const { inbox, ec2, hosts } = parts;
  const left = seen.filter(isLeft);
  const owned = await hosts.owned(left);
  const names = [...new Set([...owned.values()].map((s) => instanceId(s.instance)))];
  const records = new Map((await inbox.records(names)).map((r) => [r.instance as string, r]));
  const leaked: Leak[] = [];
  // Oldest first: of several with the tags of an instance without record, the first was launched for it.
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

/** True if EC2 still shows an instance that ended long ago. */
const isLongGone = ({ gone }: InstanceRecord, nowMs: number): boolean =>
  gone !== null && nowMs - gone.atMs >= UNKNOWN_FROM_S * 1000;

type Repairs = Pick<Swept, 'repaired' | 'stuck'>;

/** Asks EC2 and ECS about live instances. Answers with those about which something was learned. */
async function repairKnown(parts: SweepParts, { seen, known, troubles, nowMs }: Compared): Promise<Repairs> {
  const { inbox, ecs, watch } = parts;
  const byEc2 = new Map(seen.map((s) => [s.ec2, s]));
  const open = (await inbox.records([...known].map(instanceId))).filter((r) => !r.isEnded && r.refused === null);
  const coming = open.flatMap((r) => (r.readyMs === null && r.ec2 !== null ? [r.ec2] : []));
  const registered = new Map((await ecs.hosts(coming)).map((h) => [h.ec2, h]));
  // One request for all instances: ECS shows a hundred tasks at once, and limits an account to some twenty requests per
  // second.
  const tasks = new Map((await ecs.describe(open.flatMap(tasksOn))).map((t) => [t.taskArn ?? '', t]));
  const repaired: InstanceId[] = [];
  const ended: InstanceId[] = [];
  const stuck: Stuck[] = [];
  for (const record of open) {
    const shown = byEc2.get(record.ec2 ?? '');
    // New instances may still be missing in EC2's answer.
    const isNew = shown === undefined && nowMs - (record.launchedMs ?? nowMs) < UNKNOWN_FROM_S * 1000;
    if (isNew) continue;
    const host = registered.get(record.ec2 ?? '');
    const isDone = await troubles.attempt(record.instance, async () => {
      if (await watch.repair(record, { shown, host, tasks }, nowMs)) repaired.push(record.instance);
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

/** Releases an instance that runs and never registers with ECS. It costs money and takes no task; another is bought. */
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
