/** Proxies of all services, in a thread of their own: neither the API nor a decision delays a request. */
import { parentPort } from 'node:worker_threads';
import { EbbError, invariant, messageOf } from '../../../kernel/errors.ts';
import { ServiceProxy } from './service-proxy.ts';
import type { CallName, FromTraffic, Refused, ToTraffic, TrafficCalls } from './traffic-messages.ts';

const port = invariant(parentPort, 'the proxy runs in a thread');
const proxies = new Map<string, ServiceProxy>();
/** Calls one after another: routes are not made twice. */
let last: Promise<unknown> = Promise.resolve();

port.on('message', (asked: ToTraffic) => {
  last = last.then(() => reply(asked));
});

async function reply(asked: ToTraffic): Promise<void> {
  let reply: FromTraffic;
  try {
    reply = { id: asked.id, answer: await answerOf(asked) };
  } catch (error) {
    reply = { id: asked.id, error: plainError(error) };
  }
  port.postMessage(reply);
}

function plainError(error: unknown): Omit<Refused, 'service'> {
  const { code, facts } = error instanceof EbbError ? error : new EbbError('internal', { what: messageOf(error) });
  const { cause: _, ...plain } = facts;
  return { code, facts: plain };
}

async function answerOf(asked: ToTraffic): Promise<TrafficCalls[CallName]['answer']> {
  switch (asked.call) {
    case 'route':
      return routeAll(asked.given);
    case 'states':
      return proxies.get(asked.given)?.states ?? [];
    case 'take':
      return proxies.get(asked.given)?.take() ?? null;
    case 'address':
      return proxies.get(asked.given)?.address ?? null;
    case 'close':
      await routeAll({ routes: [], kept: [] });
      return null;
  }
}

/**
 * Services that cannot have their route; all others have theirs. One that moves keeps its port until it has the next.
 */
async function routeAll({ routes, kept }: TrafficCalls['route']['given']): Promise<readonly Refused[]> {
  const wanted = new Set([...routes.map((r) => r.service), ...kept]);
  for (const [service, proxy] of proxies) {
    if (wanted.has(service)) continue;
    proxies.delete(service);
    await proxy.close();
  }
  const refused: Refused[] = [];
  for (const route of routes) {
    const { service } = route;
    const known = proxies.get(service);
    try {
      if (known?.fits(route) === true) {
        known.route(route);
        continue;
      }
      proxies.set(service, await ServiceProxy.open(route));
      await known?.close();
    } catch (error) {
      known?.route({ ...route, port: known.port });
      refused.push({ service, ...plainError(error) });
    }
  }
  return refused;
}
