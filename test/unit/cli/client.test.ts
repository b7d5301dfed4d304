import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { all, clientOver, httpClient, queryString, type Client, type RawAnswer } from '../../../lib/cli/client.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';

describe('over HTTP', () => {
  let server: Server | null = null;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });
  const serving = async (answer: RequestListener): Promise<Client> => {
    const created = createServer(answer);
    server = created;
    await new Promise<void>((resolve) => created.listen(0, '127.0.0.1', resolve));
    return httpClient(`http://127.0.0.1:${(created.address() as AddressInfo).port}/`, 'secret');
  };

  it('sends the token, the query and JSON bodies', async () => {
    const client = await serving((request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += String(chunk)));
      request.on('end', () => {
        const { authorization, 'content-type': type, 'idempotency-key': key } = request.headers;
        response.end(JSON.stringify({ method: request.method, url: request.url, authorization, type, key, body }));
      });
    });
    expect(await client.get('/api/jobs', { state: ['running', 'pending'], owner: undefined })).toMatchObject({
      method: 'GET',
      url: '/api/jobs?state=running&state=pending',
      authorization: 'Bearer secret',
    });
    expect(await client.post('/api/jobs', { body: { name: 'x' }, headers: { 'idempotency-key': 'k' } })).toMatchObject({
      method: 'POST',
      type: 'application/json',
      key: 'k',
      body: '{"name":"x"}',
    });
  });

  it('throws the error that a problem document describes', async () => {
    const problem = {
      code: 'job.unplaceable',
      what: 'no pool fits',
      allowed: 'at most 96 vCPUs',
      next: 'ask for less',
    };
    const client = await serving((_, response) => {
      response.writeHead(422, { 'content-type': 'application/problem+json' });
      response.end(JSON.stringify(problem));
    });
    const error = await client.get('/api/jobs').catch((e: unknown) => e);
    expect(error).toBeInstanceOf(EbbError);
    const { code, ...facts } = problem;
    expect(error).toMatchObject({ code, facts });
  });

  it('says when what answers is no engine', async () => {
    const client = await serving((_, response) => response.end('<html>hello</html>'));
    await expect(client.get('/api/jobs')).rejects.toMatchObject({ code: 'engine.absent' });
  });

  it('follows events through a stream that ends and one that goes on, without a gap or a repeat', async () => {
    const asked: (string | undefined)[] = [];
    const line = (n: number): string => `id: ${n}\ndata: ${JSON.stringify({ sequence: n, text: `e${n}` })}\n\n`;
    const client = await serving((request, response) => {
      asked.push(request.url);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (asked.length === 1) response.end(`retry: 1\n\n${line(1)}${line(2)}: heartbeat\n\n`);
      else response.write(line(3));
    });
    const stop = new AbortController();
    const seen: number[] = [];
    for await (const event of client.events(0, stop.signal)) {
      seen.push(event.sequence);
      if (event.sequence === 3) stop.abort();
    }
    expect(seen).toEqual([1, 2, 3]);
    expect(asked).toEqual(['/api/events?after=0&limit=1000', '/api/events?after=2&limit=1000']);
  });
});

describe('over a function', () => {
  const answering = (answer: (path: string) => unknown) =>
    clientOver(async ({ path }): Promise<RawAnswer> => ({ status: 200, body: JSON.stringify(answer(path)) }));

  it('collects all pages of a list', async () => {
    const pages: Record<string, unknown> = {
      '/api/pools?limit=2': { items: [1, 2], next: 'c' },
      '/api/pools?limit=2&cursor=c': { items: [3], next: null },
    };
    expect(
      await all(
        answering((path) => pages[path]),
        '/api/pools',
        { limit: 2 },
      ),
    ).toEqual([1, 2, 3]);
  });

  it('finds the last event there is, over several batches', async () => {
    const client = clientOver(async ({ path }) => {
      const after = Number(/after=(\d+)/.exec(path)?.[1]);
      const body =
        after < 5 ? `id: ${after + 1}\ndata: ${JSON.stringify({ sequence: after + 1 })}\n\n` : 'retry: 1\n\n';
      return { status: 200, body };
    });
    expect(await client.lastEvent()).toBe(5);
  });
});

it('leaves out of a query what is not given', () => {
  expect(queryString({})).toBe('');
  expect(queryString({ a: undefined, b: 'x y', c: 0, d: false })).toBe('?b=x+y&c=0&d=false');
});
