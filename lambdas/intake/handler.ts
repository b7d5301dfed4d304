/** Submission: `POST /api/jobs` and `POST /api/jobs/batch`. Jobs are durable before the answer. */
import middy from '@middy/core';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';
import { INTAKE_OPERATIONS, OPERATIONS } from '../../lib/api/operations.ts';
import { router } from '../../lib/api/router.ts';
import { handlerStack } from '../../lib/api/on-aws/http.ts';

export const handler = middy<APIGatewayProxyEvent, APIGatewayProxyResult>()
  .use(await handlerStack())
  .handler(router(INTAKE_OPERATIONS, OPERATIONS));
