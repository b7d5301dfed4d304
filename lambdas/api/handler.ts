/** Everything of the HTTP API but taking jobs: questions, and requests to cancel. */
import middy from '@middy/core';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';
import { API_OPERATIONS, OPERATIONS } from '../../lib/api/operations.ts';
import { router } from '../../lib/api/router.ts';
import { httpStack } from '../../lib/api/stack.ts';

/** Local mode provides its own backend, and never loads the SDK. */
const deployed =
  process.env['EBB_TABLE'] === undefined ? [] : [(await import('../../lib/aws/backend.ts')).deployedBackend()];

export const handler = middy<APIGatewayProxyEvent, APIGatewayProxyResult>()
  .use([...httpStack(), ...deployed])
  .handler(router(API_OPERATIONS, OPERATIONS));
