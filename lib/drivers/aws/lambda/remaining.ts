/**
 * How much time the invocation under way has left, for who repeats calls: an error in time is retried by the state
 * machine or the caller, an invocation that is cut off says nothing. A Lambda's process has one invocation at a time.
 */
import type { MiddlewareObj } from '@middy/core';

let ofInvocation: (() => number) | null = null;

/** Milliseconds; without end outside of an invocation. */
export const remainingMs = (): number => ofInvocation?.() ?? Infinity;

/** At the beginning of an invocation. */
export function takeTime(context: { readonly getRemainingTimeInMillis?: () => number }): void {
  ofInvocation = context.getRemainingTimeInMillis?.bind(context) ?? null;
}

/** Middleware: takes the time of each invocation. */
export const timed = (): MiddlewareObj => ({ before: ({ context }) => takeTime(context) });
