import { setTimeout as sleep } from 'node:timers/promises';
import {
  BatchGetItemCommand,
  ConditionalCheckFailedException,
  DeleteItemCommand,
  type DynamoDBClient,
  QueryCommand,
  TransactionCanceledException,
  TransactionConflictException,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type AttributeValue,
  type CancellationReason,
  type ConsumedCapacity,
  type QueryCommandInput,
  type TransactWriteItem,
} from '@aws-sdk/client-dynamodb';
import { classify, faultOf } from '../errors.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { number, numberOf, textAt, type Item } from './codec.ts';
import { LISTED, LOG, textOf, type Key, type List } from './keys.ts';
import { SCHEMA_VERSION } from './upgrades.ts';

/** Limit of the service ("Service, account, and table quotas in Amazon DynamoDB"). */
const MAX_BATCH_READS = 100;
/** Parallel reads of one call. */
const READS_AT_ONCE = 8;
/** Tries after conflicts and throttling, with jittered pauses up to the longest. */
const MAX_CONFLICTS = 40;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 320;
/** Time that is left for the call itself and its error. */
const TO_ANSWER_MS = 1_000;

/** Condition on the item before the write. */
export interface Condition {
  /** Expression with `#name` and `:name` for `names` and `values`. */
  readonly expression: string;
  /** Values of `#name`, for reserved words of the service. */
  readonly names?: Readonly<Record<string, string>>;
  readonly values?: Readonly<Record<string, AttributeValue>>;
}

/** One write of a transaction. `set` replaces attributes, `once` sets missing ones, others stay. */
export interface Write {
  readonly key: Key;
  readonly set?: Readonly<Record<string, AttributeValue>>;
  readonly once?: Readonly<Record<string, AttributeValue>>;
  readonly remove?: readonly string[];
  readonly isDeleted?: boolean;
  /** True: checks the condition only. */
  readonly isCheck?: boolean;
  readonly condition?: Condition;
}

export type TransactOutcome =
  | { readonly status: 'done' }
  /** Nothing was written. Per write: the item whose condition failed, or null. */
  | { readonly status: 'refused'; readonly failed: readonly (Item | null)[] };

/** Outcome of a single write: the item afterwards, or the item whose condition failed. */
export interface WriteOutcome {
  readonly status: 'done' | 'refused';
  readonly item: Item;
}

/** Counter of consumed capacity, for the cost model and tests. */
export type Meter = (use: { readonly operation: string; readonly units: number; readonly items: number }) => void;

export interface TableOptions {
  /** Client with the SDK's retries; `maxAttempts` of 5 or more is advised. */
  readonly client: DynamoDBClient;
  readonly name: string;
  readonly meter?: Meter;
  /** Remaining time of this process, ms. No repetition that would end later. Default: without end. */
  readonly remainingMs?: () => number;
  /** Wall time. Items that have expired by then are skipped. Default: none are. */
  readonly nowMs?: () => number;
}

/** Range of one partition. */
export interface Range {
  readonly pk: string;
  readonly prefix?: string;
  /** First sort key (inclusive). */
  readonly from?: string;
  /** Last sort key (inclusive). */
  readonly to?: string;
  readonly descending?: boolean;
  readonly limit?: number;
}

/**
 * The table, with reads that see every earlier write, and transactions. It knows nothing of what items mean, except
 * `ttl`: an expired item is gone, although the service deletes it days later. Every fault leaves as an EbbError
 * (lib/drivers/aws/errors.ts).
 */
export class Table {
  readonly #client: DynamoDBClient;
  readonly #name: string;
  readonly #meter: Meter | undefined;
  readonly #remainingMs: () => number;
  readonly #nowMs: () => number;

  constructor({ client, name, meter, remainingMs = () => Infinity, nowMs = () => -Infinity }: TableOptions) {
    this.#client = client;
    this.#name = name;
    this.#meter = meter;
    this.#remainingMs = remainingMs;
    this.#nowMs = nowMs;
  }

  async get(key: Key): Promise<Item | undefined> {
    return (await this.getMany([key])).get(textOf(key));
  }

