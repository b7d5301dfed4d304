/** The HTTP API except submission: questions and requests to cancel. */
import middy from '@middy/core';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';
import { API_OPERATIONS, OPERATIONS } from '../../lib/api/operations.ts';
import { router } from '../../lib/api/router.ts';
import { handlerStack } from '../../lib/api/on-aws/http.ts';

export const handler = middy<APIGatewayProxyEvent, APIGatewayProxyResult>()
  .use(await handlerStack())
  .handler(router(API_OPERATIONS, OPERATIONS));
