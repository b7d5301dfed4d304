import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { openSqliteStore } from '../../../../../lib/drivers/local/store/sqlite-store.ts';
import { MemoryStore } from '../../../../../lib/drivers/sim/memory-store.ts';
import { everything, expectSameCosts, operation, perform } from './operations.ts';

const SEED = 20261121;
const RETENTION = { plans: 3, events: 6, historyDays: null };
const folder = mkdtempSync(join(tmpdir(), 'ebb-store-model-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('stores, model-based', () => {
  it('SQLite and memory answer any sequence of operations alike', async () => {
    let runs = 0;
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (operations) => {
        const sqlite = openSqliteStore({ path: join(folder, `${++runs}.db`), retention: RETENTION });
        const memory = new MemoryStore(RETENTION);
        try {
          let token = await memory.takeLease('first');
          expect(await sqlite.takeLease('first')).toBe(token);
          for (const o of operations) {
            const answer = await perform(sqlite, o, token);
            expect(answer).toEqual(await perform(memory, o, token));
            if (o.does === 'lease') token = answer as number;
            const kind = typeof answer === 'string' ? answer : o.does;
            seen.set(kind, (seen.get(kind) ?? 0) + 1);
          }
          expect(await everything(sqlite)).toEqual(await everything(memory));
          await expectSameCosts(sqlite, memory);
        } finally {
          await sqlite.close();
          rmSync(join(folder, `${runs}.db`), { force: true });
        }
      }),
      { seed: SEED, numRuns: 60 },
    );
    // Not vacuous: every way an operation can end was taken.
    for (const kind of ['submit', 'cancel', 'lease', 'committed', 'fenced', 'internal', 'conflict']) {
      expect([kind, (seen.get(kind) ?? 0) > 5]).toEqual([kind, true]);
    }
  }, 120_000);
});
