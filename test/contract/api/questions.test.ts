import { taughtNeighbours, template } from '../../support/neighbours.ts';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { attemptId, effectKey, instanceId, jobId, planId, timeOrderedText } from '../../../lib/kernel/ids.ts';
import { epochMs, minus, plus, raw, seconds, usd, ZERO_S } from '../../../lib/kernel/units.ts';
import type { Explanation, SolveReport } from '../../../lib/domain/plan.ts';
import type { Instance } from '../../../lib/domain/instance.ts';
import type { AttemptOutcome, Task } from '../../../lib/domain/job.ts';
import type { LedgerRow } from '../../../lib/domain/ledger.ts';
import type { Change } from '../../../lib/ports/store.ts';
import * as schema from '../../../lib/api/schemas.ts';
import { apiUnderTest, jobFile, NOW, type ApiUnderTest } from '../../support/api.ts';
import { answerOf, problemIn } from '../../support/api-answers.ts';
import { attempt, instance, pool, resources } from '../../support/builders.ts';
import { COST_KEYS } from '../../../lib/domain/costs.ts';

const hourAgo = minus(NOW, seconds(3600));
/** How long the ended instance lived; three rows share it. */
const OVER_HOURS = 0.5;
const solve: SolveReport = {
  used: 'greedy',
  status: 'not-needed',
  objective: 1,
  greedyObjective: 1,
  bound: null,
  boundKind: null,
  gap: null,
  gapOfCost: null,
  variables: 0,
  constraints: 0,
  elapsedMs: 2,
};

let api: ApiUnderTest;
let token: number;
const commit = (...changes: Change[]): Promise<void> => api.store.commit(token, changes);
async function submit(over: Record<string, unknown> = {}): Promise<string> {
  const answer = answerOf(await api.post('/api/jobs', jobFile(over)), 201, schema.submitAnswer);
  return answer.job.id;
}

beforeEach(async () => {
  api = apiUnderTest();
  token = await api.store.takeLease('test');
});

/** A job of two stages: one task of `a` runs on a live spot instance since an hour, one has ended on an ended one. */
async function runningJob(): Promise<string> {
  const id = await submit({
    stages: [
      { name: 'a', tasks: 3, command: ['x'], workdir: '/tmp', resources: { cpu: 2, memory: '1GiB' } },
      { name: 'b', dependsOn: ['a'], command: ['y'], workdir: '/tmp', resources: { cpu: 1, memory: '1GiB' } },
    ],
  });
  const job = (await api.store.findJobs([id])).get(id);
  if (job === undefined) throw new Error('submitted a moment ago');
  const ended = { state: 'ended', endedMs: hourAgo, endCause: 'released', costUsd: usd(0.02) } as const;
  const a0 = { job: job.id, stage: 'a', index: 0, resources: resources(2, 1024) };
  await commit(
    { put: 'instance', value: instance({ id: instanceId('i-live'), launchedMs: hourAgo, readyMs: hourAgo }) },
    {
      put: 'instance',
      value: instance({ id: instanceId('i-over'), launchedMs: minus(hourAgo, seconds(1800)), ...ended }),
    },
    {
      put: 'job',
      value: {
        ...job,
        state: 'running',
        startedMs: hourAgo,
        stages: job.stages.map((s) => (s.name === 'a' ? { ...s, nextFresh: 2, running: 1, succeeded: 1 } : s)),
      },
    },
    {
      put: 'task',
      value: {
        job: job.id,
        stage: 'a',
        index: 0,
        state: 'running',
        attempts: 2,
        failures: 0,
        keptS: seconds(60),
        notBeforeMs: null,
      },
    },
    {
      put: 'task',
      value: {
        job: job.id,
        stage: 'a',
        index: 1,
        state: 'succeeded',
        attempts: 1,
        failures: 0,
        keptS: ZERO_S,
        notBeforeMs: null,
      },
    },
    {
      put: 'attempt',
      value: attempt({
        ...a0,
        id: attemptId(`${id}.a.0.1`),
        number: 1,
        instance: instanceId('i-over'),
        state: 'ended',
        outcome: 'interrupted',
        startedMs: minus(hourAgo, seconds(1200)),
        endedMs: hourAgo,
        exitSignal: 'SIGTERM',
      }),
    },
    {
      put: 'attempt',
      value: attempt({
        ...a0,
        id: attemptId(`${id}.a.0.2`),
        number: 2,
        instance: instanceId('i-live'),
        startedMs: hourAgo,
        resumedFromS: seconds(60),
      }),
    },
    {
      put: 'ledger',
      instance: instanceId('i-over'),
      value: [
        row(id, 'work', 0.005),
        row(id, 'wasted', 0.005),
        { ...row(id, 'idle', 0.01), attempt: null, job: null, owner: null, template: null, caller: null },
      ],
    },
  );
  return id;
}
const row = (job: string, kind: LedgerRow['kind'], dollars: number): LedgerRow => ({
  instance: instanceId('i-over'),
  pool: pool().id,
  kind,
  attempt: attemptId(`${job}.a.0.1`),
  job: jobId(job),
  owner: 'tester',
  template: 'tester/render/x',
  caller: 'uid:1000',
  fromMs: minus(hourAgo, seconds(OVER_HOURS * 3600)),
  toMs: hourAgo,
  usd: dollars,
  onDemandUsd: dollars * 3.4,
});

