import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { WorkingState } from '../../../lib/cycle/state/working-state.ts';
import { isLive, takesTasks, type Instance } from '../../../lib/domain/instance.ts';
import { isOver, type Attempt, type TaskState } from '../../../lib/domain/job.ts';
import { instanceParts, runningParts, type InstanceView, type RunningTask } from '../../../lib/domain/snapshot.ts';
import { attemptId, instanceId, jobId, poolId } from '../../../lib/kernel/ids.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import { MemoryStore } from '../../../lib/drivers/sim/memory-store.ts';
import { attempt, effect, instance, submission } from '../../contract/store-samples.ts';
import { pool } from '../../support/builders.ts';

const SEED = 20261122;
const JOBS = 4;
const INSTANCES = ['i-0', 'i-1', 'i-2'];
/** Of all that there may come to be. */
const NAMES = Array.from({ length: 80 }, (_, n) => instanceId(`i-${n}`));

const index = fc.nat(3);
const deed = fc.oneof(
  fc.record({ does: fc.constant('submit' as const) }),
  fc.record({ does: fc.constant('cancel' as const), job: index }),
  fc.record({ does: fc.constant('launch' as const) }),
  { weight: 4, arbitrary: fc.record({ does: fc.constant('begin' as const), job: index, task: index, on: index }) },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('end' as const),
      nth: fc.nat(9),
      to: fc.constantFrom<TaskState>('waiting', 'succeeded', 'failed'),
    }),
  },
  fc.record({ does: fc.constant('stop' as const), nth: fc.nat(9) }),
  fc.record({ does: fc.constant('lose' as const), nth: index }),
  fc.record({ does: fc.constant('warn' as const), nth: index }),
  fc.record({ does: fc.constant('finish' as const), job: index }),
  fc.record({ does: fc.constant('effect' as const), key: index, open: fc.boolean() }),
  { weight: 3, arbitrary: fc.record({ does: fc.constant('cycle' as const) }) },
);
type Deed = typeof deed extends fc.Arbitrary<infer D> ? D : never;

/** The engine's side: what it does to its working state between two cycles. */
function act(state: WorkingState, d: Deed, serial: number): void {
  const attempts = [...state.attempts.values()].filter((a) => a.state !== 'ended');
  const instances = [...state.instances.values()].filter(isLive);
  const jobs = [...state.jobs.values()].filter((j) => !isOver(j.state));
  switch (d.does) {
    case 'launch':
      state.putInstance(instance(`i-${serial}`, serial % 2 === 0 ? {} : { pool: ON_DEMAND }));
      state.putCursor(instanceId(`i-${serial}`), serial);
      return;
    case 'begin': {
      const of = jobs[d.job % Math.max(1, jobs.length)];
      const on = instances[d.on % Math.max(1, instances.length)];
      if (of === undefined || on === undefined) return;
      const ref = { job: of.id, stage: 'main', index: d.task };
      const tried = state.tasksOf(of.id).find((t) => t.index === d.task);
      if (tried !== undefined && tried.state !== 'waiting') return;
      state.beginTask(ref);
      state.putAttempt(attempt(`a${serial}`, { ...ref, instance: on.id }));
      return;
    }
    case 'end': {
      const ended = attempts[d.nth % Math.max(1, attempts.length)];
      if (ended === undefined) return;
      state.putAttempt({ ...ended, state: 'ended', outcome: 'interrupted' });
      const before = state.task(ended);
      state.moveTask(before, { ...before, state: d.to });
      return;
    }
    case 'stop': {
      const stopped = attempts[d.nth % Math.max(1, attempts.length)];
      if (stopped !== undefined) state.putAttempt({ ...stopped, state: 'stopping' });
      return;
    }
    case 'lose': {
      const lost = instances[d.nth % Math.max(1, instances.length)];
      if (lost === undefined || attempts.some((a) => a.instance === lost.id)) return;
      state.putInstance({ ...lost, state: 'ended' });
      return;
    }
    case 'warn': {
      const warned = instances[d.nth % Math.max(1, instances.length)];
      if (warned !== undefined) state.putInstance({ ...warned, rebalance: true });
      return;
    }
    case 'finish': {
      const of = jobs[d.job % Math.max(1, jobs.length)];
      if (of !== undefined && !attempts.some((a) => a.job === of.id)) state.putJob({ ...of, state: 'cancelled' });
      return;
    }
    case 'effect':
      state.putEffect(effect(`e${d.key}`, 'p1', d.open ? null : { status: 'done' }));
      return;
    default:
      return;
  }
}

