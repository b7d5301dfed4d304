import type { z } from 'zod';
import { EbbError } from '../kernel/errors.ts';
import type { Backend } from '../ports/backend.ts';
import type { EventRecord } from '../ports/store.ts';
import { MAX_PAGE_BYTES } from './bounded.ts';
import { findJob } from './find-job.ts';
import type { Answer } from './operation.ts';
import type { eventsQuery } from './requests.ts';
import { eventView } from './views.ts';

/** Wall time after which a client asks again, ms: each answer is one finite batch. */
const RETRY_MS = 1000;
/** Records per read, and the most reads for one answer when a filter passes few. */
const READ = 1000;
const MAX_READS = 20;
/**
 * Header with the last sequence number of the answer, for adapters that continue by themselves (lib/api/server/sse.ts).
 */
export const LAST_EVENT_HEADER = 'x-last-event-id';

/**
 * Batch of server-sent events after the client's last one. A client that reconnects, as the browser's EventSource does,
 * sends Last-Event-ID: no gaps, no repetitions.
 */
export async function streamEvents(
  of: Backend,
  query: z.output<typeof eventsQuery>,
  lastEventId: string | undefined,
): Promise<Answer> {
  const after = lastEventId === undefined || lastEventId === '' ? (query.after ?? 0) : sequenceOf(lastEventId);
  const job = query.job === undefined ? null : (await findJob(of, query.job)).id;
  const found: EventRecord[] = [];
  let last = after;
  let bytes = 0;
  reading: for (let reads = 0; reads < MAX_READS && found.length < query.limit; reads++) {
    const size = job === null ? query.limit - found.length : READ;
    const records = await of.store.events(last, size);
    for (const record of records) {
      if (found.length === query.limit) break;
      const isWanted = job === null || record.job === job;
      if (isWanted) bytes += Buffer.byteLength(JSON.stringify(eventView(record)));
      // The next answer has the rest.
      if (bytes > MAX_PAGE_BYTES && found.length > 0) break reading;
      last = record.sequence;
      if (isWanted) found.push(record);
    }
    if (records.length < size) break;
  }
  return {
    status: 200,
    contentType: 'text/event-stream; charset=utf-8',
    headers: { [LAST_EVENT_HEADER]: String(last) },
    text: format(found, last),
  };
}

function sequenceOf(lastEventId: string): number {
  if (/^\d{1,16}$/.test(lastEventId)) {
    const sequence = Number(lastEventId);
    if (Number.isSafeInteger(sequence)) return sequence;
  }
  throw new EbbError('usage', {
    what: 'the header Last-Event-ID is not an id of this stream',
    at: 'header.last-event-id',
    allowed: 'a whole number: the `id` of an event',
    next: 'Leave the header out to start from the first event.',
  });
}

/** Text of the events. The last line moves the client's id past filtered events: an id without data is no event. */
function format(records: readonly EventRecord[], last: number): string {
  let text = `retry: ${RETRY_MS}\n\n`;
  for (const r of records) {
    // The default event type reaches every listener; the data has the type of the record.
    text += `id: ${r.sequence}\ndata: ${JSON.stringify(eventView(r))}\n\n`;
  }
  return `${text}id: ${last}\n\n`;
}
