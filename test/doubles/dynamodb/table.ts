/**
 * Double of DynamoDB's tables with string keys `pk` and `sk`, in memory. It has consistent reads, conditional writes,
 * transactions and indexes, for the calls of lib/drivers/aws/store/dynamo-table.ts. Other calls are refused. The
 * store's contract suite runs on it (test/contract/aws/store-doubles.test.ts), so it can be wrong only where LocalStack
 * is too.
 */
import {
  ConditionalCheckFailedException,
  TransactionCanceledException,
  type AttributeValue,
  type BatchGetItemCommandInput,
  type CancellationReason,
  type DeleteItemCommandInput,
  type DynamoDBClient,
  type QueryCommandInput,
  type TransactWriteItemsCommandInput,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import { holds, orderOf, updated, type Item } from './expressions.ts';

type Key = Readonly<Record<string, AttributeValue>>;

/** "Service, account, and table quotas in Amazon DynamoDB". */
const ITEM_BYTES = 409_600;
const TRANSACTION_BYTES = 4 * 2 ** 20;
const TRANSACTION_WRITES = 100;
const PAGE_BYTES = 2 ** 20;

/** Indexes, with hash and range attribute. */
const INDEXES: Readonly<Record<string, readonly [string, string]>> = { listed: ['l', 'a'] };

const metadata = { $metadata: {} };

/** Consumption of a call: read units or write units. */
export interface Use {
  readonly operation: string;
  readonly units: number;
}

const unitsOf = (answer: unknown): number => {
  const { ConsumedCapacity: used } = answer as {
    ConsumedCapacity?: { CapacityUnits: number } | readonly { CapacityUnits: number }[];
  };
  return [used ?? []].flat().reduce((sum, u) => sum + u.CapacityUnits, 0);
};

interface Change {
  readonly Key: Key;
  readonly ConditionExpression?: string | undefined;
  readonly UpdateExpression?: string | undefined;
  readonly ExpressionAttributeNames?: Record<string, string> | undefined;
  readonly ExpressionAttributeValues?: Record<string, AttributeValue> | undefined;
}

export class DynamoDouble {
  /** Items by partition and sort key. They are replaced, never changed. */
  readonly #items = new Map<string, Item>();
  /** Items by partition: a query need not scan all. */
  readonly #partitions = new Map<string, Map<string, Item>>();

  /** Client of the SDK on this double. `used`: called with each consumption, including refused calls. */
  client(used?: (use: Use) => void): DynamoDBClient {
    const send = async (command: { readonly input: unknown }): Promise<unknown> => {
      // Asynchronous answer, as over a network.
      await Promise.resolve();
      const operation = command.constructor.name.replace('Command', '');
      try {
        const answer = this.#answer(command.constructor.name, command.input);
        used?.({ operation, units: unitsOf(answer) });
        return answer;
      } catch (error) {
        // Refused writes cost the existing item: "DynamoDB still consumes write capacity" ("Read/write capacity mode").
        if (error instanceof ConditionalCheckFailedException)
          used?.({ operation, units: writeUnits(error.Item, undefined) });
        throw error;
      }
    };
    return { send, destroy: () => undefined } as unknown as DynamoDBClient;
  }

  /** Double with these items. */
  static of(items: readonly Item[]): DynamoDouble {
    const double = new DynamoDouble();
    for (const item of items) double.#put(textOf(item), item);
    return double;
  }

  /** Copy, for several continuations. */
  copy(): DynamoDouble {
    return DynamoDouble.of(this.items);
  }

  get items(): readonly Item[] {
    return [...this.#items.values()];
  }

  #put(key: string, item: Item): void {
    this.#items.set(key, item);
    const pk = item['pk']?.S ?? '';
    const partition = this.#partitions.get(pk);
    if (partition === undefined) this.#partitions.set(pk, new Map([[key, item]]));
    else partition.set(key, item);
  }

  #delete(key: string): void {
    this.#partitions.get(this.#items.get(key)?.['pk']?.S ?? '')?.delete(key);
    this.#items.delete(key);
  }

  #answer(name: string, input: unknown): unknown {
    switch (name) {
      case 'BatchGetItemCommand':
        return this.#batchGet(input as BatchGetItemCommandInput);
      case 'QueryCommand':
        return this.#query(input as QueryCommandInput);
      case 'UpdateItemCommand':
        return this.#write(input as UpdateItemCommandInput & { Key: Key }, 'update');
      case 'DeleteItemCommand':
        return this.#write(input as DeleteItemCommandInput & { Key: Key }, 'delete');
      case 'TransactWriteItemsCommand':
        return this.#transact(input as TransactWriteItemsCommandInput);
      default:
        throw new Error(`the DynamoDB double does not play ${name}`);
    }
  }

  #batchGet({ RequestItems = {} }: BatchGetItemCommandInput): object {
    let units = 0;
    const Responses = Object.fromEntries(
      Object.entries(RequestItems).map(([table, { Keys = [] }]) => {
        if (Keys.length > 100) throw new Error('ValidationException: more than 100 keys');
        const found = Keys.map((key) => this.#items.get(textOf(key)));
        units += found.reduce((sum, item) => sum + readUnits(item === undefined ? 0 : sizeOf(item)), 0);
        return [table, found.filter((item) => item !== undefined)];
      }),
    );
    return { Responses, UnprocessedKeys: {}, ConsumedCapacity: [{ CapacityUnits: units }] };
  }

  #query(input: QueryCommandInput): object {
    const { IndexName, KeyConditionExpression = '', ScanIndexForward = true, Limit = Infinity } = input;
    const range = IndexName === undefined ? 'sk' : (INDEXES[IndexName]?.[1] ?? '');
    const bindings = { names: input.ExpressionAttributeNames, values: input.ExpressionAttributeValues };
    const sign = ScanIndexForward ? 1 : -1;
    const pk = /\bpk = (:\w+)/.exec(KeyConditionExpression)?.[1] ?? '';
    const partition = this.#partitions.get(bindings.values?.[pk]?.S ?? '');
    const found = (pk === '' ? this.items : [...(partition?.values() ?? [])])
      .filter((item) => item[range] !== undefined && holds(KeyConditionExpression, item, bindings))
      .sort((a, b) => sign * inOrder(a, b, range));
    const start = input.ExclusiveStartKey;
    const from = start === undefined ? 0 : found.findIndex((item) => textOf(item) === textOf(start)) + 1;
    const page: Item[] = [];
    let bytes = 0;
    for (const item of found.slice(from)) {
      if (page.length >= Limit || bytes >= PAGE_BYTES) break;
      page.push(item);
      bytes += sizeOf(item);
    }
    const last = page.at(-1);
    const isMore = last !== undefined && from + page.length < found.length;
    // Cost of a read: keys only for an index, and half for eventual consistency.
    const read = IndexName === undefined ? readUnits(bytes) : readUnits(page.length * KEYS_BYTES) / 2;
    return {
      Items: page,
      ...(isMore ? { LastEvaluatedKey: last } : {}),
      ConsumedCapacity: { CapacityUnits: read },
    };
  }

  #write(change: Change, kind: 'update' | 'delete'): object {
    const before = this.#items.get(textOf(change.Key));
    if (!isMet(change, before)) {
      throw new ConditionalCheckFailedException({
        message: 'The conditional request failed',
        ...metadata,
        ...(before === undefined ? {} : { Item: before }),
      });
    }
    const after = this.#apply(change, kind);
    const ConsumedCapacity = { CapacityUnits: writeUnits(before, after) };
    return after === undefined ? { ConsumedCapacity } : { Attributes: after, ConsumedCapacity };
  }

  #transact({ TransactItems = [] }: TransactWriteItemsCommandInput): object {
    const changes = TransactItems.map(({ Update, Delete, ConditionCheck, ...rest }) => {
      const change = (Update ?? Delete ?? ConditionCheck) as Change | undefined;
      if (change === undefined) throw new Error(`the DynamoDB double does not play ${Object.keys(rest).join()}`);
      return { change, kind: Update !== undefined ? 'update' : Delete !== undefined ? 'delete' : 'check' } as const;
    });
    if (changes.length > TRANSACTION_WRITES) throw new Error('ValidationException: more than 100 writes');
    if (new Set(changes.map(({ change }) => textOf(change.Key))).size < changes.length) {
      throw new Error('ValidationException: several writes of one item in a transaction');
    }
    const reasons = changes.map(({ change }): CancellationReason => {
      const before = this.#items.get(textOf(change.Key));
      if (isMet(change, before)) return { Code: 'None' };
      return { Code: 'ConditionalCheckFailed', ...(before === undefined ? {} : { Item: before }) };
    });
    if (reasons.some((r) => r.Code !== 'None')) {
      throw new TransactionCanceledException({
        message: `Transaction cancelled [${reasons.map((r) => r.Code).join()}]`,
        ...metadata,
        CancellationReasons: reasons,
      });
    }
    const befores = changes.map(({ change }) => this.#items.get(textOf(change.Key)));
    const written = changes.map(({ change, kind }) => (kind === 'check' ? undefined : this.#apply(change, kind)));
    const CapacityUnits = changes.reduce((sum, { kind }, n) => {
      const after = kind === 'check' ? befores[n] : written[n];
      return sum + 2 * writeUnits(befores[n], after);
    }, 0);
    const bytes = written.reduce((all, item) => all + (item === undefined ? 0 : sizeOf(item)), 0);
    if (bytes > TRANSACTION_BYTES) throw new Error('ValidationException: a transaction of more than 4 MB');
    return { ConsumedCapacity: [{ CapacityUnits }] };
  }

  #apply(change: Change, kind: 'update' | 'delete'): Item | undefined {
    const key = textOf(change.Key);
    if (kind === 'delete') {
      this.#delete(key);
      return undefined;
    }
    const bindings = { names: change.ExpressionAttributeNames, values: change.ExpressionAttributeValues };
    const after = updated(change.UpdateExpression ?? '', this.#items.get(key) ?? { ...change.Key }, bindings);
    if (sizeOf(after) > ITEM_BYTES) throw new Error('ValidationException: Item size has exceeded the maximum');
    this.#put(key, Object.freeze(after));
    return after;
  }
}

const isMet = (change: Change, before: Item | undefined): boolean =>
  change.ConditionExpression === undefined ||
  holds(change.ConditionExpression, before, {
    names: change.ExpressionAttributeNames,
    values: change.ExpressionAttributeValues,
  });

const textOf = ({ pk, sk }: Item): string => `${pk?.S ?? ''}\u0000${sk?.S ?? ''}`;

const inOrder = (a: Item, b: Item, range: string): number => {
  const [left, right] = [a[range], b[range]];
  return left === undefined || right === undefined ? 0 : (orderOf(left, right) ?? 0);
};

/** Size of names and values, nearly as the service counts them ("Item sizes and formats"). */
const sizeOf = (item: Item): number =>
  Object.entries(item).reduce(
    (sum, [name, { S, N, B }]) =>
      sum + name.length + (S === undefined ? (N?.length ?? B?.length ?? 1) : Buffer.byteLength(S)),
    0,
  );

/** Units by "Read/write capacity mode": 4 KB per consistent read, 1 KB per write, twice that in a transaction. */
const KEYS_BYTES = 120;
const readUnits = (bytes: number): number => Math.max(1, Math.ceil(bytes / 4096));

/**
 * Units of a write: the larger of the old and the new item. An index is written when its key appears, disappears or
 * changes.
 */
function writeUnits(before: Item | undefined, after: Item | undefined): number {
  const own = Math.max(...[before, after].map((item) => (item === undefined ? 1 : Math.ceil(sizeOf(item) / 1024))));
  const indexed = Object.values(INDEXES).reduce((sum, names) => {
    const [was, is] = [before, after].map((item) =>
      item === undefined || names.some((n) => item[n] === undefined)
        ? null
        : names.map((n) => item[n]?.S ?? item[n]?.N).join('|'),
    );
    return sum + (was === is ? 0 : was === null || is === null ? 1 : 2);
  }, 0);
  return own + indexed;
}
