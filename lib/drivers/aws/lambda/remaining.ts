/**
 * Remaining time of the current invocation, for callers that retry. An error in time is retried by the state machine or
 * the caller; a killed invocation says nothing. A Lambda's process has one invocation at a time.
 */
import type { MiddlewareObj } from '@middy/core';

let ofInvocation: (() => number) | null = null;

/** Milliseconds; Infinity outside of an invocation. */
export const remainingMs = (): number => ofInvocation?.() ?? Infinity;

/** Notes the start of an invocation. */
export function takeTime(context: { readonly getRemainingTimeInMillis?: () => number }): void {
  ofInvocation = context.getRemainingTimeInMillis?.bind(context) ?? null;
}

/** Middleware that notes the start of each invocation. */
export const timed = (): MiddlewareObj => ({ before: ({ context }) => takeTime(context) });
