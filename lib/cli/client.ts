import { setTimeout as delay } from 'node:timers/promises';
import { createParser, type EventSourceParser } from 'eventsource-parser';
import type { EventView } from '../api/schemas.ts';
import { EbbError } from '../kernel/errors.ts';
import { fromProblem } from './failure.ts';

export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;
export interface Request {
  readonly query?: Query;
  readonly body?: unknown;
  /** Body as JSON text, in place of `body`. */
  readonly bodyText?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Client of an engine: over HTTP (`ebb up`, a deployment), or in this process (`ebb run`). Both speak the API of
 * lib/api. Answers have the types of lib/api/schemas.ts; problems are thrown as the EbbError that they describe.
 */
export interface Client {
  get<T>(path: string, query?: Query): Promise<T>;
  post<T>(path: string, request?: Request): Promise<T>;
  delete<T>(path: string): Promise<T>;
  /** Events after a sequence number, as they happen, until `signal` aborts. */
  events(after: number, signal: AbortSignal, job?: string): AsyncIterable<EventView>;
}
/** Client that reads events in batches, as an engine in this process gives them. */
export interface BatchClient extends Client {
  /** Sequence number of the last event; 0 without one. */
  lastEvent(): Promise<number>;
}

/** Wall time between two polls of the events of an engine that does not stream. */
const POLL_MS = 250;

export interface RawAnswer {
  readonly status: number;
  readonly body: string;
}
/** Sends one request and returns the whole answer. */
export type Send = (request: {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path with query string. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}) => Promise<RawAnswer>;

/** Client over any function that sends a request. */
export function clientOver(send: Send, pollMs = POLL_MS): BatchClient {
  const call = async <T>(method: 'GET' | 'POST' | 'DELETE', path: string, request: Request): Promise<T> => {
    const headers = { accept: 'application/json', ...request.headers };
    const body = request.bodyText ?? (request.body === undefined ? null : JSON.stringify(request.body));
    const answer = await send({
      method,
      path: path + queryString(request.query ?? {}),
      headers: body === null ? headers : { 'content-type': 'application/json', ...headers },
      body,
    });
    return decode(answer) as T;
  };
  return {
    get: (path, query = {}) => call('GET', path, { query }),
    post: (path, request = {}) => call('POST', path, request),
    delete: (path) => call('DELETE', path, {}),
    events: (after, signal, job) => poll(send, { after, signal, job }, pollMs),
    lastEvent: async () => {
      let last = 0;
      for (;;) {
        const batch = parseEvents((await send(eventsRequest(last, undefined))).body);
        const newest = batch.at(-1);
        if (newest === undefined) return last;
        last = newest.sequence;
      }
    },
  };
}

interface EventsWanted {
  readonly after: number;
  readonly signal: AbortSignal;
  readonly job: string | undefined;
}
const EVENT_STREAM = { accept: 'text/event-stream' };

/** Client of an engine at `base` (http://127.0.0.1:7788), with a bearer token if there is one. */
export function httpClient(base: string, token: string | null): Client {
  const root = base.replace(/\/+$/, '');
  const authorization: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const open = (path: string, init: RequestInit): Promise<Response> =>
    fetch(root + path, init).catch((error: unknown) => {
      throw absent(root, error);
    });
  const plain = clientOver(async ({ method, path, headers, body }) => {
    const answer = await open(path, { method, headers: { ...headers, ...authorization }, body });
    return { status: answer.status, body: await answer.text() };
  });
  const stream = (path: string, signal: AbortSignal): Promise<Response> =>
    open(path, { headers: { ...EVENT_STREAM, ...authorization }, signal });
  return { ...plain, events: (after, signal, job) => follow(stream, { after, signal, job }) };
}

/** Events of an open stream. Reconnects after the last event when the server ends it, as a Lambda always does. */
async function* follow(
  stream: (path: string, signal: AbortSignal) => Promise<Response>,
  wanted: EventsWanted,
): AsyncIterable<EventView> {
  const { signal } = wanted;
  let last = wanted.after;
  while (!signal.aborted) {
    const answer = await stream(eventsPath(last, wanted.job), signal).catch((error: unknown) => {
      if (signal.aborted) return null;
      throw error;
    });
    if (answer === null) return;
    if (!answer.ok) decode({ status: answer.status, body: await answer.text() });
    for await (const event of eventsOf(answer, signal)) {
      last = Math.max(last, event.sequence);
      yield event;
    }
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function* eventsOf(answer: Response, signal: AbortSignal): AsyncIterable<EventView> {
  const ready: EventView[] = [];
  const parser = eventParser(ready);
  const decoder = new TextDecoder();
  try {
    for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* ready.splice(0);
    }
  } catch (error) {
    // The caller reconnects after a broken stream, also after one that we closed.
    if (!signal.aborted && !(error instanceof TypeError)) throw error;
  }
}

const eventsRequest = (after: number, job: string | undefined): Parameters<Send>[0] => ({
  method: 'GET',
  path: eventsPath(after, job),
  headers: EVENT_STREAM,
  body: null,
});

const eventsPath = (after: number, job: string | undefined): string =>
  `/api/events${queryString({ after, limit: 1000, job })}`;

function absent(base: string, error: unknown): EbbError {
  const cause = (error as { cause?: { code?: string; message?: string } }).cause;
  const code = cause?.code ?? '';
  const got = `${base}${code === '' ? '' : ` (${code})`}`;
  return new EbbError('engine.absent', { ...silence(code), got, cause: error });
}

/** Reason for a missing answer, by Node's code (https://nodejs.org/api/tls.html#x509-certificate-error-codes). */
function silence(code: string): { readonly what: string; readonly next: string } {
  if (/CERT|^UNABLE_TO_(?:GET|VERIFY|DECRYPT)/.test(code)) {
    const what = 'the certificate of this address is not trusted';
    return { what, next: 'check --url; trust the certificate with NODE_EXTRA_CA_CERTS=FILE (docs/local-access.md)' };
  }
  if (code.startsWith('ERR_SSL_')) {
    return { what: 'what answers at this address does not speak TLS', next: 'name it with http://, not https://' };
  }
  return {
    what: 'no engine answers at this address',
    next: 'start one with `ebb up`, or name another with --url or EBB_URL, a deployment on AWS with --stack or EBB_STACK; `ebb run FILE` needs none',
  };
}

function decode({ status, body }: RawAnswer): unknown {
  let parsed: unknown;
  try {
    parsed = body === '' ? null : JSON.parse(body);
  } catch (cause) {
    throw new EbbError('engine.absent', {
      what: 'something answers at this address, but it is not an Ebbtide engine',
      got: `HTTP status ${status}, ${JSON.stringify(body.slice(0, 80))}`,
      next: 'check --url (or EBB_URL)',
      cause,
    });
  }
  if (status >= 400) throw fromProblem(parsed ?? {}, status);
  return parsed;
}

export function queryString(query: Query): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) params.append(key, String(each));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

/** Status codes of temporary faults, of the server or of a proxy. */
const PASSING = new Set([429, 502, 503, 504]);
/** Faults in a row that are no longer temporary: their pauses double and add up to more than a minute. */
const MAX_PASSING = 6;

/** Events of an engine that does not stream: asks again and again. */
async function* poll(send: Send, wanted: EventsWanted, pollMs: number): AsyncIterable<EventView> {
  let last = wanted.after;
  let passing = 0;
  while (!wanted.signal.aborted) {
    const answer = await send(eventsRequest(last, wanted.job));
    passing = PASSING.has(answer.status) ? passing + 1 : 0;
    if (passing > 0 && passing <= MAX_PASSING) {
      await delay(pollMs * 2 ** (passing - 1), undefined, { signal: wanted.signal }).catch(() => undefined);
      continue;
    }
    if (answer.status >= 400) decode(answer);
    for (const event of parseEvents(answer.body)) {
      last = Math.max(last, event.sequence);
      yield event;
    }
    await delay(pollMs, undefined, { signal: wanted.signal }).catch(() => undefined);
  }
}

/** The events of a whole `text/event-stream` body; comments (heartbeats) are not events. */
export function parseEvents(body: string): EventView[] {
  const events: EventView[] = [];
  eventParser(events).feed(body);
  return events;
}

function eventParser(into: EventView[]): EventSourceParser {
  return createParser({
    onEvent: ({ data }) => {
      if (data !== '') into.push(JSON.parse(data) as EventView);
    },
  });
}

/** All items of a list, or all from a cursor on: follows `next` until the end. */
export async function all<T>(client: Client, path: string, query: Query = {}): Promise<T[]> {
  const items: T[] = [];
  let cursor = query['cursor'];
  do {
    const page = await client.get<{ items: T[]; next: string | null }>(path, { ...query, cursor });
    items.push(...page.items);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return items;
}
