/**
 * Takes in what EC2, ECS and S3 say happened to instances, tasks and checkpoints, and wakes the cycle when something did.
 * Rules on EC2's events cannot tell our instances from others: those are dropped here. Fails when what follows from an event
 * cannot be done now; the event then comes again.
 */
import middy from '@middy/core';
import { composeObserving } from '../../lib/aws/compose-observing.ts';
import { fleetEvent, type FleetEvent } from '../../lib/aws/fleet/events.ts';
import { observing } from '../../lib/aws/observing.ts';
import { lambdaStack, measure } from '../../lib/aws/stack.ts';

export const handler = middy<FleetEvent, { readonly isNews: boolean }>()
  .use(lambdaStack('observe', fleetEvent))
  .handler(async (event) => {
    const of = observing(composeObserving);
    const isNews = await of.observe(event);
    if (isNews) {
      if (event['detail-type'] === 'EC2 Spot Instance Interruption Warning') measure('interruptions', 1);
      await of.wake();
    }
    return { isNews };
  });
