import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Plan } from '../../lib/domain/plan.ts';
import type { Reservation } from '../../lib/domain/instance.ts';
import { attemptId, effectKey, instanceId, jobId, poolId } from '../../lib/kernel/ids.ts';
import { epochMs, raw, seconds } from '../../lib/kernel/units.ts';
import type { Change, EventRecord, Store } from '../../lib/ports/store.ts';
import { codeOf } from '../support/code-of.ts';
import { ageingContract } from './store-ageing.ts';
import { crashContract, type Crashes } from './store-crashes.ts';
import { servicesContract } from './store-services.ts';
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
import type { OpenStore } from './open-store.ts';

const ids = (list: readonly { readonly id: string }[]): string[] => list.map((x) => x.id);
const event = (text: string): Change => ({
  put: 'event',
  value: { atMs: epochMs(5), type: 'note', job: null, text, data: { n: 1 } },
});

/** What every implementation of the Store port keeps, whatever happens to the processes that write. */
export function storeContract(name: string, open: OpenStore, crashes: Crashes): void {
  ageingContract(name, open);
  crashContract(name, crashes);
  servicesContract(name, open);

  describe(`store contract: ${name}`, () => {
    let store: Store;
    let token: number;
    const commit = (...changes: Change[]): Promise<void> => store.commit(token, changes);
    const submitJobs = async (...of: string[]): Promise<void> => {
      for (const id of of) await store.submit([submission(id)]);
    };

    beforeEach(async () => {
      store = await open({ plans: 3, events: 5, historyDays: null }, Date.now);
      token = await store.takeLease('engine-1');
    });
    afterEach(() => store.close());

    describe('submit', () => {
      it('keeps the job as given, and answers in order', async () => {
        const [a, b] = [submission('j1'), submission('j2')];
        expect(await store.submit([a, b])).toEqual([
          { status: 'created', job: a.job },
          { status: 'created', job: b.job },
        ]);
        expect(await store.job(jobId('j1'))).toEqual(a.job);
        expect(await store.job(jobId('absent'))).toBeNull();
      });

      it('answers a repeated key with the job that it made, also within one call', async () => {
        const first = submission('j1', 'key');
        const outcomes = await store.submit([first, submission('j2', 'key')]);
        expect(outcomes).toEqual([
          { status: 'created', job: first.job },
          { status: 'repeated', job: first.job },
        ]);
        expect(await store.submit([submission('j3', 'key')])).toEqual([{ status: 'repeated', job: first.job }]);
        expect(await store.job(jobId('j2'))).toBeNull();
      });

      it('refuses a key used with another body, and takes the rest of the call', async () => {
        await store.submit([submission('j1', 'key', 'd1')]);
        const outcomes = await store.submit([submission('j2', 'key', 'd2'), submission('j3', 'other')]);
        expect(outcomes.map((o) => o.status)).toEqual(['conflict', 'created']);
        expect(await store.job(jobId('j2'))).toBeNull();
        expect(await store.job(jobId('j3'))).not.toBeNull();
      });

      it('answers a repeated key with the state of now', async () => {
        await store.submit([submission('j1', 'key')]);
        await commit({ put: 'job', value: job('j1', { state: 'running' }) });
        const [outcome] = await store.submit([submission('j9', 'key')]);
        expect(outcome).toEqual({ status: 'repeated', job: job('j1', { state: 'running' }) });
      });

      it('says what a key was used for, with the job as it is now', async () => {
        expect(await store.submitted(['key'])).toEqual(new Map());
        await store.submit([submission('j1', 'key', 'd1'), submission('j2')]);
        await store.submit([submission('j3', 'key', 'd2')]);
        expect(await store.submitted(['key'])).toEqual(new Map([['key', { digest: 'd1', job: job('j1') }]]));
        await commit({ put: 'job', value: job('j1', { state: 'running' }) });
        const running = { digest: 'd1', job: job('j1', { state: 'running' }) };
        expect(await store.submitted(['unused', 'key', 'j2'])).toEqual(new Map([['key', running]]));
        expect(await store.submitted([])).toEqual(new Map());
      });

      it('lets one of many parallel calls with one key create, and none twice', async () => {
        const calls = Array.from({ length: 50 }, (_, i) => store.submit([submission(`j${i}`, 'key')]));
        const outcomes = (await Promise.all(calls)).flat();
        expect(outcomes.filter((o) => o.status === 'created')).toHaveLength(1);
        expect(outcomes.filter((o) => o.status === 'repeated')).toHaveLength(49);
        expect((await store.jobs({}, 100, null)).items).toHaveLength(1);
      });

      it('refuses a call with an id that is taken, keeps nothing of it and all of its neighbours', async () => {
        await submitJobs('j1');
        const refused = codeOf(store.submit([submission('j2', 'k2'), submission('j1')]));
        const single = codeOf(store.submit([submission('j1', 'k1')]));
        const neighbour = store.submit([submission('j3')]);
        expect(await refused).toBe('conflict');
        expect(await single).toBe('conflict');
        expect((await neighbour)[0]?.status).toBe('created');
        expect(ids((await store.jobs({}, 10, null)).items)).toEqual(['j3', 'j1']);
        // Neither key was used up.
        const again = await store.submit([submission('j4', 'k2', 'other'), submission('j5', 'k1', 'other')]);
        expect(again.map((o) => o.status)).toEqual(['created', 'created']);
      });
    });

    describe('lease and commit', () => {
      it('gives tokens that ascend; only the newest commits', async () => {
        const newer = await store.takeLease('engine-2');
        expect(newer).toBeGreaterThan(token);
        expect(await codeOf(commit({ put: 'memory', key: 'a', value: '1' }))).toBe('fenced');
        expect(await store.memory('')).toEqual(new Map());
        await store.commit(newer, [{ put: 'memory', key: 'a', value: '2' }]);
        expect(await store.memory('')).toEqual(new Map([['a', '2']]));
        expect(await codeOf(store.commit(newer + 1, []))).toBe('fenced');
      });

      it('applies all changes or none', async () => {
        await submitJobs('j1');
        const unknown = { put: 'tide', value: 1 } as unknown as Change;
        const changes: Change[] = [
          { put: 'job', value: job('j1', { state: 'running' }) },
          { put: 'instance', value: instance('i-1') },
          event('half'),
          unknown,
        ];
        expect(await codeOf(commit(...changes))).toBe('internal');
        expect(await store.job(jobId('j1'))).toEqual(job('j1'));
        expect((await store.instances(null, 10, null)).items).toEqual([]);
        expect((await store.events(0, 10)).map((e) => e.type)).toEqual(['job-submitted']);
      });

      it('keeps what was put last when one commit puts an entity twice', async () => {
        await commit(
          { put: 'instance', value: instance('i-1', { state: 'starting' }) },
          { put: 'instance', value: instance('i-1', { state: 'ready' }) },
        );
        expect((await store.instances(null, 10, null)).items).toEqual([instance('i-1', { state: 'ready' })]);
      });

      it('keeps the specification as submitted', async () => {
        await submitJobs('j1');
        await commit({ put: 'job', value: job('j1', { state: 'running', spec: spec({ name: 'other' }) }) });
        expect((await store.job(jobId('j1')))?.spec).toEqual(spec());
      });
    });

    describe('cancel', () => {
      it('survives a commit that puts an older copy', async () => {
        await submitJobs('j1');
        const [older] = (await store.loadActive()).jobs;
        expect(await store.requestCancel(jobId('j1'))).toBe(true);
        await commit({ put: 'job', value: { ...(older ?? job('j1')), state: 'running' } });
        expect(await store.job(jobId('j1'))).toEqual(job('j1', { state: 'running', cancelRequested: true }));
        expect((await store.loadActive()).jobs[0]?.cancelRequested).toBe(true);
      });

      it('keeps who asked first, with one event, whatever the engine and others write afterwards', async () => {
        await submitJobs('j1');
        const [older] = (await store.loadActive()).jobs;
        const ada = { id: 'arn:aws:iam::111122223333:user/ada', requestId: 'r-1' };
        const bob = { id: 'uid:1001', name: 'bob', requestId: 'r-2' };
        expect(await store.requestCancel(jobId('j1'), { caller: ada, atMs: epochMs(5000) })).toBe(true);
        expect(await store.requestCancel(jobId('j1'), { caller: bob, atMs: epochMs(6000) })).toBe(true);
        expect(await store.requestCancel(jobId('j1'))).toBe(true);
        const asked = job('j1', { cancelRequested: true, cancelledBy: ada });
        expect((await store.loadActive()).jobs).toEqual([asked]);
        await commit({ put: 'job', value: { ...(older ?? job('j1')), state: 'running' } });
        expect(await store.job(jobId('j1'))).toEqual({ ...asked, state: 'running' });
        await commit({ put: 'job', value: { ...asked, state: 'cancelled' } });
        expect(await store.job(jobId('j1'))).toEqual({ ...asked, state: 'cancelled' });
        expect(await store.requestCancel(jobId('j1'), { caller: bob, atMs: epochMs(7000) })).toBe(false);
        expect(await store.requestCancel(jobId('absent'), { caller: bob, atMs: epochMs(7000) })).toBe(false);
        const events = (await store.events(0, 100)).filter((e) => e.type === 'job-cancel-requested');
        expect(events).toEqual([
          {
            sequence: expect.any(Number),
            atMs: epochMs(5000),
            type: 'job-cancel-requested',
            job: 'j1',
            text: expect.stringContaining(`${ada.id} asks to cancel it`),
            data: { caller: ada.id, requestId: 'r-1' },
          },
        ]);
      });

      it('says no for a job that is unknown or over', async () => {
        await submitJobs('j1');
        await commit({ put: 'job', value: job('j1', { state: 'succeeded' }) });
        expect(await store.requestCancel(jobId('j1'))).toBe(false);
        expect(await store.requestCancel(jobId('absent'))).toBe(false);
        expect((await store.job(jobId('j1')))?.cancelRequested).toBe(false);
      });
    });

    describe('release', () => {
      const held = { reason: 'a decision on it fails', sinceMs: epochMs(5000) };

      it('survives a commit that puts an older copy, and is told to whoever loads', async () => {
        await submitJobs('j1');
        await commit({ put: 'job', value: job('j1', { state: 'held', held }) });
        const [older] = (await store.loadActive()).jobs;
        expect(older).toEqual(job('j1', { state: 'held', held }));
        expect(await store.requestRelease(jobId('j1'))).toBe(true);
        expect(await store.requestRelease(jobId('j1'))).toBe(true);
        await commit({ put: 'job', value: older ?? job('j1') });
        expect(await store.job(jobId('j1'))).toEqual(job('j1', { state: 'held', held, releasedHoldMs: held.sinceMs }));
        expect((await store.loadActive()).jobs[0]?.releasedHoldMs).toEqual(held.sinceMs);
        expect((await store.jobs({ states: ['held'] }, 10, null)).items.map((j) => j.id)).toEqual(['j1']);
        if (store.changedByOthers === undefined) return;
        const { jobs } = await store.changedByOthers(new Set([jobId('j1')]));
        expect(jobs.map((j) => j.releasedHoldMs)).toEqual([held.sinceMs]);
      });

      it('says no for a job that is unknown or not held', async () => {
        await submitJobs('j1');
        expect(await store.requestRelease(jobId('j1'))).toBe(false);
        expect(await store.requestRelease(jobId('absent'))).toBe(false);
        expect((await store.job(jobId('j1')))?.releasedHoldMs).toBeUndefined();
      });
    });

    describe('active state', () => {
      it('is what is not over, with jobs, instances and effects in order of arrival', async () => {
        await submitJobs('j3', 'j1', 'j2');
        await commit(
          { put: 'job', value: job('j2', { state: 'failed' }) },
          { put: 'task', value: task('j1', 0) },
          { put: 'task', value: task('j1', 1, { state: 'waiting' }) },
          { put: 'task', value: task('j1', 2, { state: 'succeeded' }) },
          { put: 'task', value: task('j2', 0) },
          { put: 'attempt', value: attempt('a2') },
          { put: 'attempt', value: attempt('a1', { state: 'stopping' }) },
          { put: 'attempt', value: attempt('a0', { state: 'ended', outcome: 'interrupted' }) },
          { put: 'instance', value: instance('i-2') },
          { put: 'instance', value: instance('i-1', { state: 'releasing' }) },
          { put: 'instance', value: instance('i-0', { state: 'ended' }) },
          { put: 'effect', value: effect('e2') },
          { put: 'effect', value: effect('e1') },
          { put: 'effect', value: effect('e0', 'p1', { status: 'done' }) },
          { put: 'cursor', instance: instanceId('i-1'), sequence: 7 },
        );
        await commit({ put: 'cursor', instance: instanceId('i-1'), sequence: 9 });
        const active = await store.loadActive();
        expect(active.jobs).toEqual([job('j3'), job('j1')]);
        expect([...active.tasks].sort((a, b) => a.index - b.index)).toEqual([
          task('j1', 0),
          task('j1', 1, { state: 'waiting' }),
        ]);
        expect(active.attempts).toEqual([attempt('a2'), attempt('a1', { state: 'stopping' })]);
        expect(active.instances).toEqual([instance('i-2'), instance('i-1', { state: 'releasing' })]);
        expect(active.openEffects).toEqual([effect('e2'), effect('e1')]);
        expect(active.cursors).toEqual(new Map([['i-1', 9]]));
      });

      it('tells what others changed, where it can: new jobs, cancel requests, open effects and cursors', async () => {
        if (store.changedByOthers === undefined) return;
        await submitJobs('j2', 'j1', 'j3');
        await commit({ put: 'job', value: job('j3', { state: 'failed' }) });
        const kept = new Set((await store.loadActive()).jobs.map((j) => j.id));
        expect(await store.changedByOthers(kept)).toEqual({ jobs: [], openEffects: [], cursors: new Map() });
        await submitJobs('j5', 'j4');
        await store.requestCancel(jobId('j1'));
        await commit(
          { put: 'job', value: job('j2', { state: 'running' }) },
          { put: 'effect', value: effect('e1') },
          { put: 'cursor', instance: instanceId('i-1'), sequence: 7 },
        );
        const changed = await store.changedByOthers(kept);
        expect(ids(changed.jobs).sort()).toEqual(['j1', 'j4', 'j5']);
        expect(changed.jobs.filter((j) => !kept.has(j.id))).toEqual([job('j5'), job('j4')]);
        expect(changed.jobs.find((j) => j.id === 'j1')?.cancelRequested).toBe(true);
        expect(changed.openEffects).toEqual([effect('e1')]);
        expect(changed.cursors).toEqual(new Map([['i-1', 7]]));
        await commit({ put: 'job', value: job('j1', { state: 'cancelled', cancelRequested: true }) });
        expect(ids((await store.changedByOthers(kept)).jobs)).toEqual(['j5', 'j4']);
      });

      it('lets go of what ends', async () => {
        await submitJobs('j1');
        await commit(
          { put: 'task', value: task('j1', 0) },
          { put: 'attempt', value: attempt('a1') },
          { put: 'instance', value: instance('i-1') },
          { put: 'effect', value: effect('e1') },
        );
        await commit(
          { put: 'task', value: task('j1', 0, { state: 'succeeded' }) },
          { put: 'attempt', value: attempt('a1', { state: 'ended', outcome: 'succeeded' }) },
          { put: 'instance', value: instance('i-1', { state: 'ended' }) },
          { put: 'effect', value: effect('e1', 'p1', { status: 'failed', detail: 'throttled' }) },
          { put: 'job', value: job('j1', { state: 'succeeded' }) },
        );
        expect(await store.loadActive()).toEqual({
          jobs: [],
          tasks: [],
          attempts: [],
          instances: [],
          openEffects: [],
          cursors: new Map(),
        });
        expect(await store.tasks(jobId('j1'))).toHaveLength(1);
        expect(await store.attempt(attemptId('a1'))).toEqual(attempt('a1', { state: 'ended', outcome: 'succeeded' }));
      });
    });

    describe('several attempts of one task', () => {
      it('are loaded until each has ended, also once the task has succeeded, and the job stays active', async () => {
        await submitJobs('j1');
        const [original, copy] = ['j1.main.0.1', 'j1.main.0.2'];
        const won = { state: 'ended', outcome: 'succeeded', role: 'copy', round: 1 } as const;
        const lost = { supersededBy: attemptId(copy) } as const;
        await commit(
          { put: 'job', value: job('j1', { state: 'running' }) },
          { put: 'task', value: task('j1', 0) },
          { put: 'attempt', value: attempt(original) },
          { put: 'attempt', value: attempt(copy, { role: 'copy', round: 1 }) },
        );
        expect((await store.loadActive()).attempts).toMatchObject([{}, { role: 'copy', round: 1 }]);
        await commit(
          { put: 'job', value: job('j1', { state: 'running', doneMs: epochMs(7) }) },
          { put: 'task', value: task('j1', 0, { state: 'succeeded' }) },
          { put: 'attempt', value: attempt(original, lost) },
          { put: 'attempt', value: attempt(copy, won) },
        );
        expect(await store.loadActive()).toMatchObject({
          jobs: [{ doneMs: 7 }],
          tasks: [],
          attempts: [{ id: original, ...lost }],
        });
        await commit(
          { put: 'job', value: job('j1', { state: 'succeeded' }) },
          { put: 'attempt', value: attempt(original, { ...lost, state: 'ended', outcome: 'superseded' }) },
        );
        expect(await store.loadActive()).toMatchObject({ jobs: [], attempts: [] });
        expect(await store.attempts(jobId('j1'))).toEqual([
          attempt(original, { ...lost, state: 'ended', outcome: 'superseded' }),
          attempt(copy, won),
        ]);
      });
    });

    describe('what is there only for some jobs', () => {
      it('of a move is kept as given: its target, its times, its dollars, and the room that is kept', async () => {
        await submitJobs('j1');
        const [from, to] = [attemptId('j1.main.0.1'), attemptId('j1.main.0.2')];
        const leaving = { sinceMs: epochMs(1_700_000_200_000.5), savedUsd: 0.25, riskUsd: 0.03125 };
        const leaves = attempt(from, { state: 'stopping', goesTo: instanceId('i-2'), leaving });
        const { job: of, resources } = leaves;
        const kept: Reservation = { attempt: from, job: of, resources, sinceMs: leaving.sinceMs, untilMs: null };
        const target = instance('i-2', { state: 'ready', reservations: [kept] });
        await commit(
          { put: 'task', value: task('j1', 0) },
          { put: 'attempt', value: leaves },
          { put: 'instance', value: target },
        );
        const before = await store.loadActive();
        expect([before.attempts, before.instances]).toEqual([[leaves], [target]]);
        expect(await store.attempt(from)).toEqual(leaves);

        const moved = attempt(from, {
          ...leaves,
          state: 'ended',
          outcome: 'moved',
          endedMs: epochMs(1_700_000_203_000),
        });
        const departed = {
          attempt: from,
          instance: instanceId('i-1'),
          pool: poolId('p'),
          why: 'cheaper',
          savedUsd: 0.25,
        };
        const waits = task('j1', 0, { state: 'waiting', goesTo: instanceId('i-2'), departed });
        await commit({ put: 'task', value: waits }, { put: 'attempt', value: moved });
        expect((await store.loadActive()).tasks).toEqual([waits]);

        const arrives = attempt(to, {
          number: 2,
          instance: instanceId('i-2'),
          movedFrom: from,
          reservedMs: leaving.sinceMs,
        });
        const closed = instance('i-2', {
          state: 'ready',
          reservations: [{ ...kept, untilMs: epochMs(1_700_000_204_000) }],
        });
        await commit(
          { put: 'task', value: task('j1', 0, { attempts: 2 }) },
          { put: 'attempt', value: arrives },
          { put: 'instance', value: closed },
        );
        const after = await store.loadActive();
        expect([after.tasks, after.attempts, after.instances]).toEqual([
          [task('j1', 0, { attempts: 2 })],
          [arrives],
          [closed],
        ]);
        expect(await store.attempts(jobId('j1'))).toEqual([moved, arrives]);
        expect(await store.attemptsOn(instanceId('i-2'))).toEqual([arrives]);
      });

      it('of a stage and its tasks is kept as given: times, counts, earliest starts, claims, targets of moves', async () => {
        await submitJobs('j1');
        const [first] = job('j1').stages;
        const stages = [
          {
            ...first!,
            nextFresh: 3,
            running: 1,
            waiting: 1,
            succeeded: 1,
            times: { count: 1, sumS: seconds(90.25), first: 45, counts: [1] },
            superseded: 2,
            notBeforeMs: epochMs(1_700_000_500_000.5),
            noCopies: 'an old AWS CLI',
          },
        ];
        const running = job('j1', { state: 'running', stages });
        const tasks = [
          task('j1', 0, { attempts: 2, claimed: { by: attemptId('j1.main.0.1') } }),
          task('j1', 1, { state: 'waiting', goesTo: instanceId('i-3'), notBeforeMs: epochMs(1_700_000_400_000) }),
          task('j1', 2, { attempts: 3, claimed: { by: null } }),
        ];
        const lost = attempt('j1.main.0.2', { role: 'copy', round: 1, claimLostTo: attemptId('j1.main.0.1') });
        await commit({ put: 'job', value: running }, ...tasks.map((value): Change => ({ put: 'task', value })), {
          put: 'attempt',
          value: lost,
        });
        const active = await store.loadActive();
        expect(active.jobs).toEqual([running]);
        expect(active.tasks).toEqual(tasks);
        expect(active.attempts).toEqual([lost]);
        expect(await store.job(jobId('j1'))).toEqual(running);
        expect(await store.tasks(jobId('j1'))).toEqual(tasks);
        // Written again without them, they are gone.
        const plain = task('j1', 1, { state: 'waiting' });
        const rest = [{ ...first!, nextFresh: 3, running: 1, waiting: 1, succeeded: 1 }];
        await commit(
          { put: 'job', value: job('j1', { state: 'running', stages: rest }) },
          { put: 'task', value: plain },
        );
        const later = await store.loadActive();
        expect(later.jobs[0]?.stages).toEqual(rest);
        expect(later.tasks[1]).toEqual(plain);
      });

      it('of a plan is kept as given: earliest starts, copies, targets of moves', async () => {
        const made: Plan = {
          ...plan('p1'),
          earliest: [
            { job: jobId('j1'), stage: 'main', notBeforeMs: epochMs(1_700_000_500_000.5) },
            { job: jobId('j1'), stage: 'main', index: 1, notBeforeMs: null },
          ],
          effects: [
            {
              kind: 'start',
              key: effectKey('start/j1.main.0.2'),
              attempt: attemptId('j1.main.0.2'),
              task: { job: jobId('j1'), stage: 'main', index: 0 },
              instance: instanceId('i-2'),
              role: 'copy',
              reason: 'it is slow',
            },
            {
              kind: 'stop',
              key: effectKey('p1/stop/j1.main.1.1'),
              attempt: attemptId('j1.main.1.1'),
              why: 'preempted',
              reason: 'moves',
              to: instanceId('i-3'),
            },
          ],
        };
        await commit({ put: 'plan', value: made });
        expect((await store.plans(5, null)).items).toEqual([made]);
      });
    });

    describe('lists', () => {
      it('pages through jobs newest first, unmoved by arrivals and state changes between pages', async () => {
        await submitJobs('j1', 'j2', 'j3', 'j4', 'j5');
        const first = await store.jobs({}, 2, null);
        await submitJobs('j6');
        await commit({ put: 'job', value: job('j4', { state: 'running' }) });
        const second = await store.jobs({}, 2, first.next);
        const third = await store.jobs({}, 2, second.next);
        expect([first, second, third].map((p) => ids(p.items))).toEqual([['j5', 'j4'], ['j3', 'j2'], ['j1']]);
        expect(third.next).toBeNull();
        expect((await store.jobs({}, 6, null)).next).toBeNull();
      });

      it('filters by state, owner, name and label, and by all at once', async () => {
        const of = (id: string, over: Parameters<typeof spec>[0]): Promise<unknown> =>
          store.submit([{ job: job(id, { spec: spec(over) }), idempotency: null }]);
        await of('j1', { owner: 'bo', name: 'x', labels: { team: 'sea', tier: '1' } });
        await of('j2', { owner: 'bo', name: 'y', labels: { team: 'sea' } });
        await of('j3', { owner: 'cy', name: 'x', labels: { team: 'shore' } });
        await of('j4', { owner: 'bo', name: 'x', labels: { tier: 'sea' } });
        await commit({ put: 'job', value: job('j2', { state: 'succeeded' }) });
        const list = async (filter: Parameters<Store['jobs']>[0]): Promise<string[]> =>
          ids((await store.jobs(filter, 10, null)).items);
        expect(await list({ owner: 'bo' })).toEqual(['j4', 'j2', 'j1']);
        expect(await list({ name: 'x' })).toEqual(['j4', 'j3', 'j1']);
        expect(await list({ label: { key: 'team', value: 'sea' } })).toEqual(['j2', 'j1']);
        expect(await list({ states: ['succeeded', 'failed'] })).toEqual(['j2']);
        expect(await list({ states: ['pending', 'succeeded'] })).toEqual(['j4', 'j3', 'j2', 'j1']);
        expect(await list({ states: [] })).toEqual([]);
        expect(
          await list({ states: ['pending'], owner: 'bo', name: 'x', label: { key: 'team', value: 'sea' } }),
        ).toEqual(['j1']);
        const page = await store.jobs({ states: ['pending', 'succeeded'], owner: 'bo' }, 2, null);
        expect(ids(page.items)).toEqual(['j4', 'j2']);
        expect(ids((await store.jobs({ states: ['pending', 'succeeded'], owner: 'bo' }, 2, page.next)).items)).toEqual([
          'j1',
        ]);
      });

      it('finds jobs by id, else the newest of the name', async () => {
        const named = (id: string, name: string): Promise<unknown> =>
          store.submit([{ job: job(id, { spec: spec({ name }) }), idempotency: null }]);
        await named('j1', 'tide');
        await named('j2', 'tide');
        await named('j3', 'j1');
        const found = await store.findJobs(['j1', 'tide', 'absent']);
        expect([...found].map(([ref, j]) => [ref, j.id])).toEqual([
          ['j1', 'j1'],
          ['tide', 'j2'],
        ]);
      });

      it('lists tasks by stage and index, attempts by arrival, of one job and on one instance', async () => {
        await commit(
          { put: 'task', value: task('j1', 10) },
          { put: 'task', value: task('j1', 9) },
          { put: 'task', value: task('j1', 1, { stage: 'after' }) },
          { put: 'task', value: task('j2', 0) },
          { put: 'attempt', value: attempt('b') },
          { put: 'attempt', value: attempt('a', { instance: instanceId('i-2') }) },
          { put: 'attempt', value: attempt('c', { job: jobId('j2'), state: 'ended' }) },
        );
        expect((await store.tasks(jobId('j1'))).map((t) => `${t.stage}${t.index}`)).toEqual([
          'after1',
          'main9',
          'main10',
        ]);
        expect(ids(await store.attempts(jobId('j1')))).toEqual(['b', 'a']);
        expect(ids(await store.attemptsOn(instanceId('i-1')))).toEqual(['b', 'c']);
        expect(await store.attempt(attemptId('absent'))).toBeNull();
      });

      it('pages through instances, all, live or ended', async () => {
        for (const i of [1, 2, 3, 4]) {
          await commit({ put: 'instance', value: instance(`i-${i}`, { state: i % 2 === 0 ? 'ended' : 'ready' }) });
        }
        expect(ids((await store.instances(true, 10, null)).items)).toEqual(['i-3', 'i-1']);
        expect(ids((await store.instances(false, 10, null)).items)).toEqual(['i-4', 'i-2']);
        const page = await store.instances(null, 3, null);
        expect(ids(page.items)).toEqual(['i-4', 'i-3', 'i-2']);
        expect(ids((await store.instances(null, 3, page.next)).items)).toEqual(['i-1']);
      });

      it('refuses a cursor of another list or of no list', async () => {
        await submitJobs('j1', 'j2');
        const { next } = await store.jobs({}, 1, null);
        expect(await codeOf(store.instances(null, 1, next))).toBe('usage');
        expect(await codeOf(store.plans(1, next))).toBe('usage');
        expect(await codeOf(store.jobs({}, 1, 'nonsense'))).toBe('usage');
      });
    });

    describe('plans and explanations', () => {
      it('keeps the newest plans and the latest explanation per job', async () => {
        for (const n of [1, 2, 3, 4]) {
          const about = n < 3 ? ['j1', 'j2'] : ['j1'];
          await commit({
            put: 'plan',
            value: plan(
              `p${n}`,
              about.map((j) => explanation(j, `in p${n}`)),
            ),
          });
        }
        const page = await store.plans(2, null);
        const rest = await store.plans(2, page.next);
        expect(ids([...page.items, ...rest.items])).toEqual(['p4', 'p3', 'p2']);
        expect(rest.next).toBeNull();
        expect(page.items[0]).toEqual(plan('p4', [explanation('j1', 'in p4')]));
        // Superseded explanations are gone from the plan that made them.
        expect(page.items[1]?.explanations).toEqual([]);
        expect(rest.items[0]?.explanations).toEqual([explanation('j2', 'in p2')]);
        expect((await store.explanation(jobId('j1')))?.headline).toBe('in p4');
        expect((await store.explanation(jobId('j2')))?.headline).toBe('in p2');
        expect(await store.explanation(jobId('j3'))).toBeNull();
      });

      it('keeps effects without an outcome however old their plan is', async () => {
        await commit({ put: 'plan', value: plan('p1') }, { put: 'effect', value: effect('e1', 'p1') });
        for (const n of [2, 3, 4, 5]) await commit({ put: 'plan', value: plan(`p${n}`) });
        expect((await store.loadActive()).openEffects).toEqual([effect('e1', 'p1')]);
        await commit({ put: 'effect', value: effect('e1', 'p1', { status: 'done' }) });
        expect((await store.loadActive()).openEffects).toEqual([]);
      });
    });

    describe('ledger', () => {
      const rows = [
        ledgerRow({ usd: 0.01, onDemandUsd: 0.03 }),
        ledgerRow({ kind: 'wasted', job: jobId('j2'), owner: 'bo', caller: null, usd: 0.02, onDemandUsd: 0.03 }),
        idleRow({ usd: 0.03, onDemandUsd: 0.06 }),
      ];

      it('replaces the rows of an instance', async () => {
        await commit({ put: 'ledger', instance: instanceId('i-1'), value: [ledgerRow({ usd: 9 })] });
        await commit({ put: 'ledger', instance: instanceId('i-1'), value: rows });
        const other = ledgerRow({ instance: instanceId('i-0') });
        await commit({ put: 'ledger', instance: instanceId('i-0'), value: [other] });
        expect(await store.ledger({ instance: instanceId('i-1') })).toEqual(rows);
        expect(await store.ledger({ job: jobId('j1') })).toEqual([other, rows[0]]);
        expect(await store.ledger('all')).toEqual([other, ...rows]);
        await commit({ put: 'ledger', instance: instanceId('i-1'), value: [] });
        expect(await store.ledger({ job: jobId('j2') })).toEqual([]);
      });

      it('sums superseded running apart, and leaves it out of the price on demand', async () => {
        const beside = ledgerRow({ kind: 'speculative', usd: 0.04, onDemandUsd: 0.05 });
        await commit({ put: 'ledger', instance: instanceId('i-1'), value: [rows[0]!, beside] });
        expect(await store.ledger({ job: jobId('j1') })).toEqual([rows[0], beside]);
        for (const by of ['job', 'owner', 'pool'] as const) {
          expect(await store.costs(by)).toMatchObject([
            { workUsd: 0.01, wastedUsd: 0, speculativeUsd: 0.04, idleUsd: 0, onDemandUsd: 0.03 },
          ]);
        }
      });

      it('sums the time of moves apart, and leaves it out of the price on demand', async () => {
        const left = ledgerRow({ kind: 'moved', usd: 0.004, onDemandUsd: 0.05 });
        const kept = ledgerRow({ kind: 'moved', instance: instanceId('i-0'), usd: 0.002 });
        await commit(
          { put: 'ledger', instance: instanceId('i-1'), value: [rows[0]!, left] },
          { put: 'ledger', instance: instanceId('i-0'), value: [kept] },
        );
        expect(await store.ledger({ job: jobId('j1') })).toEqual([kept, rows[0], left]);
        for (const by of ['job', 'owner', 'pool', 'caller', 'template'] as const) {
          expect(await store.costs(by)).toMatchObject([
            { workUsd: 0.01, wastedUsd: 0, movedUsd: expect.closeTo(0.006, 12), idleUsd: 0, onDemandUsd: 0.03 },
          ]);
        }
      });

      it('sums costs by key, idle time apart, hours by share', async () => {
        await commit({ put: 'ledger', instance: instanceId('i-1'), value: rows });
        const near = (x: number): unknown => expect.closeTo(x, 12);
        // One hour of the instance, of which 3/12, 3/12 and 6/12 by the on-demand price.
        const ofJ1 = {
          workUsd: 0.01,
          wastedUsd: 0,
          speculativeUsd: 0,
          movedUsd: 0,
          idleUsd: 0,
          onDemandUsd: near(0.03),
          instanceHours: near(0.25),
          idleHours: 0,
        };
        const ofJ2 = {
          workUsd: 0,
          wastedUsd: 0.02,
          speculativeUsd: 0,
          movedUsd: 0,
          idleUsd: 0,
          onDemandUsd: 0,
          instanceHours: near(0.25),
          idleHours: 0,
        };
        const idle = {
          workUsd: 0,
          wastedUsd: 0,
          speculativeUsd: 0,
          movedUsd: 0,
          idleUsd: 0.03,
          onDemandUsd: 0,
          instanceHours: near(0.5),
          idleHours: near(0.5),
        };
        expect(await store.costs('job')).toEqual([
          { key: '(idle)', ...idle },
          { key: 'j1', ...ofJ1 },
          { key: 'j2', ...ofJ2 },
        ]);
        expect(await store.costs('owner')).toEqual([
          { key: '(idle)', ...idle },
          { key: 'ana', ...ofJ1 },
          { key: 'bo', ...ofJ2 },
        ]);
        expect(await store.costs('pool')).toEqual([
          {
            key: rows[0]?.pool,
            workUsd: 0.01,
            wastedUsd: 0.02,
            speculativeUsd: 0,
            movedUsd: 0,
            idleUsd: 0.03,
            onDemandUsd: near(0.03),
            instanceHours: near(1),
            idleHours: near(0.5),
          },
        ]);
        expect((await store.costs('template')).map((r) => r.key)).toEqual(['(idle)', 'ana/nightly/sh']);
        expect(await store.costs('caller')).toEqual([
          { key: '(idle)', ...idle },
          { key: '(unknown)', ...ofJ2 },
          { key: 'uid:1000', ...ofJ1 },
        ]);
      });

      it('sums idle time of a job with that job, and remembers how many hours of it were idle', async () => {
        const mine = idleRow({
          job: jobId('j1'),
          owner: 'ana',
          template: 'ana/nightly/sh',
          usd: 0.03,
          onDemandUsd: 0.06,
        });
        await commit({ put: 'ledger', instance: instanceId('i-1'), value: [...rows.slice(0, 2), mine] });
        const near = (x: number): unknown => expect.closeTo(x, 12);
        expect(await store.costs('owner')).toMatchObject([
          { key: 'ana', workUsd: 0.01, idleUsd: 0.03, instanceHours: near(0.75), idleHours: near(0.5) },
          { key: 'bo', wastedUsd: 0.02, idleUsd: 0, instanceHours: near(0.25), idleHours: 0 },
        ]);
        expect(await store.ledger({ job: jobId('j1') })).toEqual([rows[0], mine]);
      });

      it('divides the hours of a free instance by time', async () => {
        const free = { usd: 0, onDemandUsd: 0 };
        await commit({
          put: 'ledger',
          instance: instanceId('i-1'),
          value: [ledgerRow({ ...free, toMs: epochMs(1_800_000) }), idleRow({ ...free, toMs: epochMs(5_400_000) })],
        });
        const hours = (await store.costs('job')).map((r) => [r.key, r.instanceHours]);
        expect(hours).toEqual([
          ['(idle)', expect.closeTo(1.125, 12)],
          ['j1', expect.closeTo(0.375, 12)],
        ]);
      });
    });

    describe('events and memory', () => {
      it('adds one event for each job that is taken, and none for repeated and refused ones', async () => {
        await submitJobs('j1');
        await store.submit([submission('j2', 'key'), submission('j3', 'key')]);
        await store.submit([submission('j4', 'key', 'other body')]);
        expect(await codeOf(store.submit([submission('j5'), submission('j1')]))).toBe('conflict');
        const events = await store.events(0, 10);
        expect(events.map((e) => [e.type, e.job])).toEqual([
          ['job-submitted', 'j1'],
          ['job-submitted', 'j2'],
        ]);
        const { spec: of, submittedMs } = job('j1');
        expect(events[0]).toMatchObject({ atMs: submittedMs, data: { class: of.class, tasks: of.stages[0]?.tasks } });
        expect(events[0]?.text).toContain(of.name);
        expect(await store.events(events[0]?.sequence ?? 0, 10)).toEqual(events.slice(1));
        // As other events: the newest are kept.
        await submitJobs(...Array.from({ length: 20 }, (_, n) => `k${n}`));
        expect((await store.events(0, 10)).map((e) => e.job)).toEqual(['k15', 'k16', 'k17', 'k18', 'k19']);
      });

      it('numbers events upwards and keeps the newest', async () => {
        await commit(event('1'), event('2'));
        await commit(event('3'));
        const texts = (list: readonly EventRecord[]): string[] => list.map((e) => e.text);
        const all = await store.events(0, 10);
        expect(texts(all)).toEqual(['1', '2', '3']);
        expect(all[0]).toMatchObject({ type: 'note', job: null, data: { n: 1 } });
        expect(raw(all[0]?.atMs ?? epochMs(0))).toBe(5);
        const [first, second] = all;
        expect(second?.sequence).toBeGreaterThan(first?.sequence ?? Infinity);
        expect(texts(await store.events(first?.sequence ?? 0, 1))).toEqual(['2']);
        for (const n of [4, 5, 6, 7, 8]) await commit(event(String(n)));
        expect(texts(await store.events(0, 10))).toEqual(['4', '5', '6', '7', '8']);
        expect(texts(await store.events(all[2]?.sequence ?? 0, 2))).toEqual(['4', '5']);
        for (let n = 9; n < 30; n++) await commit(event(String(n)));
        expect(texts(await store.events(0, 2))).toEqual(['25', '26']);
        expect(texts(await store.events(1e12, 2))).toEqual([]);
      });

      it('finds memory by prefix', async () => {
        await commit(
          { put: 'memory', key: 'history/a', value: '1' },
          { put: 'memory', key: 'history/ü', value: '2' },
          { put: 'memory', key: 'history0', value: '3' },
          { put: 'memory', key: 'History/b', value: '4' },
          { put: 'memory', key: 'history/a', value: '5' },
        );
        expect([...(await store.memory('history/'))]).toEqual([
          ['history/a', '5'],
          ['history/ü', '2'],
        ]);
        expect((await store.memory('')).size).toBe(4);
        expect((await store.memory('absent')).size).toBe(0);
      });
    });
  });
}
