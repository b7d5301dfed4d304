/**
 * Where records of instances lie, and which of them have something to report. In the deployment's table:
 *
 *   I#<instance>    FLEET            the record (record.ts), compressed; `n` counts its versions
 *   I#<instance>    ORDER#<attempt>  what to run, as it was asked; there from before its task is asked for
 *   E#<EC2 id>      FLEET            which instance of ours it is
 *   A#<mark>        ORDER            which attempt, on which instance; `mark` is what a task is known by outside (marks.ts)
 *   NEWS            I#<instance>     there may be observations up to `upTo` that nobody has applied
 *
 * Writers are the Lambdas that act, observe and sweep, at once. A record changes by a conditional write on its version, and
 * who loses folds its facts into the newer one. NEWS is written before the record: an entry too many is looked up in vain,
 * one too few would leave an observation unseen. It is taken away only up to the number that was applied.
 */
import type { AttemptId, InstanceId } from '../../kernel/ids.ts';
import { attemptId, instanceId } from '../../kernel/ids.ts';
import { EbbError } from '../../kernel/errors.ts';
import type { StartRequest } from '../../ports/fleet.ts';
import { body, bodyOf, flag, flagOf, number, numberOf, text, textAt } from '../store/codec.ts';
import type { Key } from '../store/keys.ts';
import type { Table } from '../store/table.ts';
import { launchedRecord, trimmed, type InstanceRecord } from './record.ts';
import { markOf } from './marks.ts';

const NEWS = 'NEWS';
const recordKey = (instance: string): Key => ({ pk: `I#${instance}`, sk: 'FLEET' });
const orderKey = (instance: string, attempt: string): Key => ({ pk: `I#${instance}`, sk: `ORDER#${attempt}` });
const ec2Key = (ec2: string): Key => ({ pk: `E#${ec2}`, sk: 'FLEET' });
const markKey = (mark: string): Key => ({ pk: `A#${mark}`, sk: 'ORDER' });
const newsKey = (instance: string): Key => ({ pk: NEWS, sk: `I#${instance}` });

/** A record meets few writers: those of one instance's events and of one cycle. */
const MAX_ROUNDS = 20;
/** Applied observations are dropped from a record once there are so many of them. */
const TRIM_FROM = 48;
/** Records and orders are of no use once the instance is long over, days; bills and logs are asked for until then. */
const KEEP_DAYS = 90;

interface Stored {
  readonly record: InstanceRecord;
  readonly version: number;
}

/** An instance that has something to report, and whether somebody who knew of it was told of its end before. */
export interface News {
  readonly instance: InstanceId;
  readonly upTo: number;
  readonly isEndOffered: boolean;
}

export class Inbox {
  readonly #table: Table;
  readonly #nowMs: () => number;
  readonly #listeners = new Set<() => void>();

  /** `nowMs`: wall time, for the expiry of items. */
  constructor(table: Table, nowMs: () => number) {
    this.#table = table;
    this.#nowMs = nowMs;
  }

