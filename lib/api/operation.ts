import type { z } from 'zod';
import type { Asker } from '../domain/caller.ts';
import type { Backend } from '../ports/backend.ts';

/** Input of a use case: checked values, and of HTTP only the headers. */
export interface Call<P, Q> {
  readonly params: P;
  readonly query: Q;
  /** Parsed JSON, not validated; undefined for operations without a body. */
  readonly body: unknown;
  /** Body text as received, for digests. */
  readonly bodyText: string;
  /** First value of a header, in any case. */
  readonly header: (name: string) => string | undefined;
  readonly requestId: string;
  /** Null without authentication. */
  readonly caller: Asker | null;
}

export interface Answer {
  readonly status: number;
  /** JSON body, unless `text` is given. */
  readonly body?: unknown;
  readonly text?: string;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const ok = (body: unknown): Answer => ({ status: 200, body });

/** Answer as documented and checked. */
export interface AnswerShape {
  readonly description: string;
  readonly contentType: string;
  readonly schema: z.ZodType;
  readonly headers?: z.ZodObject;
  readonly example?: unknown;
  /** Place in the answer of another operation's path parameter, for OpenAPI links. */
  readonly provides?: Readonly<Record<string, string>>;
}

interface OperationShape {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path with `{name}` parameters, as in API Gateway and OpenAPI. */
  readonly path: string;
  /** Lambda that serves the operation. */
  readonly handler: 'intake' | 'api';
  readonly summary: string;
  readonly description?: string;
  readonly headers?: z.ZodObject;
  readonly body?: {
    readonly schema: z.ZodType;
    readonly description: string;
    readonly examples: Readonly<Record<string, unknown>>;
  };
  readonly answers: Readonly<Record<number, AnswerShape>>;
  /** Statuses of problems beyond those of any operation. */
  readonly problems: readonly number[];
}

/** Route: its documentation, the checks of its input, and its use case. lib/api/operations.ts is the only list. */
export interface Operation extends OperationShape {
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  run(call: Call<unknown, unknown>, backend: Backend): Promise<Answer>;
}

/** Ties the types of the schemas to the input of `run`, then erases them, so that one table holds all operations. */
export function operation<P extends z.ZodObject, Q extends z.ZodObject>(
  shape: OperationShape & {
    readonly params: P;
    readonly query: Q;
    run(call: Call<z.output<P>, z.output<Q>>, backend: Backend): Promise<Answer>;
  },
): Operation {
  return shape;
}
