import { afterEach, describe, expect, it } from '@jest/globals';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { seconds } from '../../../../../lib/kernel/units.ts';
import { ServiceProxy } from '../../../../../lib/drivers/local/traffic/service-proxy.ts';
import type { Route, Target } from '../../../../../lib/ports/traffic.ts';
import { codeOf } from '../../../../support/code-of.ts';
import { routeTo, targetOn } from '../../../../support/routes.ts';

const servers: Server[] = [];
const proxies: ServiceProxy[] = [];
afterEach(async () => {
  await Promise.all(proxies.splice(0).map((p) => p.close()));
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** A replica that answers checks, and requests as told. */
async function replica(answer: RequestListener): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.url === '/healthz') response.end('ok');
    else answer(request, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

const target = (number: number, server: Server, mode: Target['mode'] = 'serve'): Target =>
  targetOn(number, portOf(server), { mode });

/** Checked several times in a second. */
const route = (targets: readonly Target[], over: Partial<Route> = {}): Route =>
  routeTo(targets, {
    health: { path: '/healthz', intervalS: seconds(0.05), timeoutS: seconds(1), graceS: seconds(10), failures: 1 },
    drainS: seconds(5),
    ...over,
  });

async function open(of: Route): Promise<ServiceProxy> {
  const proxy = await ServiceProxy.open(of);
  proxies.push(proxy);
  return proxy;
}

const until = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5));
};
const allHealthy = (proxy: ServiceProxy): Promise<void> =>
  until(() => proxy.states.every((s) => s.health === 'healthy'));

const named =
  (name: string): RequestListener =>
  (_request, response) =>
    response.end(name);

