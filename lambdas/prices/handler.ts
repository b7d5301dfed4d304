/** Fetches spot prices, by the clock. */
import middy from '@middy/core';
import { z } from 'zod';
import { composeObserving } from '../../lib/aws/compose-observing.ts';
import { observing } from '../../lib/aws/observing.ts';
import { lambdaStack, logger } from '../../lib/aws/stack.ts';

const input = z.object({ source: z.literal('aws.events') });

export const handler = middy<z.output<typeof input>, { readonly changes: number }>()
  .use(lambdaStack('prices', input))
  .handler(async () => {
    const changes = await observing(composeObserving).fetchPrices();
    logger.info('prices', { changes });
    return { changes };
  });
