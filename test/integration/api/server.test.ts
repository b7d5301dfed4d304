import { connect } from 'node:net';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { ApiRequest, ApiResponse, Dispatch } from '../../../lib/api/dispatch.ts';
import { LAST_EVENT_HEADER } from '../../../lib/api/events.ts';
import { problem } from '../../../lib/api/schemas.ts';
import { serveApi, type ApiServer, type ServeOptions } from '../../../lib/api/server/server.ts';

const TOKEN = 'a-token-that-is-long-enough';
const servers: ApiServer[] = [];

async function serve(dispatch: Dispatch, over: Partial<ServeOptions> = {}): Promise<ApiServer> {
  const server = await serveApi({ dispatch, port: 0, ...over });
  servers.push(server);
  return server;
}

afterEach(async () => {
  await Promise.all(servers.splice(0).map((s) => s.close(0)));
});

/** Answers with what it was asked. */
const echo: Dispatch = async (r) => json(200, { method: r.method, path: r.path, body: textOf(r), headers: r.headers });
const textOf = (r: ApiRequest): string | null =>
  r.body === null || r.body === undefined ? null : Buffer.from(r.body).toString('utf8');
const json = (status: number, body: unknown): ApiResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}
/** Unlike fetch, sends any Host and Origin. */
function ask(
  server: ApiServer,
  options: { path?: string; method?: string; headers?: Record<string, string>; body?: string },
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        host: '127.0.0.1',
        agent: false,
        port: server.port,
        path: options.path ?? '/api/x',
        method: options.method ?? 'GET',
        headers: options.headers ?? {},
      },
      (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (body += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(options.body);
  });
}

