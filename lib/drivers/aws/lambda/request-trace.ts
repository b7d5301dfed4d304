/**
 * The traces of the API's handlers in a Lambda. Loaded only where there are any: it brings the X-Ray SDK, which their
 * cold start cannot afford.
 */
import { Tracer } from '@aws-lambda-powertools/tracer';
import { captureLambdaHandler } from '@aws-lambda-powertools/tracer/middleware';
import type { MiddlewareObj } from '@middy/core';

// What an error says may quote what was sent. That there was one is enough.
process.env['POWERTOOLS_TRACER_CAPTURE_ERROR'] = 'false';

/** A segment for each request, and whether it failed; nothing of its body or of the answer is in it. */
export const tracedRequests = (): MiddlewareObj =>
  captureLambdaHandler(new Tracer(), { captureResponse: false }) as MiddlewareObj;
