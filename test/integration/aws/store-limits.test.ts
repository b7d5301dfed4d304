import { expect, it } from '@jest/globals';
import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { attemptId, effectKey, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { epochMs } from '../../../lib/kernel/units.ts';
import type { Attempt } from '../../../lib/domain/job.ts';
import type { Change, EventRecord } from '../../../lib/ports/store.ts';
import { attempt, effect, explanation, instance, job, plan, spec, task } from '../../contract/store-samples.ts';
import { Faults } from '../../support/aws-faults.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const BIG = 10_000;
const INSTANCES = 100;
/** Largest item that DynamoDB takes. */
const ITEM_BYTES = 400 * 1024;

/** Everything that starting `tasks` tasks of a job at once puts. */
const start = (id: string, tasks: number, instances: number): Change[] => [
  { put: 'job', value: job(id, { state: 'running' }) },
  { put: 'plan', value: { ...plan(`p-${id}`, [explanation(id, 'starts')]), effects: [] } },
  ...range(instances).map((i): Change => ({ put: 'instance', value: instance(`i-${id}-${i}`) })),
  ...range(tasks).flatMap((i): Change[] => [
    { put: 'task', value: task(id, i) },
    {
      put: 'attempt',
      value: attempt(`${id}.main.${i}.1`, {
        job: jobId(id),
        index: i,
        instance: instanceId(`i-${id}-${i % instances}`),
      }),
    },
    { put: 'effect', value: { ...effect(`start-${id}-${i}`), key: effectKey(`start-${id}-${i}`) } },
    {
      put: 'event',
      value: { atMs: epochMs(i), type: 'attempt-placed', job: jobId(id), text: `task ${i}`, data: { i } },
    },
  ]),
];

describeOnLocalStack('DynamoDB store, limits', (on) => {
  it('takes a job of 10,000 tasks, starts them all in one commit, and a change of one costs the same as in a small job', async () => {
    const place = await on.place();
    let units = 0;
    let calls = new Map<string, number>();
    const store = on.store({
      ...place,
      meter: (use) => {
        units += use.units;
        calls.set(use.operation, (calls.get(use.operation) ?? 0) + 1);
      },
    });
    const long = 'x'.repeat(1000);
    const env = Object.fromEntries(range(500).map((i) => [`VARIABLE_${i}`, `${long}${Math.sin(i)}`]));
    const stages = spec().stages.map((s) => ({ ...s, tasks: BIG, env }));
    const big = job('big', { spec: spec({ stages }) });
    await store.submit([{ job: big, idempotency: { key: 'k', digest: 'd' } }]);
    const token = await store.takeLease('engine');
    calls = new Map();
    await store.commit(token, start('big', BIG, INSTANCES));
    // One write for each item, of which there is not one for each task.
    const commitCalls = Object.fromEntries(calls);
    expect(commitCalls['UpdateItem']).toBeGreaterThan(100);
    expect(commitCalls['UpdateItem']).toBeLessThan(BIG / 10);

    const other = on.store(place);
    const active = await other.loadActive();
    expect(active.jobs).toEqual([{ ...big, state: 'running' }]);
    expect([active.tasks.length, active.attempts.length, active.openEffects.length]).toEqual([BIG, BIG, BIG]);
    expect(active.instances).toHaveLength(INSTANCES);
    expect(active.attempts.map((a) => a.index)).toEqual(range(BIG));
    expect(await other.attemptsOn(instanceId('i-big-7'))).toHaveLength(BIG / INSTANCES);
    const events = await other.events(5000, 100);
    expect(events.map((e) => e.text)).toEqual(range(100).map((i) => `task ${4999 + i}`));

    const { Items: items = [] } = await on
      .dynamodb()
      .send(new ScanCommand({ TableName: place.table, ProjectionExpression: 'b, o' }));
    if (process.env['EBB_SHOW_METER'] === '1') process.stderr.write(`${JSON.stringify({ starting: commitCalls })}\n`);
    const sizes = items.map((i) => (i['b']?.B?.length ?? 0) + (i['o']?.B?.length ?? 0));
    expect(Math.max(...sizes)).toBeLessThan(ITEM_BYTES / 4);

    // One task of many: the items that hold it, not the job.
    await store.loadActive();
    const change = (id: string): Change[] => [
      { put: 'task', value: task(id, 7, { state: 'succeeded' }) },
      { put: 'effect', value: effect(`start-${id}-7`, 'p1', { status: 'done' }) },
    ];
    units = 0;
    await store.commit(token, change('big'));
    const ofBig = units;
    await store.submit([{ job: job('small'), idempotency: null }]);
    await store.commit(token, start('small', 10, 1));
    units = 0;
    await store.commit(token, change('small'));
    // The job's item lists its open neighbourhoods, so it grows, but by bits.
    expect(ofBig).toBeLessThan(units + 16);
  }, 180_000);

  it('keeps hundreds of attempts of one task, and its item small', async () => {
    const place = await on.place();
    const store = on.store(place);
    await store.submit([{ job: job('j1'), idempotency: null }]);
    const token = await store.takeLease('engine');
    // Text that no compression makes shorter than some 200 bytes.
    const reason = (n: number): string => Array.from({ length: 24 }, (_, i) => Math.sin(n * 24 + i + 1)).join(' ');
    const ended = (n: number): Attempt =>
      attempt(`j1.main.0.${n}`, { number: n, state: 'ended', outcome: 'interrupted', reason: reason(n) });
    for (const round of range(12)) {
      const changes = range(25).map((i): Change => ({ put: 'attempt', value: ended(round * 25 + i + 1) }));
      await store.commit(token, [...changes, { put: 'task', value: task('j1', 0, { attempts: (round + 1) * 25 }) }]);
    }
    const running = attempt('j1.main.0.301', { number: 301 });
    await store.commit(token, [{ put: 'attempt', value: running }]);
    const all = [...range(300).map((n) => ended(n + 1)), running];
    const other = on.store(place);
    expect(await other.attempts(jobId('j1'))).toEqual(all);
    expect(await other.attemptsOn(instanceId('i-1'))).toEqual(all);
    expect(await other.attempt(attemptId('j1.main.0.2'))).toEqual(ended(2));
    expect((await other.loadActive()).attempts).toEqual([running]);
    expect((await other.tasks(jobId('j1'))).map((t) => t.attempts)).toEqual([300]);
    // So many commits, and what is in the log is compacted into items.
    for (let n = 0; n < 100; n++) await store.commit(token, []);
    const { Items: items = [] } = await on.dynamodb().send(new ScanCommand({ TableName: place.table }));
    const runs = items.filter((i) => i['sk']?.S?.startsWith('RUN#') === true && i['pk']?.S === 'J#j1');
    // Moved out more than once, and none of the items near what the task would weigh in one.
    expect(runs.length).toBeGreaterThan(2);
    expect(Math.max(...runs.map((i) => i['b']?.B?.length ?? 0))).toBeLessThan(40_000);
  }, 60_000);

  it('forgets old events for good, and neither skips nor repeats any that it keeps', async () => {
    const place = { ...(await on.place()), retention: { plans: 3, events: 10, historyDays: null } };
    const store = on.store(place);
    const token = await store.takeLease('engine');
    const note = (n: number): Change => ({
      put: 'event',
      value: { atMs: epochMs(n), type: 'note', job: null, text: `note ${n}`, data: {} },
    });
    for (const n of range(30)) await store.commit(token, [note(n)]);
    await store.commit(
      token,
      range(600).map((n) => note(30 + n)),
    );
    for (const n of range(3)) await store.commit(token, [note(630 + n)]);
    const kept = await store.events(0, 100);
    expect(kept.map((e) => e.text)).toEqual(range(10).map((n) => `note ${623 + n}`));
    expect(await store.events(kept[3]?.sequence ?? 0, 100)).toEqual(kept.slice(4));
    // Nothing is left to do, so commits are compacted into items.
    await store.loadActive();
    expect(await on.store(place).events(0, 100)).toEqual(kept);
    const { Items: items = [] } = await on.dynamodb().send(new ScanCommand({ TableName: place.table }));
    // Of the 600 the first 500 lie in an item that ends at number 530; kept are those from 624 on.
    const left = items.flatMap((i) => (i['pk']?.S === 'EVENTS' ? [Number(i['sk']?.S)] : []));
    expect(left.sort((a, b) => a - b)).toEqual([531, 631, 632, 633]);
  }, 60_000);

  it('reads for a cycle what changed, and of history nothing', async () => {
    const place = await on.place();
    const calls: { operation: string; units: number }[] = [];
    const store = on.store({ ...place, meter: (use) => calls.push(use) });
    const token = await store.takeLease('engine');
    const costOfLoad = async (): Promise<{ calls: number; units: number }> => {
      calls.length = 0;
      await store.loadActive();
      return { calls: calls.length, units: calls.reduce((sum, c) => sum + c.units, 0) };
    };
    await store.submit([{ job: job('few'), idempotency: null }]);
    await store.commit(token, start('few', 100, 2));
    const atFew = await costOfLoad();
    await store.submit([{ job: job('many'), idempotency: null }]);
    await store.commit(token, start('many', 2000, 2));
    const atMany = await costOfLoad();
    expect(atMany.calls).toBe(atFew.calls);
    expect(atMany.units).toBeLessThan(atFew.units + 4);
    // Jobs that come and go leave nothing to be read, not even by a process that has just begun.
    const fresh = async (): Promise<number> => {
      calls.length = 0;
      await on.store({ ...place, meter: (use) => calls.push(use) }).loadActive();
      return calls.reduce((sum, c) => sum + c.units, 0);
    };
    const before = await fresh();
    for (const n of range(5)) {
      const ids = range(15).map((i) => `done-${n}-${i}`);
      await store.submit(ids.map((id) => ({ job: job(id), idempotency: null })));
      await store.commit(
        token,
        ids.map((id): Change => ({ put: 'job', value: job(id, { state: 'running' }) })),
      );
      await store.commit(
        token,
        ids.map((id): Change => ({ put: 'job', value: job(id, { state: 'succeeded' }) })),
      );
    }
    // But for what is in the log, up to 96 KB.
    expect(await fresh()).toBeLessThan(before + 25);
  }, 120_000);
});

describeOnLocalStack('DynamoDB store, races between processes', (on) => {
  it('one of many submissions under one key makes a job; engines that take the lease at once get different tokens', async () => {
    const place = await on.place();
    const stores = range(4).map(() => on.store(place));
    const outcomes = await Promise.all(
      stores.flatMap((store, s) =>
        range(6).map((i) => store.submit([{ job: job(`j${s}-${i}`), idempotency: { key: `k${i % 3}`, digest: 'd' } }])),
      ),
    );
    const statuses = outcomes.flat().map((o) => o.status);
    expect(statuses.filter((s) => s === 'created')).toHaveLength(3);
    expect(statuses.filter((s) => s === 'repeated')).toHaveLength(21);
    const reader = on.store(place);
    expect((await reader.jobs({}, 50, null)).items).toHaveLength(3);
    expect(await reader.events(0, 50)).toHaveLength(3);
    const tokens = await Promise.all(stores.map((s) => s.takeLease('engine')));
    expect(new Set(tokens).size).toBe(4);
    // All commit at once: only the holder of the newest token does.
    const commits = await Promise.allSettled(
      stores.map((s, i) => s.commit(tokens[i] ?? 0, [{ put: 'memory', key: 'who', value: String(tokens[i]) }])),
    );
    expect(commits.filter((c) => c.status === 'fulfilled')).toHaveLength(1);
    expect([...(await reader.memory('who'))]).toEqual([['who', String(Math.max(...tokens))]]);
  }, 60_000);

  it('a follower of events misses none while several processes write', async () => {
    const place = await on.place();
    const stores = range(3).map(() => on.store(place));
    const [engine] = stores;
    const token = (await engine?.takeLease('engine')) ?? 0;
    let isWriting = true;
    const seen: EventRecord[] = [];
    const follow = async (): Promise<void> => {
      const reader = on.store(place);
      for (;;) {
        const wasWriting = isWriting;
        const more = await reader.events(seen.at(-1)?.sequence ?? 0, 7);
        seen.push(...more);
        if (more.length === 0 && !wasWriting) return;
      }
    };
    const following = follow();
    await Promise.all([
      ...range(2).map(async (s) => {
        for (const n of range(12)) await stores[s + 1]?.submit([{ job: job(`j-${s}-${n}`), idempotency: null }]);
      }),
      (async () => {
        for (const n of range(12)) {
          const note = (text: string): Change => ({
            put: 'event',
            value: { atMs: epochMs(n), type: 'note', job: null, text, data: {} },
          });
          await engine?.commit(token, [note(`a${n}`), note(`b${n}`)]);
        }
      })(),
    ]);
    isWriting = false;
    await following;
    const all = (await on.store(place).events(0, 1000)).map((e) => e.sequence);
    expect(seen.map((e) => e.sequence)).toEqual(all);
    expect(all).toHaveLength(24 + 24);
  }, 60_000);

  // A lone submission writes its key, and then itself.
  it.each([
    ['has written nothing', 1],
    ['has written its key alone', 2],
  ])(
    'a submission that is slow and %s holds nobody up, and is one job whoever completes it',
    async (_, at) => {
      const place = await on.place();
      let letGo = (): void => undefined;
      const gate = new Promise<void>((resolve) => (letGo = resolve));
      let writes = 0;
      const faults = new Faults(async ({ perform }) => {
        if (++writes >= at) await gate;
        return perform();
      });
      const late = on.store({ ...place, dynamodb: faults.around(on.dynamodb()) });
      const store = on.store(place);
      const under = (id: string) => [{ job: job(id), idempotency: { key: 'k', digest: 'd' } }];
      await store.submit([{ job: job('first'), idempotency: null }]);
      const slow = late.submit(under('slow'));
      while (writes < at) await new Promise((resolve) => setTimeout(resolve, 5));
      await store.submit([{ job: job('second'), idempotency: null }]);
      const seen = await store.events(0, 10);
      expect(seen.map((e) => e.job)).toEqual(['first', 'second']);
      expect(await store.submitted(['k'])).toEqual(new Map());
      const [other] = await store.submit(under('again'));
      const id = at === 1 ? 'again' : 'slow';
      expect(other).toEqual({ status: at === 1 ? 'created' : 'repeated', job: job(id) });
      expect((await store.loadActive()).jobs.map((j) => j.id)).toEqual(['first', 'second', id]);
      letGo();
      expect(await slow).toEqual([{ status: at === 1 ? 'repeated' : 'created', job: job(id) }]);
      const more = await store.events(seen.at(-1)?.sequence ?? 0, 10);
      expect(more.map((e) => e.job)).toEqual([id]);
      const newestFirst = [id, 'second', 'first'];
      expect((await store.jobs({}, 10, null)).items.map((j) => j.id)).toEqual(newestFirst);
      expect((await store.jobs({ name: 'nightly' }, 10, null)).items.map((j) => j.id)).toEqual(newestFirst);
      expect((await store.loadActive()).jobs.map((j) => j.id)).toEqual(['first', 'second', id]);
    },
    60_000,
  );

  it('many processes that submit, look and ask at once lose no job and take none in twice', async () => {
    const place = await on.place();
    const stores = range(4).map(() => on.store(place));
    const ids = range(4).flatMap((s) => range(8).map((n) => `j-${s}-${n}`));
    await Promise.all(
      stores.flatMap((store, s) =>
        range(8).map(async (n) => {
          await store.submit([
            { job: job(`j-${s}-${n}`), idempotency: n % 2 === 0 ? null : { key: `${s}-${n}`, digest: 'd' } },
          ]);
          if (n % 3 === 0) await stores[(s + 1) % 4]?.loadActive();
          if (n % 3 === 1) await stores[(s + 2) % 4]?.events(0, 100);
        }),
      ),
    );
    const reader = on.store(place);
    expect((await reader.loadActive()).jobs.map((j) => j.id as string).sort()).toEqual(ids);
    expect((await reader.jobs({}, 100, null)).items.map((j) => j.id as string).sort()).toEqual(ids);
    const events = await reader.events(0, 100);
    expect(events.map((e) => e.sequence)).toEqual(range(32).map((n) => n + 1));
    expect(events.map((e) => e.job as string).sort()).toEqual(ids);
    const { Items: left = [] } = await on.dynamodb().send(new ScanCommand({ TableName: place.table }));
    expect(left.filter((item) => item['pk']?.S === 'NEW')).toEqual([]);
  }, 60_000);
});