describe('what arrives', () => {
  it('hands method, path with query, headers and body on as they came', async () => {
    const server = await serve(echo);
    const got = await ask(server, {
      path: '/api/jobs?name=a%20b&name=c',
      method: 'POST',
      headers: { 'content-type': 'application/json', 'X-Thing': 'Y' },
      body: '{"a":"ü"}',
    });
    expect(got.status).toBe(200);
    expect(JSON.parse(got.body)).toMatchObject({
      method: 'POST',
      path: '/api/jobs?name=a%20b&name=c',
      body: '{"a":"ü"}',
      headers: { 'x-thing': 'Y' },
    });
  });

  it('refuses a body over the limit, declared or not, and answers before it closes', async () => {
    const server = await serve(echo, { maxBodyBytes: 1000 });
    const declared = await ask(server, { method: 'POST', body: 'x'.repeat(1001) });
    const chunked = await ask(server, {
      method: 'POST',
      headers: { 'transfer-encoding': 'chunked' },
      body: 'x'.repeat(1001),
    });
    const fits = await ask(server, { method: 'POST', body: 'x'.repeat(1000) });
    expect([declared.status, chunked.status, fits.status]).toEqual([413, 413, 200]);
    expect(problem.parse(JSON.parse(declared.body))).toMatchObject({
      code: 'body-too-large',
      allowed: 'at most 1000 bytes',
    });
  });

  it('answers what is not HTTP, and headers that are too large, without a 5xx', async () => {
    const server = await serve(echo);
    const raw = (text: string): Promise<string> =>
      new Promise((resolve) => {
        const socket = connect(server.port, '127.0.0.1', () => socket.write(text));
        let answer = '';
        socket.on('data', (chunk) => (answer += chunk.toString('latin1')));
        socket.on('close', () => resolve(answer));
        socket.on('error', () => undefined);
      });
    expect(await raw('\u0000\u0001garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    expect(await raw(`GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 /,
    );
  });

  it('answers 500 without a stack for a defect, and logs it once', async () => {
    const lines: string[] = [];
    const server = await serve(() => Promise.reject(new Error('secret detail')), { log: (line) => lines.push(line) });
    const got = await ask(server, {});
    expect(got.status).toBe(500);
    expect(got.body).not.toContain('secret');
    expect(lines).toEqual([expect.stringContaining('secret detail')]);
  });
});

describe('who may ask', () => {
  it('refuses names that this machine is not known by, and pages of other sites', async () => {
    const server = await serve(echo);
    expect((await ask(server, { headers: { host: 'rebound.evil.test' } })).status).toBe(403);
    expect((await ask(server, { headers: { origin: 'https://evil.test' } })).status).toBe(403);
    const fine = await ask(server, {});
    expect(fine.status).toBe(200);
    expect(fine.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('demands the token where there is one', async () => {
    const server = await serve(echo, { token: TOKEN });
    const none = await ask(server, {});
    expect(none.status).toBe(401);
    expect(none.headers['www-authenticate']).toBe('Bearer');
    expect(problem.parse(JSON.parse(none.body))).toMatchObject({
      code: 'unauthorized',
      requestId: none.headers['x-request-id'],
    });
    expect((await ask(server, { headers: { authorization: 'Bearer wrong-wrong-wrong-wrong' } })).status).toBe(401);
    expect((await ask(server, { headers: { authorization: `Bearer ${TOKEN}` } })).status).toBe(200);
  });

  it('does not listen where others reach it without a token', async () => {
    await expect(serveApi({ dispatch: echo, port: 0, host: '0.0.0.0' })).rejects.toMatchObject({ code: 'usage' });
  });

  it('says who has the port', async () => {
    const first = await serve(echo);
    await expect(serveApi({ dispatch: echo, port: first.port })).rejects.toMatchObject({
      code: 'port-in-use',
      facts: { next: expect.stringContaining('--port') },
    });
  });
});

/** A growing log of events, answered in batches of two as the API does. */
function eventLog(total: () => number): Dispatch {
  return async (r) => {
    const after = Number(r.headers?.['last-event-id'] ?? '0');
    const last = Math.min(after + 2, total());
    let body = 'retry: 1000\n\n';
    for (let id = after + 1; id <= last; id++) body += `id: ${id}\ndata: ${id}\n\n`;
    return {
      status: 200,
      headers: { 'content-type': 'text/event-stream', [LAST_EVENT_HEADER]: String(Math.max(after, last)) },
      body,
    };
  };
}

describe('event streams', () => {
  const read = async (
    server: ApiServer,
    until: (text: string) => boolean,
    headers: Record<string, string> = {},
  ): Promise<string> => {
    const controller = new AbortController();
    const response = await fetch(`${server.url}/api/events`, {
      headers: { accept: 'text/event-stream', ...headers },
      signal: controller.signal,
    });
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (until(text)) break;
    }
    controller.abort();
    return text;
  };
  const ids = (text: string): number[] => [...text.matchAll(/^data: (\d+)$/gm)].map((m) => Number(m[1]));

  it('stay open and go on after the last event, each exactly once', async () => {
    let total = 3;
    const server = await serve(eventLog(() => total));
    const text = await read(server, (t) => {
      if (t.includes('data: 3')) total = 5;
      return t.includes('data: 5');
    });
    expect(ids(text)).toEqual([1, 2, 3, 4, 5]);
  });

  it('begin after Last-Event-ID', async () => {
    const server = await serve(eventLog(() => 9));
    expect(ids(await read(server, (t) => t.includes('data: 9'), { 'last-event-id': '6' }))).toEqual([7, 8, 9]);
  });

  it('are one batch for a client that did not ask for a stream', async () => {
    const server = await serve(eventLog(() => 9));
    expect(ids((await ask(server, { path: '/api/events' })).body)).toEqual([1, 2]);
  });

  it('are bounded in number and end when the server closes', async () => {
    const server = await serve(
      eventLog(() => 1),
      { maxStreams: 1 },
    );
    const open = read(server, () => false).catch(() => 'cut off');
    await delay(100);
    const second = await ask(server, { path: '/api/events', headers: { accept: 'text/event-stream' } });
    expect(second.status).toBe(429);
    await server.close();
    expect(ids(await open)).toEqual([1]);
  });
});

describe('closing', () => {
  it('lets an answer that is under way finish, and is asked twice without harm', async () => {
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const server = await serve(async (r) => {
      await gate;
      return echo(r);
    });
    const pending = ask(server, {});
    await delay(50);
    const closed = Promise.all([server.close(5000), server.close()]);
    release();
    expect((await pending).status).toBe(200);
    await closed;
    await expect(ask(server, {})).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});
