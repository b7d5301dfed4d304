import type { z } from 'zod';
import type { Asker } from '../domain/caller.ts';
import type { Backend } from '../ports/backend.ts';

/** What a use case is given: everything checked, nothing of HTTP left but the headers it may ask for. */
export interface Call<P, Q> {
  readonly params: P;
  readonly query: Q;
  /** Parsed JSON, not validated; undefined where the operation takes no body. */
  readonly body: unknown;
  /** The body as it came, for digests. */
  readonly bodyText: string;
  /** Case-insensitive; the first value. */
  readonly header: (name: string) => string | undefined;
  readonly requestId: string;
  /** Null where nobody was authenticated. */
  readonly caller: Asker | null;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON unless `text` is given. */
  readonly body?: unknown;
  readonly text?: string;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const ok = (body: unknown): Answer => ({ status: 200, body });

/** How an answer is documented and checked. */
export interface AnswerShape {
  readonly description: string;
  readonly contentType: string;
  readonly schema: z.ZodType;
  readonly headers?: z.ZodObject;
  readonly example?: unknown;
  /** Where in the answer a client finds the value of another operation's path parameter (OpenAPI links). */
  readonly provides?: Readonly<Record<string, string>>;
}

interface OperationShape {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With `{name}` parameters, as API Gateway and OpenAPI write it. */
  readonly path: string;
  /** Which Lambda serves it. */
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
  /** Statuses of problems that it may answer besides those that any operation may. */
  readonly problems: readonly number[];
}

/** One route: what documents it, what checks its input, and what it does. The only list is lib/api/operations.ts. */
export interface Operation extends OperationShape {
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  run(call: Call<unknown, unknown>, backend: Backend): Promise<Answer>;
}

/** Ties the types of the schemas to what `run` is given, then forgets them: the table holds operations of all types. */
export function operation<P extends z.ZodObject, Q extends z.ZodObject>(
  shape: OperationShape & {
    readonly params: P;
    readonly query: Q;
    run(call: Call<z.output<P>, z.output<Q>>, backend: Backend): Promise<Answer>;
  },
): Operation {
  return shape;
}
