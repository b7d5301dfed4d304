import { gunzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { archive } from '../../../../lib/drivers/aws/archive/archive.ts';
import { ARCHIVED, streamRecord, type StreamRecord } from '../../../../lib/drivers/aws/archive/archive-rows.ts';
import { Blobs } from '../../../../lib/drivers/aws/store/blobs.ts';
import { ARCHIVE_PREFIX } from '../../../../lib/drivers/aws/store/keys.ts';
import type { Item } from '../../../../lib/drivers/aws/store/codec.ts';
import { DynamoStore } from '../../../../lib/drivers/aws/store/dynamo-store.ts';
import type { LedgerRow } from '../../../../lib/domain/ledger.ts';
import { EbbError } from '../../../../lib/kernel/errors.ts';
import { planId } from '../../../../lib/kernel/ids.ts';
import { epochMs, usd } from '../../../../lib/kernel/units.ts';
import { unsolved } from '../../../../lib/domain/plan.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { ObjectsDouble } from '../../../doubles/dynamodb/objects.ts';
import { attempt, instance, job, spec, stage } from '../../../support/builders.ts';

const DAY = '2026-01-05';
const AT_S = Date.UTC(2026, 0, 5, 12) / 1000;

/** Bytes as the Lambda service gives them. */
const asEvent = (item: Item | undefined): object | undefined =>
  item &&
  Object.fromEntries(
    Object.entries(item).map(([name, value]) => [
      name,
      value.B === undefined ? value : { B: Buffer.from(value.B).toString('base64') },
    ]),
  );

const keyOf = (item: Item): string => `${item['pk']?.S} ${item['sk']?.S}`;

/** The stream that a table would have: what differs between two looks at it. */
class Stream {
  readonly #table: DynamoDouble;
  #before: DynamoDouble;
  #sequence = 100_000_000_000n;

  constructor(table: DynamoDouble) {
    this.#table = table;
    this.#before = table.copy();
  }

  take(): StreamRecord[] {
    const before = new Map(this.#before.items.map((i) => [keyOf(i), i]));
    const now = this.#table.items;
    this.#before = this.#table.copy();
    return now
      .filter((item) => before.get(keyOf(item)) !== item && isWanted(item))
      .map((item) => {
        const former = before.get(keyOf(item));
        this.#sequence += 7n;
        const raw = {
          eventID: `e${this.#sequence.toString(16)}`,
          eventName: former === undefined ? 'INSERT' : 'MODIFY',
          eventSource: 'aws:dynamodb',
          dynamodb: {
            ApproximateCreationDateTime: AT_S,
            SequenceNumber: String(this.#sequence),
            NewImage: asEvent(item),
            OldImage: asEvent(former),
          },
        };
        return streamRecord.parse(JSON.parse(JSON.stringify(raw)));
      });
  }
}

/** Lambda's filters, as far as these use them. */
function isWanted(item: Item): boolean {
  const matches = (text: string, rule: unknown): boolean =>
    typeof rule === 'string' ? text === rule : text.startsWith((rule as { prefix: string }).prefix);
  return ARCHIVED.some((filter) => {
    const { pk, sk } = (filter as { dynamodb: { Keys: Record<'pk' | 'sk', { S: unknown[] }> } }).dynamodb.Keys;
    return pk.S.some((r) => matches(item['pk']?.S ?? '', r)) && sk.S.some((r) => matches(item['sk']?.S ?? '', r));
  });
}

/** The archive as one who reads it sees it. */
class Shelf {
  readonly objects = new Map<string, Uint8Array>();
  #failing = 0;
  readonly #read: Blobs;

  constructor(read: Blobs) {
    this.#read = read;
  }

  get blobs(): Pick<Blobs, 'put' | 'valueOf'> {
    return {
      valueOf: (item) => this.#read.valueOf(item),
      put: async (name, content) => {
        if (this.#failing > 0 && --this.#failing === 0) throw new EbbError('aws.unavailable', { what: 'no bucket' });
        this.objects.set(name, content);
      },
    };
  }

  /** The n-th put from now fails. */
  failAt(n: number): void {
    this.#failing = n;
  }

  rows(kind: string): Record<string, unknown>[] {
    return [...this.objects]
      .filter(([name]) => name.startsWith(`${ARCHIVE_PREFIX}${kind}/dt=${DAY}/`))
      .flatMap(([, content]) => gunzipSync(content).toString().trimEnd().split('\n'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  ids(kind: string): string[] {
    return this.rows(kind)
      .map((r) => String(r['rowId']))
      .sort();
  }
}

const ledgerRow = (usdOf: number): LedgerRow => ({
  instance: instance().id,
  pool: instance().pool,
  kind: 'work',
  attempt: attempt().id,
  job: job().id,
  owner: 'ada',
  template: 'ada/test',
  caller: null,
  fromMs: epochMs(0),
  toMs: epochMs(3_600_000),
  usd: usdOf,
  onDemandUsd: 0.17,
});

describe('the archive', () => {
  let table: DynamoDouble;
  let store: DynamoStore;
  let stream: Stream;
  let shelf: Shelf;
  let token: number;

  beforeEach(async () => {
    table = new DynamoDouble();
    const [dynamodb, s3] = [table.client(), new ObjectsDouble().client()];
    store = new DynamoStore({ dynamodb, s3, table: 'table', bucket: 'bucket' });
    stream = new Stream(table);
    shelf = new Shelf(new Blobs({ client: s3, bucket: 'bucket' }));
    token = await store.takeLease('test');
  });

  /**
   * A job from its submission to its ledger. Returns the changes of each commit, compacted alone, or of all at once.
   */
  async function life(of: ReturnType<typeof job>, isEachAlone = true): Promise<StreamRecord[][]> {
    const batches: StreamRecord[][] = [];
    const commit = async (...changes: Parameters<DynamoStore['commit']>[1]): Promise<void> => {
      await store.commit(token, changes);
      // More commits than are left in the log.
      for (let n = 0; isEachAlone && n < 110; n++)
        await store.commit(token, [{ put: 'memory', key: 'n', value: `${n}` }]);
      batches.push(stream.take());
    };
    await store.submit([{ job: of, idempotency: null }]);
    batches.push(stream.take());
    const running = { ...of, state: 'running' as const };
    const tried = { ...attempt(), job: of.id };
    const plan = { id: planId('p-1'), token, atMs: epochMs(5), preset: 'greedy', effects: [], explanations: [] };
    await commit({ put: 'plan', value: { ...plan, solve: unsolved(0) } });
    await commit(
      { put: 'job', value: running },
      { put: 'instance', value: instance() },
      { put: 'attempt', value: tried },
    );
    const ended = { ...tried, state: 'ended' as const, outcome: 'succeeded' as const, endedMs: epochMs(10) };
    await commit({ put: 'attempt', value: ended }, { put: 'job', value: { ...running, state: 'succeeded' as const } });
    // Touched once more after it is over: nothing new.
    await commit({ put: 'job', value: { ...running, state: 'succeeded' as const, finishedMs: epochMs(10) } });
    const gone = { ...instance(), state: 'ended' as const, endedMs: epochMs(20), endCause: 'released' as const };
    await commit({ put: 'instance', value: gone });
    await commit(
      { put: 'instance', value: { ...gone, costUsd: usd(0.1) } },
      { put: 'ledger', instance: gone.id, value: [ledgerRow(0.06), { ...ledgerRow(0.04), kind: 'idle', job: null }] },
    );
    // Nothing is left to do: what is in the log is compacted.
    await store.loadActive();
    batches.push(stream.take());
    return batches;
  }

  const SMALL = job();
  const LARGE = job({ spec: spec({ stages: [stage({ tasks: 500, command: ['echo', 'x'.repeat(40_000)] })] }) });

  it.each([
    ['a small job, which is one item', SMALL, true],
    ['a large one, whose specification is an object', LARGE, true],
    ['a small one whose commits are compacted together', SMALL, false],
    ['a large one whose commits are compacted together', LARGE, false],
  ])('has each thing once when it is over: %s', async (_, of, isEachAlone) => {
    for (const batch of await life(of, isEachAlone)) expect((await archive(batch, shelf.blobs)).unreadable).toBeNull();
    for (const kind of ['jobs', 'specs', 'attempts', 'instances', 'plans'])
      expect([kind, shelf.rows(kind).length]).toEqual([kind, 1]);
    expect(shelf.rows('jobs')[0]).toMatchObject({ job: of.id, owner: of.spec.owner, state: 'succeeded' });
    expect(shelf.rows('specs')[0]).toMatchObject({
      job: of.id,
      name: of.spec.name,
      stages: [{ tasks: of.spec.stages[0]?.tasks }],
    });
    expect(shelf.rows('specs')[0]).not.toHaveProperty('stages.0.env');
    expect(shelf.rows('specs')[0]).toHaveProperty('stages.0.envNames');
    expect(shelf.rows('attempts')[0]).toMatchObject({ id: attempt().id, outcome: 'succeeded' });
    expect(shelf.rows('instances')[0]).toMatchObject({ id: instance().id, costUsd: 0.1 });
    expect(shelf.rows('plans')[0]).toMatchObject({ id: 'p-1', preset: 'greedy' });
    expect(shelf.rows('ledger').map((r) => r['usd'])).toEqual([0.06, 0.04]);
  });

  it('is the same however batches are cut, fail half-way and come again', async () => {
    const all = (await life(SMALL)).flat();
    await archive(all, shelf.blobs);
    const truth = ['jobs', 'specs', 'attempts', 'instances', 'plans', 'ledger'].map((kind) => shelf.ids(kind));
    expect(truth.map((ids) => ids.length)).toEqual([1, 1, 1, 1, 1, 2]);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: all.length }),
        fc.array(fc.nat(6), { maxLength: 8 }),
        async (cut, faults) => {
          const other = new Shelf(new Blobs({ client: new ObjectsDouble().client(), bucket: 'bucket' }));
          const queue = [all.slice(0, cut), all.slice(cut)];
          const left = [...faults];
          for (let batch = queue.shift(); batch !== undefined; batch = queue.shift()) {
            const failAt = left.shift() ?? 0;
            other.failAt(failAt);
            try {
              await archive(batch, other.blobs);
            } catch {
              // As Lambda bisects a batch that failed.
              const middle = Math.ceil(batch.length / 2);
              queue.unshift(...(batch.length > 1 ? [batch.slice(0, middle), batch.slice(middle)] : [batch]));
            }
            other.failAt(0);
          }
          expect(['jobs', 'specs', 'attempts', 'instances', 'plans', 'ledger'].map((kind) => other.ids(kind))).toEqual(
            truth,
          );
        },
      ),
      { seed: 7, numRuns: 60 },
    );
  });

  it('puts a change aside that it cannot read, with those before it archived', async () => {
    const all = (await life(SMALL)).flat();
    const at = all.findIndex((r) => r.dynamodb.NewImage?.['sk']?.S === 'INSTANCE');
    const newer = {
      ...all[at]!,
      dynamodb: { ...all[at]!.dynamodb, NewImage: { ...all[at]!.dynamodb.NewImage, v: { N: '99' } } },
    };
    const changed = all.map((r, n) => (n === at ? newer : r));
    const { unreadable } = await archive(changed, shelf.blobs);
    expect(unreadable).toMatchObject({ sequence: newer.dynamodb.SequenceNumber, error: { code: 'store.newer' } });
    expect(shelf.rows('specs')).toHaveLength(1);
    expect(shelf.rows('ledger')).toHaveLength(0);
  });

  it('has of a decision whose object is gone that it was', async () => {
    const [record] = (await life(SMALL)).flat().filter((r) => r.dynamodb.NewImage?.['sk']?.S === 'PLAN');
    const { b: _, ...item } = record?.dynamodb.NewImage ?? {};
    const elsewhere = { ...record!, dynamodb: { ...record!.dynamodb, NewImage: { ...item, s3: { S: 'plans/gone' } } } };
    await archive([elsewhere], shelf.blobs);
    expect(shelf.rows('plans')).toMatchObject([{ id: 'p-1', rowId: 'p-1' }]);
  });

  it('takes no notice of prices, leases and what was learned', async () => {
    await life(SMALL);
    const partitions = (wanted: boolean) =>
      new Set(table.items.filter((i) => isWanted(i) === wanted).map((i) => (i['pk']?.S ?? '').split('#')[0]));
    expect(partitions(true)).toEqual(new Set(['J', 'I', 'P']));
    for (const pk of ['HEAD', 'LOG', 'EVENTS']) expect(partitions(false)).toContain(pk);
  });
});