  /**
   * Existing items, by `textOf` of their key. `eventual`: half the price, but writes of the last second or so may be
   * missing.
   */
  async getMany(keys: readonly Key[], reads: 'consistent' | 'eventual' = 'consistent'): Promise<Map<string, Item>> {
    const unique = [...new Map(keys.map((k) => [textOf(k), k])).values()];
    const found = new Map<string, Item>();
    const batches: Key[][] = [];
    for (let i = 0; i < unique.length; i += MAX_BATCH_READS) batches.push(unique.slice(i, i + MAX_BATCH_READS));
    await inParallel(batches, READS_AT_ONCE, async (batch) => {
      let left: Record<string, AttributeValue>[] = batch.map(keyItem);
      for (let round = 0; left.length > 0; round++) {
        const answer = await this.#call('BatchGetItem', () =>
          this.#client.send(
            new BatchGetItemCommand({
              RequestItems: { [this.#name]: { Keys: left, ConsistentRead: reads === 'consistent' } },
              ...this.#measured(),
            }),
          ),
        );
        const items = answer.Responses?.[this.#name] ?? [];
        this.#count('BatchGetItem', answer.ConsumedCapacity, items.length);
        for (const item of items)
          if (!this.isExpired(item)) found.set(textOf({ pk: textAt(item, 'pk'), sk: textAt(item, 'sk') }), item);
        left = answer.UnprocessedKeys?.[this.#name]?.Keys ?? [];
        if (left.length > 0 && !(await this.#pause(round))) throw tooMuchAtOnce();
      }
    });
    return found;
  }

  /** All items of the range, by sort key. */
  async range(range: Range): Promise<Item[]> {
    const { pk, prefix, from, to, descending, limit } = range;
    const conditions = ['pk = :pk'];
    const values: Record<string, AttributeValue> = { ':pk': { S: pk } };
    const where = (condition: string, name: string, value: string | undefined): void => {
      if (value === undefined || value === '') return;
      conditions.push(condition);
      values[name] = { S: value };
    };
    where('begins_with(sk, :prefix)', ':prefix', prefix);
    if (from !== undefined && to !== undefined) {
      conditions.push('sk BETWEEN :from AND :to');
      values[':from'] = { S: from };
      values[':to'] = { S: to };
    } else {
      where('sk >= :from', ':from', from);
      where('sk <= :to', ':to', to);
    }
    return this.#query(
      {
        KeyConditionExpression: conditions.join(' AND '),
        ExpressionAttributeValues: values,
        ConsistentRead: true,
        ScanIndexForward: descending !== true,
      },
      limit,
    );
  }

  /**
   * Keys and arrival numbers from an index, newest first, below `before`. An index follows within a second or so, so
   * the newest items may be missing.
   */
  async newest(list: List, before: number, limit: number): Promise<{ readonly key: Key; readonly arrival: number }[]> {
    const items = await this.#query(
      {
        IndexName: LISTED,
        KeyConditionExpression: 'l = :list AND a < :before',
        ExpressionAttributeValues: { ':list': { S: list }, ':before': number(before) },
        ScanIndexForward: false,
      },
      limit,
    );
    return items.map((i) => ({ key: { pk: textAt(i, 'pk'), sk: textAt(i, 'sk') }, arrival: Number(i['a']?.N ?? 0) }));
  }

  async #query(input: Omit<QueryCommandInput, 'TableName'>, limit = Infinity): Promise<Item[]> {
    const items: Item[] = [];
    let start: Item | undefined;
    do {
      const answer = await this.#call('Query', () =>
        this.#client.send(
          new QueryCommand({
            TableName: this.#name,
            ...input,
            ...(start === undefined ? {} : { ExclusiveStartKey: start }),
            ...(Number.isFinite(limit) ? { Limit: limit - items.length } : {}),
            ...this.#measured(),
          }),
        ),
      );
      this.#count('Query', answer.ConsumedCapacity, answer.Items?.length ?? 0);
      items.push(...(answer.Items ?? []).filter((item) => !this.isExpired(item)));
      start = answer.LastEvaluatedKey;
    } while (start !== undefined && items.length < limit);
    return items;
  }

  /**
   * True if the item has expired by `ttl`. Commits are the exception: an uncompacted one is needed until the service
   * deletes it (journal.ts).
   */
  isExpired(item: Item): boolean {
    return item['ttl'] !== undefined && numberOf(item, 'ttl') * 1000 <= this.#nowMs() && textAt(item, 'pk') !== LOG;
  }

  /** Adds to a number of an item, which is made if missing. Answers with the item afterwards. */
  async add(key: Key, name: string, by: number, set: Readonly<Record<string, AttributeValue>> = {}): Promise<Item> {
    const names = Object.keys(set);
    const answer = await this.#call('UpdateItem', () =>
      this.#client.send(
        new UpdateItemCommand({
          TableName: this.#name,
          Key: keyItem(key),
          UpdateExpression: `ADD #n :by SET ${['v', ...names].map((_, i) => `#s${i} = :s${i}`).join(', ')}`,
          ExpressionAttributeNames: {
            '#n': name,
            ...Object.fromEntries(['v', ...names].map((n, i) => [`#s${i}`, n])),
          },
          ExpressionAttributeValues: {
            ':by': number(by),
            ':s0': number(SCHEMA_VERSION),
            ...Object.fromEntries(names.map((n, i) => [`:s${i + 1}`, set[n] as AttributeValue])),
          },
          ReturnValues: 'ALL_NEW',
          ...this.#measured(),
        }),
      ),
    );
    this.#count('UpdateItem', answer.ConsumedCapacity, 1);
    return answer.Attributes ?? {};
  }

  /**
   * Single write, at half the price of a transaction. `answer`: whether the item afterwards is wanted. Throws if the
   * service does not answer: the write may have happened.
   */
  async write(write: Write, answer: 'item' | 'nothing' = 'item'): Promise<WriteOutcome> {
    const { condition } = write;
    const values = { ...condition?.values };
    const common = {
      TableName: this.#name,
      Key: keyItem(write.key),
      ...(condition === undefined
        ? {}
        : { ConditionExpression: condition.expression, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }),
      ...this.#measured(),
    };
    const name = write.isDeleted === true ? 'DeleteItem' : 'UpdateItem';
    return this.#call(name, async () => {
      try {
        const done =
          write.isDeleted === true
            ? await this.#client.send(
                new DeleteItemCommand({
                  ...common,
                  ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
                  ...(condition?.names === undefined ? {} : { ExpressionAttributeNames: condition.names }),
                }),
              )
            : await this.#client.send(
                new UpdateItemCommand({
                  ...common,
                  ...updateOf(write, values),
                  ReturnValues: answer === 'item' ? 'ALL_NEW' : 'NONE',
                }),
              );
        this.#count(name, done.ConsumedCapacity, 1);
        return { status: 'done', item: done.Attributes ?? {} };
      } catch (error) {
        if (error instanceof ConditionalCheckFailedException) return { status: 'refused', item: error.Item ?? {} };
        throw error;
      }
    });
  }

  /**
   * All writes or none; at most one per item and 100 in all. Repeated with jittered pauses after conflicts. Throws if
   * the service does not answer: the writes may have happened (lib/drivers/aws/errors.ts).
   */
  async transact(writes: readonly Write[]): Promise<TransactOutcome> {
    if (writes.length === 0) return { status: 'done' };
    const items = writes.map((w) => this.#transactItem(w));
    for (let round = 0; ; round++) {
      try {
        const answer = await this.#client.send(
          new TransactWriteItemsCommand({ TransactItems: items, ...this.#measured() }),
        );
        this.#count('TransactWriteItems', answer.ConsumedCapacity, writes.length);
        return { status: 'done' };
      } catch (error) {
        const reasons = error instanceof TransactionCanceledException ? (error.CancellationReasons ?? []) : [];
        if (reasons.some((r) => r.Code === 'ConditionalCheckFailed')) {
          return { status: 'refused', failed: reasons.map(refusedItem) };
        }
        const isPassing = reasons.some((r) => isConflict(r)) || faultOf(error) === 'throttled';
        if (!isPassing || round >= MAX_CONFLICTS || !(await this.#pause(round)))
          throw classify(transactFault(error, reasons), 'dynamodb TransactWriteItems');
      }
    }
  }

  #transactItem(write: Write): TransactWriteItem {
    const { condition } = write;
    const guarded = {
      TableName: this.#name,
      Key: keyItem(write.key),
      ...(condition === undefined
        ? {}
        : { ConditionExpression: condition.expression, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const }),
    };
    const values = { ...condition?.values };
    const withValues = {
      ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
      ...(condition?.names === undefined ? {} : { ExpressionAttributeNames: condition.names }),
    };
    if (write.isDeleted === true) return { Delete: { ...guarded, ...withValues } };
    if (write.isCheck === true) {
      return { ConditionCheck: { ConditionExpression: 'attribute_exists(pk)', ...guarded, ...withValues } };
    }
    return { Update: { ...guarded, ...updateOf(write, values) } };
  }

  /** Repeats a call while the service is busy or a transaction holds the item. Neither has any effect. */
  async #call<T>(operation: string, send: () => Promise<T>): Promise<T> {
    for (let round = 0; ; round++) {
      try {
        return await send();
      } catch (error) {
        const isPassing = error instanceof TransactionConflictException || faultOf(error) === 'throttled';
        if (!isPassing) throw classify(error, `dynamodb ${operation}`);
        if (round >= MAX_CONFLICTS || !(await this.#pause(round))) throw tooMuchAtOnce(error);
      }
    }
  }

  /** Pause with full jitter: any time up to a limit that doubles. False if no time is left to wait and to answer. */
  async #pause(round: number): Promise<boolean> {
    const ms = Math.random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** round);
    if (this.#remainingMs() < ms + TO_ANSWER_MS) return false;
    await sleep(ms);
    return true;
  }

  #measured(): { ReturnConsumedCapacity?: 'TOTAL' } {
    return this.#meter === undefined ? {} : { ReturnConsumedCapacity: 'TOTAL' };
  }

  #count(operation: string, used: ConsumedCapacity | ConsumedCapacity[] | undefined, items: number): void {
    const list = used === undefined ? [] : Array.isArray(used) ? used : [used];
    this.#meter?.({ operation, items, units: list.reduce((sum, u) => sum + (u.CapacityUnits ?? 0), 0) });
  }
}

