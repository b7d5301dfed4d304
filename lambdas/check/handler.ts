/**
 * Check of the region, called by CloudFormation in the first seconds of a deployment: does it offer what the
 * configuration wants to buy? The check depends on no other resource, so it waits for none.
 */
import { EC2Client } from '@aws-sdk/client-ec2';
import middy from '@middy/core';
import { EbbError } from '../../lib/kernel/errors.ts';
import {
  answerDeployment,
  customResourceEvent,
  type Answered,
  type CustomResourceEvent,
} from '../../lib/drivers/aws/deploying/custom-resource.ts';
import { askedOf, checkRegion } from '../../lib/drivers/aws/deploying/offers.ts';
import { lambdaStack, logger } from '../../lib/drivers/aws/lambda/stack.ts';

const client = new EC2Client({ maxAttempts: 6 });

export const handler = middy<CustomResourceEvent, Answered>()
  .use(lambdaStack('check', customResourceEvent))
  .handler(async (event) => {
    const answered = await answerDeployment(event, async (properties) => {
      try {
        const { lacking, notes } = await checkRegion(client, askedOf.parse(properties));
        for (const [zone, families] of lacking) logger.warn('not offered', { zone, families });
        for (const { message } of notes) logger.warn('a capacity reservation', { message });
      } catch (error) {
        // Offers stay unknown. The first purchases will show.
        if (!(error instanceof EbbError) || error.code === 'usage') throw error;
        if (error.code !== 'too-many-requests' && error.code !== 'aws.unavailable') throw error;
        logger.warn('the region could not be asked', { error });
      }
    });
    if (answered.status === 'FAILED') logger.error('this cannot be deployed', { ...answered });
    return answered;
  });
