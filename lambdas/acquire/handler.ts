/**
 * Starts a cycle when one is due. Two kinds of events come here: messages of the trigger queue, which say that there is
 * something to do, and the minute's clock, which asks whether anything is due and costs one read when nothing is.
 */
import middy from '@middy/core';
import type { SQSBatchResponse } from 'aws-lambda';
import { z } from 'zod';
import { composeDeployment } from '../../lib/aws/compose.ts';
import { deployment } from '../../lib/aws/deployment.ts';
import { lambdaStack, logger } from '../../lib/aws/stack.ts';

const messages = z.object({
  Records: z.array(z.object({ eventSource: z.literal('aws:sqs'), messageId: z.string().min(1) })).min(1),
});
const clock = z.object({ source: z.literal('aws.events'), 'detail-type': z.literal('Scheduled Event') });
const input = z.union([messages, clock]);

export const handler = middy<z.output<typeof input>, SQSBatchResponse | undefined>()
  .use(lambdaStack('acquire', input))
  .handler(async (event) => {
    const { wake } = deployment(composeDeployment);
    if (!('Records' in event)) {
      logger.debug('the clock', { answer: await wake.wakeIfDue() });
      return undefined;
    }
    // All of them say the same, whatever is in them: one cycle serves them all, or all of them come again.
    try {
      await wake.wake();
      return { batchItemFailures: [] };
    } catch (error) {
      logger.error('no cycle could be started', { error });
      return { batchItemFailures: event.Records.map((r) => ({ itemIdentifier: r.messageId })) };
    }
  });