describe('GET /api/jobs', () => {
  it('lists newest first, in pages, without a gap or a repeat', async () => {
    for (let i = 0; i < 5; i++) await submit({ name: `job-${i}` });
    const names: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const path = `/api/jobs?limit=2${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`;
      const page: schema.JobList = answerOf(await api.get(path), 200, schema.jobList);
      names.push(...page.items.map((j) => j.name));
      cursor = page.next;
      pages++;
    } while (cursor !== null);
    expect(names).toEqual(['job-4', 'job-3', 'job-2', 'job-1', 'job-0']);
    expect(pages).toBe(3);
  });

  it('filters by state, owner, name and label', async () => {
    await submit({ name: 'a', labels: { team: 'x=y' } });
    await submit({ name: 'b', owner: 'other' });
    const names = async (query: string): Promise<string[]> =>
      answerOf(await api.get(`/api/jobs?${query}`), 200, schema.jobList).items.map((j) => j.name);
    expect(await names('owner=other')).toEqual(['b']);
    expect(await names('name=a')).toEqual(['a']);
    expect(await names('label=team%3Dx%3Dy')).toEqual(['a']);
    expect(await names('label=team%3Dz')).toEqual([]);
    expect(await names('state=running&state=succeeded')).toEqual([]);
    expect(await names('state=pending')).toEqual(['b', 'a']);
  });

  it('refuses unknown parameters with the nearest name, and all other findings with it', async () => {
    const found = problemIn(await api.get('/api/jobs?limt=5&limit=0&state=open&owner=a&owner=b'), 400, 'usage');
    expect((found.issues ?? []).map((i) => i.at).sort()).toEqual([
      'query.limit',
      'query.limt',
      'query.owner',
      'query.state.0',
    ]);
    expect(JSON.stringify(found)).toContain('did you mean');
  });

  it.each(['cursor=zzz', 'cursor=%00', 'limit=1e3', 'limit=', 'limit=99999999999999999999', 'label=x', 'name=a%00b'])(
    'answers 400 to %s',
    async (query) => {
      expect((await api.get(`/api/jobs?${query}`)).status).toBe(400);
    },
  );
});

describe('one job', () => {
  it('is found by id and by name, with its stages and counts', async () => {
    const id = await runningJob();
    const byName = answerOf(await api.get('/api/jobs/render'), 200, schema.jobView);
    expect(answerOf(await api.get(`/api/jobs/${id}`), 200, schema.jobView)).toEqual(byName);
    expect(byName.tasks).toEqual({
      total: 4,
      pending: 2,
      waiting: 0,
      running: 1,
      succeeded: 1,
      failed: 0,
      cancelled: 0,
    });
    expect(byName.stages.map((s) => [s.name, s.dependsOn, s.resources.cpus])).toEqual([
      ['a', [], 2],
      ['b', ['a'], 1],
    ]);
  });

  it('of several of a name, the one that is not over is meant; of several such, none', async () => {
    const first = await submit();
    const job = (await api.store.findJobs([first])).get(first);
    if (job !== undefined) await commit({ put: 'job', value: { ...job, state: 'succeeded', finishedMs: NOW } });
    expect(answerOf(await api.get('/api/jobs/render'), 200, schema.jobView).id).toBe(first);
    const second = await submit();
    expect(answerOf(await api.get('/api/jobs/render'), 200, schema.jobView).id).toBe(second);
    const third = await submit();
    const found = problemIn(await api.get('/api/jobs/render'), 409, 'conflict');
    expect(found.allowed).toContain(second);
    expect(found.allowed).toContain(third);
  });

  it('that is older than what is kept answers 410, and says where it is', async () => {
    const archive = 's3://blobs/archive/';
    api = apiUnderTest({ history: { days: 90, archive } });
    const random = (): number => 0.5;
    const old = `j-${timeOrderedText(minus(NOW, seconds(91 * 86_400)), random)}`;
    const young = `j-${timeOrderedText(minus(NOW, seconds(89 * 86_400)), random)}`;
    for (const path of [old, `${old}/tasks`, `${old}/cost`, `${old}/logs`, `${old}/explain`]) {
      const problem = problemIn(await api.get(`/api/jobs/${path}`), 410, 'gone');
      expect(problem.got).toContain('2025-11-30');
      expect(problem.allowed).toContain('90 days');
      expect(problem.next).toContain(`${archive}jobs/`);
    }
    problemIn(await api.get(`/api/jobs/${young}`), 404, 'not-found');
    problemIn(await api.get(`/api/jobs/j-0000000000000`), 404, 'not-found');
  });

  it('that does not exist answers 404 with the nearest name', async () => {
    await submit();
    expect(problemIn(await api.get('/api/jobs/rendr'), 404, 'not-found').next).toContain('render');
    expect(problemIn(await api.get('/api/jobs/%E0%A4%A'), 400, 'usage').issues?.[0]?.at).toBe('path.job');
  });

  it('is cancelled by POST and DELETE alike, again without harm, and not when it has ended by itself', async () => {
    const id = await submit();
    const cancel = async (): Promise<schema.CancelAnswer> =>
      answerOf(await api.post(`/api/jobs/${id}/cancel`, {}), 202, schema.cancelAnswer);
    expect((await cancel()).job.cancelRequested).toBe(true);
    expect((await cancel()).outcome).toBe('requested');
    answerOf(await api.dispatch({ method: 'DELETE', path: '/api/jobs/render' }), 202, schema.cancelAnswer);
    const job = (await api.store.findJobs([id])).get(id);
    if (job === undefined) throw new Error('submitted a moment ago');
    await commit({ put: 'job', value: { ...job, state: 'cancelled', finishedMs: NOW } });
    expect((await cancel()).outcome).toBe('already-cancelled');
    await commit({ put: 'job', value: { ...job, state: 'succeeded', finishedMs: NOW } });
    problemIn(await api.post(`/api/jobs/${id}/cancel`, {}), 409, 'conflict');
  });

  it('says why it is held, and is released on request; one that is not held is not', async () => {
    const id = await submit();
    problemIn(await api.post(`/api/jobs/${id}/release`, {}), 409, 'conflict');
    const job = (await api.store.findJobs([id])).get(id);
    if (job === undefined) throw new Error('submitted a moment ago');
    const held = { reason: 'a decision on it fails: no', sinceMs: NOW };
    await commit({ put: 'job', value: { ...job, state: 'held', held } });
    const shown = answerOf(await api.get(`/api/jobs/${id}`), 200, schema.jobView);
    expect(shown).toMatchObject({ state: 'held', stateReason: held.reason, headline: `held: ${held.reason}` });
    expect(answerOf(await api.get('/api/jobs?state=held'), 200, schema.jobList).items.map((j) => j.id)).toEqual([id]);
    answerOf(await api.post(`/api/jobs/${id}/release`, {}), 202, schema.releaseAnswer);
    expect((await api.store.findJobs([id])).get(id)?.releasedHoldMs).toEqual(NOW);
  });
});