  /** Called when this process has put something in. Returns how to stop. */
  onNews(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async record(instance: InstanceId): Promise<InstanceRecord | null> {
    return (await this.#stored(instance))?.record ?? null;
  }

  async records(instances: readonly InstanceId[]): Promise<readonly InstanceRecord[]> {
    const items = await this.#table.getMany(instances.map(recordKey));
    return [...items.values()].map((item) => recordOf(bodyOf<Plain>(item)));
  }

  /** Makes a record, with `change` applied to it, unless it is there; the one that is there then. */
  async create(record: InstanceRecord, change: (r: InstanceRecord) => InstanceRecord): Promise<InstanceRecord> {
    if (record.ec2 !== null) {
      await this.#table.write({ key: ec2Key(record.ec2), set: { instance: text(record.instance), ...this.#expiry() } });
    }
    const made = change(record);
    if (await this.#put(made, null)) return made;
    const known = await this.update(record.instance, change);
    if (known !== null) return known;
    throw new EbbError('internal', { what: 'the record of an instance is there and is not', got: record.instance });
  }

  /** Changes a record; null where there is none. A change that gives the same object back is not written. */
  async update(
    instance: InstanceId,
    change: (record: InstanceRecord) => InstanceRecord,
  ): Promise<InstanceRecord | null> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const stored = await this.#stored(instance);
      if (stored === null) return null;
      const changed = change(stored.record);
      if (changed === stored.record || (await this.#put(changed, stored))) return changed;
    }
    throw new EbbError('too-many-requests', {
      what: 'the record of an instance is changed by too many at once',
      got: instance,
    });
  }

  async #stored(instance: InstanceId): Promise<Stored | null> {
    const item = await this.#table.get(recordKey(instance));
    return item === undefined ? null : { record: recordOf(bodyOf<Plain>(item)), version: numberOf(item, 'n') };
  }

  async #put(record: InstanceRecord, before: Stored | null): Promise<boolean> {
    const hasNews = record.sequence > (before?.record.sequence ?? 0);
    if (hasNews) await this.#table.write({ key: newsKey(record.instance), set: { upTo: number(record.sequence) } });
    const { status } = await this.#table.write({
      key: recordKey(record.instance),
      set: { b: body(record), n: number((before?.version ?? 0) + 1), ...this.#expiry() },
      condition:
        before === null
          ? { expression: 'attribute_not_exists(pk)' }
          : { expression: 'n = :version', values: { ':version': number(before.version) } },
    });
    if (status === 'done' && hasNews) for (const listener of this.#listeners) listener();
    return status === 'done';
  }

  #expiry() {
    return { ttl: number(Math.floor(this.#nowMs() / 1000) + KEEP_DAYS * 86_400) };
  }

  /** Our instance of an EC2 id; null for one that no record was made for. */
  async instanceOf(ec2: string): Promise<InstanceId | null> {
    const found = textAt(await this.#table.get(ec2Key(ec2)), 'instance');
    return found === '' ? null : instanceId(found);
  }

  async putOrder(order: StartRequest): Promise<void> {
    const { attempt, instance } = order;
    await this.#table.transact([
      { key: orderKey(instance, attempt), set: { b: body(order), ...this.#expiry() } },
      {
        key: markKey(markOf(attempt)),
        set: { attempt: text(attempt), instance: text(instance), ...this.#expiry() },
      },
    ]);
  }

  /** An attempt that was stopped before it was ordered: a later order finds it ordered already. */
  async forbid(instance: InstanceId, attempt: AttemptId): Promise<void> {
    await this.#table.write({ key: orderKey(instance, attempt), set: { never: flag(true), ...this.#expiry() } });
  }

  async isOrdered(instance: InstanceId, attempt: AttemptId): Promise<boolean> {
    return (await this.#table.get(orderKey(instance, attempt))) !== undefined;
  }

  /** What an attempt is to run; null when it was never ordered, or is never to run. */
  async order(instance: InstanceId, attempt: AttemptId): Promise<StartRequest | null> {
    const item = await this.#table.get(orderKey(instance, attempt));
    return item === undefined || flagOf(item, 'never') ? null : bodyOf<StartRequest>(item);
  }

  /** Whose mark it is; null for one that was never given. */
  async marked(mark: string): Promise<{ readonly attempt: AttemptId; readonly instance: InstanceId } | null> {
    const item = await this.#table.get(markKey(mark));
    if (item === undefined) return null;
    return { attempt: attemptId(textAt(item, 'attempt')), instance: instanceId(textAt(item, 'instance')) };
  }

  async setTask(attempt: AttemptId, task: string): Promise<void> {
    await this.#table.write({ key: markKey(markOf(attempt)), set: { task: text(task) } });
  }

  /** ARN of an attempt's task; null before there is one. */
  async taskOf(attempt: AttemptId): Promise<string | null> {
    const task = textAt(await this.#table.get(markKey(markOf(attempt))), 'task');
    return task === '' ? null : task;
  }

  async news(): Promise<readonly News[]> {
    return (await this.#table.range({ pk: NEWS })).map((item) => ({
      instance: instanceId(textAt(item, 'sk').slice(2)),
      upTo: numberOf(item, 'upTo'),
      isEndOffered: flagOf(item, 'ended'),
    }));
  }

  /** Somebody whose cursor names the instance is told of its end. */
  async endOffered(instance: InstanceId): Promise<void> {
    await this.#table.write({
      key: newsKey(instance),
      set: { ended: flag(true) },
      condition: { expression: 'attribute_exists(pk)' },
    });
  }

  /** Observations up to `applied` are applied for good. */
  async applied(record: InstanceRecord, applied: number): Promise<void> {
    await this.#table.write({
      key: newsKey(record.instance),
      isDeleted: true,
      condition: { expression: 'upTo <= :applied', values: { ':applied': number(applied) } },
    });
    if (record.observations.filter((o) => o.sequence <= applied).length < TRIM_FROM) return;
    await this.update(record.instance, (r) => trimmed(r, applied));
  }
}

type Plain = Parameters<typeof launchedRecord>[0] & Partial<InstanceRecord>;
/** Fields that an item of an earlier version lacks have the value that they begin with. */
const recordOf = (stored: Plain): InstanceRecord => ({ ...launchedRecord(stored), ...stored });
