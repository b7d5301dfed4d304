/**
 * The log of the API's handlers in a Lambda. Apart from the stack of the cycle's, whose tracer their cold start cannot
 * afford.
 */
import { Logger } from '@aws-lambda-powertools/logger';
import type { RequestFault } from '../middleware.ts';

const logger = new Logger();

/** One structured line. `requestId` is that of the caller's answer; a trace's id is added where there is one. */
export function reportFault(fault: RequestFault): void {
  logger.error('a request failed', { ...fault });
}

/** What was asked for could not be had, and something else was answered in its place. */
export function reportFallback(why: string): void {
  logger.warn(why);
}
