/**
 * Counts the calls that functions make: a proxy between them and LocalStack or the double. It asks DynamoDB for the
 * units that each call consumed, which nobody has to know of (signatures are not checked there), and tells functions
 * and their processes apart by what preload.mjs puts into the SDK's user agent.
 */
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MeteredCall {
  readonly atMs: number;
  /** When its answer was there: which calls of a process were on their way at once. Absent in earlier runs. */
  readonly endMs?: number;
  /** Of the process that made it; 0 where it does not say. */
  readonly pid?: number;
  /** Of the Lambda, as it is deployed; '' for who is none. */
  readonly caller: string;
  readonly service: string;
  readonly operation: string;
  /** Of DynamoDB: units consumed by the table and, apart, by its indexes. */
  readonly units: number;
  readonly indexUnits: number;
  /** Of DynamoDB: the kinds of items written, by the beginnings of their keys. */
  readonly items: string;
}

export class CallMeter {
  readonly calls: MeteredCall[] = [];
  readonly #servers: Server[] = [];

  /** A proxy to `target`; its address. */
  async before(target: string): Promise<string> {
    const to = new URL(target);
    const server = createServer((asked, answer) => {
      void this.#pass(to, asked)
        .then(({ status, headers, body }) => {
          answer.writeHead(status, headers);
          answer.end(body);
        })
        .catch(() => {
          answer.destroy();
        });
    });
    server.keepAliveTimeout = 60_000;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.#servers.push(server);
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  close(): void {
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
  }

  async #pass(to: URL, asked: IncomingMessage) {
    const said = await whole(asked);
    const call = callOf(asked, said);
    const isDynamo = call.service === 'dynamodb';
    const body = isDynamo ? Buffer.from(JSON.stringify({ ...jsonOf(said), ReturnConsumedCapacity: 'INDEXES' })) : said;
    const headers = { ...asked.headers, host: to.host, 'content-length': String(body.length) };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ host: to.hostname, port: to.port, method: asked.method, path: asked.url, headers }, resolve)
        .on('error', reject)
        .end(body);
    });
    const content = await whole(answer);
    this.calls.push({ ...call, endMs: Date.now(), ...(isDynamo ? unitsOf(call.operation, said, content) : {}) });
    const { 'transfer-encoding': _, connection: __, ...kept } = answer.headers;
    return {
      status: answer.statusCode ?? 500,
      headers: { ...kept, 'content-length': String(content.length) },
      body: content,
    };
  }
}

