/** Compares EC2 and ECS with what is recorded, by the clock: finds what no event has told, and what nobody knows of. */
import middy from '@middy/core';
import type { z } from 'zod';
import { composeObserving } from '../../lib/drivers/aws/compose/compose-observing.ts';
import type { Swept } from '../../lib/drivers/aws/fleet/sweep.ts';
import { observing } from '../../lib/drivers/aws/compose/observing.ts';
import { lambdaStack, logger, measure } from '../../lib/drivers/aws/lambda/stack.ts';
import { strike } from '../../lib/drivers/aws/cycle/strike.ts';

export const handler = middy<z.output<typeof strike>, Swept>()
  .use(lambdaStack('sweep', strike))
  .handler(async ({ time }) => {
    const of = observing(composeObserving);
    const swept = await of.sweep(time);
    const { leaked, repaired, stuck, failed, isWork, defect } = swept;
    if (leaked.length + stuck.length > 0) measure('leakedInstances', leaked.length + stuck.length);
    if (stuck.length > 0) logger.error('instances cannot be ended', { stuck });
    if (leaked.length > 0 || repaired.length > 0) logger.warn('put right', { leaked, repaired });
    if (failed.length > 0) logger.warn('not put right yet', { failed });
    // A trigger may have been lost on its way; with nothing to do none is missing.
    if (isWork || repaired.length > 0) await of.wake();
    if (defect !== null) throw defect;
    return swept;
  });