describe('tasks and attempts', () => {
  it('lists tasks of all stages in order, those never tried included, in pages', async () => {
    const id = await runningJob();
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const path = `/api/jobs/${id}/tasks?limit=3${cursor === null ? '' : `&cursor=${cursor}`}`;
      const page: schema.TaskList = answerOf(await api.get(path), 200, schema.taskList);
      seen.push(...page.items.map((t) => `${t.stage}${t.index} ${t.state}`));
      cursor = page.next;
    } while (cursor !== null);
    expect(seen).toEqual(['a0 running', 'a1 succeeded', 'a2 pending', 'b0 pending']);
    const only = answerOf(await api.get(`/api/jobs/${id}/tasks?state=pending&stage=b`), 200, schema.taskList);
    expect(only.items.map((t) => `${t.stage}${t.index}`)).toEqual(['b0']);
  });

  it('pages through a filtered list without a gap or a repeat', async () => {
    const id = await runningJob();
    const first = answerOf(await api.get(`/api/jobs/${id}/tasks?state=pending&limit=1`), 200, schema.taskList);
    const second = answerOf(
      await api.get(`/api/jobs/${id}/tasks?state=pending&limit=1&cursor=${first.next}`),
      200,
      schema.taskList,
    );
    expect([...first.items, ...second.items].map((t) => `${t.stage}${t.index}`)).toEqual(['a2', 'b0']);
    expect(second.next).toBeNull();
  });

  it('lists attempts of one task', async () => {
    const id = await runningJob();
    const list = answerOf(await api.get(`/api/jobs/${id}/attempts?task=0&stage=a`), 200, schema.attemptList);
    expect(list.items.map((a) => [a.number, a.outcome, a.resumedFromS])).toEqual([
      [1, 'interrupted', 0],
      [2, null, 60],
    ]);
    expect(answerOf(await api.get(`/api/jobs/${id}/attempts?task=1`), 200, schema.attemptList).items).toEqual([]);
  });
});

describe('failures', () => {
  /** Attempts of tasks 0 and 1 of stage `a` that ended so, the last one of each given last. */
  async function failing(...ends: readonly (readonly [index: number, exitCode: number | null, reason: string])[]) {
    const id = await submit({
      stages: [{ name: 'a', tasks: 3, command: ['x'], workdir: '/tmp', resources: { cpu: 1, memory: '1GiB' } }],
    });
    const job = jobId(id);
    const changes = ends.map(([index, exitCode, reason], i): Change => ({
      put: 'attempt',
      value: attempt({
        job,
        stage: 'a',
        index,
        id: attemptId(`${id}.a.${index}.${i + 1}`),
        number: i + 1,
        state: 'ended',
        outcome: reason === 'fine' ? 'succeeded' : 'failed',
        exitCode,
        reason,
        endedMs: plus(hourAgo, seconds(i)),
      }),
    }));
    await commit(...changes);
    return id;
  }
  const ask = async (id: string, query = ''): Promise<schema.FailureList> =>
    answerOf(await api.get(`/api/jobs/${id}/failures${query}`), 200, schema.failureList);

  it('are none of a job whose tasks succeed, or were interrupted', async () => {
    expect(await ask(await runningJob())).toMatchObject({ total: 0, items: [] });
    expect(await ask(await failing([0, 1, 'exit code 1'], [0, 0, 'fine']))).toMatchObject({ total: 0, items: [] });
  });

  it('are the last attempts, with exit code, reason and the end of standard error', async () => {
    const id = await failing(
      [0, 1, 'exit code 1'],
      [0, 3, 'exit code 3'],
      [1, 3, 'exit code 3'],
      [2, null, 'no output'],
    );
    await commit({
      put: 'task',
      value: {
        job: jobId(id),
        stage: 'a',
        index: 1,
        state: 'failed',
        attempts: 3,
        failures: 3,
        keptS: ZERO_S,
        notBeforeMs: null,
      },
    });
    api.logs.set(`${id}.a.1.3/stderr`, `${'x'.repeat(5000)}\n${'a line\n'.repeat(20)}the last one\n`);
    const { total, items } = await ask(id);
    expect(total).toBe(3);
    expect(items.map((f) => [f.index, f.attempt, f.exitCode, f.reason, f.final, f.alike])).toEqual([
      // For good first; then the latest.
      [1, 3, 3, 'exit code 3', true, 0],
      [2, 4, null, 'no output', false, 0],
      [0, 2, 3, 'exit code 3', false, 0],
    ]);
    expect(items[0]?.stderr).toBe(`${'a line\n'.repeat(9)}the last one`);
    expect(items[1]?.stderr).toBeNull();
    expect((await ask(id, '?task=0')).items.map((f) => f.index)).toEqual([0]);
  });

  it('that are alike are one, and a long line is cut', async () => {
    const id = await failing([0, 1, 'exit code 1'], [1, 1, 'exit code 1'], [2, 1, 'exit code 1']);
    api.logs.set(`${id}.a.2.3/stderr`, 'y'.repeat(100_000));
    const { total, items } = await ask(id);
    expect([total, items.length, items[0]?.index, items[0]?.alike]).toEqual([3, 1, 2, 2]);
    expect(items[0]?.stderr?.length).toBe(2048);
  });
});

