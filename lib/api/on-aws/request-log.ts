/**
 * Log of the API's handlers in a Lambda. It is separate from the cycle's middleware, whose tracer would slow the cold
 * start.
 */
import { Logger } from '@aws-lambda-powertools/logger';
import type { RequestFault } from '../middleware.ts';

const logger = new Logger();

/** One structured line. `requestId` is the one in the caller's answer. A trace id is added if there is one. */
export function reportFault(fault: RequestFault): void {
  logger.error('a request failed', { ...fault });
}

/** One line for an answer that replaced the one asked for. */
export function reportFallback(why: string): void {
  logger.warn(why);
}