async function whole(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

const jsonOf = (content: Buffer): Record<string, unknown> => {
  try {
    return JSON.parse(content.toString()) as Record<string, unknown>;
  } catch {
    return {};
  }
};

function callOf(asked: IncomingMessage, said: Buffer): MeteredCall {
  const target = String(asked.headers['x-amz-target'] ?? '');
  const caller = /(?:^|\s)app\/(\S+)/.exec(String(asked.headers['user-agent'] ?? ''))?.[1] ?? '';
  const pid = Number(/\.\.(\d+)/.exec(caller)?.[1] ?? 0);
  const of = { atMs: Date.now(), caller, pid, units: 0, indexUnits: 0, items: '' };
  const [api = '', operation = ''] = target.split('.');
  if (api.startsWith('DynamoDB')) return { ...of, service: 'dynamodb', operation, items: kindsOf(said) };
  if (target !== '') return { ...of, service: api.replace(/_?\d+$/, '').toLowerCase(), operation };
  const action = /(?:^|&)Action=(\w+)/.exec(said.subarray(0, 2000).toString())?.[1];
  if (action !== undefined) return { ...of, service: 'query', operation: action };
  return { ...of, service: 's3', operation: asked.method ?? '' };
}

/** `J# JOB`, `HEAD`: what lies there, whosever it is. */
function kindsOf(said: Buffer): string {
  const keys = [...said.toString().matchAll(/"pk":\{"S":"([^"#]*)#?[^"]*"\},"sk":\{"S":"([^"#|]*)/g)];
  const kinds = keys.map(([, pk = '', sk = '']) => (/^(?:[\d-]+|[JI])$/.test(sk) || pk === sk ? pk : `${pk} ${sk}`));
  return [...new Set(kinds)].sort().join(', ');
}

interface Capacity {
  readonly CapacityUnits?: number;
  readonly Table?: { readonly CapacityUnits?: number };
}

function unitsOf(operation: string, said: Buffer, content: Buffer): Pick<MeteredCall, 'units' | 'indexUnits'> {
  const consumed = consumedOf(content);
  if (operation === 'BatchGetItem') return { ...consumed, units: consumed.units + absentUnits(said, content) };
  if (operation === 'Query')
    return { ...consumed, units: Math.max(consumed.units, leastOfQuery(said) - consumed.indexUnits) };
  if (operation !== 'TransactWriteItems') return consumed;
  // Of an index, DynamoDB Local says 4 for an entry that is written in a transaction.
  return { units: transactionUnits(said), indexUnits: consumed.indexUnits / 2 };
}

interface Keys {
  readonly Keys: readonly unknown[];
  readonly ConsistentRead?: boolean;
}

const readUnit = (isConsistent: boolean | undefined): number => (isConsistent === true ? 1 : 0.5);

/**
 * Read units of items that do not exist: as many as for the smallest item (DynamoDB API reference, BatchGetItem:
 * "Requests for nonexistent items consume the minimum read capacity units"). DynamoDB Local reports 0 for them.
 */
function absentUnits(said: Buffer, content: Buffer): number {
  const { RequestItems: asked = {} } = jsonOf(said) as { RequestItems?: Readonly<Record<string, Keys>> };
  const { Responses: found = {} } = jsonOf(content) as { Responses?: Readonly<Record<string, readonly unknown[]>> };
  return Object.entries(asked).reduce(
    (sum, [table, { Keys: keys, ConsistentRead }]) =>
      sum + Math.max(0, keys.length - (found[table]?.length ?? 0)) * readUnit(ConsistentRead),
    0,
  );
}

/** A query that finds nothing reads the least there is; DynamoDB Local says 0. */
const leastOfQuery = (said: Buffer): number => readUnit((jsonOf(said) as { ConsistentRead?: boolean }).ConsistentRead);

interface TransactItem {
  readonly Update?: {
    readonly ExpressionAttributeValues?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
}

/**
 * Names of attributes, the key, and what an update leaves as it is: bytes of an item beside the values that are sent.
 */
const BESIDE_BYTES = 150;

/**
 * Units of a transaction, refused ones included, by what is sent: each item is written at twice the units of a write
 * alone (DynamoDB developer guide, "Read and write operations", transactional writes). DynamoDB Local says 4 for small
 * items, however many there are.
 */
function transactionUnits(said: Buffer): number {
  const { TransactItems: items = [] } = jsonOf(said) as { TransactItems?: readonly TransactItem[] };
  return items.reduce((sum, { Update: update }) => {
    const values = Object.values(update?.ExpressionAttributeValues ?? {});
    const bytes = values.flatMap((v) => Object.entries(v)).reduce((size, [type, v]) => size + sizeOf(type, v), 0);
    return sum + 2 * Math.ceil((BESIDE_BYTES + bytes) / 1024);
  }, 0);
}

const sizeOf = (type: string, value: unknown): number => {
  const characters = String(value).length;
  return type === 'B' ? (characters * 3) / 4 : characters;
};

/**
 * A write whose condition is not met consumes units too, by the item that is there, and does not say how many (DynamoDB
 * developer guide, "Condition expressions"). One is counted: what is written under conditions here is below 1 KB,
 * nearly always.
 */
function consumedOf(content: Buffer): Pick<MeteredCall, 'units' | 'indexUnits'> {
  const { ConsumedCapacity: used, __type: fault = '' } = jsonOf(content) as {
    ConsumedCapacity?: Capacity | readonly Capacity[];
    __type?: string;
  };
  if (fault.endsWith('ConditionalCheckFailedException')) return { units: 1, indexUnits: 0 };
  const list = used === undefined ? [] : Array.isArray(used) ? (used as readonly Capacity[]) : [used as Capacity];
  const all = list.reduce((sum, u) => sum + (u.CapacityUnits ?? 0), 0);
  const own = list.reduce((sum, u) => sum + (u.Table?.CapacityUnits ?? u.CapacityUnits ?? 0), 0);
  return { units: own, indexUnits: all - own };
}