describe('a task with several attempts', () => {
  type End = readonly [outcome: AttemptOutcome | null, endedS: number];
  /** Attempts of task 0, in the order of their numbers. Task 0 has failed if `state` says so. */
  async function withAttempts(state: Task['state'], ...ends: readonly End[]): Promise<string> {
    const id = await submit({
      stages: [{ name: 'a', command: ['x'], workdir: '/tmp', resources: { cpu: 1, memory: '1GiB' } }],
    });
    const of = { job: jobId(id), stage: 'a', index: 0 };
    const rest = { attempts: ends.length, failures: 1, keptS: ZERO_S, notBeforeMs: null };
    await commit(
      { put: 'task', value: { ...of, state, ...rest } },
      ...ends.map(([outcome, endedS], i): Change => ({
        put: 'attempt',
        value: attempt({
          ...of,
          id: attemptId(`${id}.a.0.${i + 1}`),
          number: i + 1,
          ...(i === 0 ? {} : { role: 'copy', round: 1 }),
          state: outcome === null ? 'running' : 'ended',
          outcome,
          endedMs: outcome === null ? null : plus(hourAgo, seconds(endedS)),
        }),
      })),
    );
    return id;
  }
  const failures = async (id: string): Promise<readonly (readonly [number, boolean])[]> => {
    const { items } = answerOf(await api.get(`/api/jobs/${id}/failures`), 200, schema.failureList);
    return items.map((f) => [f.attempt, f.final]);
  };
  const log = async (id: string, query = ''): Promise<readonly [number, boolean]> => {
    const view = answerOf(await api.get(`/api/jobs/${id}/logs${query}`), 200, schema.logView);
    return [view.number, view.latest];
  };

  it('has not failed where one succeeded or lives, and its log is that of this one', async () => {
    const won = await withAttempts('succeeded', ['succeeded', 20], ['failed', 10], ['superseded', 25]);
    expect(await failures(won)).toEqual([]);
    expect(await log(won)).toEqual([1, true]);
    expect(await log(won, '?attempt=3')).toEqual([3, false]);
    const lives = await withAttempts('running', [null, 0], ['failed', 10]);
    expect(await failures(lives)).toEqual([]);
    expect(await log(lives)).toEqual([1, true]);
  });

  it('failed by its last failure, whatever ended before or after it', async () => {
    const before = await withAttempts('failed', ['failed', 20], ['interrupted', 10]);
    expect(await failures(before)).toEqual([[1, true]]);
    expect(await log(before)).toEqual([1, true]);
    const after = await withAttempts('failed', ['failed', 20], ['cancelled', 30], ['superseded', 40]);
    expect(await failures(after)).toEqual([[1, true]]);
    expect(await log(after)).toEqual([1, true]);
  });

  it('that waits tells of the end that came last', async () => {
    const failed = await withAttempts('waiting', ['failed', 20], ['interrupted', 10]);
    expect(await failures(failed)).toEqual([[1, false]]);
    const lost = await withAttempts('waiting', ['failed', 20], ['interrupted', 30]);
    expect(await failures(lost)).toEqual([]);
    expect(await log(lost)).toEqual([2, true]);
    const superseded = await withAttempts('waiting', ['superseded', 20], ['superseded', 30]);
    expect(await log(superseded)).toEqual([2, true]);
  });
});

describe('logs', () => {
  it('reads in ranges, from the newest attempt unless told', async () => {
    const id = await runningJob();
    api.logs.set(`${id}.a.0.2/stdout`, 'hello world');
    api.logs.set(`${id}.a.0.1/stderr`, 'bad');
    const first = answerOf(await api.get(`/api/jobs/${id}/logs?stage=a&limit=5`), 200, schema.logView);
    expect(first).toMatchObject({
      text: 'hello',
      number: 2,
      nextOffset: 5,
      totalBytes: 11,
      ended: false,
      latest: true,
    });
    const rest = answerOf(await api.get(`/api/jobs/${id}/logs?stage=a&offset=5`), 200, schema.logView);
    expect(rest).toMatchObject({ text: ' world', nextOffset: 11 });
    const old = answerOf(await api.get(`/api/jobs/${id}/logs?stage=a&attempt=1&stream=stderr`), 200, schema.logView);
    expect(old).toMatchObject({ text: 'bad', number: 1, ended: true, latest: false, outcome: 'interrupted' });
    expect([first.outcome, first.reason]).toEqual([null, null]);
  });

  it('says what is missing: a stage, a task, an attempt', async () => {
    const id = await runningJob();
    expect(problemIn(await api.get(`/api/jobs/${id}/logs`), 400, 'usage').allowed).toBe('a, b');
    expect(problemIn(await api.get(`/api/jobs/${id}/logs?stage=aa`), 404, 'not-found').next).toContain('"a"');
    expect(problemIn(await api.get(`/api/jobs/${id}/logs?stage=a&task=3`), 404, 'not-found').allowed).toBe('0 to 2');
    expect(problemIn(await api.get(`/api/jobs/${id}/logs?stage=a&attempt=9`), 404, 'not-found').allowed).toBe('1 to 2');
    expect(problemIn(await api.get(`/api/jobs/${id}/logs?stage=b`), 404, 'not-found').next).toContain('explain');
  });
});

