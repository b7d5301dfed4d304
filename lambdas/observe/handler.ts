/**
 * Takes in what EC2, ECS and S3 say happened to instances, tasks and checkpoints, and wakes the cycle when something did.
 * Warnings come alone and at once, all else by a queue and some together. EC2's events cannot be told by rules to be of our
 * instances: others are dropped here. Fails, or hands back of a batch, what cannot be done now; that then comes again.
 */
import middy from '@middy/core';
import type { SQSBatchResponse } from 'aws-lambda';
import { z } from 'zod';
import { composeObserving } from '../../lib/aws/compose-observing.ts';
import { fleetEvent, type FleetEvent } from '../../lib/aws/fleet/events.ts';
import { observing, type Observing } from '../../lib/aws/observing.ts';
import { lambdaStack, logger, measure } from '../../lib/aws/stack.ts';

const batch = z.object({
  Records: z
    .array(z.object({ eventSource: z.literal('aws:sqs'), messageId: z.string().min(1), body: z.string() }))
    .min(1),
});
type Batch = z.output<typeof batch>;

export const handler = middy<Batch | FleetEvent, SQSBatchResponse | { readonly isNews: boolean }>()
  .use(lambdaStack('observe', z.union([batch, fleetEvent])))
  .handler(async (event) => {
    const of = observing(composeObserving);
    if ('Records' in event) return onBatch(of, event.Records);
    const { isNews, failed } = await of.observe([event]);
    // What was learned of before the failure is not learned of again.
    if (isNews) await told(of, [event]);
    for (const error of failed.values()) throw error;
    return { isNews };
  });

/** A message that nobody understands is handed back like one that failed, until it is put aside. */
async function onBatch(of: Observing, records: Batch['Records']): Promise<SQSBatchResponse> {
  const understood: { readonly id: string; readonly event: FleetEvent }[] = [];
  const bad: string[] = [];
  for (const { messageId, body } of records) {
    const event = parsed(body);
    if (event === null) bad.push(messageId);
    else understood.push({ id: messageId, event });
  }
  const events = understood.map((u) => u.event);
  const { isNews, failed } = await of.observe(events);
  if (isNews) await told(of, events);
  for (const error of new Set(failed.values())) logger.warn('events come again', { error });
  if (bad.length > 0) logger.error('messages that are no events', { bad });
  const again = understood.flatMap(({ id }, at) => (failed.has(at) ? [id] : []));
  return { batchItemFailures: [...bad, ...again].map((itemIdentifier) => ({ itemIdentifier })) };
}

async function told(of: Observing, events: readonly FleetEvent[]): Promise<void> {
  const warnings = events.filter((e) => e['detail-type'] === 'EC2 Spot Instance Interruption Warning').length;
  if (warnings > 0) measure('interruptions', warnings);
  await of.wake();
}

function parsed(body: string): FleetEvent | null {
  try {
    return fleetEvent.parse(JSON.parse(body));
  } catch {
    return null;
  }
}
