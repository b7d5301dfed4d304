import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Database } from '../../../lib/drivers/local/store/database.ts';
import { openSqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { codeOf } from '../../support/code-of.ts';
import { job, plan, submission, task } from '../../contract/store-samples.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-store-faults-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let path = '';
let opened = 0;
beforeEach(() => {
  path = join(folder, `${++opened}.db`);
});

function refusal(work: () => { close(): unknown }): EbbError {
  try {
    void work().close();
  } catch (error) {
    if (error instanceof EbbError) return error;
    throw error;
  }
  throw new Error('it was opened');
}

async function filled(jobs: number): Promise<void> {
  const store = openSqliteStore({ path });
  for (let i = 0; i < jobs; i += 100) {
    await store.submit(Array.from({ length: Math.min(100, jobs - i) }, (_, k) => submission(`j${i + k}`)));
  }
  await store.close();
}

describe('sqlite store, faults', () => {
  it('keeps everything over closing and opening, and counts tokens on', async () => {
    const before = openSqliteStore({ path });
    const token = await before.takeLease('a');
    await before.submit([submission('j1', 'key')]);
    await before.commit(token, [
      { put: 'task', value: task('j1', 0) },
      { put: 'plan', value: plan('p1') },
    ]);
    await before.close();
    const after = openSqliteStore({ path });
    expect(await after.job(jobId('j1'))).toEqual(job('j1'));
    expect(await after.tasks(jobId('j1'))).toEqual([task('j1', 0)]);
    expect((await after.plans(1, null)).items).toEqual([plan('p1')]);
    expect((await after.submit([submission('j2', 'key')]))[0]?.status).toBe('repeated');
    expect(await after.takeLease('b')).toBe(token + 1);
    await after.close();
  });

  it('writes what is due before it closes, and answers internal afterwards', async () => {
    const store = openSqliteStore({ path });
    const due = store.submit([submission('j1')]);
    await store.close();
    expect((await due)[0]?.status).toBe('created');
    expect(await codeOf(store.job(jobId('j1')))).toBe('internal');
    expect(await codeOf(store.submit([submission('j2')]))).toBe('internal');
    const again = openSqliteStore({ path });
    expect(await again.job(jobId('j1'))).not.toBeNull();
    await again.close();
  });

  it('syncs each commit to the disk', () => {
    const db = new Database({ path });
    expect(db.one('PRAGMA journal_mode')).toEqual({ journal_mode: 'wal' });
    // 2 = FULL
    expect(db.one('PRAGMA synchronous')).toEqual({ synchronous: 2 });
    db.close();
  });

  describe('opening', () => {
    it('refuses a database of a newer version and leaves it as it is', async () => {
      await filled(1);
      const raw = new DatabaseSync(path);
      raw.exec(`UPDATE meta SET value = '99' WHERE key = 'schema-version'`);
      raw.close();
      const error = refusal(() => openSqliteStore({ path }));
      expect(error.code).toBe('store.newer');
      expect(error.facts.got).toContain('version 99');
      const again = new DatabaseSync(path);
      expect(again.prepare(`SELECT value FROM meta WHERE key = 'schema-version'`).get()).toEqual({ value: '99' });
      again.close();
    });

    it.each([
      ['text', 'this is not a database, but it is long enough to be one'.repeat(20)],
      ['binary', Buffer.alloc(8192, 0xa5)],
    ])('refuses a file of %s', (_, content) => {
      writeFileSync(path, content);
      expect(refusal(() => openSqliteStore({ path })).code).toBe('store.corrupt');
    });

    it('refuses a folder, and a path in no folder', () => {
      mkdirSync(path);
      expect(refusal(() => openSqliteStore({ path })).code).toBe('store.corrupt');
      expect(refusal(() => openSqliteStore({ path: join(folder, 'absent', 'x.db') })).code).toBe('store.corrupt');
    });

    it('refuses a database of another program', () => {
      const other = new DatabaseSync(path);
      other.exec('CREATE TABLE books (title TEXT)');
      other.close();
      const error = refusal(() => openSqliteStore({ path }));
      expect(error.code).toBe('store.corrupt');
      expect(error.message).toContain('books');
    });

    it('refuses a database that was cut off, or overwritten in the middle', async () => {
      await filled(300);
      const { size } = statSync(path);
      const file = openSync(path, 'r+');
      writeSync(file, Buffer.alloc(8192, 0x5a), 0, 8192, Math.floor(size / 8192) * 4096);
      closeSync(file);
      expect(refusal(() => openSqliteStore({ path })).code).toBe('store.corrupt');
      const cut = openSync(path, 'r+');
      ftruncateSync(cut, Math.floor(size / 2));
      closeSync(cut);
      expect(refusal(() => openSqliteStore({ path })).code).toBe('store.corrupt');
    });

    it('migrates forward, once, whoever comes first', () => {
      const first = ['CREATE TABLE tide (level REAL NOT NULL) STRICT'];
      const second = [...first, 'ALTER TABLE tide ADD COLUMN at INTEGER NOT NULL DEFAULT 7'];
      const old = new Database({ path, migrations: first });
      old.run('INSERT INTO tide VALUES (1.5)');
      old.close();
      for (let i = 0; i < 2; i++) {
        const migrated = new Database({ path, migrations: second });
        expect(migrated.all('SELECT * FROM tide')).toEqual([{ level: 1.5, at: 7 }]);
        migrated.close();
      }
      expect(refusal(() => new Database({ path, migrations: first })).code).toBe('store.newer');
    });

    it('undoes a migration that fails', () => {
      new Database({ path, migrations: ['CREATE TABLE a (x INTEGER) STRICT'] }).close();
      const broken = [
        'CREATE TABLE a (x INTEGER) STRICT',
        'CREATE TABLE b (x INTEGER) STRICT; INSERT INTO absent VALUES (1)',
      ];
      expect(refusal(() => new Database({ path, migrations: broken })).code).toBe('internal');
      const db = new Database({ path, migrations: ['CREATE TABLE a (x INTEGER) STRICT'] });
      expect(db.all(`SELECT name FROM sqlite_schema WHERE name = 'b'`)).toEqual([]);
      db.close();
    });
  });

  it('says when the disk is full, keeps nothing of that write and everything before, and works on', async () => {
    const store = openSqliteStore({ path, maxBytes: 400_000 });
    const token = await store.takeLease('a');
    let stored = 0;
    let code = 'no error';
    for (let i = 0; code === 'no error' && i < 2000; i++) {
      code = await codeOf(store.submit([submission(`j${i}`, `k${i}`)]));
      if (code === 'no error') stored++;
    }
    expect(code).toBe('store.full');
    expect(stored).toBeGreaterThan(50);
    const big = 'x'.repeat(500_000);
    expect(
      await codeOf(
        store.commit(token, [
          { put: 'memory', key: 'small', value: '1' },
          { put: 'memory', key: 'big', value: big },
        ]),
      ),
    ).toBe('store.full');
    const calls = [store.submit([submission('x1')]), store.submit([submission('x2'), submission('x3')])];
    expect(await Promise.all(calls.map(codeOf))).toEqual(['store.full', 'store.full']);
    expect(await store.memory('')).toEqual(new Map());
    expect((await store.jobs({}, 5000, null)).items).toHaveLength(stored);
    expect(await store.requestCancel(jobId('j0'))).toBe(true);
    await store.close();
    const roomy = openSqliteStore({ path });
    expect((await roomy.submit([submission('x1')]))[0]?.status).toBe('created');
    await roomy.close();
  });

  it('says when another connection does not let go of the lock, and works on once it does', async () => {
    const store = openSqliteStore({ path, patienceMs: 20 });
    const token = await store.takeLease('a');
    const other = new DatabaseSync(path);
    other.exec('BEGIN IMMEDIATE');
    expect(await codeOf(store.submit([submission('j1')]))).toBe('too-many-requests');
    expect(await codeOf(store.commit(token, []))).toBe('too-many-requests');
    expect(await codeOf(store.requestCancel(jobId('j1')))).toBe('too-many-requests');
    // Readers do not wait for writers.
    expect(await store.job(jobId('j1'))).toBeNull();
    other.exec('ROLLBACK');
    other.close();
    expect((await store.submit([submission('j1')]))[0]?.status).toBe('created');
    await store.close();
  });

  it('is shared by several connections: submissions, cancels and commits at once', async () => {
    const engine = openSqliteStore({ path });
    const api = openSqliteStore({ path });
    const token = await engine.takeLease('a');
    const submitting = async (store: Store, from: number): Promise<void> => {
      for (let i = from; i < from + 50; i++) {
        await store.submit([submission(`j${i}`, `k${i % 75}`)]);
        await store.requestCancel(jobId(`j${i}`));
      }
    };
    const committing = async (): Promise<void> => {
      for (let i = 0; i < 50; i++) {
        const { jobs } = await engine.loadActive();
        await engine.commit(token, [
          ...jobs.map((value) => ({ put: 'job' as const, value: { ...value, state: 'running' as const } })),
          { put: 'memory', key: 'round', value: String(i) },
        ]);
        // Lets the other callers in between.
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all([submitting(api, 0), submitting(engine, 50), committing()]);
    const { items } = await api.jobs({}, 1000, null);
    // 100 submissions under 75 different keys.
    expect(items).toHaveLength(75);
    expect(items.every((j) => j.cancelRequested)).toBe(true);
    expect(await api.memory('round')).toEqual(new Map([['round', '49']]));
    const newer = await api.takeLease('b');
    expect(await codeOf(engine.commit(token, []))).toBe('fenced');
    expect(await codeOf(engine.commit(newer, []))).toBe('no error');
    await Promise.all([engine.close(), api.close()]);
  });
});
