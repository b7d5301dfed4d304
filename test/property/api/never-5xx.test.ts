import fc from 'fast-check';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { batchAnswer, problem } from '../../../lib/api/schemas.ts';
import { OPERATIONS } from '../../../lib/api/operations.ts';
import { apiUnderTest, jobFile, type ApiUnderTest } from '../../support/api.ts';
import { hostileStage } from '../../../scripts/hostile-stage.ts';

const SEED = 20_260_301;
/** Far above what a loaded machine needs for one request, far below what exponential time needs. */
const REQUEST_LIMIT_MS = 10_000;

let api: ApiUnderTest;
beforeAll(async () => {
  api = apiUnderTest();
  await api.post('/api/jobs', jobFile());
});

/** Text that breaks things: control characters, lone surrogates, percent signs, other scripts, very long. */
const nasty = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constantFrom(
    '',
    '\u0000',
    '%',
    '%zz',
    '%00',
    '%c3%28',
    '../..',
    '__proto__',
    'constructor',
    'render',
    '1',
    '-1',
    '1e309',
    'NaN',
    'null',
  ),
  fc.integer().map(String),
  fc.constantFrom('x').map((x) => x.repeat(5000)),
);
const escaped = nasty.map((text) => (text.isWellFormed() ? encodeURIComponent(text) : text));
const segment = fc.oneof(nasty, escaped, fc.constant('render'));
const path = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.constantFrom(...OPERATIONS.map((o) => o.path)), segment)
      .map(([p, s]) => p.replace('{job}', () => s)),
  },
  { weight: 1, arbitrary: nasty },
);
const names = [...new Set(OPERATIONS.flatMap((o) => Object.keys(o.query.shape)))];
const query = fc
  .array(fc.tuple(fc.oneof(fc.constantFrom(...names), nasty), escaped), { maxLength: 4 })
  .map((pairs) => pairs.map(([k, v]) => `${k}=${v}`).join('&'));
