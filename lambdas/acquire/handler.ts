/**
 * Start of a cycle that is due. The minute's tick asks whether one is due; if not, that costs one read.
 * The same for the controller of services, where there are any.
 * The state machine reports a failed execution here, so that the next one need not wait until it is taken for dead. All
 * other triggers wake the cycle through the queue (lambdas/observe).
 */
import middy from '@middy/core';
import { z } from 'zod';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { gaveUpInput } from '../../lib/drivers/aws/cycle/messages.ts';
import { lambdaStack, logger, measure } from '../../lib/drivers/aws/lambda/stack.ts';
import { tick } from '../../lib/drivers/aws/cycle/tick.ts';
import type { Wake } from '../../lib/drivers/aws/cycle/wake.ts';

const input = z.union([gaveUpInput, tick]);

export const handler = middy<z.output<typeof input>, void>()
  .use(lambdaStack('acquire', input))
  .handler(async (event) => {
    const { wake, serviceWake } = deployment(composeDeployment);
    if ('fault' in event) {
      await onFailure(wake, event);
      return;
    }
    await onClock(wake, event.time);
    const services = await serviceWake?.wakeIfDue(event.time);
    if (services === 'revived') logger.warn('the controller of services died without a report');
  });

async function onClock(wake: Wake, tickMs: number): Promise<void> {
  try {
    const answer = await wake.wakeIfDue(tickMs);
    logger.debug('the clock', { answer });
    if (answer !== 'revived') return;
    logger.warn('an execution of the cycle died without a report');
    measure('cycleFaults', 1);
  } catch (error) {
    measure('cycleFaults', 1);
    throw error;
  }
}

/** No restart at once: the cause may last. The clock starts a cycle within a minute, any trigger sooner. */
async function onFailure(wake: Wake, { execution, fault }: z.output<typeof gaveUpInput>): Promise<void> {
  measure('cycleFaults', 1);
  const isFreed = await wake.gaveUp(execution);
  logger.error('an execution of the cycle failed', { execution, fault, isFreed });
}
