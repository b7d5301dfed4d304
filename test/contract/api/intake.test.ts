import { beforeEach, describe, expect, it } from '@jest/globals';
import { admitter } from '../../../lib/cycle/admit/admission.ts';
import { schedulerConfig } from '../../../lib/domain/config.ts';
import { LoggedHistory } from '../../../lib/stages/estimate/logged-history.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { MAX_BATCH_JOBS, MAX_BODY_BYTES } from '../../../lib/api/requests.ts';
import { batchAnswer, jobList, submitAnswer } from '../../../lib/api/schemas.ts';
import { MemoryStore } from '../../../lib/drivers/sim/memory-store.ts';
import { apiUnderTest, jobFile, type ApiUnderTest } from '../../support/api.ts';
import { answerOf, problemIn } from '../../support/api-answers.ts';

let api: ApiUnderTest;
beforeEach(() => {
  api = apiUnderTest();
});
const stored = async (): Promise<string[]> =>
  answerOf(await api.get('/api/jobs'), 200, jobList).items.map((j) => j.name);

describe('POST /api/jobs', () => {
  it('creates a job, says where it is, and wakes the engine', async () => {
    const response = await api.post('/api/jobs', jobFile());
    const { job, outcome, admission } = answerOf(response, 201, submitAnswer);
    expect({ outcome, admission }).toMatchObject({
      outcome: 'created',
      admission: { feasible: true, notes: [expect.stringContaining('Cold start')] },
    });
    expect(job).toMatchObject({
      name: 'render',
      owner: 'tester',
      state: 'pending',
      submittedAt: '2026-03-01T12:00:00.000Z',
    });
    expect(job.template).toContain('tester/render');
    expect(response.headers['location']).toBe(`/api/jobs/${job.id}`);
    expect(api.wakes()).toBe(1);
    expect((await api.get(`/api/jobs/${job.id}`)).status).toBe(200);
  });

  it('makes a deadline relative to the submission in engine time', async () => {
    const { job } = answerOf(
      await api.post('/api/jobs', jobFile({ class: 'deadline', deadline: '90m' })),
      201,
      submitAnswer,
    );
    expect(job.deadlineAt).toBe('2026-03-01T13:30:00.000Z');
  });

  it('makes one job of a body that is repeated under its key', async () => {
    const key = { 'idempotency-key': 'k-1' };
    const first = answerOf(await api.post('/api/jobs', jobFile(), key), 201, submitAnswer);
    const second = answerOf(await api.post('/api/jobs', jobFile(), key), 200, submitAnswer);
    expect(second).toEqual({ ...first, outcome: 'repeated' });
    expect(await stored()).toEqual(['render']);
    // Whoever took it first may have died before it woke anybody.
    expect(api.wakes()).toBe(2);
  });

  it('refuses another body under a used key', async () => {
    const key = { 'Idempotency-Key': 'k-1' };
    await api.post('/api/jobs', jobFile(), key);
    const found = problemIn(await api.post('/api/jobs', jobFile({ name: 'other' }), key), 409, 'conflict');
    expect(found.got).toBe('"k-1"');
    expect(await stored()).toEqual(['render']);
  });

  it('answers a repeated key with its job, also when such a job would be refused by now', async () => {
    let refusing = false;
    api = apiUnderTest({
      admit: async () => {
        if (refusing)
          throw new EbbError('job.deadline-past', { what: 'the deadline has passed', next: 'Give a later one.' });
        return { feasible: true, notes: [] };
      },
    });
    const key = { 'idempotency-key': 'k-1' };
    const first = answerOf(await api.post('/api/jobs', jobFile(), key), 201, submitAnswer);
    const batch = { jobs: [jobFile(), jobFile({ name: 'second' })] };
    const made = answerOf(await api.post('/api/jobs/batch', batch, { 'idempotency-key': 'k-2' }), 200, batchAnswer);
    refusing = true;
    expect(answerOf(await api.post('/api/jobs', jobFile(), key), 200, submitAnswer).job.id).toBe(first.job.id);
    const again = answerOf(await api.post('/api/jobs/batch', batch, { 'idempotency-key': 'k-2' }), 200, batchAnswer);
    expect(again).toMatchObject({ created: 0, repeated: 2, refused: 0 });
    expect(again.results.map((r) => r.job?.id)).toEqual(made.results.map((r) => r.job?.id));
    problemIn(await api.post('/api/jobs', jobFile(), { 'idempotency-key': 'k-3' }), 422, 'job.deadline-past');
  });

  it('makes two jobs without a key', async () => {
    await api.post('/api/jobs', jobFile());
    await api.post('/api/jobs', jobFile());
    expect(await stored()).toEqual(['render', 'render']);
  });

  it.each(['', ' ', 'a b', 'ü', 'x'.repeat(201)])('refuses the key %j', async (key) => {
    problemIn(await api.post('/api/jobs', jobFile(), { 'idempotency-key': key }), 400, 'usage');
  });

  it('reports every finding in a job file at once and stores nothing', async () => {
    const found = problemIn(
      await api.post('/api/jobs', jobFile({ naem: 'x', retries: -1, stages: [] })),
      400,
      'job-file.invalid',
    );
    expect((found.issues ?? []).length).toBeGreaterThanOrEqual(2);
    expect(JSON.stringify(found)).toContain('name');
    expect(await stored()).toEqual([]);
    expect(api.wakes()).toBe(0);
  });

  it('refuses what no pool can hold, before it is stored', async () => {
    const stages = [{ name: 'main', command: ['true'], workdir: '/tmp', resources: { cpu: 500, memory: '1GiB' } }];
    problemIn(await api.post('/api/jobs', jobFile({ stages })), 422, 'job.unplaceable');
    expect(await stored()).toEqual([]);
  });

  it('resolves the jobs that it depends on by name, and refuses unknown ones', async () => {
    const first = answerOf(await api.post('/api/jobs', jobFile()), 201, submitAnswer);
    const second = answerOf(await api.post('/api/jobs', jobFile({ name: 'b', after: ['render'] })), 201, submitAnswer);
    expect((await api.store.findJobs(['b'])).get('b')?.after).toEqual([first.job.id]);
    expect(second.outcome).toBe('created');
    const found = problemIn(
      await api.post('/api/jobs', jobFile({ name: 'c', after: ['nope'] })),
      400,
      'job-file.dependency',
    );
    expect(found.got).toContain('nope');
  });

  it('refuses text that no program could take: NUL bytes and broken Unicode', async () => {
    const stages = [{ name: 'main', command: ['echo', 'a\u0000b'], workdir: '/tmp' }];
    problemIn(await api.post('/api/jobs', jobFile({ stages })), 400, 'job-file.invalid');
    problemIn(await api.post('/api/jobs', jobFile({ labels: { a: '\ud800' } })), 400, 'job-file.invalid');
  });
});

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('bodies', () => {
  const send = (body: string | Uint8Array | null, type: string | null = 'application/json') =>
    api.dispatch({ method: 'POST', path: '/api/jobs', headers: type === null ? {} : { 'content-type': type }, body });

  it('must be declared as JSON', async () => {
    problemIn(await send('name: x', 'application/yaml'), 415, 'media-type');
    problemIn(await send('{}', null), 415, 'media-type');
    problemIn(await send('{}', 'application/json; charset=latin1'), 415, 'media-type');
    expect((await send(JSON.stringify(jobFile()), 'Application/JSON; charset=UTF-8')).status).toBe(201);
  });

  it('must be there', async () => {
    problemIn(await send(null), 400, 'usage');
    problemIn(await send(''), 400, 'usage');
  });

  it('must be JSON in UTF-8', async () => {
    problemIn(await send('{"name": '), 400, 'job-file.syntax');
    problemIn(await send(Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d)), 400, 'job-file.syntax');
    problemIn(await send(Buffer.from('{"name":"x"}', 'utf16le')), 400, 'job-file.syntax');
  });

  it.each([
    'null',
    '[]',
    '"text"',
    '1e999',
    '{"__proto__":{"a":1}}',
    '['.repeat(100_000),
    deep(100_000),
    `{"name":${deep(100_000)}}`,
    `{"\\u0000":${deep(100_000)}}`,
  ])('%.20s is no job file', async (body) => {
    const response = await send(body);
    expect(response.status).toBe(400);
  });

  it('must be within the limit, in bytes', async () => {
    problemIn(await send(`"${'x'.repeat(MAX_BODY_BYTES)}"`), 413, 'body-too-large');
    problemIn(await send(`"${'ü'.repeat(MAX_BODY_BYTES / 2)}"`), 413, 'body-too-large');
  });
});

