/** What the API's handlers say in their log, as they are deployed, where AWS refuses them its services. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import type { APIGatewayProxyResult } from 'aws-lambda';
import { invoke } from './lambda.ts';
import { lambdaEnvironment } from '../../../support/lambda-environment.ts';

const SECRET = 'hunter2';
const before = { ...process.env };
let aws: Server;
let written = '';

beforeAll(async () => {
  // As DynamoDB refuses: Developer Guide, "Error handling with DynamoDB".
  aws = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(400, { 'content-type': 'application/x-amz-json-1.0' });
      response.end(
        JSON.stringify({
          __type: 'com.amazon.coral.service#AccessDeniedException',
          Message: 'User: arn:aws:sts::000000000000:assumed-role/intake is not authorized',
        }),
      );
    });
  });
  await new Promise<void>((resolve) => aws.listen(0, '127.0.0.1', resolve));
  // Of who runs the tests: a Lambda refuses names of ours that it does not know.
  for (const key of Object.keys(process.env)) if (key.startsWith('EBB_')) Reflect.deleteProperty(process.env, key);
  Object.assign(process.env, {
    AWS_ENDPOINT_URL: `http://127.0.0.1:${(aws.address() as AddressInfo).port}`,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: SECRET,
    AWS_MAX_ATTEMPTS: '1',
    ...lambdaEnvironment(),
  });
  for (const stream of [process.stdout, process.stderr]) {
    jest.spyOn(stream, 'write').mockImplementation((chunk) => {
      written += String(chunk);
      return true;
    });
  }
});

beforeEach(() => {
  written = '';
});

afterAll(async () => {
  jest.restoreAllMocks();
  process.env = before;
  await new Promise((resolve) => aws.close(resolve));
});

const request = (httpMethod: string, path: string, body: unknown): object => ({
  httpMethod,
  path,
  resource: path,
  headers: { 'content-type': 'application/json', authorization: `AWS4-HMAC-SHA256 ${SECRET}` },
  body: body === null ? null : JSON.stringify(body),
  isBase64Encoded: false,
  queryStringParameters: null,
  pathParameters: null,
  requestContext: { requestId: 'the-request' },
});

const lines = (): unknown[] =>
  written
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line): unknown => JSON.parse(line));

it.each([
  [
    'intake',
    request('POST', '/api/jobs', { name: 'j', stages: [{ name: 's', command: 'true', env: { KEY: SECRET } }] }),
  ],
  ['api', request('GET', '/api/jobs', null)],
])('%s says which service refused what, under the request’s id, and no secret', async (name, event) => {
  const { handler } = (await import(`../../../../lambdas/${name}/handler.ts`)) as { handler: unknown };
  const answer = await invoke<APIGatewayProxyResult>(handler, event);
  expect(answer.statusCode).toBe(502);
  expect(lines()).toEqual([
    expect.objectContaining({
      level: 'ERROR',
      requestId: 'the-request',
      status: 502,
      code: 'aws.refused',
      causes: ['AccessDeniedException'],
      error: expect.stringContaining('dynamodb'),
    }),
  ]);
  expect(written).not.toContain(SECRET);
});

it('a caller’s mistake is none of the log’s', async () => {
  const { httpStack } = await import('../../../../lib/api/middleware.ts');
  const { default: middy } = await import('@middy/core');
  const { EbbError } = await import('../../../../lib/kernel/errors.ts');
  const faults: unknown[] = [];
  const failing = (code: 'usage' | 'aws.unavailable') =>
    middy()
      .use(httpStack({ report: (fault) => faults.push(fault) }))
      .handler(() => {
        throw new EbbError(code, { what: 'it failed', cause: new RangeError('inner') });
      });
  await invoke(failing('usage'), request('GET', '/api/jobs', null));
  expect(faults).toEqual([]);
  await invoke(failing('aws.unavailable'), request('GET', '/api/jobs', null));
  expect(faults).toMatchObject([{ status: 503, code: 'aws.unavailable', error: 'it failed', causes: ['RangeError'] }]);
});