describe('reverse proxy of a service', () => {
  it('hands request and answer through, without the headers of one connection', async () => {
    let seen: IncomingMessage | null = null;
    const server = await replica((request, response) => {
      seen = request;
      request.pipe(
        response.writeHead(201, {
          'x-made': ['a', 'b'],
          'keep-alive': 'timeout=9',
          connection: 'x-secret',
          'x-secret': '1',
        }),
      );
    });
    const proxy = await open(route([target(1, server)]));
    const answer = await fetch(`${proxy.address}/path?q=1`, {
      method: 'POST',
      body: 'hello',
      headers: { 'x-own': 'yes', 'x-forwarded-for': '10.0.0.1' },
    });
    expect([answer.status, await answer.text()]).toEqual([201, 'hello']);
    expect([answer.headers.get('x-made'), answer.headers.get('x-secret')]).toEqual(['a, b', null]);
    const { url, method, headers } = seen as unknown as IncomingMessage;
    expect([url, method, headers['x-own']]).toEqual(['/path?q=1', 'POST', 'yes']);
    expect(headers['x-forwarded-for']).toBe('10.0.0.1, 127.0.0.1');
    expect(headers['x-forwarded-host']).toBe(new URL(proxy.address).host);
    expect(headers.host).toBe(new URL(proxy.address).host);
  });

  it('waits for the first healthy replica, and gives requests to the least busy', async () => {
    let isReady = false;
    const held: (() => void)[] = [];
    const slow = await replica((_request, response) => void held.push(() => response.end('slow')));
    const fast = await replica(named('fast'));
    const [check] = slow.listeners('request') as RequestListener[];
    slow.removeAllListeners('request').on('request', (request, response) => {
      if (request.url === '/healthz' && !isReady) response.writeHead(503).end();
      else check?.(request, response);
    });
    const proxy = await open(route([target(1, slow)]));
    const first = fetch(proxy.address).then((r) => r.text());
    await until(() => proxy.states[0]?.detail === 'GET /healthz answered 503');
    isReady = true;
    await until(() => held.length === 1);
    proxy.route(route([target(1, slow), target(2, fast)]));
    await allHealthy(proxy);
    const others: string[] = [];
    for (let i = 0; i < 3; i++) others.push(await fetch(proxy.address).then((r) => r.text()));
    expect(others).toEqual(['fast', 'fast', 'fast']);
    expect(proxy.states[0]?.inFlight).toBe(1);
    for (const end of held) end();
    expect(await first).toBe('slow');
  });

  it('lets no more into a replica than it may have; the rest wait in order', async () => {
    const order: string[] = [];
    const held: ServerResponse[] = [];
    let most = 0;
    const server = await replica((request, response) => {
      order.push(request.url ?? '');
      most = Math.max(most, held.push(response));
    });
    const proxy = await open(route([target(1, server)], { concurrency: 2 }));
    await allHealthy(proxy);
    const paths = Array.from({ length: 10 }, (_, i) => `/${i}`);
    const asked: Promise<Response>[] = [];
    for (const [i, path] of paths.entries()) {
      asked.push(fetch(proxy.address + path));
      await until(() => order.length + proxy.take().queued === i + 1);
    }
    expect(order).toEqual(paths.slice(0, 2));
    // One answer at a time: the next request is there before another is answered.
    for (let there = 3; held.length > 0; there++) {
      held.shift()?.end();
      await until(() => order.length >= Math.min(there, paths.length));
    }
    expect((await Promise.all(asked)).map((r) => r.status)).toEqual(paths.map(() => 200));
    expect(most).toBe(2);
    expect(order).toEqual(paths);
  });

  it('sends a request on where a replica is gone, or breaks off before it answers', async () => {
    const broken = await replica((request) => request.socket.destroy());
    const good = await replica(named('good'));
    const proxy = await open(route([target(1, broken), target(2, good)]));
    await allHealthy(proxy);
    const answers = await Promise.all(Array.from({ length: 6 }, () => fetch(proxy.address).then((r) => r.text())));
    expect(new Set(answers)).toEqual(new Set(['good']));
    broken.closeAllConnections();
    await new Promise((resolve) => broken.close(resolve));
    const later = await Promise.all(Array.from({ length: 6 }, () => fetch(proxy.address).then((r) => r.status)));
    expect(new Set(later)).toEqual(new Set([200]));
    expect(proxy.take()).toMatchObject({ requests: 12, failed: 0 });
  });

  it('does not repeat what may have been done: a request with a body is answered 502', async () => {
    let tries = 0;
    const broken: RequestListener = (request) => {
      tries += 1;
      request.socket.destroy();
    };
    const proxy = await open(route([target(1, await replica(broken)), target(2, await replica(broken))]));
    await allHealthy(proxy);
    const answer = await fetch(proxy.address, { method: 'POST', body: 'pay' });
    expect([answer.status, tries]).toEqual([502, 1]);
    expect(await answer.json()).toMatchObject({ status: 502, detail: expect.stringContaining('web') as unknown });
    expect(proxy.take()).toMatchObject({ requests: 0, failed: 1 });
  });

  it('drains: requests in flight end, new ones go elsewhere', async () => {
    let end: () => void = () => undefined;
    const old = await replica((_request, response) => void (end = () => response.end('old')));
    const fresh = await replica(named('new'));
    const proxy = await open(route([target(1, old)]));
    await allHealthy(proxy);
    const before = fetch(proxy.address).then((r) => r.text());
    await until(() => proxy.states[0]?.inFlight === 1);
    proxy.route(route([target(1, old, 'drain'), target(2, fresh)]));
    expect(await fetch(proxy.address).then((r) => r.text())).toBe('new');
    expect(proxy.states.map((s) => s.inFlight)).toEqual([1, 0]);
    end();
    expect(await before).toBe('old');
    await until(() => proxy.states[0]?.inFlight === 0);
  });

  it('carries other protocols through, such as WebSockets', async () => {
    const server = await replica(named('plain'));
    server.on('upgrade', (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
      socket.pipe(socket);
    });
    const proxy = await open(route([target(1, server)]));
    await allHealthy(proxy);
    const { port } = new URL(proxy.address);
    const client = connect(Number(port), '127.0.0.1');
    let text = '';
    client.on('data', (chunk) => (text += String(chunk)));
    client.write('GET /chat HTTP/1.1\r\nHost: web\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    await until(() => text.includes('101 Switching Protocols'));
    client.write('ping');
    await until(() => text.endsWith('ping'));
    expect(proxy.states[0]?.inFlight).toBe(1);
    client.end();
    await until(() => proxy.states[0]?.inFlight === 0);
  });

  it('gives up a request whose client has gone', async () => {
    let isClosed = false;
    const server = await replica((request) => void request.socket.on('close', () => (isClosed = true)));
    const proxy = await open(route([target(1, server)]));
    await allHealthy(proxy);
    const asked = httpRequest(proxy.address).on('error', () => undefined);
    asked.end();
    await until(() => proxy.states[0]?.inFlight === 1);
    asked.destroy();
    await until(() => isClosed && proxy.states[0]?.inFlight === 0);
    expect(proxy.take()).toMatchObject({ requests: 0, failed: 0 });
  });

  it('measures latency and slow requests since they were taken last', async () => {
    const server = await replica(
      (request, response) => void setTimeout(() => response.end(), request.url === '/slow' ? 80 : 0),
    );
    const proxy = await open(route([target(1, server)], { target: { latencyS: seconds(0.05), percent: 95 } }));
    await allHealthy(proxy);
    for (const path of ['/', '/', '/slow']) await fetch(proxy.address + path);
    const taken = proxy.take();
    expect(taken).toMatchObject({ requests: 3, failed: 0, queued: 0 });
    expect(taken.slow).toBeGreaterThanOrEqual(1);
    expect(taken.p99S ?? 0).toBeGreaterThanOrEqual(0.08);
    expect(taken.p50S ?? 1).toBeLessThanOrEqual(taken.p95S ?? 0);
    expect(proxy.take()).toMatchObject({ requests: 0, slow: 0, p50S: null });
  });

  it('refuses a port that is taken', async () => {
    const other = await replica(named('other'));
    expect(await codeOf(ServiceProxy.open(route([], { port: portOf(other) })))).toBe('port-in-use');
  });
});