const picture = (state: WorkingState): unknown => ({
  jobs: [...state.jobs.values()],
  tasks: [...state.jobs.values()]
    .flatMap(({ id }) => state.tasksOf(id))
    .sort((a, b) => (a.job < b.job ? -1 : a.job > b.job ? 1 : a.index - b.index)),
  attempts: [...state.attempts.values()],
  instances: [...state.instances.values()],
  openEffects: state.openEffects,
  cursors: new Map(state.cursors),
  on: [...state.instances.values()].map(({ id }) => state.attemptsOn(id)),
  ended: state.endedInstances,
});

/** What waits of each job's one stage, and the same by the rows alone. */
function waits(state: WorkingState): { readonly now: unknown; readonly byRows: unknown } {
  const jobs = [...state.jobs.values()];
  return {
    now: jobs.map((j) => state.waitingTasks(j, 'main')),
    byRows: jobs.map((j) => state.tasksOf(j.id).filter((t) => t.state === 'waiting')),
  };
}

const SPOT = poolId('c5.large/us-east-1a/spot');
const ON_DEMAND = poolId('c5.large/us-east-1a/on-demand');
const C5 = { type: 'c5.large', zone: 'us-east-1a', cpus: 2, memoryMiB: 4096 };
const TERMS = {
  poolById: new Map([
    [SPOT, pool({ ...C5, option: 'spot' })],
    [ON_DEMAND, pool({ ...C5, option: 'on-demand' })],
  ]),
  restoreS: seconds(30),
};

const byId = <T extends { readonly id: string }>(a: T, b: T): number => (a.id < b.id ? -1 : 1);

const isAtRisk = (state: WorkingState, { state: is, job, instance: on }: Attempt): boolean =>
  is === 'running' && (state.jobs.get(job)?.deadlineMs ?? null) !== null && state.instances.get(on)?.pool === SPOT;

/** What runs by the rows alone: who is live, in their order, and what is left of each instance. */
function runsByRows(state: WorkingState): unknown {
  const live = [...state.attempts.values()].filter((a) => a.state !== 'ended');
  const rented = [...state.instances.values()].filter(isLive).sort(byId);
  return {
    running: live,
    spot: rented.filter((i) => takesTasks(i) && i.pool === SPOT),
    onDemand: rented.filter((i) => takesTasks(i) && i.pool === ON_DEMAND),
    leaving: rented.filter((i) => !takesTasks(i)),
    idle: rented.filter((i) => live.every((a) => a.instance !== i.id)),
    stopping: live.filter((a) => a.state === 'stopping').sort(byId),
    atRisk: live.filter((a) => isAtRisk(state, a)).sort(byId),
    size: [...state.instances.values()].filter(isLive).length,
    found: NAMES.map((id) => state.instances.get(id)).map((i) => (i !== undefined && isLive(i) ? i : undefined)),
    instances: [...state.instances.values()].filter(isLive).map((i) => {
      const there = live.filter((a) => a.instance === i.id);
      return { instance: i, there, cpu: 2000 - 500 * there.length, memory: 4096 - 512 * there.length };
    }),
  };
}

const attemptsOf = (running: readonly RunningTask[]): readonly Attempt[] => running.map((r) => r.attempt).sort(byId);

const instancesOf = (views: readonly InstanceView[] = []): readonly Instance[] =>
  views.map((v) => v.instance).sort(byId);

function runsKept(state: WorkingState): { readonly now: unknown; readonly was: () => unknown } {
  const runs = state.whatRuns(TERMS);
  const { running, instances } = runs;
  expect(runs.parts.isOf(runs)).toBe(true);
  const { takingTasks, leaving, idle } = instanceParts(runs);
  const was = (): unknown => ({
    running: running.map((r) => r.attempt),
    spot: instancesOf(takingTasks.get(SPOT)),
    onDemand: instancesOf(takingTasks.get(ON_DEMAND)),
    leaving: instancesOf(leaving),
    idle: instancesOf(idle),
    stopping: attemptsOf(runningParts(runs).stopping),
    atRisk: attemptsOf(runningParts(runs).atRisk),
    size: instances.size,
    found: NAMES.map((id) => instances.get(id)?.instance),
    instances: [...instances.values()].map((v) => ({
      instance: v.instance,
      there: v.attempts.map((r) => r.attempt),
      cpu: raw(v.free.cpu),
      memory: raw(v.free.memory),
    })),
  });
  for (const { attempts, distinct } of instances.values())
    expect(new Set(distinct)).toEqual(new Set(attempts.map((r) => r.like ?? r)));
  return { now: was(), was };
}

