/** Comparison of EC2 and ECS with our records, by the clock. It finds missed events and unknown instances. */
import middy from '@middy/core';
import type { z } from 'zod';
import { composeObserving } from '../../lib/drivers/aws/compose/compose-observing.ts';
import type { Swept } from '../../lib/drivers/aws/fleet/sweep.ts';
import { observing } from '../../lib/drivers/aws/compose/observing.ts';
import { lambdaStack, logger, measure } from '../../lib/drivers/aws/lambda/stack.ts';
import { tick } from '../../lib/drivers/aws/cycle/tick.ts';

export const handler = middy<z.output<typeof tick>, Swept>()
  .use(lambdaStack('sweep', tick))
  .handler(async ({ time }) => {
    const of = observing(composeObserving);
    const swept = await of.sweep(time);
    const { leaked, repaired, stuck, failed, isWork, defect } = swept;
    if (leaked.length + stuck.length > 0) measure('leakedInstances', leaked.length + stuck.length);
    if (stuck.length > 0) logger.error('instances cannot be ended', { stuck });
    if (leaked.length > 0 || repaired.length > 0) logger.warn('repaired', { leaked, repaired });
    if (failed.length > 0) logger.warn('not repaired yet', { failed });
    // Triggers can be lost on their way. With nothing to do, none is missing.
    if (isWork || repaired.length > 0) await of.wake();
    if (defect !== null) throw defect;
    return swept;
  });
