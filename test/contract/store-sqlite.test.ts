import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { openSqliteStore } from '../../lib/drivers/local/store/sqlite-store.ts';
import { SqliteCrashes } from '../support/sqlite-crashes.ts';
import { storeContract } from './store.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-store-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let opened = 0;
storeContract(
  'sqlite',
  (retention, nowMs) => Promise.resolve(openSqliteStore({ path: join(folder, `${++opened}.db`), retention, nowMs })),
  async () => new SqliteCrashes(),
);