describe('costs', () => {
  // The live instance costs 0.05 USD an hour and the attempt takes 2 of its 4 CPUs since an hour: 0.025 of work.
  it('of a job are the ledger and what accrues on machines that live', async () => {
    const id = await runningJob();
    const cost = answerOf(await api.get(`/api/jobs/${id}/cost`), 200, schema.jobCostView);
    expect(cost.settled).toBe(false);
    // The other half of the live instance is idle, and nobody else uses it.
    expect(cost.accruedUsd).toBeCloseTo(0.05, 9);
    expect(cost.total.idleUsd).toBeCloseTo(0.025, 9);
    expect(cost.total.workUsd).toBeCloseTo(0.03, 9);
    expect(cost.total.wastedUsd).toBeCloseTo(0.005, 9);
    expect(cost.total.totalUsd).toBeCloseTo(0.06, 9);
    // Useful work alone is compared: the ledger's 0.005 of work and what has accrued, not the wasted 0.005.
    expect(cost.total.onDemandUsd).toBeCloseTo(0.005 * 3.4 + 0.085, 9);
    // Half of what the ended instance's time cost was the job's, and all of the live one for an hour.
    expect(cost.total.instanceHours).toBeCloseTo(OVER_HOURS / 2 + 1, 9);
  });

  it.each(COST_KEYS)('by %s sum to what was paid', async (by) => {
    await runningJob();
    const report = answerOf(await api.get(`/api/costs?by=${by}`), 200, schema.costReport);
    expect(report.total.totalUsd).toBeCloseTo(0.02 + 0.05, 9);
    // Each instance once, however many share it.
    expect(report.total.instanceHours).toBeCloseTo(OVER_HOURS + 1, 9);
    expect(report.rows.reduce((sum, r) => sum + r.totalUsd, 0)).toBeCloseTo(report.total.totalUsd, 12);
    expect(report.rows.map((r) => r.totalUsd)).toEqual(report.rows.map((r) => r.totalUsd).sort((a, b) => b - a));
  });

  it('by caller are those of the jobs that each submitted', async () => {
    await runningJob();
    const { rows } = answerOf(await api.get('/api/costs?by=caller'), 200, schema.costReport);
    // Settled rows name a caller, or no job; nobody was recorded for the job that runs.
    expect(new Map(rows.map((r) => [r.key, r.totalUsd]))).toEqual(
      new Map([
        ['(unknown)', expect.closeTo(0.05, 9)],
        ['uid:1000', expect.closeTo(0.01, 9)],
        ['(idle)', expect.closeTo(0.01, 9)],
      ]),
    );
  });

  it('have idle time with the job that caused it, or apart', async () => {
    const id = await runningJob();
    const ask = async (idle: string) =>
      answerOf(await api.get(`/api/costs?by=job&idle=${idle}`), 200, schema.costReport);
    const [shared, apart] = [await ask('shared'), await ask('apart')];
    const of = (report: typeof shared, key: string) => report.rows.find((r) => r.key === key);
    // The ended instance's idle row names no job, as those of earlier versions; of the live one half is unused.
    expect(of(shared, id)).toMatchObject({ idleUsd: expect.closeTo(0.025, 9), totalUsd: expect.closeTo(0.06, 9) });
    expect(of(shared, '(idle)')?.totalUsd).toBeCloseTo(0.01, 9);
    expect(of(apart, id)).toMatchObject({ idleUsd: 0, totalUsd: expect.closeTo(0.035, 9) });
    expect(of(apart, '(idle)')?.totalUsd).toBeCloseTo(0.035, 9);
    expect(of(apart, id)?.instanceHours).toBeCloseTo(OVER_HOURS / 2 + 0.5, 9);
    expect(apart.total.totalUsd).toBeCloseTo(shared.total.totalUsd, 12);
    expect(apart.total.instanceHours).toBeCloseTo(shared.total.instanceHours, 9);
    problemIn(await api.get('/api/costs?idle=mine'), 400, 'usage');
  });

  describe('of more jobs than one answer has room for', () => {
    const JOBS = 40_000;
    const PER_INSTANCE = 1000;
    /** What a function may send, as Lambda counts it: the body as a JSON string. */
    const LAMBDA_BYTES = 6 * 2 ** 20;
    const jobOfRow = (n: number): string => `j-of-many-${String(n).padStart(12, '0')}`;

    async function manyJobs(): Promise<void> {
      for (let from = 0; from < JOBS; from += PER_INSTANCE) {
        const id = instanceId(`i-${from}`);
        const value = Array.from({ length: PER_INSTANCE }, (_, i): LedgerRow => ({
          instance: id,
          pool: pool().id,
          kind: 'work',
          attempt: null,
          job: jobId(jobOfRow(from + i)),
          owner: 'ana',
          template: 't',
          caller: null,
          fromMs: hourAgo,
          toMs: NOW,
          usd: (from + i + 1) / 7,
          onDemandUsd: (from + i + 1) / 3,
        }));
        await commit({ put: 'ledger', instance: id, value });
      }
    }

    it('come in pages, each small enough, all rows once, most expensive first, with the total of all', async () => {
      await manyJobs();
      const keys: string[] = [];
      const totals = new Set<number>();
      let cursor: string | null = null;
      do {
        const response = await api.get(`/api/costs?limit=5000${cursor === null ? '' : `&cursor=${cursor}`}`);
        expect(Buffer.byteLength(JSON.stringify(response.body))).toBeLessThan(LAMBDA_BYTES);
        const page = answerOf(response, 200, schema.costReport);
        keys.push(...page.rows.map((row) => row.key));
        totals.add(page.total.totalUsd);
        cursor = page.next;
      } while (cursor !== null);
      expect(keys).toEqual(Array.from({ length: JOBS }, (_, n) => jobOfRow(JOBS - 1 - n)));
      expect([...totals]).toEqual([expect.closeTo((JOBS * (JOBS + 1)) / 14, 3)]);
    });

    it('go on behind the last row of a page, whatever has been added since', async () => {
      await runningJob();
      await manyJobs();
      const first = answerOf(await api.get('/api/costs?limit=3'), 200, schema.costReport);
      await commit({
        put: 'ledger',
        instance: instanceId('i-more'),
        value: [{ ...ledgerRowOf('j-dear'), usd: 1e6 }],
      });
      const second = answerOf(await api.get(`/api/costs?limit=2&cursor=${first.next}`), 200, schema.costReport);
      expect(second.rows.map((r) => r.key)).toEqual([jobOfRow(JOBS - 4), jobOfRow(JOBS - 5)]);
    });

    it.each(['', 'x', Buffer.from('[1]').toString('base64url'), Buffer.from('["a",1]').toString('base64url')])(
      'refuse %j as a cursor',
      async (cursor) => {
        problemIn(await api.get(`/api/costs?cursor=${cursor}`), 400, 'usage');
      },
    );

    const ledgerRowOf = (job: string): LedgerRow => ({
      instance: instanceId('i-more'),
      pool: pool().id,
      kind: 'work',
      attempt: null,
      job: jobId(job),
      owner: 'ana',
      template: 't',
      caller: null,
      fromMs: hourAgo,
      toMs: NOW,
      usd: 1,
      onDemandUsd: 1,
    });
  });
});