const method = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom('GET', 'POST', 'DELETE') },
  { weight: 1, arbitrary: fc.constantFrom('PUT', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE', 'BREW', 'get', '') },
);
/** Job files with one place replaced by anything. */
const spoiled = fc
  .tuple(
    fc.constantFrom(
      ...[
        'name',
        'owner',
        'class',
        'deadline',
        'labels',
        'after',
        'stages',
        'value',
        'maxCostUsd',
        '__proto__',
        'other',
      ],
    ),
    fc.jsonValue({ maxDepth: 3 }),
  )
  .map(
    ([key, value]) =>
      `{${[...Object.entries(jobFile()).filter(([k]) => k !== key), [key, value] as const].map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join(',')}}`,
  );
const spoiledStage = fc
  .tuple(
    fc.constantFrom(
      'name',
      'dependsOn',
      'tasks',
      'gang',
      'command',
      'env',
      'workdir',
      'inputs',
      'outputs',
      'resources',
      'retries',
      'timeout',
      'checkpoint',
      'expectedRuntime',
      'constraints',
      'preferences',
    ),
    fc.oneof(fc.jsonValue({ maxDepth: 2 }), nasty, fc.double()),
  )
  .map(([key, value]) => {
    const [stage] = jobFile()['stages'] as [object];
    return JSON.stringify(jobFile({ stages: [{ ...stage, [key]: value }] }));
  });
const hostile = hostileStage.map((keys) => {
  const [stage] = jobFile()['stages'] as [object];
  return JSON.stringify(jobFile({ stages: [{ ...stage, ...keys }] }));
});
const batchKeys = fc.option(
  fc.array(fc.oneof(fc.constantFrom('k', 'l', null), nasty, fc.jsonValue({ maxDepth: 1 })), { maxLength: 4 }),
);
const batch = fc
  .tuple(fc.array(fc.oneof(spoiled, spoiledStage, hostile, fc.json()), { maxLength: 4 }), batchKeys)
  .map(([jobs, keys]) => `{"jobs":[${jobs.join(',')}]${keys === null ? '' : `,"keys":${JSON.stringify(keys)}`}}`);
const body = fc.oneof(
  fc.constant(null),
  hostile,
  fc.json(),
  spoiled,
  spoiledStage,
  batch,
  fc.uint8Array({ maxLength: 50 }),
  fc.constantFrom('['.repeat(50_000), '{"a":'.repeat(50_000), '"\\ud800"', '{"name":1e999}'),
);
const headers = fc.record(
  {
    'content-type': fc.oneof(
      { weight: 4, arbitrary: fc.constant('application/json') },
      { weight: 1, arbitrary: nasty },
    ),
    'idempotency-key': nasty,
    'last-event-id': nasty,
    accept: nasty,
  },
  { requiredKeys: [] },
);

describe('whatever is asked', () => {
  it('is answered, never with a 5xx, and refusals are problems', async () => {
    const statuses = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(method, path, query, fc.tuple(headers, body), async (m, p, q, [h, b]) => {
        const response = await api.dispatch({ method: m, path: q === '' ? p : `${p}?${q}`, headers: h, body: b });
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        expect({ status: response.status, body: response.status >= 500 ? response.body : '' }).toEqual({
          status: response.status,
          body: '',
        });
        expect(response.status).toBeLessThan(500);
        if (response.status >= 400) expect(problem.parse(JSON.parse(response.body)).status).toBe(response.status);
      }),
      { seed: SEED, numRuns: 3000 },
    );
    // The generators reach both what is taken and what is refused, in many ways.
    expect([...statuses.keys()].sort()).toEqual(expect.arrayContaining([200, 400, 404, 405]));
  });

  it('wildcards and braces are answered in time', async () => {
    const statuses = new Map<number, number>();
    let slowestMs = 0;
    await fc.assert(
      fc.asyncProperty(hostile, async (text) => {
        const before = process.cpuUsage();
        const response = await api.dispatch({
          method: 'POST',
          path: '/api/jobs',
          headers: { 'content-type': 'application/json' },
          body: text,
        });
        // Processor time: other processes of a busy machine make no request slow.
        const { user, system } = process.cpuUsage(before);
        slowestMs = Math.max(slowestMs, (user + system) / 1000);
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        expect([201, 400, 422]).toContain(response.status);
        expect(slowestMs).toBeLessThan(REQUEST_LIMIT_MS);
      }),
      { seed: SEED, numRuns: 1000 },
    );
    expect(statuses.get(201)).toBeGreaterThan(100);
    expect(statuses.get(400)).toBeGreaterThan(100);
  });

  it('each job of a batch is answered as it would be by itself, in order', async () => {
    const outcomes = new Map<string, number>();
    const keyed = fc.array(fc.tuple(fc.oneof(spoiled, spoiledStage, hostile), fc.constantFrom(null, 'k', 'l', 'm')), {
      minLength: 1,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(keyed, async (jobs) => {
        const post = (path: string, text: string, key: string | null): ReturnType<ApiUnderTest['dispatch']> =>
          api.dispatch({
            method: 'POST',
            path,
            headers: { 'content-type': 'application/json', ...(key === null ? {} : { 'idempotency-key': key }) },
            body: text,
          });
        api = apiUnderTest();
        const alone: string[] = [];
        for (const [text, key] of jobs) {
          // The text under a key is that of the job as data: how it was written is not part of a batch.
          const answer = await post('/api/jobs', JSON.stringify(JSON.parse(text)), key);
          const { code, outcome } = JSON.parse(answer.body) as { code?: string; outcome?: string };
          alone.push(code ?? outcome ?? '');
        }
        api = apiUnderTest();
        const together = `{"jobs":[${jobs.map(([text]) => text).join(',')}],"keys":${JSON.stringify(jobs.map(([, key]) => key))}}`;
        const answer = await post('/api/jobs/batch', together, null);
        expect(answer.status).toBe(200);
        const { results } = batchAnswer.parse(JSON.parse(answer.body));
        expect(results.map((r) => r.index)).toEqual(jobs.map((_, i) => i));
        expect(results.map((r) => r.problem?.code ?? r.outcome)).toEqual(alone);
        for (const is of alone) outcomes.set(is, (outcomes.get(is) ?? 0) + 1);
      }),
      { seed: SEED, numRuns: 500 },
    );
    expect([...outcomes.keys()]).toEqual(expect.arrayContaining(['created', 'conflict', 'job-file.invalid']));
    api = apiUnderTest();
    await api.post('/api/jobs', jobFile());
  });

  it('job files that are nearly right are taken or refused with the place of the fault', async () => {
    let taken = 0;
    let refused = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof(spoiled, spoiledStage), async (text) => {
        const response = await api.dispatch({
          method: 'POST',
          path: '/api/jobs',
          headers: { 'content-type': 'application/json' },
          body: text,
        });
        expect([201, 400, 422]).toContain(response.status);
        if (response.status === 201) taken++;
        else refused++;
      }),
      { seed: SEED, numRuns: 2000 },
    );
    expect(taken).toBeGreaterThan(20);
    expect(refused).toBeGreaterThan(200);
  });
});
