import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { APIGatewayProxyEvent, Context } from 'aws-lambda';
import { isAdmin } from '../../../lib/api/access.ts';
import { callerOf } from '../../../lib/api/caller.ts';
import { batchAnswer, cancelAnswer, jobCostView, jobView, problem, submitAnswer } from '../../../lib/api/schemas.ts';
import { MAX_CALLER_ID } from '../../../lib/domain/caller.ts';
import type { Backend } from '../../../lib/ports/backend.ts';
import { handler as api } from '../../../lambdas/api/handler.ts';
import { handler as intake } from '../../../lambdas/intake/handler.ts';
import { apiUnderTest, jobFile, type ApiUnderTest } from '../../support/api.ts';

const captured = JSON.parse(
  readFileSync(new URL('rest-api-event.json', import.meta.url), 'utf8'),
) as APIGatewayProxyEvent;
const CONTEXT = { awsRequestId: 'lambda-1', getRemainingTimeInMillis: () => 3000 } as Context;

const ACCOUNT = '111122223333';
const ANA = `arn:aws:iam::${ACCOUNT}:user/people/ana`;
const BOB = `arn:aws:sts::${ACCOUNT}:assumed-role/Dev/bob`;
const OPS = `arn:aws:sts::${ACCOUNT}:assumed-role/Ops/carol`;

type Who = { readonly arn: string } | { readonly claims: Readonly<Record<string, string>> } | null;
let requests = 0;

/** A request as API Gateway hands it on once it has authenticated its sender. Its headers claim to be somebody else. */
function eventOf(who: Who, method: string, path: string, body?: unknown): APIGatewayProxyEvent {
  const { requestContext } = captured;
  return {
    ...captured,
    httpMethod: method,
    path,
    headers: { 'content-type': 'application/json', 'x-amzn-user-arn': 'arn:aws:iam::111122223333:root' },
    multiValueQueryStringParameters: null,
    body: body === undefined ? null : JSON.stringify(body),
    requestContext: {
      ...requestContext,
      requestId: `request-${++requests}`,
      identity: { ...requestContext.identity, userArn: who !== null && 'arn' in who ? who.arn : null },
      authorizer: who !== null && 'claims' in who ? { claims: who.claims } : null,
    },
  };
}

const ask = async (
  who: Who,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; body: unknown }> => {
  const handler = method === 'POST' && !path.endsWith('/cancel') ? intake : api;
  const answer = await handler(eventOf(who, method, path, body), CONTEXT);
  return { status: answer.statusCode, body: JSON.parse(answer.body) as unknown };
};

/** A job file without an owner. */
const unowned = (name: string): object => {
  const { owner: _, ...file } = jobFile({ name });
  return file;
};
const submit = async (who: Who, file: object): Promise<string> =>
  submitAnswer.parse((await ask(who, 'POST', '/api/jobs', file)).body).job.id;

describe('the caller of a request', () => {
  it('is whom API Gateway authenticated; nothing that the request says of itself counts', () => {
    const of = (who: Who): string | undefined => callerOf(eventOf(who, 'GET', '/api/jobs'))?.id;
    expect(of({ arn: ANA })).toBe(ANA);
    expect(of({ claims: { 'cognito:username': 'ana', sub: 's-1' } })).toBe('cognito:ana');
    expect(of({ claims: { username: 'ana', sub: 's-1' } })).toBe('cognito:ana');
    expect(of({ claims: { sub: 's-1' } })).toBe('cognito:s-1');
    expect(of(null)).toBeUndefined();
    expect(callerOf({} as APIGatewayProxyEvent)).toBeNull();
  });

  it('is bounded, without control characters, and in all groups that its token names', () => {
    const long = callerOf(eventOf({ arn: `arn:\u001b[2J${'x'.repeat(5000)}` }, 'GET', '/'));
    expect(long?.id).toHaveLength(MAX_CALLER_ID);
    expect(long?.id).not.toMatch(/\p{Cc}/u);
    const user = callerOf(eventOf({ claims: { sub: 's', 'cognito:groups': 'dev, ops' } }, 'GET', '/'));
    expect(user?.groups).toEqual(['dev', 'ops']);
  });
});

