import { expect } from '@jest/globals';
import type { z } from 'zod';
import type { ApiResponse } from '../../lib/api/dispatch.ts';
import { problem, type Problem } from '../../lib/api/schemas.ts';

/**
 * The answer, checked against the very schema that documents it, nothing more and nothing less: what the schema does
 * not name would be stripped, and then the two differ.
 */
export function answerOf<S extends z.ZodType>(response: ApiResponse, status: number, schema: S): z.output<S> {
  expect({ status: response.status, body: response.status === status ? '' : response.body }).toEqual({
    status,
    body: '',
  });
  expect(response.headers['content-type']).toBe('application/json');
  expect(response.headers['x-request-id']).toMatch(/^[\w-]{8,}$/);
  const body: unknown = JSON.parse(response.body);
  const parsed = schema.parse(body);
  expect(body).toEqual(parsed);
  return parsed;
}

/** The problem that a refused request answers; the next step must be there, a stack must not. */
export function problemIn(response: ApiResponse, status: number, code: Problem['code']): Problem {
  expect(response.headers['content-type']).toBe('application/problem+json');
  const found = problem.parse(JSON.parse(response.body));
  expect({ status: response.status, code: found.code, what: found.what }).toEqual({ status, code, what: found.what });
  expect(found.status).toBe(status);
  expect(found.next ?? '').not.toBe('');
  expect(response.body).not.toMatch(/\bat .*\.ts:\d+/);
  return found;
}
