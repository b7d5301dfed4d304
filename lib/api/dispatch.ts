/**
 * Requests to the handlers without a gateway. The local server and an embedded engine use it, so that they run the
 * handlers of a deployment.
 */
import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from 'aws-lambda';
import type { Identity } from '../domain/caller.ts';
import { localAuthorizer } from './caller.ts';
import { INTAKE_PATHS } from './requests.ts';

export interface ApiRequest {
  readonly method: string;
  /** Path with query string, percent-encoded, as on the request line. */
  readonly path: string;
  /** Names in any case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | null;
  readonly sourceIp?: string;
  /** Caller found by the server; absent if unknown. */
  readonly caller?: Identity;
}

export interface ApiResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Answers a request; faults are answers too. Never rejects for input of a client. */
export type Dispatch = (request: ApiRequest) => Promise<ApiResponse>;

export type ProxyHandler = (event: APIGatewayProxyEvent, context: Context) => Promise<APIGatewayProxyResult>;

/** Wrapped handlers, as lambdas/ exports them. */
export interface Handlers {
  readonly intake: ProxyHandler;
  readonly api: ProxyHandler;
}

/** Lambda context of a handler here: empty. */
const NO_CONTEXT = {} as Context;

export function dispatcher(handlers: Handlers): Dispatch {
  return async (request) => {
    const event = gatewayEvent(request);
    const handler = event.httpMethod === 'POST' && INTAKE_PATHS.has(event.path) ? handlers.intake : handlers.api;
    return responseOf(await handler(event, NO_CONTEXT));
  };
}

function responseOf(result: APIGatewayProxyResult): ApiResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(result.headers ?? {})) headers[name.toLowerCase()] = String(value);
  return { status: result.statusCode, headers, body: result.body };
}

/** Request as an API Gateway REST API passes it to a proxy integration (payload version 1.0). */
export function gatewayEvent(request: ApiRequest): APIGatewayProxyEvent {
  const [path, search] = cut(request.path);
  const headers = request.headers ?? {};
  const query = search === '' ? NO_QUERY : queryOf(search);
  const requestId = randomUUID();
  return {
    resource: '/{proxy+}',
    path,
    httpMethod: request.method,
    headers: { ...headers },
    multiValueHeaders: {},
    queryStringParameters: query.last,
    multiValueQueryStringParameters: query.all,
    pathParameters: null,
    stageVariables: null,
    requestContext: {
      ...CONTEXT,
      authorizer: request.caller === undefined ? null : localAuthorizer(request.caller),
      requestId,
      path,
      httpMethod: request.method,
      identity: identityOf(request),
    },
    ...bodyOf(request.body ?? null),
  };
}

const NO_QUERY = { last: null, all: null } as const;

function cut(path: string): [string, string] {
  const mark = path.indexOf('?');
  return mark === -1 ? [path, ''] : [path.slice(0, mark), path.slice(mark + 1)];
}

function queryOf(search: string): { last: Record<string, string>; all: Record<string, string[]> } {
  const last = Object.create(null) as Record<string, string>;
  const all = Object.create(null) as Record<string, string[]>;
  for (const [name, value] of new URLSearchParams(search)) {
    last[name] = value;
    (all[name] ??= []).push(value);
  }
  return { last, all };
}

function bodyOf(body: string | Uint8Array | null): { body: string | null; isBase64Encoded: boolean } {
  if (body === null || typeof body === 'string') return { body, isBase64Encoded: false };
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return isUtf8(bytes)
    ? { body: bytes.toString('utf8'), isBase64Encoded: false }
    : { body: bytes.toString('base64'), isBase64Encoded: true };
}

const CONTEXT = {
  accountId: '000000000000',
  apiId: 'local',
  protocol: 'HTTP/1.1',
  requestTimeEpoch: 0,
  resourceId: 'local',
  resourcePath: '/{proxy+}',
  stage: 'local',
} as const;

const NOBODY = {
  accessKey: null,
  accountId: null,
  apiKey: null,
  apiKeyId: null,
  caller: null,
  clientCert: null,
  cognitoAuthenticationProvider: null,
  cognitoAuthenticationType: null,
  cognitoIdentityId: null,
  cognitoIdentityPoolId: null,
  principalOrgId: null,
  user: null,
  userAgent: null,
  userArn: null,
  vpcId: undefined,
  vpceId: undefined,
} as const;

const identityOf = (request: ApiRequest): APIGatewayProxyEvent['requestContext']['identity'] => ({
  ...NOBODY,
  sourceIp: request.sourceIp ?? '127.0.0.1',
});
