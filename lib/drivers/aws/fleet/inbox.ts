/**
 * Records of instances in the table, and the list of those with observations to report.
 *
 *   I#<instance>    FLEET            the record (instance-record.ts), compressed; `n` counts its versions
 *   E#<EC2 id>      FLEET            our id of the instance
 *   L#<group>       FLEET            launches of one purchase request, and EC2 ids of their instances
 *   A#<mark>        ORDER            attempt, instance, and the order to run; written before its task is started.
 *                                    `mark` is the attempt's name outside (request-names.ts)
 *   NEWS            I#<instance>     observations up to `upTo` may still have to be applied
 *
 * Writers are the Lambdas that act, observe and sweep, at the same time. A record changes by a write on the condition
 * of its version. The loser receives the newer record and folds its facts into that. The version is kept beside a
 * record that was read, so a change needs no second read.
 * NEWS is written before the record. A superfluous entry costs one read; a missing one would hide an observation.
 * Entries are removed only up to the number that was applied.
 */
import type { AttemptId, EffectKey, InstanceId, PoolId } from '../../../kernel/ids.ts';
import { attemptId, instanceId } from '../../../kernel/ids.ts';
import { EbbError } from '../../../kernel/errors.ts';
import type { Observation } from '../../../domain/observation.ts';
import type { StartRequest } from '../../../ports/fleet.ts';
import { body, bodyOf, flag, flagOf, number, numberOf, text, textAt, type Item } from '../store/codec.ts';
import { ec2Key, fleetKey, launchKey, markKey, NEWS, newsKey, textOf } from '../store/keys.ts';
import type { Table } from '../store/dynamo-table.ts';
import { trimmed, type InstanceRecord } from './instance-record.ts';
import { markOf } from './request-names.ts';

/** Rounds of conflicting writes. A record has few writers: one instance's events and one cycle. */
const MAX_ROUNDS = 20;
/** Number of observations from which applied ones are dropped from a record. */
const TRIM_FROM = 48;
/** Days that records and orders are kept. Bills and logs need them; instances and tasks live up to a year. */
const KEEP_DAYS = 455;

interface Stored {
  readonly record: InstanceRecord;
  readonly version: number;
}

/** Outcome of writing a record. Not done: another writer was first. */
type Put = { readonly isDone: true } | { readonly isDone: false; readonly newer: Stored | null };

/** Instance with observations. The flag says whether a reader with its cursor was offered its end before. */
export interface News {
  readonly instance: InstanceId;
  readonly upTo: number;
  readonly isEndOffered: boolean;
}

/**
 * Launches of one CreateFleet request (launch-groups.ts). Written before the request. So a repeated request is the
 * same, whichever launches are still open and whatever was deployed since.
 */
export interface LaunchOrder {
  readonly members: readonly { readonly instance: InstanceId; readonly key: EffectKey }[];
  readonly pool: PoolId;
  readonly bid: number | 'uncapped';
  /** Version of the launch template. */
  readonly template: string;
  /** EC2 ids: the nth is the instance of the nth member. Members beyond its length have none yet. */
  readonly ec2: readonly string[];
}

/** Owner of the mark on a task or checkpoint. */
export interface Marked {
  readonly attempt: AttemptId;
  readonly instance: InstanceId;
}

export class Inbox {
  readonly #table: Table;
  readonly #nowMs: () => number;
  readonly #listeners = new Set<(news: readonly Observation[]) => void>();
  /** Versions of records that were read or written here. */
  readonly #versions = new WeakMap<InstanceRecord, number>();

  /** `nowMs`: wall time, for the expiry of items. */
  constructor(table: Table, nowMs: () => number) {
    this.#table = table;
    this.#nowMs = nowMs;
  }

