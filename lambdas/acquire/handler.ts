/**
 * Starts a cycle when one is due. Three kinds of events come here: messages of the trigger queue, which say that there is
 * something to do; the minute's clock, which asks whether anything is due and costs one read when nothing is; and the state
 * machine, which says that an execution failed, so that the next one need not wait until it is taken for dead.
 */
import middy from '@middy/core';
import type { SQSBatchResponse } from 'aws-lambda';
import { z } from 'zod';
import { composeDeployment } from '../../lib/aws/compose.ts';
import { deployment } from '../../lib/aws/deployment.ts';
import { gaveUpInput } from '../../lib/aws/messages.ts';
import { lambdaStack, logger, measure } from '../../lib/aws/stack.ts';
import type { Wake } from '../../lib/aws/wake.ts';

const messages = z.object({
  Records: z.array(z.object({ eventSource: z.literal('aws:sqs'), messageId: z.string().min(1) })).min(1),
});
const clock = z.object({ source: z.literal('aws.events'), 'detail-type': z.literal('Scheduled Event') });
const input = z.union([messages, gaveUpInput, clock]);

export const handler = middy<z.output<typeof input>, SQSBatchResponse | undefined>()
  .use(lambdaStack('acquire', input))
  .handler(async (event) => {
    const { wake } = deployment(composeDeployment);
    if ('Records' in event) return onMessages(wake, event.Records);
    if ('fault' in event) await onFailure(wake, event);
    else await onClock(wake);
    return undefined;
  });

/** All of them say the same, whatever is in them: one cycle serves them all, or all of them come again. */
async function onMessages(wake: Wake, records: z.output<typeof messages>['Records']): Promise<SQSBatchResponse> {
  try {
    await wake.wake();
    return { batchItemFailures: [] };
  } catch (error) {
    measure('cycleFaults', 1);
    logger.error('no cycle could be started', { error });
    return { batchItemFailures: records.map((r) => ({ itemIdentifier: r.messageId })) };
  }
}

async function onClock(wake: Wake): Promise<void> {
  try {
    const answer = await wake.wakeIfDue();
    logger.debug('the clock', { answer });
    if (answer !== 'revived') return;
    logger.warn('an execution of the cycle was not heard of any more');
    measure('cycleFaults', 1);
  } catch (error) {
    measure('cycleFaults', 1);
    throw error;
  }
}

/** Not begun again at once: what made it fail may last. The clock does within a minute, any trigger sooner. */
async function onFailure(wake: Wake, { execution, fault }: z.output<typeof gaveUpInput>): Promise<void> {
  measure('cycleFaults', 1);
  const isFreed = await wake.gaveUp(execution);
  logger.error('an execution of the cycle failed', { execution, fault, isFreed });
}
