/** Everything of the HTTP API but taking jobs: questions, and requests to cancel. */
import middy from '@middy/core';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';
import { API_OPERATIONS, OPERATIONS } from '../../lib/api/operations.ts';
import { router } from '../../lib/api/router.ts';
import { httpStack, type RequestFault } from '../../lib/api/stack.ts';

/** Local mode provides its own backend, and never loads the SDK. */
const isDeployed = process.env['EBB_TABLE'] !== undefined;
const deployed = isDeployed ? [(await import('../../lib/aws/backend.ts')).deployedBackend()] : [];
/** Loaded with the first fault: a cold start does not wait for it. */
const report = async (fault: RequestFault): Promise<void> => {
  (await import('../../lib/aws/request-log.ts')).reportFault(fault);
};
const options = isDeployed ? { report } : {};

export const handler = middy<APIGatewayProxyEvent, APIGatewayProxyResult>()
  .use([...httpStack(options), ...deployed])
  .handler(router(API_OPERATIONS, OPERATIONS));
