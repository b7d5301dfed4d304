import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import type { APIGatewayProxyEvent, Context } from 'aws-lambda';
import { provideBackend } from '../../../lib/api/provided-backend.ts';
import { gatewayEvent } from '../../../lib/api/dispatch.ts';
import { jobView, problem, submitAnswer } from '../../../lib/api/schemas.ts';
import { handler as api } from '../../../lambdas/api/handler.ts';
import { handler as intake } from '../../../lambdas/intake/handler.ts';
import { apiUnderTest, jobFile } from '../../support/api.ts';

/** A GET as an API Gateway REST API delivers it to a proxy integration. */
const captured = (): APIGatewayProxyEvent =>
  JSON.parse(readFileSync(new URL('rest-api-event.json', import.meta.url), 'utf8')) as APIGatewayProxyEvent;
const context = { awsRequestId: 'lambda-1', getRemainingTimeInMillis: () => 3000 } as Context;

describe('the exported handlers, as a deployment calls them', () => {
  it('answer an event of API Gateway, with its request id', async () => {
    apiUnderTest();
    const post: APIGatewayProxyEvent = {
      ...captured(),
      httpMethod: 'POST',
      path: '/api/jobs',
      headers: { 'Content-Type': 'application/json' },
      body: Buffer.from(JSON.stringify(jobFile({ name: 'nightly-render' }))).toString('base64'),
      isBase64Encoded: true,
    };
    const made = await intake(post, context);
    expect(made.statusCode).toBe(201);
    expect(made.headers).toMatchObject({
      'x-request-id': '0c7a2d1e-4a55-4d35-9c3b-0e7f4f6d9b11',
      'cache-control': 'no-store',
    });
    const { job } = submitAnswer.parse(JSON.parse(made.body));
    const got = await api(captured(), context);
    expect(got.statusCode).toBe(200);
    expect(jobView.parse(JSON.parse(got.body)).id).toBe(job.id);
  });

  it('wear their middleware: errors are problems, not rejections', async () => {
    apiUnderTest();
    const answer = await api({ ...captured(), multiValueQueryStringParameters: { limit: ['x'] } }, context);
    expect(answer.statusCode).toBe(400);
    expect(answer.headers).toMatchObject({ 'content-type': 'application/problem+json' });
    expect(problem.parse(JSON.parse(answer.body)).requestId).toBe('0c7a2d1e-4a55-4d35-9c3b-0e7f4f6d9b11');
  });

  it('read the single-valued query of an event that has no other', async () => {
    apiUnderTest();
    const event = { ...captured(), path: '/api/jobs', queryStringParameters: { limit: '0' } };
    expect((await api(event, context)).statusCode).toBe(400);
  });

  it('each take their own routes only', async () => {
    apiUnderTest();
    const post = gatewayEvent({
      method: 'POST',
      path: '/api/jobs',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect((await api(post, context)).statusCode).toBe(404);
    expect((await intake(captured(), context)).statusCode).toBe(404);
  });

  it('say so when nothing was composed behind them', async () => {
    provideBackend(null);
    const answer = await api(captured(), context);
    expect(answer.statusCode).toBe(404);
    expect(problem.parse(JSON.parse(answer.body))).toMatchObject({
      code: 'engine.absent',
      next: expect.stringContaining('ebb up'),
    });
  });

  it('refuse an event of another kind', async () => {
    apiUnderTest();
    for (const event of [{}, { version: '2.0', requestContext: { http: {} } }, { Records: [] }]) {
      expect((await api(event as unknown as APIGatewayProxyEvent, context)).statusCode).toBe(400);
    }
  });

  it('answer 500 for a defect, with the request id and nothing else of it', async () => {
    apiUnderTest({ health: () => Promise.reject(new TypeError('secret')) });
    const lines: string[] = [];
    const write = process.stderr.write.bind(process.stderr);
    process.stderr.write = (line: string) => lines.push(line) > 0;
    const answer = await api({ ...captured(), path: '/api/health' }, context).finally(() => {
      process.stderr.write = write;
    });
    expect(answer.statusCode).toBe(500);
    expect(answer.body).not.toContain('secret');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      requestId: '0c7a2d1e-4a55-4d35-9c3b-0e7f4f6d9b11',
      path: '/api/health',
      error: expect.stringContaining('secret'),
    });
  });
});
