import { describe, expect, it } from '@jest/globals';
import { attemptId, instanceId, jobId } from '../../lib/kernel/ids.ts';
import { epochMs } from '../../lib/kernel/units.ts';
import type { Change, Store, Submission } from '../../lib/ports/store.ts';
import { codeOf } from '../support/code-of.ts';
import { attempt, effect, explanation, instance, job, ledgerRow, plan, submission, task } from './store-samples.ts';

/** A process with the store open. */
export interface StoreProcess {
  readonly store: Store;
  /** Its steps so far that changed something which outlives it. */
  steps(): number;
  isDead(): boolean;
}

/** Data that outlive processes. */
export interface CrashWorld {
  /**
   * Another process on the same data. After so many steps it dies: the last one is done, and nobody hears of that. Left
   * out: it lives. All processes before it have ended.
   */
  process(diesAfter?: number): Promise<StoreProcess>;
  close(): Promise<void>;
}

/** How processes die on a store's data; or why there is nothing to see. */
export type Crashes = (() => Promise<CrashWorld>) | { readonly none: string };

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** Texts that no compression makes short: of a log with commits in it nothing is left to compact later. */
const LONG = range(13).map((i) =>
  range(1000)
    .map((n) => Math.sin(1000 * i + n + 1))
    .join(' '),
);

/** A commit about `instances` instances with a task each. */
export const changes = (instances: number): Change[] => [
  { put: 'job', value: job('j1', { state: 'running', startedMs: epochMs(5) }) },
  { put: 'plan', value: plan('p2', [explanation('j1', 'runs')]) },
  ...range(instances).flatMap((i): Change[] => [
    { put: 'instance', value: instance(`i-${i}`) },
    { put: 'task', value: task('j1', i) },
    { put: 'attempt', value: attempt(`j1.main.${i}.1`, { index: i, instance: instanceId(`i-${i}`) }) },
    { put: 'effect', value: effect(`e-${i}`, 'p2') },
    { put: 'cursor', instance: instanceId(`i-${i}`), sequence: 3 },
    { put: 'event', value: { atMs: epochMs(5), type: 'note', job: jobId('j1'), text: `started ${i}`, data: {} } },
  ]),
  { put: 'ledger', instance: instanceId('i-gone'), value: [ledgerRow({ instance: instanceId('i-gone') })] },
  { put: 'memory', key: 'learned', value: '2' },
];
export const largeChanges: readonly Change[] = [
  ...changes(30),
  ...LONG.map((value, n): Change => ({ put: 'memory', key: `long ${n}`, value })),
];
/** The commit of a success that supersedes a copy: the job is done, and ends once the copy has. */
const [stageOfJ1] = job('j1').stages;
const superseding: readonly Change[] = [
  {
    put: 'job',
    value: job('j1', {
      state: 'running',
      startedMs: epochMs(5),
      doneMs: epochMs(9),
      stages: [{ ...stageOfJ1!, tasks: 1, nextFresh: 1, succeeded: 1, superseded: 1 }],
    }),
  },
  { put: 'task', value: task('j1', 0, { state: 'succeeded', attempts: 2 }) },
  {
    put: 'attempt',
    value: attempt('j1.main.0.1', { state: 'ended', outcome: 'succeeded', exitCode: 0, endedMs: epochMs(9) }),
  },
  {
    put: 'attempt',
    value: attempt('j1.main.0.2', {
      number: 2,
      role: 'copy',
      round: 1,
      instance: instanceId('i-3'),
      supersededBy: attemptId('j1.main.0.1'),
    }),
  },
  { put: 'effect', value: effect('superseded/stop/j1.main.0.2', 'p1') },
];
const batch = (prefix: string, jobs: number): Submission[] =>
  range(jobs).map((n) => submission(`${prefix}${n}`, `k${n}`));

/** One thing that is done to a store, and what is then to be seen of it. */
interface Deed {
  readonly name: string;
  readonly do: (store: Store, token: number) => Promise<unknown>;
  /** Does it again, as whoever goes on would; `isDone`: it was found to be there. */
  readonly repeat: (store: Store, token: number, isDone: boolean) => Promise<unknown>;
  /** What must be so after that, if not what the deed alone would have left. */
  readonly settled?: (store: Store) => Promise<void>;
}

