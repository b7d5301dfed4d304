import { createDocument, type ZodOpenApiOperationObject } from 'zod-openapi';
import type { Operation } from './operation.ts';
import { problem } from './schemas.ts';

/** Version of the API, not of the program: it rises when older clients may break. */
const API_VERSION = '1.0.0';

/** Statuses of problems that any operation may answer. */
const ANYWHERE = [400, 401, 403, 500] as const;

const PROBLEMS: Readonly<Record<number, string>> = {
  400: 'The request is not of the expected form.',
  401: 'A token is needed and was missing or wrong.',
  403: 'The request came from where none may come from.',
  404: 'Not found.',
  409: 'The request contradicts stored data.',
  410: 'It has aged out, if it ever was.',
  413: 'The body is over the limit.',
  415: 'The body is not JSON.',
  422: 'The job is well-formed and cannot be taken.',
  429: 'Too much at once; try again later.',
  500: 'A defect in Ebbtide.',
};

/**
 * OpenAPI 3.1 document of these operations, from the schemas that check them. Pure: equal tables give equal documents.
 */
export function openApiDocument(operations: readonly Operation[]): ReturnType<typeof createDocument> {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const o of operations) (paths[o.path] ??= {})[o.method.toLowerCase()] = operationObject(o, operations);
  return createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'Ebbtide',
        version: API_VERSION,
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
        description:
          'Batch jobs on EC2 spot, on-demand and reserved capacity. Instants are engine time: with a replayed market they lie in its calendar. Unknown parameters and keys are refused.',
      },
      servers: [{ url: '/', description: 'This engine.' }],
      security: [{}, { token: [] }],
      tags: [
        { name: 'intake', description: 'Taking jobs.' },
        { name: 'api', description: 'Everything else.' },
      ],
      paths: paths,
      components: {
        securitySchemes: {
          token: {
            type: 'http',
            scheme: 'bearer',
            description:
              'Demanded of every request, unless the engine was started with `--no-token`. It is in the file `token` of the engine’s folder.',
          },
        },
      },
    },
    { override: ({ jsonSchema }) => void delete jsonSchema.$schema },
  );
}

function operationObject(o: Operation, all: readonly Operation[]): ZodOpenApiOperationObject {
  const responses: ZodOpenApiOperationObject['responses'] = {};
  for (const [status, answer] of Object.entries(o.answers)) {
    responses[status as '200'] = {
      description: answer.description,
      ...(answer.headers === undefined ? {} : { headers: answer.headers }),
      ...(answer.provides === undefined ? {} : { links: linksTo(all, answer.provides) }),
      content: {
        [answer.contentType]: {
          schema: answer.schema,
          ...(answer.example === undefined ? {} : { example: answer.example }),
        },
      },
    };
  }
  for (const status of new Set([...ANYWHERE, ...o.problems])) {
    responses[String(status) as '400'] = {
      description: PROBLEMS[status] ?? '',
      content: { 'application/problem+json': { schema: problem } },
    };
  }
  return {
    operationId: o.id,
    tags: [o.handler],
    summary: o.summary,
    ...(o.description === undefined ? {} : { description: o.description }),
    requestParams: {
      ...(empty(o.params) ? {} : { path: o.params }),
      ...(empty(o.query) ? {} : { query: o.query }),
      ...(o.headers === undefined ? {} : { header: o.headers }),
    },
    ...(o.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            description: o.body.description,
            content: {
              'application/json': {
                schema: o.body.schema,
                examples: Object.fromEntries(Object.entries(o.body.examples).map(([name, value]) => [name, { value }])),
              },
            },
          },
        }),
    responses,
  };
}

/** Links to operations that take a value of the answer. */
const linksTo = (all: readonly Operation[], provides: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    all
      .filter((o) => !empty(o.params) && Object.keys(o.params.shape).every((name) => name in provides))
      .map((o) => [o.id, { operationId: o.id, parameters: provides }]),
  );

const empty = (schema: Operation['params']): boolean => Object.keys(schema.shape).length === 0;
