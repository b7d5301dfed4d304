/**
 * The archive: finished records from the table's stream become lines in the bucket. An unreadable change is set aside
 * alone.
 */
import middy from '@middy/core';
import type { DynamoDBBatchResponse } from 'aws-lambda';
import { z } from 'zod';
import { archive } from '../../lib/drivers/aws/archive/archive.ts';
import { streamRecord } from '../../lib/drivers/aws/archive/archive-rows.ts';
import { processParts } from '../../lib/drivers/aws/compose/compose.ts';
import { lambdaStack, logger } from '../../lib/drivers/aws/lambda/stack.ts';

const input = z.object({ Records: z.array(streamRecord) });

export const handler = middy<z.output<typeof input>, DynamoDBBatchResponse>()
  .use(lambdaStack('archive', input))
  .handler(async ({ Records }) => {
    const { rows, unreadable } = await archive(Records, processParts().blobs());
    logger.info('archived', { changes: Records.length, rows });
    if (unreadable === null) return { batchItemFailures: [] };
    logger.error('a change cannot be archived', { ...unreadable });
    return { batchItemFailures: [{ itemIdentifier: unreadable.sequence }] };
  });