/** A store of which each call is told first; what that throws, the call rejects with. */
function storeWith(before: (name: string) => void): MemoryStore {
  const store = new MemoryStore();
  return new Proxy(store, {
    get: (of, name) => {
      const is = Reflect.get(of, name, of) as unknown;
      if (typeof is !== 'function') return is;
      return async (...given: unknown[]): Promise<unknown> => {
        before(String(name));
        return Reflect.apply(is, of, given) as unknown;
      };
    },
  });
}

describe('POST /api/jobs/batch', () => {
  it('takes each job for itself: one that is refused does not hold up the others', async () => {
    const jobs = [jobFile({ name: 'a' }), jobFile({ name: 'b', stages: 'none' }), jobFile({ name: 'c' }), 17];
    const answer = answerOf(await api.post('/api/jobs/batch', { jobs }), 200, batchAnswer);
    expect({
      ...answer,
      results: answer.results.map((r) => [r.index, r.outcome, r.job?.name ?? r.problem?.code]),
    }).toEqual({
      created: 2,
      repeated: 0,
      refused: 2,
      results: [
        [0, 'created', 'a'],
        [1, 'refused', 'job-file.invalid'],
        [2, 'created', 'c'],
        [3, 'refused', 'job-file.invalid'],
      ],
    });
    expect((await stored()).sort()).toEqual(['a', 'c']);
  });

  it('repeated under its key makes nothing new, and tells the one job that changed', async () => {
    const key = { 'idempotency-key': 'b-1' };
    await api.post('/api/jobs/batch', { jobs: [jobFile({ name: 'a' }), jobFile({ name: 'b' })] }, key);
    const jobs = [jobFile({ name: 'a' }), jobFile({ name: 'changed' }), jobFile({ name: 'c' })];
    const answer = answerOf(await api.post('/api/jobs/batch', { jobs }, key), 200, batchAnswer);
    expect(answer.results.map((r) => r.outcome)).toEqual(['repeated', 'refused', 'created']);
    expect(answer.results[1]?.problem?.code).toBe('conflict');
    expect((await stored()).sort()).toEqual(['a', 'b', 'c']);
  });

  it('lets a job depend on an earlier one of the batch, also when the batch is repeated', async () => {
    const jobs = [jobFile({ name: 'a' }), jobFile({ name: 'b', after: ['a'] })];
    const key = { 'idempotency-key': 'chain' };
    const first = answerOf(await api.post('/api/jobs/batch', { jobs }, key), 200, batchAnswer);
    expect(first.created).toBe(2);
    const again = answerOf(
      await api.post('/api/jobs/batch', { jobs: [...jobs, jobFile({ name: 'c', after: ['b', 'a'] })] }, key),
      200,
      batchAnswer,
    );
    expect(again.results.map((r) => r.outcome)).toEqual(['repeated', 'repeated', 'created']);
    const c = (await api.store.findJobs(['c'])).get('c');
    expect([...(c?.after ?? [])].sort()).toEqual(first.results.map((r) => r.job?.id).sort());
  });

  it('refuses a job that depends on a later one', async () => {
    const jobs = [jobFile({ name: 'a', after: ['b'] }), jobFile({ name: 'b' })];
    const answer = answerOf(await api.post('/api/jobs/batch', { jobs }), 200, batchAnswer);
    expect(answer.results.map((r) => r.problem?.code ?? r.outcome)).toEqual(['job-file.dependency', 'created']);
  });

  it.each([
    {},
    { jobs: [] },
    { jobs: {} },
    { jobs: [1], more: 2 },
    { jobs: [1], keys: 'k' },
    { jobs: [1], keys: null },
    { jobs: [1], keys: [] },
    { jobs: [1], keys: ['a', 'b'] },
    { jobs: [1], keys: ['a b'] },
    { jobs: [1], keys: [''] },
    { jobs: [1], keys: [{}] },
    null,
    [1],
  ])('refuses %.40j as no batch', async (body) => {
    problemIn(await api.post('/api/jobs/batch', body), 400, 'usage');
  });

  it('refuses more jobs than it takes as too large, whatever they are', async () => {
    const found = problemIn(
      await api.post('/api/jobs/batch', { jobs: Array(MAX_BATCH_JOBS + 1).fill(1) }),
      413,
      'body-too-large',
    );
    expect(found).toMatchObject({ got: `${MAX_BATCH_JOBS + 1} jobs`, at: 'jobs' });
    expect(found.allowed).toContain(String(MAX_BATCH_JOBS));
  });

  it('knows each job by a key of its own, as a single submission has it, wherever in a batch it is', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => jobFile({ name }));
    const single = answerOf(await api.post('/api/jobs', a, { 'idempotency-key': 'k-a' }), 201, submitAnswer);
    const first = answerOf(
      await api.post('/api/jobs/batch', { jobs: [b, a, c], keys: ['k-b', 'k-a', null] }),
      200,
      batchAnswer,
    );
    expect(first.results.map((r) => r.outcome)).toEqual(['created', 'repeated', 'created']);
    expect(first.results[1]?.job?.id).toBe(single.job.id);
    const again = answerOf(
      await api.post('/api/jobs/batch', { jobs: [c, a, b], keys: [null, 'k-a', 'k-b'] }),
      200,
      batchAnswer,
    );
    expect(again.results.map((r) => r.outcome)).toEqual(['created', 'repeated', 'repeated']);
    expect((await stored()).sort()).toEqual(['a', 'b', 'c', 'c']);
  });

  it('makes one job of a key that a batch has twice, and refuses another job under it', async () => {
    const jobs = [jobFile({ name: 'a' }), jobFile({ name: 'a' }), jobFile({ name: 'b' }), jobFile({ name: 'c' })];
    const order = { jobs, keys: ['k', 'k', 'k', 'k-c'] };
    const answer = answerOf(await api.post('/api/jobs/batch', order), 200, batchAnswer);
    expect(answer.results.map((r) => r.problem?.code ?? r.outcome)).toEqual([
      'created',
      'repeated',
      'conflict',
      'created',
    ]);
    expect(answer.results[1]?.job?.id).toBe(answer.results[0]?.job?.id);
    expect((await stored()).sort()).toEqual(['a', 'c']);
  });

  it('takes keys of the jobs or a key of the request, not both', async () => {
    const order = { jobs: [jobFile()], keys: ['k'] };
    problemIn(await api.post('/api/jobs/batch', order, { 'idempotency-key': 'k' }), 400, 'usage');
    expect(await stored()).toEqual([]);
  });

  it('loses none of the good ones for one bad among as many as it takes', async () => {
    const jobs = Array.from({ length: MAX_BATCH_JOBS }, (_, i) => jobFile({ name: `n${i}` }));
    jobs[217] = jobFile({ name: 'bad', stages: [] });
    const answer = answerOf(await api.post('/api/jobs/batch', { jobs }), 200, batchAnswer);
    expect(answer).toMatchObject({ created: MAX_BATCH_JOBS - 1, repeated: 0, refused: 1 });
    expect(answer.results.map((r) => r.index)).toEqual(jobs.map((_, i) => i));
    expect(answer.results[217]).toMatchObject({ outcome: 'refused', job: null, problem: { code: 'job-file.invalid' } });
  });

  it('wakes the engine once for what it writes together', async () => {
    const jobs = Array.from({ length: 20 }, (_, i) => jobFile({ name: `n${i}` }));
    await api.post('/api/jobs/batch', { jobs });
    expect(api.wakes()).toBe(1);
  });

  it('asks the store once for all keys and writes once', async () => {
    const asked: string[] = [];
    const watched = storeWith((name) => void asked.push(name));
    api = apiUnderTest({ store: watched });
    const jobs = Array.from({ length: 20 }, (_, i) => jobFile({ name: `n${i}` }));
    await api.post('/api/jobs/batch', { jobs }, { 'idempotency-key': 'k' });
    expect(asked).toEqual(['submitted', 'submit']);
  });

  it('a fault of the store is a fault of the request, and no job of it is lost when it is sent again', async () => {
    let isFull = true;
    const full = storeWith((name) => {
      if (name !== 'submit' || !isFull) return;
      throw new EbbError('store.full', { what: 'the disk is full', next: 'Free some space.' });
    });
    api = apiUnderTest({ store: full });
    const jobs = [jobFile({ name: 'a' }), jobFile({ name: 'b' }), jobFile({ name: 'c', after: ['a'] })];
    const key = { 'idempotency-key': 'k' };
    problemIn(await api.post('/api/jobs/batch', { jobs }, key), 429, 'store.full');
    isFull = false;
    const again = answerOf(await api.post('/api/jobs/batch', { jobs }, key), 200, batchAnswer);
    expect(again).toMatchObject({ created: 3, refused: 0 });
  });

  it('lets other requests through while it is worked on', async () => {
    const order: string[] = [];
    const jobs = Array.from({ length: MAX_BATCH_JOBS }, (_, i) => jobFile({ name: `n${i}` }));
    const busy = admitter({
      pools: api.pools,
      limits: { vcpus: 32 },
      config: schedulerConfig.parse({}),
      history: new LoggedHistory(),
    });
    api = apiUnderTest({
      admit: async (spec) => {
        const untilMs = performance.now() + 1;
        while (performance.now() < untilMs);
        return busy(spec, api.clock.now());
      },
    });
    const batch = api.post('/api/jobs/batch', { jobs }).then(() => order.push('batch'));
    await new Promise((resolve) => setImmediate(resolve));
    await api.get('/api/health').then(() => order.push('health'));
    expect(order).toEqual(['health']);
    await batch;
  });

  it('has an answer that can be sent, however much is wrong or to be said', async () => {
    const unknown = (i: number): object => ({
      name: `n${i}`,
      ...Object.fromEntries(Array.from({ length: 230 }, (_, k) => [`k${k}`, 1])),
    });
    const bad = { jobs: Array.from({ length: MAX_BATCH_JOBS }, (_, i) => unknown(i)) };
    expect(JSON.stringify(bad).length).toBeLessThan(MAX_BODY_BYTES);
    const refused = answerOf(await api.post('/api/jobs/batch', bad), 200, batchAnswer);
    expect(refused.refused).toBe(MAX_BATCH_JOBS);
    expect(refused.results[0]?.problem?.issues?.length).toBeGreaterThan(10);

    const preferences = Array.from({ length: 18 }, () => ({ prefer: { zones: ['x'] }, weight: 1 }));
    const stages = [
      { name: 'm', command: 'x', preferences },
      { name: 'n', command: 'x', preferences },
    ];
    const noted = { jobs: Array.from({ length: MAX_BATCH_JOBS }, (_, i) => ({ name: `n${i}`, stages })) };
    expect(JSON.stringify(noted).length).toBeLessThan(MAX_BODY_BYTES);
    const taken = answerOf(await api.post('/api/jobs/batch', noted), 200, batchAnswer);
    expect(taken.created).toBe(MAX_BATCH_JOBS);
    expect(taken.results[0]?.admission?.notes.length).toBeGreaterThan(10);
  });
});
