/**
 * Time limit of executions. Step Functions ends an Express execution at its time-out without a catch, so its place is
 * not freed. This middleware refuses steps that could outlast the execution. The refusal is caught like any fault and
 * frees the place at once (lib/infra/cycle.ts).
 */
import type { MiddlewareObj } from '@middy/core';
import { EbbError } from '../../../kernel/errors.ts';

/** Time-out of an execution, s. Express allows five minutes (Step Functions, "Service quotas"). */
export const EXECUTION_S = 290;
/**
 * Allowance beyond a function's own time-out, s: up to ten seconds to start ("Understanding the Lambda execution
 * environment lifecycle", init phase), and some for the answer.
 */
export const ANSWER_S = 15;
/** Time to free the place of a failed execution, with one retry, s. */
const GIVE_UP_S = 20;

/** True if a step that begins now and takes `mostMs` could pass the execution's time-out. */
export function isLate(began: string | undefined, nowMs: number, mostMs: number): boolean {
  if (began === undefined) return false;
  return nowMs + mostMs + (ANSWER_S + GIVE_UP_S) * 1000 > Date.parse(began) + EXECUTION_S * 1000;
}

/** Middleware that throws `late` for a step that begins too late. It runs after the check of the event. */
export const inTime = (nowMs: () => number = Date.now): MiddlewareObj => ({
  before: ({ event, context }) => {
    const { began } = event as { readonly began?: string };
    const mostMs = (context as { getRemainingTimeInMillis?: () => number }).getRemainingTimeInMillis?.() ?? 0;
    if (!isLate(began, nowMs(), mostMs)) return;
    throw new EbbError('late', {
      what: 'this execution of the cycle has no time left for another step',
      got: `began ${began ?? ''}`,
      allowed: `${EXECUTION_S} s in all`,
      next: 'nothing: the next cycle performs what is recorded',
    });
  },
});
