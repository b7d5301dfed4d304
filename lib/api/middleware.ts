/**
 * Middleware of each handler, outermost first. Every answer gets a request id and safe headers, errors become
 * problem+json, and bodies must be JSON in UTF-8 of limited size.
 */
import type { MiddlewareObj } from '@middy/core';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';
import { EbbError, type ErrorCode } from '../kernel/errors.ts';
import { isDefect, problemOf } from './problem.ts';
import { checkAnswerSize } from './bounded.ts';
import { MAX_BODY_BYTES } from './requests.ts';
import type { Problem } from './schemas.ts';

type HttpMiddleware = MiddlewareObj<APIGatewayProxyEvent, APIGatewayProxyResult>;

/** Event after `jsonBody`, as the router's handlers see it. */
export interface ParsedEvent extends APIGatewayProxyEvent {
  json?: unknown;
}

export interface StackOptions {
  readonly maxBodyBytes?: number;
  /**
   * Called for each request that failed by no fault of its caller, and awaited. Default: a line of JSON on standard
   * error.
   */
  readonly report?: (fault: RequestFault) => unknown;
}

/** Answer of 500 or above, for the log, without the request's body and headers. */
export interface RequestFault {
  /** Id that the caller was given to ask about it. */
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly code: ErrorCode;
  /** Error text, for defects with the stack. */
  readonly error: string;
  /** Names of the underlying errors, nearest first; of AWS calls, AWS's names. */
  readonly causes: readonly string[];
}

/** Middleware for `middy().use(...)`, before `.handler(...)`. */
export function httpStack(options: StackOptions = {}): HttpMiddleware[] {
  return [
    answerHeaders(),
    problems(options.report ?? ((fault) => process.stderr.write(`${JSON.stringify({ level: 'error', ...fault })}\n`))),
    jsonBody(options.maxBodyBytes ?? MAX_BODY_BYTES),
    { after: ({ response }) => checkAnswerSize(response?.body ?? '') },
  ];
}

/** Id of the request in the log, known to the caller. */
export const requestIdOf = (event: APIGatewayProxyEvent): string =>
  // A hand-made event may lack fields that its type promises.
  (event.requestContext as { requestId?: string } | undefined)?.requestId ?? 'unknown';

function answerHeaders(): HttpMiddleware {
  const add: HttpMiddleware['after'] = (request) => {
    if (request.response === null) return;
    const headers = (request.response.headers ??= {});
    headers['x-request-id'] = requestIdOf(request.event);
    headers['x-content-type-options'] = 'nosniff';
    headers['cache-control'] ??= 'no-store';
  };
  return { after: add, onError: add };
}

function problems(report: (fault: RequestFault) => unknown): HttpMiddleware {
  return {
    onError: async (request) => {
      const requestId = requestIdOf(request.event);
      const problem = problemOf(request.error, requestId);
      if (problem.status >= 500) await report(faultOf(request.error, request.event, problem));
      request.response = {
        statusCode: problem.status,
        headers: {
          'content-type': 'application/problem+json',
          ...(problem.code === 'method-not-allowed' && problem.allowed !== undefined ? { allow: problem.allowed } : {}),
          ...(problem.status === 429 ? { 'retry-after': '1' } : {}),
        },
        body: JSON.stringify(problem),
      };
    },
  };
}

const faultOf = (error: unknown, event: APIGatewayProxyEvent, { requestId, status, code }: Problem): RequestFault => ({
  requestId,
  method: event.httpMethod,
  path: event.path,
  status,
  code,
  error: error instanceof Error ? ((isDefect(error) ? error.stack : undefined) ?? error.message) : String(error),
  causes: causesOf(error),
});

/** Longest chain of causes; longer ones are circular. */
const MAX_CAUSES = 8;

