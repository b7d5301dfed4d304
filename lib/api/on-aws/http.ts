/**
 * What the API's handlers wear where they are deployed, besides what they wear everywhere. Local mode brings its own
 * backend, and loads nothing of AWS: hence the imports when they are needed.
 */
import type { MiddlewareObj } from '@middy/core';
import { httpStack, type RequestFault } from '../middleware.ts';

/** Loaded with the first fault: a cold start does not wait for it. */
async function report(fault: RequestFault): Promise<void> {
  (await import('./request-log.ts')).reportFault(fault);
}

/** Pass to `middy().use(...)`, once per process. */
export async function handlerStack(): Promise<ReturnType<typeof httpStack>> {
  if (process.env['EBB_TABLE'] === undefined) return httpStack();
  const { deployedBackend } = await import('./aws-backend.ts');
  return [...(await traces()), ...httpStack({ report }), deployedBackend()];
}

/** None without `traces: true`, and nothing is loaded for it. */
async function traces(): Promise<readonly MiddlewareObj[]> {
  if (process.env['POWERTOOLS_TRACE_ENABLED'] !== 'true') return [];
  return [(await import('../../drivers/aws/lambda/request-trace.ts')).tracedRequests()];
}
