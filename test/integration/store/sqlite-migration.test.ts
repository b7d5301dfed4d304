import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { usd } from '../../../lib/kernel/units.ts';
import { MIGRATIONS } from '../../../lib/drivers/local/store/sqlite-schema.ts';
import { openSqliteStore, type SqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import { instance, job, ledgerRow, submission } from '../../contract/store-samples.ts';

/** The version that gave numbers of the newest rows again once they had aged out. */
const REUSING = 2;
/** Columns that came later: the statements of this version, which fill the old database, name them. */
const LATER_COLUMNS = ['jobs ADD COLUMN cancelled_by', 'jobs ADD COLUMN released_hold_ms', 'ledger ADD COLUMN caller'];

describe('SQLite store, databases of earlier versions', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'ebb-migration-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const open = (migrations = MIGRATIONS): SqliteStore =>
    openSqliteStore({ path: path.join(folder, 'ebb.db'), migrations });

  /** Makes the database one of the old version. */
  function takeBack(): void {
    const db = new DatabaseSync(path.join(folder, 'ebb.db'));
    for (const column of LATER_COLUMNS) db.exec(`ALTER TABLE ${column.replace('ADD', 'DROP')}`);
    db.exec(`UPDATE meta SET value = '${REUSING}' WHERE key = 'schema-version'`);
    db.close();
  }

  async function whole(store: SqliteStore): Promise<unknown> {
    return {
      jobs: await store.jobs({}, 50, null),
      first: await store.jobs({}, 1, null),
      owned: await store.jobs({ owner: 'ana', states: ['succeeded'] }, 50, null),
      key: [...(await store.submitted(['key-1']))],
      instances: await store.instances(null, 1, null),
      active: await store.loadActive(),
      ledger: await store.ledger('all'),
    };
  }

  it('reads the same jobs, instances and cursors after the upgrade, and goes on numbering', async () => {
    const old = open([...MIGRATIONS.slice(0, REUSING), ...LATER_COLUMNS.map((c) => `ALTER TABLE ${c} TEXT`)]);
    const token = await old.takeLease('engine-1');
    await old.submit([submission('j1', 'key-1'), submission('j2'), submission('j3')]);
    await old.commit(token, [
      { put: 'job', value: job('j2', { state: 'succeeded', submittedBy: { id: 'uid:7', requestId: 'r' } }) },
      { put: 'instance', value: instance('i-1', { state: 'ready' }) },
      { put: 'instance', value: instance('i-2', { state: 'ended', costUsd: usd(0.1) }) },
      {
        put: 'ledger',
        instance: instanceId('i-2'),
        value: [
          ledgerRow({ instance: instanceId('i-2'), caller: null }),
          ledgerRow({ instance: instanceId('i-2'), job: jobId('j2'), caller: 'uid:7' }),
        ],
      },
    ]);
    const before = await whole(old);
    await old.close();
    takeBack();

    const now = open();
    expect(await whole(now)).toEqual(before);
    const cursor = (await now.jobs({}, 1, null)).next;
    await now.submit([submission('j4')]);
    expect((await now.jobs({}, 50, null)).items.map((j) => j.id)).toEqual(['j4', 'j3', 'j2', 'j1']);
    expect((await now.jobs({}, 50, cursor)).items.map((j) => j.id)).toEqual(['j2', 'j1']);
    expect((await now.job(jobId('j4')))?.id).toBe('j4');
    await now.close();
  });
});