describe('large answers', () => {
  it('are shorter pages: a list of jobs with large labels', async () => {
    const labels = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`label-${n}`, 'x'.repeat(60_000)]));
    for (let n = 0; n < 12; n++) await submit({ name: `job-${n}`, labels });
    const names: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const response = await api.get(`/api/jobs?limit=100${cursor === null ? '' : `&cursor=${cursor}`}`);
      expect(response.body.length).toBeLessThan(6 * 2 ** 20);
      const page = answerOf(response, 200, schema.jobList);
      names.push(...page.items.map((j) => j.name));
      cursor = page.next;
      pages++;
    } while (cursor !== null);
    expect(pages).toBeGreaterThan(1);
    expect(names).toEqual(Array.from({ length: 12 }, (_, n) => `job-${11 - n}`));
  });

  it('that cannot be made shorter are refused in words', async () => {
    const id = await submit();
    const task = (await api.store.job(jobId(id)))?.id ?? jobId(id);
    await commit({
      put: 'attempt',
      value: attempt({ id: attemptId(`${task}.main.0.1`), job: task, stage: 'main', index: 0, state: 'running' }),
    });
    // Each control character is six bytes of JSON, and seven of a JSON string in a JSON string.
    api.logs.set(`${task}.main.0.1/stdout`, '\u0001'.repeat(1_048_576));
    const problem = problemIn(await api.get(`/api/jobs/${id}/logs?limit=1048576`), 400, 'answer-too-large');
    expect(problem.next).toMatch(/limit/);
    expect((await api.get(`/api/jobs/${id}/logs?limit=65536`)).status).toBe(200);
  });
});

describe('the root', () => {
  it('says what answers here, and links to routes that are there', async () => {
    const root = answerOf(await api.get('/'), 200, schema.rootView);
    for (const link of Object.values(root.links)) {
      expect(link).not.toMatch(/^[/]|:/);
      expect([link, (await api.get(`/${link}`)).status]).toEqual([link, 200]);
    }
    problemIn(await api.post('/', {}), 405, 'method-not-allowed');
  });
});

describe('capacity', () => {
  it('lists pools with the price now, its range over a day, and what is held', async () => {
    await runningJob();
    const pools = answerOf(await api.get('/api/pools'), 200, schema.poolList).items;
    expect(pools.map((p) => [p.option, p.priceUsdPerHour, p.lowUsdPerHour, p.highUsdPerHour, p.liveInstances])).toEqual(
      [
        ['spot', 0.05, 0.05, 0.07, 1],
        ['on-demand', 0.17, 0.17, 0.17, 0],
      ],
    );
    const spot = answerOf(await api.get('/api/pools?option=spot&limit=1'), 200, schema.poolList);
    expect(spot).toMatchObject({ next: null, items: [{ option: 'spot' }] });
    expect(answerOf(await api.get('/api/pools?type=none'), 200, schema.poolList).items).toEqual([]);
  });

  it('forecasts spot pools for the bids that a decision would try, with what drives each', async () => {
    const list = answerOf(await api.get('/api/forecasts'), 200, schema.forecastList);
    expect(list.origin).toEqual({ chosen: 'history', refused: null, version: null, byModel: 0, byHistory: [] });
    expect(list.items).toHaveLength(1);
    const [{ bids, priceUsdPerHour } = { bids: [], priceUsdPerHour: NaN }] = list.items;
    expect(priceUsdPerHour).toBe(0.05);
    // 0.0001, 0.01 and 0.1 above the price, the price on demand, and no bid at all.
    expect(bids.map((b) => b.bid)).toEqual([
      expect.closeTo(0.0501, 9),
      expect.closeTo(0.06, 9),
      expect.closeTo(0.15, 9),
      0.17,
      'uncapped',
    ]);
    for (const { horizonS, pInterrupted } of bids) {
      expect(pInterrupted).toHaveLength(horizonS.length);
      expect(pInterrupted).toEqual(pInterrupted.toSorted((a, b) => a - b));
    }
    expect(bids[1]?.drivers).toEqual({
      aboveUsd: expect.closeTo(0.01, 9),
      lastAboveS: 3600,
      knownS: 30 * 3600,
      range24hUsd: expect.closeTo(0.02, 9),
    });
    expect(bids.at(-1)?.drivers).toBe(null);
    expect(answerOf(await api.get('/api/forecasts?type=none'), 200, schema.forecastList).items).toEqual([]);
  });

  it('says whether instances are interrupted as often as was forecast, by pool and by who forecast', async () => {
    const nothing = answerOf(await api.get('/api/forecasts/drift'), 200, schema.driftView);
    expect(nothing).toMatchObject({ by: null, overall: { instances: 0, ratio: null }, pools: [], morePools: 0 });
    const bought = (id: string, by: string, over: Partial<Instance> = {}): Change => ({
      put: 'instance',
      value: instance({
        id: instanceId(id),
        launchedMs: minus(NOW, seconds(7200)),
        forecast: { by, horizonS: [3600], pInterrupted: [1 - Math.exp(-0.25)] },
        ...over,
      }),
    });
    const elsewhere = pool({ zone: 'us-east-1b' }).id;
    await commit(
      bought('i-1', 'v1'),
      bought('i-2', 'v1', { state: 'ended', endedMs: hourAgo, endCause: 'interrupted' }),
      bought('i-3', 'history', { pool: elsewhere, launchedMs: hourAgo }),
      { put: 'instance', value: instance({ id: instanceId('i-4') }) },
    );
    const all = answerOf(await api.get('/api/forecasts/drift?limit=1'), 200, schema.driftView);
    expect(all.overall).toMatchObject({ instances: 3, hours: 4, expected: expect.closeTo(1, 9), observed: 1 });
    expect(all.pools.map((p) => [p.pool, p.drift.instances])).toEqual([[pool().id, 2]]);
    expect(all.morePools).toBe(1);
    const own = answerOf(await api.get('/api/forecasts/drift?by=v1'), 200, schema.driftView);
    // 0.025 and 5.572: the exact interval of a mean of which one was seen.
    expect(own).toMatchObject({ by: 'v1', overall: { expected: expect.closeTo(0.75, 9) }, morePools: 0 });
    expect(own.overall.ratio?.high).toBeCloseTo(5.572 / 0.75, 2);
    problemIn(await api.get('/api/forecasts/drift?limit=0'), 400, 'usage');
    const capacity = { by: 'observed', pInterrupted: [1 - Math.exp(-0.125)] };
    const forecast = { by: 'v1', horizonS: [3600], pInterrupted: [0.5], capacity };
    await commit(bought('i-5', 'v1', { forecast, endedMs: hourAgo, endCause: 'interrupted', marketCause: 'capacity' }));
    const ofCapacity = answerOf(await api.get('/api/forecasts/drift?risk=capacity'), 200, schema.driftView);
    expect(ofCapacity).toMatchObject({ risk: 'capacity', overall: { instances: 1, observed: 1 } });
    expect(ofCapacity.overall.expected).toBeCloseTo(0.125, 9);
    problemIn(await api.get('/api/forecasts/drift?risk=price'), 400, 'usage');
  });

  it('lists instances with what they cost and what runs on them', async () => {
    const id = await runningJob();
    const live = answerOf(await api.get('/api/instances?live=true'), 200, schema.instanceList).items;
    expect(live).toHaveLength(1);
    expect(live[0]).toMatchObject({ id: 'i-live', option: 'spot', running: [{ job: id, stage: 'a', index: 0 }] });
    expect(live[0]?.costUsd).toBeCloseTo(0.05, 9);
    const over = answerOf(await api.get('/api/instances?live=false'), 200, schema.instanceList).items;
    expect(over.map((i) => [i.id, i.costUsd, i.endCause])).toEqual([['i-over', 0.02, 'released']]);
    const interrupted = { state: 'ended', endCause: 'interrupted', marketCause: 'price', endedMs: hourAgo } as const;
    await commit({ put: 'instance', value: instance({ id: instanceId('i-lost'), ...interrupted }) });
    const all = answerOf(await api.get('/api/instances'), 200, schema.instanceList).items;
    expect(new Map(all.map((i) => [i.id, i.marketCause]))).toEqual(
      new Map([
        ['i-live', null],
        ['i-over', null],
        ['i-lost', 'price'],
      ]),
    );
    problemIn(await api.get('/api/instances?live=yes'), 400, 'usage');
  });

  it('says for which jobs an instance was bought', async () => {
    const id = await submit({ name: 'buyer' });
    const boughtFor = [
      { job: jobId(id), part: 0.25 },
      { job: jobId('j-gone'), part: 0.75, usd: 1 },
    ];
    await commit({ put: 'instance', value: instance({ id: instanceId('i-1'), boughtFor }) });
    const [found] = answerOf(await api.get('/api/instances'), 200, schema.instanceList).items;
    expect(found?.boughtFor).toEqual([
      { job: 'j-gone', name: null, part: 0.75 },
      { job: id, name: 'buyer', part: 0.25 },
    ]);
  });
});

