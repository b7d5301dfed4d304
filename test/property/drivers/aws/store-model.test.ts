import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isLive, type Instance } from '../../../../lib/domain/instance.ts';
import type { InstanceId } from '../../../../lib/kernel/ids.ts';
import type { ActiveState, EventRecord } from '../../../../lib/ports/store.ts';
import { MemoryStore } from '../../../../lib/drivers/sim/memory-store.ts';
import { describeOnLocalStack } from '../../../support/localstack.ts';
import { everything, expectSameCosts, operation, perform } from '../local/store/operations.ts';

const SEED = 20261121;
/** Numbers of events are also used by jobs that a commit makes, so only the memory store forgets exactly. */
const RETENTION = { plans: 3, events: 10_000, historyDays: null };

interface Everything {
  readonly active: ActiveState;
  readonly instances: readonly (readonly Instance[])[];
  readonly events: readonly (readonly EventRecord[])[];
}

/** Numbers of events ascend and need not be dense; positions of instances that have ended are not given any more. */
function comparable(all: unknown): unknown {
  const { active, instances, events, ...rest } = all as Everything;
  const ended = new Set<InstanceId>(instances[0]?.filter((i) => !isLive(i)).map((i) => i.id));
  return {
    ...rest,
    instances,
    active: { ...active, cursors: new Map([...active.cursors].filter(([id]) => !ended.has(id))) },
    events: events[0]?.map(({ sequence: _, ...event }) => event),
  };
}

describeOnLocalStack('DynamoDB store, model-based', (on) => {
  it('answers any sequence of operations as the memory store does, in one process and in two by turns', async () => {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (operations) => {
        const place = { ...(await on.place()), retention: RETENTION };
        const stores = [on.store(place), on.store(place)] as const;
        const memory = new MemoryStore(RETENTION);
        let token = await memory.takeLease('first');
        expect(await stores[0].takeLease('first')).toBe(token);
        for (const [i, o] of operations.entries()) {
          const store = stores[Math.floor(i / 3) % 2 === 0 ? 0 : 1];
          const answer = await perform(store, o, token);
          expect(answer).toEqual(await perform(memory, o, token));
          if (o.does === 'lease') token = answer as number;
          const kind = typeof answer === 'string' ? answer : o.does;
          seen.set(kind, (seen.get(kind) ?? 0) + 1);
        }
        const expected = comparable(await everything(memory));
        expect(comparable(await everything(stores[0]))).toEqual(expected);
        expect(comparable(await everything(stores[1]))).toEqual(expected);
        await expectSameCosts(stores[0], memory);
      }),
      { seed: SEED, numRuns: 8 },
    );
    // Not vacuous: every way an operation can end was taken.
    for (const kind of ['submit', 'cancel', 'lease', 'committed', 'fenced', 'internal', 'conflict']) {
      expect([kind, (seen.get(kind) ?? 0) > 0]).toEqual([kind, true]);
    }
  }, 180_000);
});