const keyItem = ({ pk, sk }: Key): Record<string, AttributeValue> => ({ pk: { S: pk }, sk: { S: sk } });

/** Update expression for what a `Write` sets and removes. */
function updateOf(
  write: Write,
  values: Record<string, AttributeValue>,
): {
  UpdateExpression: string;
  ExpressionAttributeNames: Record<string, string>;
  ExpressionAttributeValues: Record<string, AttributeValue>;
} {
  const names: Record<string, string> = { ...write.condition?.names };
  const all = { ...values };
  const set = { v: number(SCHEMA_VERSION), ...write.set };
  const sets = [
    ...Object.entries(set).map(([name, value], i) => {
      names[`#s${i}`] = name;
      all[`:s${i}`] = value;
      return `#s${i} = :s${i}`;
    }),
    ...Object.entries(write.once ?? {}).map(([name, value], i) => {
      names[`#o${i}`] = name;
      all[`:o${i}`] = value;
      return `#o${i} = if_not_exists(#o${i}, :o${i})`;
    }),
  ];
  const removes = (write.remove ?? []).map((name, i) => {
    names[`#r${i}`] = name;
    return `#r${i}`;
  });
  const parts = [`SET ${sets.join(', ')}`, ...(removes.length === 0 ? [] : [`REMOVE ${removes.join(', ')}`])];
  return {
    UpdateExpression: parts.join(' '),
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: all,
  };
}

