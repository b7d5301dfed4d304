import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { attemptId, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { epochMs, usd } from '../../lib/kernel/units.ts';
import type { JobSpec } from '../../lib/domain/job.ts';
import type { Change, Store } from '../../lib/ports/store.ts';
import {
  attempt,
  effect,
  explanation,
  idleRow,
  instance,
  job,
  ledgerRow,
  plan,
  spec,
  submission,
  task,
} from './store-samples.ts';
import type { CostRow } from '../../lib/domain/costs.ts';
import type { OpenStore } from './open-store.ts';

const DAY_MS = 86_400_000;
const HISTORY_DAYS = 10;
const RETENTION = { plans: 3, events: 1000, historyDays: HISTORY_DAYS };

const near = (rows: readonly CostRow[]): unknown =>
  rows.map(({ key, ...sums }) => ({
    key,
    ...Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, expect.closeTo(sum, 9)])),
  }));

/** What of a store ages out, and what never does. */
export function ageingContract(name: string, open: OpenStore): void {
  describe(`store contract, ageing: ${name}`, () => {
    let store: Store;
    let token: number;
    let nowMs: number;
    const commit = (...changes: Change[]): Promise<void> => store.commit(token, changes);
    const passDays = (days: number): void => {
      nowMs += days * DAY_MS;
    };
    /** The latest that a store may take to forget: until something is written. */
    const note = (): Promise<void> => commit({ put: 'memory', key: 'note', value: String(nowMs) });

    beforeEach(async () => {
      nowMs = Date.UTC(2026, 0, 1, 12);
      store = await open(RETENTION, () => nowMs);
      token = await store.takeLease('engine-1');
    });
    afterEach(() => store.close());

    const on = (id: string, of: string, is: 'running' | 'ended'): Change => ({
      put: 'attempt',
      value: attempt(id, {
        job: jobId(of),
        instance: instanceId('i-1'),
        state: is,
        ...(is === 'ended' ? { outcome: 'succeeded', endedMs: epochMs(9) } : {}),
      }),
    });

    /** A job with its task, attempt and explanation is over; its instance has ended and is paid for. */
    async function workDone(id: string, of: Partial<JobSpec> = {}): Promise<void> {
      await store.submit([{ job: job(id, { spec: spec(of) }), idempotency: { key: `key-${id}`, digest: 'd1' } }]);
      await commit(
        { put: 'plan', value: plan(`p-${id}`, [explanation(id, 'why')]) },
        { put: 'instance', value: instance('i-1', { state: 'ready' }) },
        { put: 'task', value: task(id, 0, { state: 'running' }) },
        on(`${id}.main.0.1`, id, 'running'),
      );
      await commit(
        { put: 'job', value: job(id, { state: 'succeeded', finishedMs: epochMs(1_700_000_100_000), spec: spec(of) }) },
        { put: 'task', value: task(id, 0, { state: 'succeeded' }) },
        on(`${id}.main.0.1`, id, 'ended'),
      );
      await commit(
        { put: 'instance', value: instance('i-1', { state: 'ended', costUsd: usd(0.05) }) },
        {
          put: 'ledger',
          instance: instanceId('i-1'),
          value: [
            ledgerRow({ job: jobId(id), attempt: attemptId(`${id}.main.0.1`) }),
            ledgerRow({ kind: 'speculative', job: jobId(id), attempt: attemptId(`${id}.main.0.2`), usd: 0.02 }),
            ledgerRow({ kind: 'moved', job: jobId(id), attempt: attemptId(`${id}.main.0.1`), usd: 0.003 }),
            idleRow({ usd: 0.03 }),
          ],
        },
      );
    }

    const seenOf = async (id: string): Promise<Record<string, boolean>> => ({
      job: (await store.job(jobId(id))) !== null,
      listed: (await store.jobs({}, 50, null)).items.some((j) => j.id === id),
      found: (await store.findJobs([id])).size > 0,
      tasks: (await store.tasks(jobId(id))).length > 0,
      attempts: (await store.attempts(jobId(id))).length > 0,
      attempt: (await store.attempt(attemptId(`${id}.main.0.1`))) !== null,
      key: (await store.submitted([`key-${id}`])).size > 0,
      instance: (await store.instances(null, 50, null)).items.length > 0,
      ledger: (await store.ledger({ job: jobId(id) })).length > 0,
    });
    const every = (is: boolean): Record<string, boolean> =>
      Object.fromEntries(
        ['job', 'listed', 'found', 'tasks', 'attempts', 'attempt', 'key', 'instance', 'ledger'].map((k) => [k, is]),
      );

    it.each([
      ['small', {}],
      ['of many tasks', { stages: spec().stages.map((s) => ({ ...s, tasks: 70 })) }],
      ['long', { labels: Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`label-${n}`, `${n * 7919}`])) }],
    ] as const)('keeps a job that is %s for its days, and then forgets all of it', async (_, of) => {
      await workDone('j1', of);
      passDays(HISTORY_DAYS - 0.01);
      await note();
      expect(await seenOf('j1')).toEqual(every(true));
      passDays(0.02);
      await note();
      expect(await seenOf('j1')).toEqual(every(false));
    });

    it('keeps what everything cost in every sum', async () => {
      await workDone('j1');
      const before = {
        owner: await store.costs('owner'),
        pool: await store.costs('pool'),
      };
      passDays(HISTORY_DAYS - 1);
      await workDone2();
      const both = { owner: await store.costs('owner'), pool: await store.costs('pool') };
      const byJob = await store.costs('job');
      expect(byJob.map((r) => r.key)).toEqual(['(idle)', 'j1', 'j2']);
      passDays(2);
      await note();
      expect(await store.costs('owner')).toEqual(near(both.owner));
      expect(await store.costs('pool')).toEqual(near(both.pool));
      const [aged, ...rest] = await store.costs('job');
      expect(rest).toEqual(near(byJob.filter((r) => r.key === 'j2')));
      expect([aged]).toEqual(near(before.pool.map((r) => ({ ...r, key: '(aged out)' }))));
      passDays(HISTORY_DAYS);
      await note();
      for (const by of ['job', 'template', 'caller'] as const) {
        expect(await store.costs(by)).toEqual(near(both.pool.map((r) => ({ ...r, key: '(aged out)' }))));
      }
    });

    /** Another job, on an instance of its own, without idle time. */
    async function workDone2(): Promise<void> {
      await store.submit([submission('j2')]);
      await commit(
        { put: 'job', value: job('j2', { state: 'succeeded', finishedMs: epochMs(1_700_000_100_000) }) },
        { put: 'instance', value: instance('i-2', { state: 'ended', costUsd: usd(0.07) }) },
        {
          put: 'ledger',
          instance: instanceId('i-2'),
          value: [ledgerRow({ instance: instanceId('i-2'), job: jobId('j2'), usd: 0.07 })],
        },
      );
    }

    it('counts a ledger that is corrected once, whenever that is', async () => {
      await workDone('j1');
      passDays(3);
      const value = [ledgerRow({ job: jobId('j1'), usd: 0.5, onDemandUsd: 1 })];
      await commit({ put: 'ledger', instance: instanceId('i-1'), value });
      const corrected = await store.costs('owner');
      expect(corrected.map(({ key, workUsd }) => [key, workUsd])).toEqual([['ana', expect.closeTo(0.5, 9)]]);
      passDays(HISTORY_DAYS + 4);
      await note();
      expect((await store.costs('owner')).filter((r) => Math.abs(r.workUsd) > 1e-9)).toEqual(near(corrected));
    });

    it('never forgets what is not over: jobs, attempts, instances, effects', async () => {
      await store.submit([submission('live', 'key'), submission('ends')]);
      await commit(
        { put: 'plan', value: plan('p1', [explanation('live', 'why')]) },
        { put: 'effect', value: effect('e1', 'p1') },
        { put: 'instance', value: instance('i-1', { state: 'ready' }) },
        { put: 'instance', value: instance('i-unpaid', { state: 'ended', costUsd: null }) },
        { put: 'job', value: job('live', { state: 'running' }) },
        { put: 'task', value: task('live', 0, { state: 'running' }) },
        on('live.main.0.1', 'live', 'running'),
        // Over, and an attempt of it has not ended.
        { put: 'job', value: job('ends', { state: 'cancelled' }) },
        on('ends.main.0.1', 'ends', 'running'),
      );
      for (let month = 0; month < 6; month++) {
        passDays(30);
        await note();
      }
      expect((await store.jobs({}, 50, null)).items.map((j) => j.id)).toEqual(expect.arrayContaining(['live']));
      expect((await store.jobs({ states: ['running'] }, 50, null)).items.map((j) => j.id)).toEqual(['live']);
      expect((await store.job(jobId('ends')))?.state).toBe('cancelled');
      expect((await store.attemptsOn(instanceId('i-1'))).map((a) => a.id)).toEqual(['live.main.0.1', 'ends.main.0.1']);
      const { jobs, tasks, attempts, instances, openEffects } = await store.loadActive();
      expect([jobs.length, tasks.length, attempts.length, instances.length, openEffects.length]).toEqual([
        1, 1, 2, 1, 1,
      ]);
      expect((await store.instances(null, 50, null)).items).toHaveLength(2);
    });

    it('takes a key again that was used as long ago, for whatever body', async () => {
      await store.submit([submission('j1', 'key', 'd1')]);
      await commit({ put: 'job', value: job('j1', { state: 'succeeded' }) });
      passDays(HISTORY_DAYS - 0.01);
      expect((await store.submit([submission('j2', 'key', 'd1')]))[0]?.status).toBe('repeated');
      expect((await store.submit([submission('j2', 'key', 'd2')]))[0]?.status).toBe('conflict');
      passDays(0.02);
      expect(await store.submit([submission('j3', 'key', 'd2')])).toEqual([
        { status: 'created', job: submission('j3').job },
      ]);
      expect(await store.submit([submission('j4', 'key', 'd2')])).toMatchObject([
        { status: 'repeated', job: { id: 'j3' } },
      ]);
    });

    it('shows a new job as itself after all jobs before it have aged out, also to a process that read those', async () => {
      await workDone('j1', { name: 'former' });
      await store.submit([{ job: job('j2', { spec: spec({ name: 'open' }) }), idempotency: null }]);
      // A reader loads the state once, keeps what it read, and then only answers questions.
      await store.loadActive();
      await commit({ put: 'job', value: job('j2', { state: 'succeeded', spec: spec({ name: 'open' }) }) });
      const { next: jobsBefore } = await store.jobs({}, 1, null);
      const { items: instancesBefore } = await store.instances(null, 10, null);
      passDays(HISTORY_DAYS + 1);
      await note();
      expect([instancesBefore.length, (await store.jobs({}, 10, null)).items]).toEqual([1, []]);

      const names = ['third', 'fourth', 'fifth'];
      for (const name of names) {
        await store.submit([{ job: job(`j-${name}`, { spec: spec({ name }) }), idempotency: null }]);
        expect((await store.job(jobId(`j-${name}`)))?.spec.name).toBe(name);
      }
      expect((await store.jobs({}, 10, null)).items.map((j) => j.spec.name)).toEqual([...names].reverse());
      // A cursor of then reads on below what was there then: nothing of that is left.
      expect(jobsBefore).not.toBeNull();
      expect((await store.jobs({}, 10, jobsBefore)).items).toEqual([]);
    });

    it('numbers new instances above those that have aged out', async () => {
      await workDone('j1');
      await commit({ put: 'instance', value: instance('i-0', { state: 'ended', costUsd: usd(0) }) });
      await commit({ put: 'ledger', instance: instanceId('i-0'), value: [] });
      const { next } = await store.instances(null, 1, null);
      expect(next).not.toBeNull();
      passDays(HISTORY_DAYS + 1);
      await note();
      await commit({ put: 'instance', value: instance('i-2', { state: 'ready' }) });
      expect((await store.instances(null, 10, null)).items.map((i) => i.id)).toEqual(['i-2']);
      expect((await store.instances(null, 10, next)).items).toEqual([]);
    });

    it('explains anew after a pause in which what it explained has aged out', async () => {
      await workDone('j1');
      passDays(HISTORY_DAYS + 1);
      await store.submit([submission('j2')]);
      await commit({ put: 'plan', value: plan('p-next', [explanation('j2', 'why')]) });
      expect(await store.job(jobId('j1'))).toBeNull();
      expect((await store.jobs({}, 50, null)).items.map((j) => j.id)).toEqual(['j2']);
      expect((await store.explanation(jobId('j2')))?.job).toBe('j2');
    });
  });
}