describe('what is recorded', () => {
  beforeEach(() => void apiUnderTest());

  it('of a submission and a cancellation: who, by which request, in status, cost and events', async () => {
    const store = apiUnderTest().store;
    const id = await submit({ arn: ANA }, unowned('nightly'));
    const submittedBy = { id: ANA, name: null, requestId: `request-${requests}` };
    const cancelled = cancelAnswer.parse((await ask({ arn: BOB }, 'POST', `/api/jobs/${id}/cancel`)).body);
    const cancelledBy = { id: BOB, name: null, requestId: `request-${requests}` };
    expect(cancelled.job).toMatchObject({ owner: ANA, submittedBy, cancelledBy });
    await ask({ arn: OPS }, 'DELETE', `/api/jobs/${id}`);
    const shown = jobView.parse((await ask({ arn: BOB }, 'GET', `/api/jobs/${id}`)).body);
    expect(shown).toMatchObject({ owner: ANA, submittedBy, cancelledBy });
    const cost = jobCostView.parse((await ask({ arn: BOB }, 'GET', `/api/jobs/${id}/cost`)).body);
    expect(cost).toMatchObject({ owner: ANA, submittedBy });
    expect((await store.events(0, 10)).map((e) => [e.type, e.data['caller'], e.data['requestId']])).toEqual([
      ['job-submitted', ANA, submittedBy.requestId],
      ['job-cancel-requested', BOB, cancelledBy.requestId],
    ]);
  });

  it('of each job of a batch; an owner that a file names stays beside it', async () => {
    const { body } = await ask({ arn: ANA }, 'POST', '/api/jobs/batch', {
      jobs: [unowned('one'), jobFile({ name: 'two', owner: 'studio' })],
    });
    const { results } = batchAnswer.parse(body);
    expect(results.map((r) => [r.job?.owner, r.job?.submittedBy?.id])).toEqual([
      [ANA, ANA],
      ['studio', ANA],
    ]);
  });

  it('without a caller nothing, and anybody may change anything: as before', async () => {
    const id = await submit(null, unowned('one'));
    const { status, body } = await ask(null, 'DELETE', `/api/jobs/${id}`);
    expect(status).toBe(202);
    expect(cancelAnswer.parse(body).job).toMatchObject({ owner: 'anonymous', submittedBy: null, cancelledBy: null });
  });
});

describe('where owner and caller are one', () => {
  const strict = (admins: readonly string[] = []): ApiUnderTest =>
    apiUnderTest({ access: { ownerIsCaller: true, admins } } satisfies Partial<Backend>);
  const refused = async (asked: ReturnType<typeof ask>): Promise<string> => {
    const { status, body } = await asked;
    expect(status).toBe(403);
    return problem.parse(body).what;
  };

  it('a job has no other owner, alone and in a batch, and none comes from nobody', async () => {
    const { store } = strict();
    expect(await refused(ask({ arn: ANA }, 'POST', '/api/jobs', jobFile({ owner: 'studio' })))).toContain('belong to');
    expect(await refused(ask(null, 'POST', '/api/jobs', unowned('one')))).toContain('whom it knows');
    const batch = await ask({ arn: ANA }, 'POST', '/api/jobs/batch', {
      jobs: [unowned('one'), jobFile({ owner: 'x' })],
    });
    expect(batchAnswer.parse(batch.body)).toMatchObject({ created: 1, refused: 1 });
    expect((await store.jobs({}, 10, null)).items.map((j) => j.spec.owner)).toEqual([ANA]);
  });

  it('only its owner and administrators cancel it', async () => {
    const { store } = strict([`arn:aws:iam::${ACCOUNT}:role/teams/Ops`]);
    const id = await submit({ arn: ANA }, unowned('one'));
    expect(await refused(ask({ arn: BOB }, 'POST', `/api/jobs/${id}/cancel`))).toContain('owner or an administrator');
    expect(await refused(ask({ arn: BOB }, 'DELETE', `/api/jobs/${id}`))).toContain('owner or an administrator');
    expect(await refused(ask(null, 'DELETE', `/api/jobs/${id}`))).toContain('whom it knows');
    expect((await store.jobs({}, 10, null)).items[0]?.cancelRequested).toBe(false);
    expect((await ask({ arn: ANA }, 'DELETE', `/api/jobs/${id}`)).status).toBe(202);
    const second = await submit({ arn: BOB }, unowned('two'));
    expect((await ask({ arn: OPS }, 'DELETE', `/api/jobs/${second}`)).status).toBe(202);
  });

  it.each([
    [`arn:aws:iam::${ACCOUNT}:role/Ops`, OPS, true],
    [`arn:aws:iam::${ACCOUNT}:role/a/b/Ops`, OPS, true],
    [`arn:aws:iam::${ACCOUNT}:role/Op*`, OPS, true],
    [`arn:aws:iam::${ACCOUNT}:role/Op`, OPS, false],
    [`arn:aws:iam::999999999999:role/Ops`, OPS, false],
    [`arn:aws:sts::${ACCOUNT}:assumed-role/Ops/*`, OPS, true],
    [`arn:aws:sts::${ACCOUNT}:assumed-role/Ops/dave`, OPS, false],
    [ANA, ANA, true],
    [`arn:aws:iam::${ACCOUNT}:user/people/*`, ANA, true],
    ['cognito:ana', 'cognito:ana', true],
    ['cognito:ana', 'cognito:anabel', false],
    ['cognito-group:ops', 'cognito:ops', false],
  ])('pattern %s lets %s: %s', (pattern, id, expected) => {
    expect(isAdmin([pattern], { id, requestId: 'r' })).toBe(expected);
  });

  it('a group of the user pool is one of administrators', () => {
    const ana = { id: 'cognito:ana', requestId: 'r', groups: ['dev', 'ops'] };
    expect(isAdmin(['cognito-group:ops'], ana)).toBe(true);
    expect(isAdmin(['cognito-group:op'], ana)).toBe(false);
  });
});