  /** Calls `listener` with observations that this process adds. Returns how to stop. */
  onNews(listener: (news: readonly Observation[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async record(instance: InstanceId): Promise<InstanceRecord | null> {
    return (await this.#read(instance))?.record ?? null;
  }

  async records(instances: readonly InstanceId[]): Promise<readonly InstanceRecord[]> {
    const items = await this.#table.getMany(instances.map(fleetKey));
    return [...items.values()].map((item) => this.#stored(item).record);
  }

  /** Creates a record with `change` applied, unless it exists. Answers with the stored record. */
  async create(record: InstanceRecord, change: (r: InstanceRecord) => InstanceRecord): Promise<InstanceRecord> {
    if (record.ec2 !== null) {
      await this.#table.write({ key: ec2Key(record.ec2), set: { instance: text(record.instance), ...this.#expiry() } });
    }
    const made = change(record);
    const written = await this.#put(made, null);
    if (written.isDone) return made;
    const known = await this.update(record.instance, change, written.newer?.record);
    if (known !== null) return known;
    throw new EbbError('internal', {
      what: 'the record of an instance exists, but cannot be read',
      got: record.instance,
    });
  }

  /**
   * Changes a record; null if it does not exist. A change that returns the same object is not written. `known`: the
   * record as this process last read or wrote it, which saves a read.
   */
  async update(
    instance: InstanceId,
    change: (record: InstanceRecord) => InstanceRecord,
    known: InstanceRecord | null = null,
  ): Promise<InstanceRecord | null> {
    const version = known === null ? undefined : this.#versions.get(known);
    let stored = known === null || version === undefined ? await this.#read(instance) : { record: known, version };
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (stored === null) return null;
      const changed = change(stored.record);
      if (changed === stored.record) return changed;
      const written = await this.#put(changed, stored);
      if (written.isDone) return changed;
      stored = written.newer;
    }
    throw new EbbError('too-many-requests', {
      what: 'too many processes change the record of an instance',
      got: instance,
    });
  }

  async #read(instance: InstanceId): Promise<Stored | null> {
    const item = await this.#table.get(fleetKey(instance));
    return item === undefined ? null : this.#stored(item);
  }

  #stored(item: Item): Stored {
    const stored = { record: bodyOf<InstanceRecord>(item), version: numberOf(item, 'n') };
    this.#versions.set(stored.record, stored.version);
    return stored;
  }

  async #put(record: InstanceRecord, before: Stored | null): Promise<Put> {
    const hasNews = record.sequence > (before?.record.sequence ?? 0);
    if (hasNews) await this.#table.write({ key: newsKey(record.instance), set: { upTo: number(record.sequence) } });
    const version = (before?.version ?? 0) + 1;
    const { status, item } = await this.#table.write({
      key: fleetKey(record.instance),
      set: { b: body(record), n: number(version), ...this.#expiry() },
      condition:
        before === null
          ? { expression: 'attribute_not_exists(pk)' }
          : { expression: 'n = :version', values: { ':version': number(before.version) } },
    });
    if (status === 'refused') {
      return { isDone: false, newer: Object.keys(item).length === 0 ? null : this.#stored(item) };
    }
    this.#versions.set(record, version);
    if (hasNews) {
      const news = record.observations.filter((o) => o.sequence > (before?.record.sequence ?? 0));
      for (const listener of this.#listeners) listener(news);
    }
    return { isDone: true };
  }

  #expiry() {
    return { ttl: number(Math.floor(this.#nowMs() / 1000) + KEEP_DAYS * 86_400) };
  }

  /** Our instances by EC2 id. Ids without a record are missing. */
  async instancesOf(ec2: readonly string[]): Promise<ReadonlyMap<string, InstanceId>> {
    const items = await this.#table.getMany(ec2.map(ec2Key));
    return new Map([...items.values()].map((i) => [textAt(i, 'pk').slice(2), instanceId(textAt(i, 'instance'))]));
  }

  /** Order of a group; null if none was written. */
  async launchOrder(group: string): Promise<LaunchOrder | null> {
    return (await this.#readOrder(group))?.order ?? null;
  }

  /** Orders by group. Groups without one are missing. */
  async launchOrders(groups: readonly string[]): Promise<ReadonlyMap<string, LaunchOrder>> {
    const items = await this.#table.getMany(groups.map(launchKey));
    return new Map(
      groups.flatMap((group) => {
        const item = items.get(textOf(launchKey(group)));
        return item === undefined ? [] : [[group, bodyOf<LaunchOrder>(item)] as const];
      }),
    );
  }

  /** Writes the order of a group unless it exists. Answers with the stored order. */
  async orderLaunch(group: string, order: LaunchOrder): Promise<LaunchOrder> {
    const written = await this.#putLaunchOrder(group, order, null);
    return written ?? (await this.launchOrder(group)) ?? this.#vanished(group);
  }

  /**
   * Assigns the next free place of the group to each new EC2 id; null if the group does not exist. The first writer
   * decides: answer and events name the same ids, in any order.
   */
  async assign(group: string, ec2: readonly string[]): Promise<LaunchOrder | null> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const stored = await this.#readOrder(group);
      if (stored === null) return null;
      const { order, version } = stored;
      const added = ec2.filter((id) => !order.ec2.includes(id));
      if (added.length === 0) return order;
      const written = await this.#putLaunchOrder(group, { ...order, ec2: [...order.ec2, ...added] }, version);
      if (written !== null) return written;
    }
    throw new EbbError('too-many-requests', {
      what: 'too many processes change an order of launches',
      got: group,
    });
  }

  async #readOrder(group: string): Promise<{ readonly order: LaunchOrder; readonly version: number } | null> {
    const item = await this.#table.get(launchKey(group));
    return item === undefined ? null : { order: bodyOf<LaunchOrder>(item), version: numberOf(item, 'n') };
  }

  /** Null: another writer was first. */
  async #putLaunchOrder(group: string, order: LaunchOrder, before: number | null): Promise<LaunchOrder | null> {
    const { status } = await this.#table.write({
      key: launchKey(group),
      set: { b: body(order), n: number((before ?? 0) + 1), ...this.#expiry() },
      condition:
        before === null
          ? { expression: 'attribute_not_exists(pk)' }
          : { expression: 'n = :version', values: { ':version': number(before) } },
    });
    return status === 'refused' ? null : order;
  }

