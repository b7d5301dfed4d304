import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { usd } from '../../../lib/kernel/units.ts';
import { MIGRATIONS } from '../../../lib/drivers/local/store/sqlite-schema.ts';
import { openSqliteStore, type SqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import { attempt, instance, job, ledgerRow, submission, task } from '../../contract/store-samples.ts';

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

  it('opens a file that an earlier version wrote, answers as that did, and goes on in it', async () => {
    // Written by the program of version 7, with the answers of that program.
    const fixture = (name: string): Buffer => gunzipSync(readFileSync(`test/fixtures/store/sqlite-v7.${name}.gz`));
    writeFileSync(path.join(folder, 'ebb.db'), fixture('db'));
    const answers = JSON.parse(fixture('json').toString()) as Readonly<Record<string, unknown>>;
    const now = open();
    const { costs, ...same } = await recordedAnswers(now);
    expect(same).toEqual({ ...answers, costs: undefined });
    // Nothing was told apart as speculative or moved then, also not in the sums of what had aged out.
    const costsThen = answers['costs'] as readonly (readonly object[])[];
    expect(costs).toEqual(costsThen.map((rows) => rows.map((row) => ({ ...row, speculativeUsd: 0, movedUsd: 0 }))));
    expect(costsThen[0]).toContainEqual(expect.objectContaining({ key: '(aged out)', wastedUsd: 0.01 }));

    const token = await now.takeLease('engine-2');
    const superseded = ledgerRow({ instance: instanceId('i-1'), kind: 'speculative', usd: 0.02 });
    const moved = ledgerRow({ instance: instanceId('i-1'), kind: 'moved', usd: 0.004 });
    await now.commit(token, [
      { put: 'task', value: task('j1', 0, { attempts: 2, claimed: { by: null } }) },
      { put: 'attempt', value: attempt('j1.main.0.2', { number: 2, role: 'copy', round: 1 }) },
      { put: 'ledger', instance: instanceId('i-1'), value: [superseded, moved] },
    ]);
    expect((await now.loadActive()).attempts.map((a) => a.role)).toEqual([undefined, 'copy']);
    expect((await now.costs('owner')).map((r) => r.speculativeUsd)).toContain(0.02);
    expect((await now.costs('owner')).map((r) => r.movedUsd)).toContain(0.004);
    await now.close();
  });
});

/** What was asked when the file was written, as plain JSON. */
async function recordedAnswers(store: SqliteStore): Promise<Record<string, unknown>> {
  const { cursors, ...active } = await store.loadActive();
  const answers = {
    active,
    cursors: [...cursors],
    jobs: (await store.jobs({}, 100, null)).items,
    submitted: [...(await store.submitted(['key-old', 'key-1', 'key-2']))],
    tasks: await store.tasks(jobId('j1')),
    attempts: await store.attempts(jobId('j1')),
    instances: (await store.instances(null, 500, null)).items,
    plans: (await store.plans(5, null)).items,
    explanations: [await store.explanation(jobId('j1')), await store.explanation(jobId('j3'))],
    ledger: await store.ledger('all'),
    costs: [await store.costs('job'), await store.costs('owner'), await store.costs('pool')],
    events: await store.events(0, 1000),
    memory: [...(await store.memory(''))],
  };
  return JSON.parse(JSON.stringify(answers)) as Record<string, unknown>;
}
