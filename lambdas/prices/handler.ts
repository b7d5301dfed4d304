/** Prices, fetched by the clock and once during deployment. The deployment fails if there are none. */
import middy from '@middy/core';
import { z } from 'zod';
import { EbbError } from '../../lib/kernel/errors.ts';
import { composeObserving } from '../../lib/drivers/aws/compose/compose-observing.ts';
import {
  answerDeployment,
  customResourceEvent,
  type Answered,
} from '../../lib/drivers/aws/deploying/custom-resource.ts';
import { observing, type FetchedPrices } from '../../lib/drivers/aws/compose/observing.ts';
import { lambdaStack, logger, measure } from '../../lib/drivers/aws/lambda/stack.ts';
import { tick } from '../../lib/drivers/aws/cycle/tick.ts';

const input = z.union([tick, customResourceEvent]);
type Answer = Answered | (Partial<FetchedPrices> & { readonly changes: number });

export const handler = middy<z.output<typeof input>, Answer>()
  .use(lambdaStack('prices', input))
  .handler(async (event) => {
    if ('ResponseURL' in event) return answerDeployment(event, fetchedForDeployment);
    const fetched = await observing(composeObserving).fetchPrices({ tickMs: event.time });
    if (fetched === null) return { changes: 0 };
    say(fetched);
    return fetched;
  });

function say(fetched: FetchedPrices): void {
  logger.info('prices', { ...fetched });
  if (fetched.onDemand?.source === 'catalogue') {
    logger.warn('on-demand prices are the built-in ones of us-east-1', { why: fetched.onDemand.why });
  }
  if (fetched.reserved === null) return;
  const { fault, issues, named } = fetched.reserved;
  measure('reservationsUnusable', fault === null ? issues.length : named);
  if (fault !== null) logger.warn('capacity reservations are not used: EC2 does not describe them', { fault });
  for (const { message } of issues) logger.warn('a capacity reservation cannot be used', { message });
}

async function fetchedForDeployment({ Families, Zones }: Record<string, unknown>): Promise<void> {
  let fetched: FetchedPrices | null;
  try {
    fetched = await observing(composeObserving).fetchPrices('deploying');
  } catch (error) {
    // Passing faults must not undo a deployment: the clock asks again.
    if (!(error instanceof EbbError) || (error.code !== 'too-many-requests' && error.code !== 'aws.unavailable'))
      throw error;
    logger.warn('no prices yet', { error });
    return;
  }
  if (fetched === null) return;
  say(fetched);
  if (fetched.pools !== 0) return;
  throw new EbbError('usage', {
    what: 'families: EC2 has no spot price for any of them',
    got: `${String(Families)} in ${String(Zones)}`,
    next: 'name other families, or deploy to another region',
  });
}