  #vanished(group: string): never {
    throw new EbbError('internal', { what: 'the order of a group of launches exists, but cannot be read', got: group });
  }

  async putOrder(order: StartRequest): Promise<void> {
    const { attempt, instance } = order;
    await this.#table.write({
      key: markKey(markOf(attempt)),
      set: { attempt: text(attempt), instance: text(instance), b: body(order), ...this.#expiry() },
    });
  }

  /** Forbids an attempt that was stopped before its order: a later order finds it ordered already. */
  async forbid(instance: InstanceId, attempt: AttemptId): Promise<void> {
    await this.#table.write({
      key: markKey(markOf(attempt)),
      set: { attempt: text(attempt), instance: text(instance), never: flag(true), ...this.#expiry() },
    });
  }

  /** Attempts that were ordered on the instance, or forbidden there. */
  async ordered(instance: InstanceId, attempts: readonly AttemptId[]): Promise<ReadonlySet<AttemptId>> {
    const items = await this.#table.getMany(attempts.map((a) => markKey(markOf(a))));
    return new Set(attempts.filter((a) => textAt(items.get(textOf(markKey(markOf(a)))), 'instance') === instance));
  }

  /** Orders of attempts. Attempts without one, and forbidden ones, are missing. */
  async orders(attempts: readonly AttemptId[]): Promise<ReadonlyMap<AttemptId, StartRequest>> {
    const items = await this.#table.getMany(attempts.map((a) => markKey(markOf(a))));
    return new Map(
      attempts.flatMap((a) => {
        const item = items.get(textOf(markKey(markOf(a))));
        return item === undefined || flagOf(item, 'never') ? [] : [[a, bodyOf<StartRequest>(item)] as const];
      }),
    );
  }

  /** Owners of marks. Unknown marks are missing. */
  async marked(marks: readonly string[]): Promise<ReadonlyMap<string, Marked>> {
    // Eventual reads: marks never change, and exist long before events name them.
    const items = await this.#table.getMany(marks.map(markKey), 'eventual');
    const missing = marks.map(markKey).filter((key) => !items.has(textOf(key)));
    for (const [name, item] of await this.#table.getMany(missing)) items.set(name, item);
    return new Map(
      [...items.values()].map((item) => [
        textAt(item, 'pk').slice(2),
        { attempt: attemptId(textAt(item, 'attempt')), instance: instanceId(textAt(item, 'instance')) },
      ]),
    );
  }

  /**
   * ARN of an attempt's task, from its start until its observations are dropped. Null before and after; afterwards
   * `attempt-started` has stored it.
   */
  async taskOf(attempt: AttemptId): Promise<string | null> {
    const item = await this.#table.get(markKey(markOf(attempt)));
    if (item === undefined) return null;
    const record = await this.record(instanceId(textAt(item, 'instance')));
    const begun = record?.observations.find((o) => o.kind === 'attempt-started' && o.attempt === attempt);
    return record?.attempts[attempt]?.task ?? (begun?.kind === 'attempt-started' ? (begun.log ?? null) : null);
  }

  async news(): Promise<readonly News[]> {
    return (await this.#table.range({ pk: NEWS })).map((item) => ({
      instance: instanceId(textAt(item, 'sk').slice(2)),
      upTo: numberOf(item, 'upTo'),
      isEndOffered: flagOf(item, 'ended'),
    }));
  }

  /** Notes that a reader whose cursor names the instance was offered its end. */
  async endOffered(instance: InstanceId): Promise<void> {
    await this.#table.write({
      key: newsKey(instance),
      set: { ended: flag(true) },
      condition: { expression: 'attribute_exists(pk)' },
    });
  }

  /** Drops observations up to `applied`, which are applied for good. */
  async applied(record: InstanceRecord, applied: number): Promise<void> {
    await this.#table.write({
      key: newsKey(record.instance),
      isDeleted: true,
      condition: { expression: 'upTo <= :applied', values: { ':applied': number(applied) } },
    });
    if (record.observations.filter((o) => o.sequence <= applied).length < TRIM_FROM) return;
    await this.update(record.instance, (r) => trimmed(r, applied), record);
  }
}
