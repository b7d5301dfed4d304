/** Proxies of all services, in a thread of their own: neither the API nor a decision delays a request. */
import { parentPort } from 'node:worker_threads';
import { EbbError, invariant, messageOf } from '../../../kernel/errors.ts';
import { ServiceProxy } from './service-proxy.ts';
import type { CallName, FromTraffic, ToTraffic, TrafficCalls } from './traffic-messages.ts';

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
    const { code, facts } = error instanceof EbbError ? error : new EbbError('internal', { what: messageOf(error) });
    const { cause: _, ...plain } = facts;
    reply = { id: asked.id, error: { code, facts: plain } };
  }
  port.postMessage(reply);
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
      return routeAll({ routes: [], kept: [] });
  }
}

/** The first fault is told once all other routes are made. */
async function routeAll({ routes, kept }: TrafficCalls['route']['given']): Promise<null> {
  const wanted = new Map(routes.map((r) => [r.service, r]));
  for (const [service, proxy] of proxies) {
    const route = wanted.get(service);
    if (kept.includes(service) || (route !== undefined && proxy.fits(route))) continue;
    proxies.delete(service);
    await proxy.close();
  }
  const faults: unknown[] = [];
  for (const [service, route] of wanted) {
    try {
      const known = proxies.get(service);
      if (known === undefined) proxies.set(service, await ServiceProxy.open(route));
      else known.route(route);
    } catch (error) {
      faults.push(error);
    }
  }
  if (faults.length > 0) throw asError(faults[0]);
  return null;
}

const asError = (fault: unknown): Error => (fault instanceof Error ? fault : new Error(messageOf(fault)));