const committing = (name: string, of: readonly Change[]): Deed => ({
  name,
  do: (store, token) => store.commit(token, of),
  // What happened is told once; all else says what is.
  repeat: (store, token, isDone) => store.commit(token, isDone ? of.filter((c) => c.put !== 'event') : of),
});

const submitting = (name: string, jobs: number): Deed => ({
  name,
  do: (store) => store.submit(batch('a', jobs)),
  repeat: async (store, _, isDone) => {
    const again = await store.submit(batch('b', jobs));
    // A key that was written alone is completed: its job is the one that was submitted first.
    for (const { status } of again) expect(isDone ? ['repeated'] : ['created', 'repeated']).toContain(status);
  },
  settled: async (store) => {
    const { items } = await store.jobs({}, 10, null);
    expect(items).toHaveLength(jobs + 1);
    expect((await store.loadActive()).jobs).toHaveLength(jobs + 1);
    const told = (await store.events(0, 100)).filter((e) => e.type === 'job-submitted').map((e) => e.job);
    expect(told).toEqual(items.map((j) => j.id).reverse());
    for (const n of range(jobs))
      expect([`a${n}`, `b${n}`]).toContain((await store.submitted([`k${n}`])).get(`k${n}`)?.job.id);
  },
});

const DEEDS: readonly Deed[] = [
  committing('a commit', changes(4)),
  committing('a large commit', largeChanges),
  committing('a commit of a success that supersedes a copy', superseding),
  submitting('a submission of one job', 1),
  submitting('a submission of some jobs in one call', 3),
  {
    name: 'a request to cancel',
    do: (store) => store.requestCancel(jobId('j1')),
    repeat: async (store) => expect(await store.requestCancel(jobId('j1'))).toBe(true),
  },
];

/** The state before: one job, a plan that explains it, something learned. */
export async function begin(world: { process(): Promise<Pick<StoreProcess, 'store'>> }): Promise<number> {
  const { store } = await world.process();
  await store.submit([submission('j1', 'key')]);
  await store.commit(await store.takeLease('first'), [
    { put: 'job', value: job('j1', { state: 'running' }) },
    { put: 'plan', value: plan('p1', [explanation('j1', 'waits'), explanation('j2', 'waits')]) },
    { put: 'memory', key: 'learned', value: '1' },
  ]);
  return store.takeLease('engine');
}

/** Everything that a store answers. */
export async function whole(store: Store): Promise<unknown> {
  const { cursors, ...active } = await store.loadActive();
  return {
    active,
    cursors: [...cursors].sort(([a], [b]) => (a < b ? -1 : 1)),
    jobs: (await store.jobs({}, 100, null)).items,
    named: [...(await store.findJobs(['nightly', 'a0']))].map(([ref, { id }]) => [ref, id]),
    submitted: [...(await store.submitted(['key', 'k0', 'k1', 'k2']))],
    tasks: await store.tasks(jobId('j1')),
    attempts: await store.attempts(jobId('j1')),
    on: await store.attemptsOn(instanceId('i-3')),
    attempt: await store.attempt(attemptId('j1.main.3.1')),
    instances: (await store.instances(null, 500, null)).items,
    plans: (await store.plans(5, null)).items,
    explanations: [await store.explanation(jobId('j1')), await store.explanation(jobId('j2'))],
    ledger: await store.ledger('all'),
    ofJob: await store.ledger({ job: jobId('j1') }),
    costs: await store.costs('job'),
    events: await store.events(0, 1000),
    memory: [...(await store.memory(''))],
  };
}

/** Points at which to die, from before the first step until after the last; of many steps alike not each. */
export function pointsUpTo(steps: number): readonly number[] {
  const all = range(steps + 1);
  return all.filter((n) => n <= 5 || n >= steps - 1 || Number.isInteger(Math.log2(n) / 2));
}

