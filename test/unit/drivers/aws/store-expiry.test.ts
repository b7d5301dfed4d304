import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { attemptId, instanceId, jobId } from '../../../../lib/kernel/ids.ts';
import { epochMs, usd } from '../../../../lib/kernel/units.ts';
import { DynamoStore } from '../../../../lib/drivers/aws/store/dynamo-store.ts';
import { STORE_PREFIXES } from '../../../../lib/drivers/aws/store/keys.ts';
import type { Change } from '../../../../lib/ports/store.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { attempt, explanation, instance, job, ledgerRow, plan, spec, task } from '../../../contract/store-samples.ts';

const DAY_MS = 86_400_000;
const DAYS = 10;
const START_MS = Date.UTC(2026, 0, 1);

/** What may be there for good: as many as days, templates, or one. */
const FOR_GOOD = new Set(['HEAD', 'COSTS', 'MEMORY', 'EXPLAINED', 'EVENTS']);
const isKept = (pk: string): boolean => FOR_GOOD.has(pk) || pk.startsWith('P#');

describe('expiry in the table', () => {
  let table: DynamoDouble;
  let objects: ObjectsDouble;
  let store: DynamoStore;
  let token: number;
  let nowMs: number;
  let writeUnits: number;

  beforeEach(async () => {
    [table, objects, nowMs, writeUnits] = [new DynamoDouble(), new ObjectsDouble(), START_MS, 0];
    store = opened(DAYS);
    token = await store.takeLease('engine');
  });

  const opened = (historyDays: number | null): DynamoStore =>
    new DynamoStore({
      dynamodb: table.client(({ operation, units }) => {
        if (/^(Update|Delete|Transact)/.test(operation)) writeUnits += units;
      }),
      s3: objects.client(),
      table: 'table',
      bucket: 'bucket',
      nowMs: () => nowMs,
      retention: { plans: 500, events: 100_000, historyDays },
    });

  /** From its submission to its bill, as the engine commits it; then nothing is left to do, and all is compacted. */
  async function run(id: string, of: Parameters<typeof spec>[0] = {}): Promise<void> {
    const at = instanceId(`i-${id}`);
    const first = attemptId(`${id}.main.0.1`);
    const finished = { state: 'succeeded', finishedMs: epochMs(nowMs), submittedMs: epochMs(START_MS) } as const;
    const commits: Change[][] = [
      [{ put: 'plan', value: plan(`p-${id}`, [explanation(id, 'starts')]) }],
      [
        { put: 'instance', value: instance(at, { state: 'ready' }) },
        { put: 'task', value: task(id, 0) },
        { put: 'attempt', value: attempt(first, { job: jobId(id), instance: at }) },
      ],
      [
        { put: 'job', value: job(id, { ...finished, spec: spec(of) }) },
        { put: 'task', value: task(id, 0, { state: 'succeeded' }) },
        {
          put: 'attempt',
          value: attempt(first, { job: jobId(id), instance: at, state: 'ended', outcome: 'succeeded' }),
        },
        { put: 'plan', value: plan(`p-after-${id}`) },
      ],
      [
        { put: 'instance', value: instance(at, { state: 'ended', costUsd: usd(0.05) }) },
        { put: 'ledger', instance: at, value: [ledgerRow({ instance: at, job: jobId(id), attempt: first })] },
      ],
    ];
    await store.submit([{ job: job(id, { spec: spec(of) }), idempotency: { key: `key-${id}`, digest: 'd' } }]);
    await store.loadActive();
    for (const changes of commits) await store.commit(token, changes);
    await store.loadActive();
  }

  /** As the service does some time after. */
  const left = (): readonly string[] =>
    table.items
      .filter((item) => item['ttl'] === undefined || Number(item['ttl'].N) * 1000 > nowMs)
      .map((item) => `${item['pk']?.S} ${item['sk']?.S}`);

  it.each([
    ['small', {}],
    ['of 70 tasks', { stages: spec().stages.map((s) => ({ ...s, tasks: 70 })) }],
    ['too large for an item', { labels: { noise: randomBytes(30_000).toString('base64') } }],
  ] as const)('leaves nothing of a job that is %s but sums and what was learned', async (_, of) => {
    await run('j1', of);
    expect(left().some((key) => key.startsWith('J#j1'))).toBe(true);
    nowMs += DAYS * DAY_MS;
    expect(
      left().filter((key) => key.startsWith('J#') || key.startsWith('K#') || / LEDGER| INSTANCE/.test(key)),
    ).toEqual([]);
    // Small things beside them go a year later.
    nowMs += 366 * DAY_MS;
    expect(left().filter((key) => !isKept(key.split(' ')[0] ?? ''))).toEqual([]);
  });

  it('puts objects only where the functions may, and nothing of a large job but its specification stays', async () => {
    await run('j1', { labels: { noise: randomBytes(30_000).toString('base64') } });
    expect(objects.names.filter((name) => STORE_PREFIXES.every((prefix) => !name.startsWith(prefix)))).toEqual([]);
    expect(objects.names.filter((name) => !name.startsWith('commits/'))).toEqual(['specs/j1']);
  });

  it('writes no more units for it than a hundredth', async () => {
    for (let n = 0; n < 25; n++) await run(`j${n}`);
    const ageing = writeUnits;
    [table, objects, writeUnits] = [new DynamoDouble(), new ObjectsDouble(), 0];
    store = opened(null);
    token = await store.takeLease('engine');
    for (let n = 0; n < 25; n++) await run(`j${n}`);
    expect(writeUnits).toBeGreaterThan(250);
    expect(ageing / writeUnits).toBeLessThan(1.01);
  });

  it('lists who lives longer than the list, and, when that has ended, lists it for its days', async () => {
    await store.submit([{ job: job('service'), idempotency: null }]);
    await store.commit(token, [
      { put: 'job', value: job('service', { state: 'running' }) },
      { put: 'instance', value: instance('i-1', { state: 'ready' }) },
      { put: 'task', value: task('service', 0) },
      { put: 'attempt', value: attempt('service.main.0.1', { job: jobId('service') }) },
    ]);
    for (let n = 0; n < 40; n++) {
      await store.submit([{ job: job(`j${n}`), idempotency: null }]);
      await store.commit(token, [{ put: 'job', value: job(`j${n}`, { state: 'succeeded', finishedMs: epochMs(9) }) }]);
    }
    nowMs += 25 * DAY_MS;
    await run('later');
    nowMs += 100 * DAY_MS;
    await run('newest');
    const listed = async (limit: number): Promise<string[]> => {
      const ids: string[] = [];
      for (let next: string | null = null, first = true; first || next !== null; first = false) {
        const page: Awaited<ReturnType<DynamoStore['jobs']>> = await store.jobs({}, limit, next);
        ids.push(...page.items.map((j) => j.id));
        next = page.next;
      }
      return ids;
    };
    expect(await listed(10)).toEqual(['newest', 'service']);
    expect(await listed(1)).toEqual(['newest', 'service']);
    expect((await store.jobs({ owner: 'nobody' }, 10, null)).items).toEqual([]);
  });

  it('lists a job that took 20 days as long as any other', async () => {
    await store.submit([{ job: job('slow', { submittedMs: epochMs(START_MS) }), idempotency: null }]);
    nowMs += 20 * DAY_MS;
    await store.commit(token, [
      {
        put: 'job',
        value: job('slow', { state: 'succeeded', submittedMs: epochMs(START_MS), finishedMs: epochMs(nowMs) }),
      },
    ]);
    nowMs += (DAYS - 1) * DAY_MS;
    expect((await store.jobs({}, 10, null)).items.map((j) => j.id)).toEqual(['slow']);
    nowMs += 12 * DAY_MS;
    expect((await store.jobs({}, 10, null)).items).toEqual([]);
  });
});
