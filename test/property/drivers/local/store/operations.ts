import { expect } from '@jest/globals';
import fc from 'fast-check';
import { EbbError } from '../../../../../lib/kernel/errors.ts';
import { attemptId, instanceId, jobId, poolId } from '../../../../../lib/kernel/ids.ts';
import { epochMs } from '../../../../../lib/kernel/units.ts';
import type { JobState } from '../../../../../lib/domain/job.ts';
import type { ActiveState, Change, Store, Submission } from '../../../../../lib/ports/store.ts';
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
  task,
} from '../../../../contract/store-samples.ts';
import { COST_KEYS } from '../../../../../lib/domain/costs.ts';

/** Few names, so that operations meet. */
const few = (prefix: string): fc.Arbitrary<string> => fc.integer({ min: 0, max: 5 }).map((n) => `${prefix}${n}`);
const jobState = fc.constantFrom<JobState>('pending', 'running', 'succeeded', 'failed', 'cancelled');
const money = fc.integer({ min: 0, max: 1000 }).map((n) => n / 64);
const aLedgerRow = fc
  .record({
    isIdle: fc.boolean(),
    of: few('j'),
    owner: fc.constantFrom('ana', 'bo'),
    from: fc.nat(1e6),
    length: fc.nat(1e6),
    usd: money,
    onDemandUsd: money,
    pool: few('p'),
  })
  .map((r) => {
    const common = {
      fromMs: epochMs(r.from),
      toMs: epochMs(r.from + r.length),
      usd: r.usd,
      onDemandUsd: r.onDemandUsd,
      pool: poolId(r.pool),
    };
    return r.isIdle ? idleRow(common) : ledgerRow({ ...common, job: jobId(r.of), owner: r.owner });
  });

const change: fc.Arbitrary<Change> = fc.oneof(
  fc
    .tuple(few('j'), jobState, fc.boolean())
    .map(([id, state, cancelRequested]): Change => ({ put: 'job', value: job(id, { state, cancelRequested }) })),
  fc
    .tuple(few('j'), fc.nat(3), fc.constantFrom('waiting' as const, 'running' as const, 'succeeded' as const))
    .map(([of, index, state]): Change => ({ put: 'task', value: task(of, index, { state }) })),
  // An attempt never changes its job or instance: both follow from its id.
  fc.tuple(fc.nat(5), fc.constantFrom('starting' as const, 'ended' as const)).map(([n, state]): Change => ({
    put: 'attempt',
    value: attempt(`a${n}`, { state, job: jobId(`j${n % 3}`), instance: instanceId(`i-${n % 2}`) }),
  })),
  fc
    .tuple(few('i-'), fc.constantFrom('ready' as const, 'ended' as const))
    .map(([id, state]): Change => ({ put: 'instance', value: instance(id, { state }) })),
  fc.tuple(few('p'), fc.uniqueArray(few('j'), { maxLength: 3 }), few('why ')).map(([id, about, why]): Change => ({
    put: 'plan',
    value: plan(
      id,
      about.map((j) => explanation(j, why)),
    ),
  })),
  fc.tuple(few('e'), few('p'), fc.boolean()).map(([key, of, isOpen]): Change => ({
    put: 'effect',
    value: effect(key, of, isOpen ? null : { status: 'done' }),
  })),
  fc.tuple(few('i-'), fc.array(aLedgerRow, { maxLength: 3 })).map(([id, rows]): Change => ({
    put: 'ledger',
    instance: instanceId(id),
    value: rows.map((r) => ({ ...r, instance: instanceId(id) })),
  })),
  few('event ').map((text): Change => ({
    put: 'event',
    value: { atMs: epochMs(1), type: 't', job: null, text, data: {} },
  })),
  fc
    .tuple(few('i-'), fc.nat(9))
    .map(([id, sequence]): Change => ({ put: 'cursor', instance: instanceId(id), sequence })),
  fc
    .tuple(fc.constantFrom('a', 'a/b', 'b/ü', 'b/🌊', 'c'), fc.string())
    .map(([key, value]): Change => ({ put: 'memory', key, value })),
  fc.constant({ put: 'tide' } as unknown as Change),
);