describe('plans and explanations', () => {
  const planned = async (): Promise<string> => {
    const id = await submit();
    const explanation = {
      job: id,
      atMs: NOW,
      headline: 'It waits for a cheaper hour.',
      waiting: [
        {
          stage: 'main',
          tasks: 1,
          why: 'cheaper-later',
          detail: 'd',
          wouldChange: 'w',
          expectedStartMs: plus(NOW, seconds(600)),
        },
      ],
      placed: [],
      considered: [
        {
          pool: pool().id,
          bid: 'uncapped',
          priceUsdPerHour: 0.05,
          pInterrupted: 0.1,
          pLate: 0,
          expectedCostUsd: 0.01,
          verdict: 'best',
        },
      ],
      excluded: [{ constraint: 'arch', pools: 3 }],
      runtime: { medianS: seconds(60), p90S: seconds(90), basis: 'history' },
    } as unknown as Explanation;
    await commit({
      put: 'plan',
      value: {
        id: planId('p-1'),
        token,
        atMs: NOW,
        preset: 'ebbtide',
        effects: [
          {
            kind: 'launch',
            key: effectKey('k1'),
            instance: instanceId('i-1'),
            allocation: effectKey('k1'),
            pool: pool().id,
            bid: 'uncapped',
            reason: 'r',
          },
          {
            kind: 'start',
            key: effectKey('k3'),
            attempt: attemptId('a-2'),
            task: { job: jobId(id), stage: 'a', index: 0 },
            instance: instanceId('i-3'),
            role: 'copy',
            reason: 'slow',
          },
          {
            kind: 'stop',
            key: effectKey('k4'),
            attempt: attemptId('a-3'),
            why: 'preempted',
            to: instanceId('i-3'),
            reason: 'moves',
          },
          { kind: 'release', key: effectKey('k2'), instance: instanceId('i-2'), reason: 'idle' },
        ],
        explanations: [explanation],
        solve,
      },
    });
    return id;
  };

  it('tells why a job is where it is, from the stored record', async () => {
    const id = await planned();
    const told = answerOf(await api.get(`/api/jobs/${id}/explain`), 200, schema.explanationView);
    expect(told).toMatchObject({
      headline: 'It waits for a cheaper hour.',
      waiting: [{ why: 'cheaper-later', expectedStartAt: '2026-03-01T12:10:00.000Z' }],
      considered: [{ bid: 'uncapped', verdict: 'best' }],
      excluded: [{ constraint: 'arch', pools: 3 }],
      runtime: { medianS: 60, p90S: 90, basis: 'history' },
    });
    expect(answerOf(await api.get(`/api/jobs/${id}`), 200, schema.jobView).headline).toBe(told.headline);
  });

  it('says so when no plan has looked at the job yet', async () => {
    const id = await submit();
    const told = answerOf(await api.get(`/api/jobs/${id}/explain`), 200, schema.explanationView);
    expect(told).toMatchObject({ at: null, waiting: [], runtime: null });
    expect(told.headline).not.toBe('');
  });

  it('shows what was learned of programs that share machines', async () => {
    const asked = async () => answerOf(await api.get('/api/neighbours'), 200, schema.neighboursView);
    expect(await asked()).toMatchObject({ groups: [], pairs: [] });
    const rows = [...taughtNeighbours().takeDirty()];
    await commit(...rows.map(([key, value]): Change => ({ put: 'memory', key, value })));
    const { groups, pairs } = await asked();
    expect(
      groups
        .map((g) => g.templates)
        .flat()
        .sort(),
    ).toEqual([template('cruncher'), template('reader')]);
    const reader = groups.find((g) => g.templates.includes(template('reader')))?.id;
    const beside = (next: string | undefined) => pairs.find((p) => p.running === reader && p.next === next);
    expect(beside(reader)?.slowdown?.factor).toBeGreaterThan(1.5);
    expect(beside(reader)?.chance).toBeLessThan(0.1);
    expect(pairs).toHaveLength(groups.length ** 2);
  });

  it('lists plans with their effects', async () => {
    const id = await planned();
    const { items } = answerOf(await api.get('/api/plans'), 200, schema.planList);
    expect(items.map((p) => [p.id, p.jobs, p.effects.map((e) => e.kind)])).toEqual([
      ['p-1', [id], ['launch', 'start', 'stop', 'release']],
    ]);
    expect(items[0]?.effects.slice(1, 3)).toMatchObject([
      { kind: 'start', role: 'copy' },
      { kind: 'stop', to: 'i-3' },
    ]);
  });
});

