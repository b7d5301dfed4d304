/**
 * Compares what EC2 and ECS have with what is recorded, for events that never came and processes that died between a call
 * and its note. O(live instances), every few minutes, besides the events that do the work.
 *
 * - EC2 has an instance of ours without a record: it is adopted. One that the store knows nothing of either is ended: nobody
 *   will ever use it. A launch may be between the two for a moment, so only an instance of some age is unknown.
 * - A record says that an instance lives: ECS is asked about its tasks, EC2 about itself, and what is left to do is done.
 * - News of instances that the store has closed are taken away.
 */
import { EbbError } from '../../kernel/errors.ts';
import { instanceId, type InstanceId } from '../../kernel/ids.ts';
import { raw } from '../../kernel/units.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Store } from '../../ports/store.ts';
import type { Ec2, Seen } from './ec2.ts';
import type { Ecs } from './ecs.ts';
import type { Hosts } from './hosts.ts';
import type { Inbox } from './inbox.ts';
import type { Watch } from './watch.ts';

export interface SweepParts {
  readonly inbox: Inbox;
  readonly ec2: Ec2;
  readonly ecs: Ecs;
  readonly hosts: Hosts;
  readonly watch: Watch;
  readonly store: Pick<Store, 'loadActive'>;
  readonly clock: Clock;
  /** The expected time from launch to first task times a few: an instance that is not up by then never will be. */
  readonly startPatienceS: number;
}

export interface Swept {
  /** Ended because nobody knew of them. */
  readonly leaked: readonly InstanceId[];
  /** Of which something was learned that no event had told. */
  readonly repaired: readonly InstanceId[];
  /** What could not be done now, by instance; the others were looked after all the same. */
  readonly failed: readonly string[];
  /** There is work, or something to observe: a cycle must look. */
  readonly isWork: boolean;
}

/** An intent is recorded before its launch; longer than this no Lambda takes from the one to the other, s. */
const UNKNOWN_FROM_S = 300;
const isAlive = ({ state }: Seen): boolean => state === 'pending' || state === 'running';

export async function sweep(parts: SweepParts): Promise<Swept> {
  const { inbox, ec2, hosts, watch, store, clock } = parts;
  const nowMs = raw(clock.now());
  // EC2 first: what is launched after this look is not missed in it.
  const seen = new Map((await ec2.all()).map((s) => [s.instance, s]));
  const active = await store.loadActive();
  const known = new Set<string>(active.instances.map((i) => i.id));
  const leaked: InstanceId[] = [];
  const alive = [...seen.values()].filter(isAlive);
  const records = new Map((await inbox.records(alive.map((s) => instanceId(s.instance)))).map((r) => [r.instance, r]));
  for (const each of alive) {
    const record = records.get(instanceId(each.instance)) ?? (await hosts.adopt(each));
    if (known.has(each.instance) || nowMs - each.launchedMs < UNKNOWN_FROM_S * 1000) continue;
    await hosts.take(record.instance, [{ is: 'release', atMs: nowMs }]);
    leaked.push(record.instance);
  }
  const repaired: InstanceId[] = [];
  const ended: InstanceId[] = [];
  const failed: string[] = [];
  const open = (await inbox.records(active.instances.map((i) => i.id))).filter((r) => !r.isEnded && r.refused === null);
  const coming = open.flatMap((r) => (r.readyMs === null && r.ec2 !== null ? [r.ec2] : []));
  const registered = new Map((await parts.ecs.hosts(coming)).map((h) => [h.ec2, h]));
  for (const record of open) {
    const shown = seen.get(record.instance);
    // EC2 may not show what it has just made.
    const isNew = shown === undefined && nowMs - (record.launchedMs ?? nowMs) < UNKNOWN_FROM_S * 1000;
    if (isNew) continue;
    const host = registered.get(record.ec2 ?? '');
    try {
      if (await watch.lookAfter(record, { shown, host }, nowMs)) repaired.push(record.instance);
      if (host === undefined && (await neverCameUp(record, parts, nowMs))) ended.push(record.instance);
    } catch (error) {
      // One that cannot be helped now must not keep the rest from it.
      if (!(error instanceof EbbError) || error.code === 'internal') throw error;
      failed.push(`${record.instance}: ${error.message}`);
    }
  }
  const news = await inbox.news();
  for (const { instance, upTo } of news) {
    if (known.has(instance)) continue;
    const [record] = await inbox.records([instanceId(instance)]);
    if (record?.isEnded === true) await inbox.applied(record, upTo);
  }
  const isWork = active.jobs.length > 0 || active.instances.length > 0 || news.some((n) => known.has(n.instance));
  return { leaked, repaired: [...repaired, ...ended], failed, isWork };
}

/** An instance that runs and never registers with ECS costs money and takes no task: it is ended, and another is bought. */
async function neverCameUp(
  record: {
    readonly instance: InstanceId;
    readonly readyMs: number | null;
    readonly launchedMs: number | null;
    readonly isReleased: boolean;
  },
  { hosts, startPatienceS }: SweepParts,
  nowMs: number,
): Promise<boolean> {
  const { readyMs, launchedMs, isReleased } = record;
  if (readyMs !== null || launchedMs === null || isReleased) return false;
  if (nowMs - launchedMs < startPatienceS * 1000) return false;
  await hosts.take(record.instance, [{ is: 'release', atMs: nowMs }]);
  return true;
}
