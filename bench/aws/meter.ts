/**
 * Meter of the functions' calls: a proxy before LocalStack or the double. It asks DynamoDB for the consumed units of
 * each call, which is possible because signatures are not checked there. Functions and processes are distinguished by
 * the SDK's user agent, which preload.mjs extends.
 */
import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface MeteredCall {
  readonly atMs: number;
  /** Time of the answer, which shows overlapping calls of a process. Absent in earlier runs. */
  readonly endMs?: number;
  /** Process of the call; 0 if unknown. */
  readonly pid?: number;
  /** Deployed name of the Lambda; '' for other callers. */
  readonly caller: string;
  readonly service: string;
  readonly operation: string;
  /** DynamoDB: units consumed by the table; those of its indexes are separate. */
  readonly units: number;
  readonly indexUnits: number;
  /** DynamoDB: kinds of the written items, by prefixes of their keys. */
  readonly items: string;
}

export class CallMeter {
  readonly calls: MeteredCall[] = [];
  readonly #servers: Server[] = [];

  /** Starts a proxy to `target`; resolves to its address. */
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

/** Kinds of items, independent of their owner: `J# JOB`, `HEAD`. */
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
  // DynamoDB Local reports 4 units of an index for an entry in a transaction.
  return { units: transactionUnits(said), indexUnits: consumed.indexUnits / 2 };
}

interface Keys {
  readonly Keys: readonly unknown[];
  readonly ConsistentRead?: boolean;
}

const readUnit = (isConsistent: boolean | undefined): number => (isConsistent === true ? 1 : 0.5);

/**
 * Read units of missing items: those of the smallest item (DynamoDB API reference, BatchGetItem: "Requests for
 * nonexistent items consume the minimum read capacity units"). DynamoDB Local reports 0.
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

/** Read units of an empty query: the minimum. DynamoDB Local reports 0. */
const leastOfQuery = (said: Buffer): number => readUnit((jsonOf(said) as { ConsistentRead?: boolean }).ConsistentRead);

interface TransactItem {
  readonly Update?: {
    readonly ExpressionAttributeValues?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
}

/** Bytes of an item besides the sent values: names of attributes, the key, and unchanged values. */
const BESIDE_BYTES = 150;

/**
 * Units of a transaction, refused ones included, by the sent items. Each costs twice the units of a single write
 * (DynamoDB developer guide, "Read and write operations", transactional writes). DynamoDB Local reports 4 for small
 * items, whatever their number.
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
 * Units of a write. A refused condition also consumes units, by the existing item, and reports none (DynamoDB developer
 * guide, "Condition expressions"). One unit is assumed: items written under conditions are nearly always below 1 KB.
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
