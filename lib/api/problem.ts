import { ERROR_CODES, EbbError, type ErrorFacts } from '../kernel/errors.ts';
import type { Problem } from './schemas.ts';

/**
 * RFC 9457 problem details of an error. Anything but an EbbError is a defect: the answer is `internal` with the request
 * id, and the log has the rest.
 */
export function problemOf(error: unknown, requestId: string): Problem {
  const known = error instanceof EbbError ? error : null;
  const code = known?.code ?? 'internal';
  const { http, retryable, about } = ERROR_CODES[code];
  const facts: ErrorFacts =
    known !== null && code !== 'internal'
      ? known.facts
      : {
          what: 'the request met a defect in Ebbtide',
          next: `Report it with the request id ${requestId} and the server's log.`,
        };
  return {
    type: `urn:ebbtide:error:${code}`,
    title: about,
    status: http,
    detail: known === null || code === 'internal' ? facts.what : known.message,
    code,
    what: facts.what,
    ...(facts.got === undefined ? {} : { got: facts.got }),
    ...(facts.allowed === undefined ? {} : { allowed: facts.allowed }),
    ...(facts.next === undefined ? {} : { next: facts.next }),
    ...(facts.at === undefined ? {} : { at: facts.at }),
    ...(facts.issues === undefined ? {} : { issues: facts.issues.map(({ at, message }) => ({ at, message })) }),
    retryable,
    requestId,
  };
}

/** True for defects, which belong in the log; false for mistakes of clients. */
export const isDefect = (error: unknown): boolean => !(error instanceof EbbError) || error.code === 'internal';