describe('GET /api/events', () => {
  const happen = (job: string | null, text: string): Promise<void> =>
    commit({
      put: 'event',
      value: { atMs: NOW, type: 'test.happened', job: job === null ? null : jobId(job), text, data: { n: 1 } },
    });
  const texts = (body: string): string[] =>
    [...body.matchAll(/^data: (.*)$/gm)].map((m) => schema.eventView.parse(JSON.parse(m[1] ?? '')).text);
  const lastId = (body: string): string => [...body.matchAll(/^id: (\d+)$/gm)].at(-1)?.[1] ?? '';

  it('answers batches that follow one another without a gap or a repeat', async () => {
    for (const text of ['one', 'two', 'three']) await happen(null, text);
    const all = await api.get('/api/events');
    const total = texts(all.body).length;
    expect(texts(all.body).slice(-3)).toEqual(['one', 'two', 'three']);
    expect(all.headers['content-type']).toMatch(/^text\/event-stream/);
    expect(all.body).toMatch(/^retry: \d+\n\n/);
    const seen: string[] = [];
    let last = '';
    for (let i = 0; i < total; i++) {
      const { body } = await api.get('/api/events?limit=1', last === '' ? {} : { 'Last-Event-ID': last });
      seen.push(...texts(body));
      last = lastId(body);
    }
    expect(seen).toEqual(texts(all.body));
    const none = await api.get('/api/events', { 'last-event-id': last });
    expect(texts(none.body)).toEqual([]);
    expect(lastId(none.body)).toBe(last);
  });

  it('lets one job through and still moves on past the others', async () => {
    const id = await submit();
    await happen(id, 'mine');
    await happen(null, 'not mine');
    const { body } = await api.get('/api/events?job=render');
    expect(texts(body).at(-1)).toBe('mine');
    expect(texts(body)).not.toContain('not mine');
    expect(texts((await api.get(`/api/events?after=${lastId(body)}`)).body)).toEqual([]);
  });

  it('refuses an id that is none of its own', async () => {
    problemIn(await api.get('/api/events', { 'last-event-id': 'x' }), 400, 'usage');
    problemIn(await api.get('/api/events?after=-1'), 400, 'usage');
    problemIn(await api.get('/api/events?job=nobody'), 404, 'not-found');
  });
});

describe('the rest', () => {
  it('answers health', async () => {
    const health = answerOf(await api.get('/api/health'), 200, schema.healthView);
    expect(health).toMatchObject({ status: 'ok', nowMs: raw(NOW), market: { name: 'two pools', speed: 1 } });
  });

  it('shows instants beyond the calendar as its last one', async () => {
    const id = await submit();
    const job = (await api.store.findJobs([id])).get(id);
    if (job !== undefined)
      await commit({ put: 'job', value: { ...job, deadlineMs: epochMs(Number.MAX_SAFE_INTEGER) } });
    expect((await api.get(`/api/jobs/${id}`)).status).toBe(200);
  });

  it.each([
    ['PUT', '/api/jobs', 'GET, POST'],
    ['PATCH', '/api/jobs/x', 'GET, DELETE'],
    ['GET', '/api/jobs/x/cancel', 'POST'],
    ['OPTIONS', '/api/health', 'GET'],
    ['BREW', '/api/pools', 'GET'],
    ['PUT', '/api/jobs/batch', 'POST'],
    ['GET', '/api/jobs/batch/', 'POST'],
  ])('answers 405 to %s %s and names what is allowed', async (method, path, allow) => {
    const response = await api.dispatch({ method, path });
    problemIn(response, 405, 'method-not-allowed');
    expect(response.headers['allow']?.split(', ').sort()).toEqual(allow.split(', ').sort());
  });

  it.each(['/api', '/api/job', '/api/jobs/x/y', '/etc/passwd', '/api/../x', '*', '/api/jobs/x/tasks/'.repeat(500)])(
    'answers 404 to %.30s',
    async (path) => {
      problemIn(await api.get(path), 404, 'not-found');
    },
  );
});
