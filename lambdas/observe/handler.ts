/**
 * Consumer of the trigger queue; it wakes the cycle. Messages are events of EC2, ECS and S3 about instances, tasks and
 * checkpoints, or plain requests for a cycle.
 * A batch of messages is observed together and wakes the cycle once. Interruption warnings come alone and at once.
 * Rules cannot select EC2 events of our instances, so others are dropped here. Messages that fail are returned to the
 * queue and come again.
 */
import middy from '@middy/core';
import type { SQSBatchResponse } from 'aws-lambda';
import { z } from 'zod';
import { composeObserving } from '../../lib/drivers/aws/compose/compose-observing.ts';
import { fleetEvent, type FleetEvent } from '../../lib/drivers/aws/fleet/event-notices.ts';
import { observing, type Observing } from '../../lib/drivers/aws/compose/observing.ts';
import { lambdaStack, logger, measure } from '../../lib/drivers/aws/lambda/stack.ts';

const record = z.object({
  eventSource: z.literal('aws:sqs'),
  messageId: z.string().min(1),
  body: z.string(),
  attributes: z.object({ ApproximateReceiveCount: z.coerce.number().int().positive() }),
});
const batch = z.object({ Records: z.array(record).min(1) });
type Batch = z.output<typeof batch>;
/** Warning that failed for good: the Lambda service set it aside, and a person sent it back. */
const failedEvent = z.object({ requestPayload: fleetEvent }).transform((letter) => letter.requestPayload);
const understoodEvent = z.union([fleetEvent, failedEvent]);
const KINDS: readonly unknown[] = fleetEvent.options.map((o) => o.shape['detail-type'].value);

export const handler = middy<Batch | FleetEvent, SQSBatchResponse | { readonly isNews: boolean }>()
  .use(lambdaStack('observe', z.union([batch, fleetEvent])))
  .handler(async (event) => {
    const of = observing(composeObserving);
    if ('Records' in event) return onBatch(of, event.Records);
    const { isNews, isDue, failed } = await of.observe([event]);
    if (isNews) measureWarnings([event]);
    // Cycle first, then the error: news before the failure are not reported again.
    if (isDue) await woken(of);
    for (const error of failed.values()) throw error;
    return { isNews };
  });

/** Unreadable messages are returned like failed ones, until the queue sets them aside. */
async function onBatch(of: Observing, records: Batch['Records']): Promise<SQSBatchResponse> {
  const told: { readonly id: string; readonly event: FleetEvent }[] = [];
  const bad: string[] = [];
  let isTriggered = false;
  for (const { messageId: id, body, attributes } of records) {
    const understood = parsed(body);
    if (understood === null) bad.push(id);
    else if (understood === 'wake') isTriggered = true;
    else {
      told.push({ id, event: understood });
      // An earlier receiver may have stored the news and died before it woke the cycle.
      if (attributes.ApproximateReceiveCount > 1) isTriggered = true;
    }
  }
  if (bad.length > 0) logger.error('unreadable messages', { bad });
  const events = told.map((t) => t.event);
  const { isNews, isDue, failed } = await of.observe(events);
  if (isNews) measureWarnings(events);
  for (const error of new Set(failed.values())) logger.warn('events come again', { error });
  const again = told.flatMap(({ id }, at) => (failed.has(at) ? [id] : []));
  const isWoken = !(isDue || isTriggered) || (await tried(() => woken(of)));
  return givenBack(isWoken ? [...bad, ...again] : records.map((r) => r.messageId));
}

const givenBack = (ids: readonly string[]): SQSBatchResponse => ({
  batchItemFailures: ids.map((itemIdentifier) => ({ itemIdentifier })),
});

async function woken(of: Observing): Promise<void> {
  try {
    await of.wake();
  } catch (error) {
    measure('cycleFaults', 1);
    logger.error('no cycle could be started', { error });
    throw error;
  }
}

const tried = (act: () => Promise<void>): Promise<boolean> =>
  act().then(
    () => true,
    () => false,
  );

function measureWarnings(events: readonly FleetEvent[]): void {
  const warnings = events.filter((e) => e['detail-type'] === 'EC2 Spot Instance Interruption Warning').length;
  if (warnings > 0) measure('interruptions', warnings);
}

/** `wake`: a submission, a one-off schedule, or a dead letter that was sent back. They carry no further facts. */
function parsed(body: string): FleetEvent | 'wake' | null {
  let content: unknown;
  try {
    content = JSON.parse(body);
  } catch {
    return null;
  }
  const event = understoodEvent.safeParse(content);
  if (event.success) return event.data;
  if (typeof content !== 'object' || content === null) return null;
  return 'detail-type' in content && KINDS.includes(content['detail-type']) ? null : 'wake';
}