function causesOf(error: unknown): readonly string[] {
  const names: string[] = [];
  let cause = error instanceof Error ? error.cause : undefined;
  for (; cause instanceof Error && names.length < MAX_CAUSES; cause = cause.cause) names.push(cause.name);
  return names;
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?$/i;

function jsonBody(maxBytes: number): HttpMiddleware {
  return {
    before: (request) => {
      const event: ParsedEvent = request.event;
      if ((event.body ?? '') === '') return;
      // Only POST reads a body. With GET or DELETE a body has no meaning (RFC 9110, 9.3.1) and is ignored.
      if (event.httpMethod !== 'POST') return;
      const text = bodyText(event, maxBytes);
      const type = headerOf(event, 'content-type');
      if (type === undefined || !JSON_TYPE.test(type)) {
        throw new EbbError('media-type', {
          what: 'the request body is not declared as JSON',
          got: type === undefined ? 'no content-type' : `content-type ${type.slice(0, 100)}`,
          allowed: 'application/json',
          next: 'Send the header `content-type: application/json`; convert a YAML job file with `ebb submit`.',
        });
      }
      event.body = text;
      event.isBase64Encoded = false;
      event.json = parse(text);
    },
  };
}

function bodyText(event: APIGatewayProxyEvent, maxBytes: number): string {
  const body = event.body ?? '';
  const bytes = event.isBase64Encoded ? Buffer.from(body, 'base64') : null;
  // A UTF-16 unit is one to three bytes of UTF-8: most bodies need no count.
  const size = bytes?.byteLength ?? (body.length * 3 <= maxBytes ? 0 : Buffer.byteLength(body));
  if (size > maxBytes) throw tooLarge(size, maxBytes);
  if (bytes === null) return body;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new EbbError('job-file.syntax', {
      what: 'the request body is not valid UTF-8',
      allowed: 'JSON in UTF-8',
      next: 'Save the file as UTF-8 and send it again.',
      cause,
    });
  }
}

export const tooLarge = (got: number | null, maxBytes: number): EbbError =>
  new EbbError('body-too-large', {
    what: 'the request body is too large',
    ...(got === null ? {} : { got: `${got} bytes` }),
    allowed: `at most ${maxBytes} bytes`,
    next: 'Use `tasks: N` for stages of many tasks, and files in the working directory for data.',
  });

/**
 * Deepest nesting of a body. A job file has 7 levels; far deeper ones would overflow the stack of recursive readers.
 */
const MAX_DEPTH = 64;

function parse(text: string): unknown {
  const value = parsed(text);
  // Each level takes at least two characters.
  if (text.length > 2 * MAX_DEPTH && isDeeper(value, MAX_DEPTH)) {
    throw new EbbError('job-file.syntax', {
      what: 'the request body is nested too deeply',
      allowed: `at most ${MAX_DEPTH} levels`,
      next: 'Send a job file: see /api/openapi.json.',
    });
  }
  return value;
}

/** True for deeper values. Works level by level, not recursively. */
function isDeeper(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth++) {
    const below: unknown[] = [];
    for (const each of level) {
      if (typeof each === 'object' && each !== null) for (const inner of Object.values(each)) below.push(inner);
    }
    if (below.length === 0) return false;
    level = below;
  }
  return true;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new EbbError('job-file.syntax', {
      what: 'the request body is not valid JSON',
      // V8's message quotes the input; only the position helps.
      got: cause instanceof Error ? cause.message.replaceAll(/\p{Cc}/gu, ' ').slice(0, 200) : 'unparsable text',
      allowed: 'one JSON value in UTF-8',
      next: 'Check the text with a JSON formatter.',
      cause,
    });
  }
}

/** First value of a header, whatever the case of its name. */
export function headerOf(event: APIGatewayProxyEvent, name: string): string | undefined {
  // Hand-made events may lack headers, although the type says otherwise.
  const headers = event.headers as APIGatewayProxyEvent['headers'] | null | undefined;
  if (headers === null || headers === undefined) return undefined;
  const direct = headers[name];
  if (direct !== undefined) return direct;
  for (const key of Object.keys(headers)) if (key.toLowerCase() === name) return headers[key];
  return undefined;
}
