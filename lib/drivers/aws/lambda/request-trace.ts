/** Traces of the API's handlers in a Lambda. Loaded only if enabled: the X-Ray SDK would slow their cold start. */
import { Tracer } from '@aws-lambda-powertools/tracer';
import { captureLambdaHandler } from '@aws-lambda-powertools/tracer/middleware';
import type { MiddlewareObj } from '@middy/core';

// No error text in traces: it may quote the request. The fact that there was one is enough.
process.env['POWERTOOLS_TRACER_CAPTURE_ERROR'] = 'false';

/** One segment per request, with its success; without its body or answer. */
export const tracedRequests = (): MiddlewareObj =>
  captureLambdaHandler(new Tracer(), { captureResponse: false }) as MiddlewareObj;