describe('the active state kept from cycle to cycle', () => {
  it('is what a load would give, in the same order, whatever the engine and others do between', async () => {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fc.array(deed, { minLength: 5, maxLength: 60, size: 'max' }), async (deeds) => {
        const store = new MemoryStore();
        const token = await store.takeLease('engine');
        await store.submit([submission('j0')]);
        const kept = new WorkingState(await store.loadActive());
        for (const id of INSTANCES) kept.putInstance(instance(id));
        kept.attemptsOn(instanceId('i-0'));
        let submitted = 1;
        let runs = runsKept(kept);
        for (const [serial, d] of [...deeds, { does: 'cycle' as const }].entries()) {
          seen.set(d.does, (seen.get(d.does) ?? 0) + 1);
          if (d.does === 'submit') await store.submit([submission(`j${submitted++}`)]);
          else if (d.does === 'cancel') await store.requestCancel(jobId(`j${d.job % JOBS}`));
          else if (d.does !== 'cycle') act(kept, d, serial + 10);
          else {
            const before = runs;
            runs = runsKept(kept);
            expect(runs.now).toEqual(runsByRows(kept));
            expect(waits(kept).now).toEqual(waits(kept).byRows);
            seen.set(
              'waits',
              (seen.get('waits') ?? 0) +
                kept.jobs
                  .values()
                  .toArray()
                  .flatMap((j) => kept.waitingTasks(j, 'main')).length,
            );
            // A snapshot stays as it was taken, whatever came after it.
            expect(before.was()).toEqual(before.now);
            await store.commit(token, kept.takeChanges());
            kept.refresh(await store.changedByOthers(kept.jobs));
            const loaded = new WorkingState(await store.loadActive());
            expect(picture(kept)).toEqual(picture(loaded));
            seen.set('attempts', (seen.get('attempts') ?? 0) + kept.attempts.size);
          }
        }
      }),
      { seed: SEED, numRuns: 150 },
    );
    for (const what of [
      'submit',
      'cancel',
      'launch',
      'begin',
      'end',
      'lose',
      'warn',
      'finish',
      'effect',
      'attempts',
      'waits',
    ]) {
      expect([what, (seen.get(what) ?? 0) > 100]).toEqual([what, true]);
    }
  });

  it('is committed as it is at last, one change for each, however often it was put', async () => {
    const state = new WorkingState(await new MemoryStore().loadActive());
    const { job } = submission('j0');
    const ref = { job: job.id, stage: 'main', index: 0 };
    for (let round = 0; round < 2; round++) {
      state.putJob(job);
      state.beginTask(ref);
      state.moveTask(state.task(ref), { ...state.task(ref), state: 'waiting' });
      const began = attempt('a1', ref);
      state.putAttempt(began);
      state.putAttempt({ ...began, state: 'stopping' });
      state.putInstance(instance('i-0'));
      state.putInstance({ ...instance('i-0'), state: 'releasing' });
      const changes = state.takeChanges();
      expect(changes).toMatchObject([
        { put: 'job', value: { id: 'j0' } },
        { put: 'task', value: { state: 'waiting', attempts: round + 1 } },
        { put: 'instance', value: { state: 'releasing' } },
        { put: 'attempt', value: { state: 'stopping' } },
      ]);
      expect([state.changed, state.takeChanges()]).toEqual([false, []]);
    }
  });

  it('is not gone on from while something is not committed', async () => {
    const store = new MemoryStore();
    const state = new WorkingState(await store.loadActive());
    state.putAttempt(attempt('a1', { id: attemptId('a1') }));
    const others = await store.changedByOthers(state.jobs);
    expect(() => state.refresh(others)).toThrow(/not committed/);
  });
});
