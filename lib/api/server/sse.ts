import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiRequest, ApiResponse, Dispatch } from '../dispatch.ts';
import { LAST_EVENT_HEADER } from '../events.ts';

/** Wall time between two polls of the store while a client listens. */
const POLL_MS = 250;
/** Interval of comments that keep proxies from closing a quiet connection. */
const HEARTBEAT_MS = 15_000;

export const isEventStream = (response: ApiResponse): boolean =>
  response.status === 200 && response.headers['content-type']?.startsWith('text/event-stream') === true;

/**
 * Open stream of events: asks the handler for the next batch until the client leaves or `signal` aborts. It waits for
 * slow readers, so nothing accumulates in memory.
 */
export async function keepStreaming(
  to: ServerResponse,
  from: { readonly dispatch: Dispatch; readonly request: ApiRequest; readonly first: ApiResponse },
  signal: AbortSignal,
): Promise<void> {
  let last = from.first.headers[LAST_EVENT_HEADER] ?? '0';
  let quietMs = 0;
  let sent = to.write(from.first.body);
  const headers = withoutLastId(from.request.headers);
  const over = (): boolean => signal.aborted || to.destroyed || to.writableEnded;
  while (!over()) {
    if (!sent) await once(to, 'drain', { signal }).catch(() => undefined);
    await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    if (over()) break;
    const batch = await from.dispatch({ ...from.request, headers: { ...headers, 'last-event-id': last } });
    if (!isEventStream(batch)) break;
    const reached = batch.headers[LAST_EVENT_HEADER] ?? last;
    if (reached !== last) {
      sent = to.write(batch.body);
      last = reached;
      quietMs = 0;
    } else if ((quietMs += POLL_MS) >= HEARTBEAT_MS) {
      sent = to.write(': still here\n\n');
      quietMs = 0;
    }
  }
  if (!to.destroyed) to.end();
}

const withoutLastId = (headers: ApiRequest['headers']): Record<string, string> =>
  Object.fromEntries(Object.entries(headers ?? {}).filter(([name]) => name.toLowerCase() !== 'last-event-id'));
