/** Everything of the HTTP API but taking jobs: questions, and requests to cancel. */
import middy from '@middy/core';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';
import { API_OPERATIONS, OPERATIONS } from '../../lib/api/operations.ts';
import { router } from '../../lib/api/router.ts';
import { httpStack } from '../../lib/api/stack.ts';

/** Local mode provides its own backend, and never loads the SDK. */
const isDeployed = process.env['EBB_TABLE'] !== undefined;
const deployed = isDeployed ? [(await import('../../lib/aws/backend.ts')).deployedBackend()] : [];
const options = isDeployed ? { report: (await import('../../lib/aws/request-log.ts')).reportFault } : {};

export const handler = middy<APIGatewayProxyEvent, APIGatewayProxyResult>()
  .use([...httpStack(options), ...deployed])
  .handler(router(API_OPERATIONS, OPERATIONS));
