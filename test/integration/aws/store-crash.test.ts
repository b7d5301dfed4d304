import { expect, it } from '@jest/globals';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { attemptId, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { Change, Store } from '../../../lib/ports/store.ts';
import { attempt, effect, explanation, instance, job, ledgerRow, plan, task } from '../../contract/store-samples.ts';
import { brokenConnection, Faults, type AtCall } from '../../support/aws-faults.ts';
import { describeOnLocalStack, type OnLocalStack } from '../../support/localstack.ts';

type Place = Awaited<ReturnType<OnLocalStack['place']>>;

const TASKS = 30;
/** Texts that no compression makes short: with them a commit is more than is left in the log. */
const LONG = Array.from({ length: 13 }, (_, i) =>
  Array.from({ length: 1000 }, (__, n) => Math.sin(1000 * i + n + 1)).join(' '),
);
/** Of many writes one after another that carry over the same commit not each need be the last one. */
const nextCrash = (at: number): number => (at < 5 ? at + 1 : at * 2);
const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

/** The state before: one job, and a plan that explains it. */
const first: Change[] = [
  { put: 'job', value: job('j1', { state: 'running' }) },
  { put: 'plan', value: plan('p1', [explanation('j1', 'waits'), explanation('j2', 'waits')]) },
  { put: 'memory', key: 'learned', value: '1' },
];

/** A commit of `instances` instances with a task each: of 30 it is carried over to the items at once, of four it stays in the log. */
const second = (instances: number): Change[] => [
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
  ...(instances === TASKS ? LONG : []).map((value, n): Change => ({ put: 'memory', key: `long ${n}`, value })),
];

async function whole(store: Store): Promise<unknown> {
  const { cursors, ...active } = await store.loadActive();
  return {
    active,
    cursors: [...cursors].sort(([a], [b]) => (a < b ? -1 : 1)),
    job: await store.job(jobId('j1')),
    tasks: await store.tasks(jobId('j1')),
    attempts: await store.attempts(jobId('j1')),
    on: await store.attemptsOn(instanceId('i-3')),
    attempt: await store.attempt(attemptId('j1.main.3.1')),
    instances: (await store.instances(null, 500, null)).items,
    plans: (await store.plans(5, null)).items,
    explanations: [await store.explanation(jobId('j1')), await store.explanation(jobId('j2'))],
    ledger: await store.ledger('all'),
    ofJob: await store.ledger({ job: jobId('j1') }),
    events: await store.events(0, 1000),
    memory: [...(await store.memory(''))],
  };
}

describeOnLocalStack('DynamoDB store, crash points and lost answers', (on) => {
  const broken = (place: Place, atWrite: AtCall): { readonly store: Store; readonly faults: Faults } => {
    const faults = new Faults(atWrite);
    const store = on.store({ ...place, dynamodb: faults.around(on.dynamodb()), s3: faults.around(on.s3()) });
    return { store, faults };
  };

  async function begun(): Promise<Place> {
    const place = await on.place();
    const store = on.store(place);
    await store.submit([{ job: job('j1'), idempotency: { key: 'k1', digest: 'd1' } }]);
    await store.commit(await store.takeLease('first'), first);
    return place;
  }

  /** What the second commit makes of the first state, without any fault. */
  async function expectedStates(instances: number): Promise<{ readonly before: unknown; readonly after: unknown }> {
    const place = await begun();
    const store = on.store(place);
    const before = await whole(store);
    await store.commit(await store.takeLease('engine'), second(instances));
    // Read by another process, so that nothing comes from what this one remembers.
    return { before, after: await whole(on.store(place)) };
  }

  it.each([
    ['some items', 4],
    ['so many items that it is carried over at once', TASKS],
  ])(
    'a commit of %s is there whole or not at all, wherever the process dies',
    async (_, instances) => {
      const { before, after } = await expectedStates(instances);
      expect(before).not.toEqual(after);
      const states: string[] = [];
      for (let at = 1, reached = true; reached; at = nextCrash(at)) {
        reached = false;
        const place = await begun();
        const token = await on.store(place).takeLease('engine');
        // Before a write is after the one before it; one that is carried out and not answered has a test of its own.
        const { store, faults } = broken(place, async ({ ordinal, perform }) => {
          if (ordinal !== at) return perform();
          reached = true;
          return faults.die();
        });
        const ended = await store.commit(token, second(instances)).then(
          () => 'resolved',
          () => 'died',
        );
        const next = on.store(place);
        const newer = await next.takeLease('next engine');
        const found = await whole(next);
        const isAfter = JSON.stringify(found) === JSON.stringify(after);
        expect(found).toEqual(isAfter ? after : before);
        // What was acknowledged is there.
        if (ended === 'resolved') expect(isAfter).toBe(true);
        // The next engine goes on from either.
        await next.commit(newer, second(instances));
        expect((await next.loadActive()).attempts).toHaveLength(instances);
        states.push(isAfter ? 'after' : 'before');
      }
      // Both were seen, and from the deciding write on it is always the state after.
      expect(states[0]).toBe('before');
      expect(states.lastIndexOf('before')).toBeLessThan(states.indexOf('after'));
      expect(states.length).toBeGreaterThan(instances === TASKS ? 6 : 1);
    },
    180_000,
  );

  it.each([
    ['some items', 4],
    ['so many items that it is carried over at once', TASKS],
  ])(
    'a commit of %s is applied once when an answer is lost, whether or not the request was carried out',
    async (_, instances) => {
      const { after } = await expectedStates(instances);
      for (let at = 1, reached = true; reached; at = nextCrash(at)) {
        reached = false;
        for (const isPerformed of [false, true]) {
          const place = await begun();
          const { store } = broken(place, async ({ ordinal, perform }) => {
            if (ordinal !== at) return perform();
            reached = true;
            if (isPerformed) await perform();
            throw brokenConnection();
          });
          const token = await on.store(place).takeLease('engine');
          await store.commit(token, second(instances)).catch(async (error: unknown) => {
            // Said to have failed: then it has not been and never will be carried out, and can be repeated.
            expect(error instanceof EbbError && error.retryable).toBe(true);
            await store.commit(token, second(instances));
          });
          expect(await whole(on.store(place))).toEqual(after);
        }
      }
    },
    180_000,
  );

  it('what comes late from a commit that another engine has finished changes nothing', async () => {
    const place = await begun();
    let letGo = (): void => undefined;
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    let decided = (): void => undefined;
    const isDecided = new Promise<void>((resolve) => (decided = resolve));
    let writes = 0;
    const { store } = broken(place, async ({ name, perform }) => {
      // The first decides; all others carry over what was decided.
      if (name === 'UpdateItemCommand' && ++writes > 1) {
        decided();
        await gate;
      }
      return perform();
    });
    const slow = store.commit(await on.store(place).takeLease('slow'), second(TASKS));
    await isDecided;
    const next = on.store(place);
    const token = await next.takeLease('next');
    await next.commit(token, [
      { put: 'instance', value: instance('i-3', { state: 'ended' }) },
      { put: 'effect', value: effect('e-3', 'p2', { status: 'done' }) },
      ...range(TASKS).map((i): Change => ({ put: 'task', value: task('j1', i, { state: 'succeeded' }) })),
    ]);
    // More commits than are left in the log: the items have them all before those of the slow one come.
    for (const n of range(110)) await next.commit(token, [{ put: 'memory', key: 'later', value: String(n) }]);
    const expected = await whole(next);
    letGo();
    await slow;
    expect(await whole(on.store(place))).toEqual(expected);
    expect((await next.loadActive()).instances).toHaveLength(TASKS - 1);
    expect((await next.tasks(jobId('j1'))).map((t) => t.state)).toEqual(range(TASKS).map(() => 'succeeded'));
  }, 60_000);

  it.each([
    ['a job', 1],
    ['some jobs in one call', 3],
  ])(
    'a submission of %s is there whole or not at all, and repeating it makes no second job',
    async (_, jobs) => {
      const seen = new Set<number>();
      for (let at = 1, reached = true; reached; at++) {
        reached = false;
        for (const when of ['before', 'after'] as const) {
          const place = await on.place();
          const { store, faults } = broken(place, async ({ ordinal, perform }) => {
            if (ordinal !== at) return perform();
            reached = true;
            if (when === 'after') await perform();
            return faults.die();
          });
          const batch = range(jobs).map((n) => ({ job: job(`a${n}`), idempotency: { key: `k${n}`, digest: 'd' } }));
          await store.submit(batch).catch(() => undefined);
          const next = on.store(place);
          const found = (await next.jobs({}, 10, null)).items.length;
          seen.add(found);
          expect([0, jobs]).toContain(found);
          expect((await next.loadActive()).jobs).toHaveLength(found);
          expect((await next.findJobs(['nightly'])).size).toBe(found === 0 ? 0 : 1);
          expect((await next.jobs({ name: 'nightly' }, 10, null)).items).toHaveLength(found);
          expect((await next.submitted('k0')) === null).toBe(found === 0);
          expect(await next.events(0, 10)).toHaveLength(found);
          const again = await next.submit(
            range(jobs).map((n) => ({ job: job(`b${n}`), idempotency: { key: `k${n}`, digest: 'd' } })),
          );
          // A key that was written alone is completed: its job is the one that was submitted first.
          expect(['created', 'repeated']).toEqual(expect.arrayContaining(again.map((o) => o.status)));
          if (found > 0) expect(new Set(again.map((o) => o.status))).toEqual(new Set(['repeated']));
          expect((await next.jobs({}, 10, null)).items).toHaveLength(jobs);
          expect((await next.events(0, 10)).map((e) => e.job)).toEqual(again.map((o) => ('job' in o ? o.job.id : '')));
          // What never became a job leaves nothing behind that the engine would take for one.
          await next.commit(await next.takeLease('next'), []);
          expect((await next.loadActive()).jobs).toHaveLength(jobs);
        }
      }
      expect([...seen].sort()).toEqual([0, jobs]);
    },
    60_000,
  );

  it('a submission whose answers are lost is stored once, whether or not its requests were carried out', async () => {
    for (let at = 1, reached = true; reached; at++) {
      reached = false;
      for (const isPerformed of [false, true]) {
        const place = await on.place();
        const { store } = broken(place, async ({ ordinal, perform }) => {
          if (ordinal !== at) return perform();
          reached = true;
          if (isPerformed) await perform();
          throw brokenConnection();
        });
        const once = { job: job('a'), idempotency: { key: 'k', digest: 'd' } };
        const [outcome] = await store.submit([once]).catch(async (error: unknown) => {
          expect(error instanceof EbbError && error.retryable).toBe(true);
          return store.submit([once]);
        });
        expect(['created', 'repeated']).toContain(outcome?.status);
        const other = on.store(place);
        expect((await other.jobs({}, 10, null)).items.map((j) => j.id)).toEqual(['a']);
        expect((await other.jobs({ name: 'nightly' }, 10, null)).items.map((j) => j.id)).toEqual(['a']);
        expect((await other.loadActive()).jobs.map((j) => j.id)).toEqual(['a']);
        expect((await other.events(0, 10)).map((e) => e.job)).toEqual(['a']);
      }
    }
  }, 60_000);
});
