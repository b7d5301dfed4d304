/** Does one part of what was recorded. May be repeated, and run beside the other parts. */
import middy from '@middy/core';
import type { z } from 'zod';
import type { EffectKey } from '../../lib/kernel/ids.ts';
import { perform } from '../../lib/cycle/steps.ts';
import { composeDeployment } from '../../lib/aws/compose.ts';
import { deployment } from '../../lib/aws/deployment.ts';
import { actInput, type Acted } from '../../lib/aws/messages.ts';
import { lambdaStack, logger, measure } from '../../lib/aws/stack.ts';

/** What the outcomes of all parts may take of the 256 KiB that the state machine carries. */
const ALL_OUTCOMES_BYTES = 65_536;

export const handler = middy<z.output<typeof actInput>, Acted>()
  .use(lambdaStack('act', actInput))
  .handler(async ({ execution, round, keys: reference, batches, batch: { from, to } }) => {
    const { carrier, store, fleet } = deployment(composeDeployment);
    const keys = (await carrier.get<readonly EffectKey[]>(reference)).slice(from, to);
    const outcomes = await perform({ store, fleet }, keys);
    let denied = 0;
    for (const [key, outcome] of outcomes) {
      if (outcome.status === 'failed') logger.warn('an effect failed and is tried again', { key, ...outcome });
      if (outcome.status === 'done' || outcome.why !== 'denied') continue;
      denied += 1;
      if (outcome.status === 'refused') logger.error('an effect was denied', { key, ...outcome });
    }
    if (denied > 0) measure('effectsDenied', denied);
    const name = `${execution}/${round}/outcomes-${from}`;
    return { outcomes: await carrier.put(outcomes, name, Math.floor(ALL_OUTCOMES_BYTES / batches.length)) };
  });
