/**
 * Executions of the cycle end in time. An Express execution that Step Functions ends at its time-out catches nothing
 * and frees no place, so none comes that far: a step that could not end before it is not begun. It fails under a name
 * of its own, which is caught like any fault, and the place is free at once (lib/infra/cycle.ts).
 */
import type { MiddlewareObj } from '@middy/core';
import { EbbError } from '../../../kernel/errors.ts';

/** Time-out of an execution, s: just below the five minutes that Express allows (Step Functions, "Service quotas"). */
export const EXECUTION_S = 290;
/**
 * Beyond a function's own time-out, s: it may take ten seconds to come up ("Understanding the Lambda execution
 * environment lifecycle", init phase), and its answer some to arrive.
 */
export const ANSWER_S = 15;
/** Time to free the place of a failed execution, one retry included, in seconds. */
const GIVE_UP_S = 20;

/** Whether a step that begins now, and may take `mostMs`, could pass the execution's time-out. */
export function isLate(began: string | undefined, nowMs: number, mostMs: number): boolean {
  if (began === undefined) return false;
  return nowMs + mostMs + (ANSWER_S + GIVE_UP_S) * 1000 > Date.parse(began) + EXECUTION_S * 1000;
}

/** Middleware, inside of what checks the event: throws `late` where the step would begin too late. */
export const inTime = (nowMs: () => number = Date.now): MiddlewareObj => ({
  before: ({ event, context }) => {
    const { began } = event as { readonly began?: string };
    const mostMs = (context as { getRemainingTimeInMillis?: () => number }).getRemainingTimeInMillis?.() ?? 0;
    if (!isLate(began, nowMs(), mostMs)) return;
    throw new EbbError('late', {
      what: 'this execution of the cycle has no time left for another step',
      got: `began ${began ?? ''}`,
      allowed: `${EXECUTION_S} s in all`,
      next: 'nothing: what is recorded is done by the next cycle',
    });
  },
});