const aSubmission: fc.Arbitrary<Submission> = fc
  .record({
    id: few('j'),
    key: fc.option(few('k')),
    digest: fc.constantFrom('d1', 'd2'),
    owner: fc.constantFrom('ana', 'bo'),
    name: few('n'),
    labels: fc.dictionary(fc.constantFrom('team', 'tier'), fc.constantFrom('1', '2')),
  })
  .map(({ id, key, digest, owner, name, labels }) => ({
    job: job(id, { spec: spec({ owner, name, labels }) }),
    idempotency: key === null ? null : { key, digest },
  }));

export type Operation =
  | { readonly does: 'submit'; readonly submissions: readonly Submission[] }
  | { readonly does: 'cancel'; readonly of: string }
  | { readonly does: 'lease' }
  | { readonly does: 'commit'; readonly changes: readonly Change[]; readonly isStale: boolean };

export const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.array(aSubmission, { maxLength: 3 }).map((submissions) => ({ does: 'submit' as const, submissions })),
  few('j').map((of) => ({ does: 'cancel' as const, of })),
  fc.constant({ does: 'lease' as const }),
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('commit' as const),
      changes: fc.array(change, { maxLength: 6 }),
      isStale: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    }),
  },
);

/** What the operation answered; an error by its code. */
export async function perform(store: Store, o: Operation, token: number): Promise<unknown> {
  try {
    switch (o.does) {
      case 'submit':
        return await store.submit(o.submissions);
      case 'cancel':
        return await store.requestCancel(jobId(o.of));
      case 'lease':
        return await store.takeLease('engine');
      case 'commit':
        await store.commit(o.isStale ? token - 1 : token, o.changes);
        return 'committed';
    }
  } catch (error) {
    if (error instanceof EbbError) return error.code;
    throw error;
  }
}

const sorted = <T>(list: readonly T[]): T[] =>
  [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
const withoutOrder = (active: ActiveState): unknown => ({
  jobs: sorted(active.jobs),
  tasks: sorted(active.tasks),
  attempts: sorted(active.attempts),
  instances: sorted(active.instances),
  openEffects: sorted(active.openEffects),
  cursors: active.cursors,
});

async function allPages<T>(
  read: (after: string | null) => Promise<{ items: readonly T[]; next: string | null }>,
): Promise<T[]> {
  const items: T[] = [];
  for (let after: string | null = null; ;) {
    const page = await read(after);
    items.push(...page.items);
    if (page.next === null) return items;
    after = page.next;
  }
}

/** Everything that a store can be asked. */
export async function everything(store: Store): Promise<unknown> {
  const jobs = ['j0', 'j1', 'j2', 'j3', 'j4', 'j5'].map(jobId);
  const filters = [
    {},
    { states: ['pending' as const, 'failed' as const] },
    { owner: 'ana', states: ['pending' as const] },
    { owner: 'bo' },
    { name: 'n1' },
    { label: { key: 'team', value: '1' } },
    { label: { key: 'tier', value: '2' }, owner: 'ana' },
  ];
  return {
    active: withoutOrder(await store.loadActive()),
    jobs: await Promise.all(jobs.map((id) => store.job(id))),
    lists: await Promise.all(filters.map((f) => allPages((after) => store.jobs(f, 2, after)))),
    found: await store.findJobs(['j0', 'n0', 'n1', 'n2', 'absent']),
    tasks: await Promise.all(jobs.map((id) => store.tasks(id))),
    attempts: await Promise.all(jobs.map((id) => store.attempts(id))),
    on: await Promise.all(['i-0', 'i-1'].map((id) => store.attemptsOn(instanceId(id)))),
    attempt: await store.attempt(attemptId('a1')),
    instances: await Promise.all(
      [null, true, false].map((live) => allPages((after) => store.instances(live, 2, after))),
    ),
    plans: await allPages((after) => store.plans(2, after)),
    explanations: await Promise.all(jobs.map((id) => store.explanation(id))),
    ledger: [
      await store.ledger('all'),
      await store.ledger({ job: jobId('j1') }),
      await store.ledger({ instance: instanceId('i-1') }),
    ],
    events: [await store.events(0, 100), await store.events(3, 2)],
    memory: [await store.memory(''), await store.memory('a'), await store.memory('b/')],
  };
}

/** Sums in another order differ in their last digits. */
export async function expectSameCosts(a: Store, b: Store): Promise<void> {
  for (const by of COST_KEYS) {
    const expected = (await b.costs(by)).map((row) =>
      Object.fromEntries(Object.entries(row).map(([k, v]) => [k, typeof v === 'number' ? expect.closeTo(v, 9) : v])),
    );
    expect(await a.costs(by)).toEqual(expected);
  }
}