const CONFLICTS = new Set(['TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded']);
const isConflict = (reason: CancellationReason): boolean => CONFLICTS.has(reason.Code ?? '');

const refusedItem = (reason: CancellationReason): Item | null =>
  reason.Code === 'ConditionalCheckFailed' ? (reason.Item ?? {}) : null;

/** Fault of a cancelled transaction: its reasons per item say more than its message. */
function transactFault(error: unknown, reasons: readonly CancellationReason[]): unknown {
  const other = reasons.find((r) => r.Code !== undefined && r.Code !== 'None');
  if (other === undefined) return error;
  const code = isConflict(other) ? 'too-many-requests' : 'internal';
  return new EbbError(code, {
    what: 'the table refuses a transaction',
    got: `${other.Code}: ${other.Message ?? ''}`,
    cause: error,
  });
}

const tooMuchAtOnce = (cause?: unknown): EbbError =>
  new EbbError('too-many-requests', {
    what: 'the table throttles requests now',
    next: 'try again in some seconds',
    ...(cause === undefined ? {} : { cause }),
  });

/** Runs `work` on each item, `width` at a time. */
export async function inParallel<T>(
  list: readonly T[],
  width: number,
  work: (value: T) => Promise<void>,
): Promise<void> {
  const queue = [...list];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: Math.min(width, list.length) }, worker));
}