/** What every store keeps wherever the process that writes dies. */
export function crashContract(name: string, crashes: Crashes): void {
  if ('none' in crashes) return;
  const makeWorld = crashes;

  /** In a world of its own, which is gone afterwards. */
  async function inWorld<T>(then: (world: CrashWorld, token: number) => Promise<T>): Promise<T> {
    const world = await makeWorld();
    try {
      return await then(world, await begin(world));
    } finally {
      await world.close();
    }
  }

  /** What a deed makes of the state, without any fault, and by how many steps; read by another process. */
  const undisturbed = (deed: Deed) =>
    inWorld(async (world, token) => {
      const before = await whole((await world.process()).store);
      const living = await world.process();
      await deed.do(living.store, token);
      const steps = living.steps();
      return { before, after: await whole((await world.process()).store), steps };
    });

  describe(`store contract, processes that die: ${name}`, () => {
    describe.each(DEEDS.map((deed) => [deed.name, deed] as const))('%s', (_, deed) => {
      it('is there whole or not at all, can be repeated, and who goes on is not disturbed', async () => {
        const { before, after, steps } = await undisturbed(deed);
        expect(before).not.toEqual(after);
        const found: ('before' | 'after')[] = [];
        for (const point of pointsUpTo(steps)) {
          await inWorld(async (world, token) => {
            const dying = await world.process(point);
            const ended = await codeOf(deed.do(dying.store, token));
            expect([point, dying.isDead()]).toEqual([point, true]);
            // What was taken to be done is there.
            const next = (await world.process()).store;
            const state = await whole(next);
            const isDone = JSON.stringify(state) === JSON.stringify(after);
            expect([point, state]).toEqual([point, isDone ? after : before]);
            if (ended === 'no error') expect([point, isDone]).toEqual([point, true]);
            found.push(isDone ? 'after' : 'before');
            await goOn(next, { token, deed, isDone, after });
          });
        }
        // From the step that decides on it is there.
        expect(found[0]).toBe('before');
        expect(found.at(-1)).toBe('after');
        expect(found.lastIndexOf('before')).toBe(found.indexOf('after') - 1);
      }, 60_000);
    });

    it('a lease is taken or not, and no token is given twice', async () => {
      const { steps } = await undisturbed({
        ...DEEDS[0]!,
        do: (store) => store.takeLease('another'),
      });
      for (const point of pointsUpTo(steps)) {
        await inWorld(async (world, token) => {
          const dying = await world.process(point);
          await codeOf(dying.store.takeLease('dying'));
          expect(dying.isDead()).toBe(true);
          const next = (await world.process()).store;
          const newer = await next.takeLease('next');
          expect(newer).toBeGreaterThan(token);
          // Whoever died at the last step had the token before.
          if (point === steps) expect(newer).toBeGreaterThan(token + 1);
          expect(await codeOf(next.commit(token, []))).toBe('fenced');
          expect(await codeOf(next.commit(newer, []))).toBe('no error');
        });
      }
    });
  });
}

interface Going {
  readonly token: number;
  readonly deed: Deed;
  readonly isDone: boolean;
  readonly after: unknown;
}

/** The next engine, and the next submitter. */
async function goOn(next: Store, { token, deed, isDone, after }: Going): Promise<void> {
  const newer = await next.takeLease('next');
  expect(newer).toBeGreaterThan(token);
  expect(await codeOf(next.commit(token, [{ put: 'memory', key: 'learned', value: 'late' }]))).toBe('fenced');
  await deed.repeat(next, newer, isDone);
  if (deed.settled === undefined) expect(await whole(next)).toEqual(after);
  else await deed.settled(next);
  const told = await next.events(0, 1000);
  await next.submit([submission('new')]);
  await next.commit(newer, [
    { put: 'event', value: { atMs: epochMs(6), type: 'note', job: null, text: 'on', data: {} } },
  ]);
  // Numbers go on: none is given again. Which of two writers comes first is not said.
  const later = await next.events(told.at(-1)?.sequence ?? 0, 10);
  expect(later.map((e) => e.type).sort()).toEqual(['job-submitted', 'note']);
  const numbers = [...told, ...later].map((e) => e.sequence);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect((await next.jobs({}, 1, null)).items.map((j) => j.id)).toEqual(['new']);
}
