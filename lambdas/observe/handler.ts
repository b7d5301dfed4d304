/**
 * The consumer of the one queue, and so what sets cycles going: messages there say what happened to instances, tasks
 * and checkpoints (events of EC2, ECS and S3), or that there is something to do. A batch of them is taken in together
 * and wakes the cycle once. Warnings come alone and at once. EC2's events cannot be told by rules to be of our
 * instances: others are dropped here. Fails, or hands back of a batch, what cannot be done now; that then comes again.
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
/** A warning that failed for good, as the Lambda service put it aside, and a person sent it back. */
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
    // What was learned of before a failure is not learned of again.
    if (isDue) await woken(of);
    for (const error of failed.values()) throw error;
    return { isNews };
  });

/** A message that nobody understands is handed back like one that failed, until it is put aside. */
async function onBatch(of: Observing, records: Batch['Records']): Promise<SQSBatchResponse> {
  const told: { readonly id: string; readonly event: FleetEvent }[] = [];
  const bad: string[] = [];
  let isTriggered = false;
  for (const { messageId: id, body, attributes } of records) {
    const understood = parsed(body);
    if (understood === null) bad.push(id);
    else if (understood === 'look') isTriggered = true;
    else {
      told.push({ id, event: understood });
      // Whoever had it before may have taken it in, and died before it woke anybody.
      if (attributes.ApproximateReceiveCount > 1) isTriggered = true;
    }
  }
  if (bad.length > 0) logger.error('messages that nobody understands', { bad });
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

/** `look`: a submission, a one-off schedule, or a dead letter sent back, which say no more than that. */
function parsed(body: string): FleetEvent | 'look' | null {
  let content: unknown;
  try {
    content = JSON.parse(body);
  } catch {
    return null;
  }
  const event = understoodEvent.safeParse(content);
  if (event.success) return event.data;
  if (typeof content !== 'object' || content === null) return null;
  return 'detail-type' in content && KINDS.includes(content['detail-type']) ? null : 'look';
}
