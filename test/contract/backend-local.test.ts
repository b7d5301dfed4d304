import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { raw } from '../../lib/kernel/units.ts';
import { openEngine } from '../../lib/drivers/local/engine/local-engine.ts';
import { writeMarket } from '../../lib/drivers/local/market/file.ts';
import { smallMarket } from '../support/generated-market.ts';
import { until } from '../support/until.ts';
import { backendContract, type BackendDriver, type BackendProcess } from './backend.ts';

/** Longer than any cycle may last. */
const LONG_MS = 10 * 60_000;

/** Engines one after another in one folder; their threads begin when a cycle is to come. */
async function make(): Promise<BackendDriver> {
  const dir = mkdtempSync(join(tmpdir(), 'ebb-backend-'));
  const { trace, startMs } = smallMarket(3);
  const market = join(dir, 'market.ebbmarket');
  writeMarket(market, trace, { name: 'small', source: 'generated', notes: [] });
  const given = { market, fromMs: raw(startMs), speed: 1, seed: null, preset: 'greedy' };
  return {
    process: async (): Promise<BackendProcess> => {
      const engine = await openEngine({ ...given, config: {}, dir: join(dir, 'engine'), dumpModel: null });
      const { backend } = engine;
      return {
        backend,
        before: async () => undefined,
        after: async () => undefined,
        cycleComes: async () => {
          await engine.start();
          await until(async () => (await backend.health()).lastCycleMs !== null);
          const { items } = await backend.store.plans(1, null);
          return items.length > 0;
        },
        hang: async () => {
          backend.wake();
          const now = performance.now.bind(performance);
          jest.spyOn(performance, 'now').mockImplementation(() => now() + LONG_MS);
        },
        close: async () => {
          jest.restoreAllMocks();
          await engine.stop('at-once');
        },
      };
    },
    close: async () => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }),
  };
}

backendContract('local mode', { make, reaches: 'this machine' });
