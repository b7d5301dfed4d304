/** What X-Ray is told of a request where `traces: true`, by a stand-in for its daemon. */
import { createSocket, type Socket } from 'node:dgram';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { APIGatewayProxyResult } from 'aws-lambda';
import { lambdaEnvironment } from '../../../support/lambda-environment.ts';
import { until } from '../../../support/until.ts';
import { invoke } from './lambda.ts';

interface Segment {
  readonly name: string;
  readonly trace_id: string;
}

const TRACE = '1-5759e988-bd862e3fe1be46a994272793';
const SECRET = 'hunter2';
const before = { ...process.env };
const segments: Segment[] = [];
let daemon: Socket;

beforeAll(async () => {
  daemon = createSocket('udp4');
  // "Sending segment documents to the X-Ray daemon": a header, a new line, the document.
  daemon.on('message', (message) => segments.push(JSON.parse(message.toString().split('\n')[1] ?? '') as Segment));
  await new Promise<void>((resolve) => daemon.bind(0, '127.0.0.1', resolve));
  Object.assign(process.env, lambdaEnvironment({ POWERTOOLS_TRACE_ENABLED: 'true' }), {
    AWS_XRAY_DAEMON_ADDRESS: `127.0.0.1:${daemon.address().port}`,
    AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
    LAMBDA_TASK_ROOT: '/var/task',
    _HANDLER: 'index.handler',
    _X_AMZN_TRACE_ID: `Root=${TRACE};Parent=53995c3f42cd8ad8;Sampled=1`,
    AWS_ENDPOINT_URL: 'http://127.0.0.1:1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: SECRET,
    AWS_MAX_ATTEMPTS: '1',
  });
});
afterAll(() => {
  process.env = before;
  daemon.close();
});

const post = (body: string): object => ({
  httpMethod: 'POST',
  path: '/api/jobs',
  resource: '/api/jobs',
  headers: { 'content-type': 'application/json' },
  body,
  isBase64Encoded: false,
  requestContext: { requestId: 'the-request' },
});

it.each([
  ['that the store does not take', post(JSON.stringify({ name: SECRET }))],
  // What is wrong with it is told by quoting it.
  ['that is no JSON', post(`{"name": ${SECRET}}`)],
])('a request %s is a segment of its trace, without its body or the answer', async (_, event) => {
  const { handler } = (await import('../../../../lambdas/intake/handler.ts')) as { handler: unknown };
  segments.length = 0;
  const answer = await invoke<APIGatewayProxyResult>(handler, event);
  expect(answer.statusCode).toBeGreaterThanOrEqual(400);
  await until(() => segments.some(({ name }) => name === '## index.handler'));
  expect(segments.find(({ name }) => name === '## index.handler')).toMatchObject({ error: true });
  expect(new Set(segments.map((segment) => segment.trace_id))).toEqual(new Set([TRACE]));
  expect(JSON.stringify(segments)).not.toContain(SECRET);
});
