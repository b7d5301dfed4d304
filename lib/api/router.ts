import httpRouter from '@middy/http-router';
import type { APIGatewayProxyEvent, APIGatewayProxyResult } from 'aws-lambda';
import { EbbError, type Issue } from '../kernel/errors.ts';
import { backend } from './provided-backend.ts';
import { callerOf } from './caller.ts';
import type { Answer, Operation } from './operation.ts';
import { headerOf, requestIdOf, type ParsedEvent } from './middleware.ts';
import { nearestName } from '../domain/nearest-name.ts';
import { check, queryValues, quoted, refuse, repeatable } from './validate.ts';

type RouteHandler = (event: APIGatewayProxyEvent) => Promise<APIGatewayProxyResult>;

/**
 * Innermost handler: finds the operation of a request, checks path and query (all findings at once), runs it. `all` has
 * the operations of every handler: a known path with a wrong method answers 405 with the allowed ones.
 */
export function router(own: readonly Operation[], all: readonly Operation[]): RouteHandler {
  const known = all.map(({ method, path }) => ({ method, path, pattern: patternOf(path) }));
  const exact = methodsByPath(all);
  const route = httpRouter({
    routes: own.map((o) => ({ method: o.method, path: o.path, handler: handlerOf(o) })),
    notFoundResponse: ({ method, path }: { method: string; path: string }): never => {
      const methods = known.filter((o) => o.pattern.test(path)).map((o) => o.method);
      if (methods.length > 0 && !methods.some((m) => m === method)) throw notAllowed(method, methods);
      const near = nearestName(path, [...new Set(known.map((o) => o.path))]);
      throw new EbbError('not-found', {
        what: 'no such route',
        got: quoted(`${method} ${path}`),
        next: near === null ? 'See /api/openapi.json for the routes.' : `Did you mean ${near}?`,
      });
    },
  }) as unknown as (event: APIGatewayProxyEvent) => Promise<APIGatewayProxyResult>;
  return async (event) => {
    if (
      typeof event.httpMethod !== 'string' ||
      typeof event.path !== 'string' ||
      event.path === '' ||
      event.httpMethod === ''
    ) {
      throw new EbbError('usage', {
        what: 'this is not a request of an API Gateway REST API',
        allowed: 'a proxy event of payload version 1.0',
        next: 'Call this function through its API.',
      });
    }
    // A literal path wins over one with parameters, whatever the method: `batch` is no job there.
    const written = exact.get(event.path.replace(/(?<=.)\/$/, ''));
    if (written !== undefined && !written.some((m) => m === event.httpMethod))
      throw notAllowed(event.httpMethod, written);
    return route(event);
  };
}

const notAllowed = (method: string, allowed: readonly string[]): EbbError =>
  new EbbError('method-not-allowed', {
    what: `this route does not take ${quoted(method)}`,
    allowed: [...new Set(allowed)].join(', '),
    next: 'See /api/openapi.json for the routes and their methods.',
  });

/** Methods of paths without parameters. */
function methodsByPath(all: readonly Operation[]): ReadonlyMap<string, readonly string[]> {
  const groups = Map.groupBy(
    all.filter((o) => !o.path.includes('{')),
    (o) => o.path,
  );
  return new Map([...groups].map(([path, found]) => [path, found.map((o) => o.method)]));
}

const patternOf = (path: string): RegExp => new RegExp(`^${path.replaceAll(/\{([^/]+)\}/g, '(?<$1>[^/]+)')}/?$`);

function handlerOf(o: Operation): RouteHandler {
  const lists = repeatable(o.query);
  const pattern = patternOf(o.path);
  return async (event: ParsedEvent) => {
    const issues: Issue[] = [];
    const params = check(o.params, pathValues(pattern, event.path, issues), 'path', issues);
    const query = check(o.query, queryValues(valuesOf(event), lists, issues), 'query', issues);
    refuse(issues, 'the request is not of the expected form');
    if (o.body !== undefined && event.json === undefined) {
      throw new EbbError('usage', {
        what: 'this route needs a request body',
        allowed: o.body.description,
        next: 'Send JSON with the header `content-type: application/json`.',
      });
    }
    const answer = await o.run(
      {
        params,
        query,
        body: event.json,
        bodyText: event.body ?? '',
        header: (name) => headerOf(event, name),
        requestId: requestIdOf(event),
        caller: callerOf(event),
      },
      backend(),
    );
    return proxyResult(answer);
  };
}

/**
 * Values of the path parameters from the raw path. API Gateway decodes them for a resource per route, but not for
 * `{proxy+}`; both must give the same.
 */
function pathValues(pattern: RegExp, path: string, issues: Issue[]): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(pattern.exec(path)?.groups ?? {})) {
    try {
      values[name] = value.includes('%') ? decodeURIComponent(value) : value;
    } catch {
      issues.push({ at: `path.${name}`, message: 'is not valid percent-encoding of UTF-8' });
      values[name] = 'unreadable';
    }
  }
  return values;
}

function valuesOf(event: APIGatewayProxyEvent): Record<string, readonly string[] | undefined> {
  const many = event.multiValueQueryStringParameters as
    | APIGatewayProxyEvent['multiValueQueryStringParameters']
    | undefined;
  if (many !== null && many !== undefined) return many;
  const single = event.queryStringParameters as APIGatewayProxyEvent['queryStringParameters'] | undefined;
  if (single === null || single === undefined) return {};
  return Object.fromEntries(Object.entries(single).map(([k, v]) => [k, v === undefined ? undefined : [v]]));
}

const proxyResult = (a: Answer): APIGatewayProxyResult => ({
  statusCode: a.status,
  headers: { 'content-type': a.contentType ?? 'application/json', ...a.headers },
  body: a.text ?? JSON.stringify(a.body),
});
