/** One batch of recorded effects. It may be repeated, and runs beside other batches. */
import middy from '@middy/core';
import type { z } from 'zod';
import type { EffectKey } from '../../lib/kernel/ids.ts';
import { perform, type Outcomes } from '../../lib/cycle/steps.ts';
import { composeDeployment } from '../../lib/drivers/aws/compose/compose.ts';
import { deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { actInput, OUTCOMES_BYTES, type Acted } from '../../lib/drivers/aws/cycle/messages.ts';
import { isLate } from '../../lib/drivers/aws/cycle/late.ts';
import { remainingMs } from '../../lib/drivers/aws/lambda/remaining.ts';
import { lambdaStack, logger, measure } from '../../lib/drivers/aws/lambda/stack.ts';

export const handler = middy<z.output<typeof actInput>, Acted>()
  .use(lambdaStack('act', actInput))
  .handler(async ({ execution, round, began, keys: listed, batches, batch: { from, to } }) => {
    const { carrier, store, fleet } = deployment(composeDeployment);
    const keys = (await carrier.get<readonly EffectKey[]>(listed)).slice(from, to);
    // Outcomes of other batches are still confirmed. The next cycle performs this batch.
    const isLeft = isLate(began, Date.now(), remainingMs());
    if (isLeft) logger.warn('no time left: the next cycle performs these effects', { from, to });
    const outcomes: Outcomes = isLeft ? new Map() : await perform({ store, fleet }, keys);
    let denied = 0;
    for (const [key, outcome] of outcomes) {
      if (outcome.status === 'failed') logger.warn('an effect failed and is tried again', { key, ...outcome });
      if (outcome.status === 'done' || outcome.why !== 'denied') continue;
      denied += 1;
      if (outcome.status === 'refused') logger.error('an effect was denied', { key, ...outcome });
    }
    if (denied > 0) measure('effectsDenied', denied);
    const name = `${execution}/${round}/outcomes-${from}`;
    const reference = await carrier.put(outcomes, name, Math.floor(OUTCOMES_BYTES / batches.length));
    return { outcomes: reference, left: isLeft ? keys.length : 0 };
  });
