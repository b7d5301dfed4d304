/**
 * Middleware of the API's handlers in a deployment, in addition to the common one. Local mode has its own backend and
 * loads nothing of AWS; hence the late imports.
 */
import type { MiddlewareObj } from '@middy/core';
import { httpStack, type RequestFault } from '../middleware.ts';

/** Logger, loaded at the first fault: a cold start does not wait for it. */
async function report(fault: RequestFault): Promise<void> {
  (await import('./request-log.ts')).reportFault(fault);
}

/** Middleware for `middy().use(...)`, made once per process. */
export async function handlerStack(): Promise<ReturnType<typeof httpStack>> {
  if (process.env['EBB_TABLE'] === undefined) return httpStack();
  const { deployedBackend } = await import('./aws-backend.ts');
  return [...(await traces()), ...httpStack({ report }), deployedBackend()];
}

/** Tracing middleware; none, and no import, without `traces: true`. */
async function traces(): Promise<readonly MiddlewareObj[]> {
  if (process.env['POWERTOOLS_TRACE_ENABLED'] !== 'true') return [];
  return [(await import('../../drivers/aws/lambda/request-trace.ts')).tracedRequests()];
}
