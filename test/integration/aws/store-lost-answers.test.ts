import { describe, expect, it } from '@jest/globals';
import { DynamoStore } from '../../../lib/drivers/aws/store/dynamo-store.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import type { Change } from '../../../lib/ports/store.ts';
import { begin, changes, largeChanges, pointsUpTo, whole } from '../../contract/store-crashes.ts';
import { effect, instance, job, task } from '../../contract/store-samples.ts';
import { brokenConnection, Faults, type AtCall } from '../../support/aws-faults.ts';
import { ObjectsDouble } from '../../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const TASKS = 30;

/** One table and bucket, and processes on it whose writes go through a hand. */
class Place {
  readonly #table = new DynamoDouble();
  readonly #objects = new ObjectsDouble();

  store(atWrite: AtCall = ({ perform }) => perform()): DynamoStore {
    const faults = new Faults(atWrite);
    const [dynamodb, s3] = [faults.around(this.#table.client()), faults.around(this.#objects.client())];
    return new DynamoStore({ dynamodb, s3, table: 'table', bucket: 'bucket' });
  }

  async process(): Promise<{ readonly store: DynamoStore }> {
    return { store: this.store() };
  }
}

/** How often a store writes while it does this. */
async function writesOf(place: Place, deed: (store: DynamoStore) => Promise<unknown>): Promise<number> {
  let writes = 0;
  await deed(
    place.store(({ perform }) => {
      writes++;
      return perform();
    }),
  );
  return writes;
}

/** The answer of the `at`th write is lost, and it was carried out or not. */
const losing =
  (at: number, isPerformed: boolean): AtCall =>
  async ({ ordinal, perform }) => {
    if (ordinal !== at) return perform();
    if (isPerformed) await perform();
    throw brokenConnection();
  };

/** Said to have failed: then it has not been and never will be carried out, and can be repeated. */
function expectRepeatable(error: unknown): void {
  expect(error instanceof EbbError && error.retryable).toBe(true);
}

describe('DynamoDB store, lost answers', () => {
  it.each([
    ['some items', changes(4)],
    ['so many items that it is compacted at once', largeChanges],
  ])(
    'a commit of %s is applied once when an answer is lost, whether or not the request was carried out',
    async (_, of) => {
      const calm = new Place();
      const given = await begin(calm);
      const writes = await writesOf(calm, (store) => store.commit(given, of));
      const after = await whole(calm.store());
      for (const at of pointsUpTo(writes).slice(1)) {
        for (const isPerformed of [false, true]) {
          const place = new Place();
          const token = await begin(place);
          const store = place.store(losing(at, isPerformed));
          await store.commit(token, of).catch(async (error: unknown) => {
            expectRepeatable(error);
            await store.commit(token, of);
          });
          expect([at, await whole(place.store())]).toEqual([at, after]);
        }
      }
    },
    60_000,
  );

  it('what comes late from a commit that another engine has finished changes nothing', async () => {
    const place = new Place();
    const token = await begin(place);
    let letGo = (): void => undefined;
    const gate = new Promise<void>((resolve) => (letGo = resolve));
    let decided = (): void => undefined;
    const isDecided = new Promise<void>((resolve) => (decided = resolve));
    let writes = 0;
    const store = place.store(async ({ name, perform }) => {
      // The first decides; all others compact what was decided.
      if (name === 'UpdateItemCommand' && ++writes > 1) {
        decided();
        await gate;
      }
      return perform();
    });
    const slow = store.commit(token, largeChanges);
    await isDecided;
    const next = place.store();
    const newer = await next.takeLease('next');
    await next.commit(newer, [
      { put: 'instance', value: instance('i-3', { state: 'ended' }) },
      { put: 'effect', value: effect('e-3', 'p2', { status: 'done' }) },
      ...range(TASKS).map((i): Change => ({ put: 'task', value: task('j1', i, { state: 'succeeded' }) })),
    ]);
    // More commits than are left in the log: the items have them all before those of the slow one come.
    for (const n of range(110)) await next.commit(newer, [{ put: 'memory', key: 'later', value: String(n) }]);
    const expected = await whole(next);
    letGo();
    await slow;
    expect(await whole(place.store())).toEqual(expected);
    expect((await next.loadActive()).instances).toHaveLength(TASKS - 1);
    expect((await next.tasks(jobId('j1'))).map((t) => t.state)).toEqual(range(TASKS).map(() => 'succeeded'));
  }, 60_000);

  it('a submission whose answers are lost is stored once, whether or not its requests were carried out', async () => {
    const once = { job: job('a'), idempotency: { key: 'k', digest: 'd' } };
    const writes = await writesOf(new Place(), (store) => store.submit([once]));
    for (const at of pointsUpTo(writes).slice(1)) {
      for (const isPerformed of [false, true]) {
        const place = new Place();
        const store = place.store(losing(at, isPerformed));
        const [outcome] = await store.submit([once]).catch(async (error: unknown) => {
          expectRepeatable(error);
          return store.submit([once]);
        });
        expect(['created', 'repeated']).toContain(outcome?.status);
        const other = place.store();
        expect((await other.jobs({}, 10, null)).items.map((j) => j.id)).toEqual(['a']);
        expect((await other.jobs({ name: 'nightly' }, 10, null)).items.map((j) => j.id)).toEqual(['a']);
        expect((await other.loadActive()).jobs.map((j) => j.id)).toEqual(['a']);
        expect((await other.events(0, 10)).map((e) => e.job)).toEqual(['a']);
      }
    }
  });
});
