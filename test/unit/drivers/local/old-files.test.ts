import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { jobId } from '../../../../lib/kernel/ids.ts';
import { layout } from '../../../../lib/drivers/local/fleet/layout.ts';
import { NamedFolders, ownFolder, ownFolders } from '../../../../lib/drivers/local/admit/own-folders.ts';
import { removeOldFiles } from '../../../../lib/drivers/local/disk/old-files.ts';
import { openSqliteStore, type SqliteStore } from '../../../../lib/drivers/local/store/sqlite-store.ts';
import { attempt, job } from '../../../contract/store-samples.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.UTC(2026, 6, 1);

let dir: string;
let store: SqliteStore;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-old-'));
  store = openSqliteStore({ path: join(dir, 'ebb.db') });
});
afterEach(async () => {
  await store.close();
  rmSync(dir, { recursive: true });
});

const aged = (path: string, days: number): void => {
  const s = (NOW_MS - days * DAY_MS) / 1000;
  utimesSync(path, s, s);
};

/** A log of the attempt and a checkpoint of its job, last written so many days ago. */
function filesOf(job: string, days: number): readonly string[] {
  const log = layout.log(dir, `${job}.main.0.1`, 'stdout');
  const checkpoint = join(layout.checkpoints(dir, { job, stage: 'main', index: 0 }), 'state');
  for (const path of [log, checkpoint]) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, 'x');
  }
  aged(log, days);
  aged(join(layout.checkpointsOfAll(dir), job), days);
  return [log, checkpoint];
}

it('logs and checkpoints go once their job has aged out, and no others', async () => {
  const gone = filesOf('j-gone', 91);
  const young = filesOf('j-young', 89);
  const known = filesOf('j-known', 400);
  const id = jobId('j-known');
  await store.submit([{ job: job('j-known'), idempotency: null }]);
  const token = await store.takeLease('engine');
  await store.commit(token, [{ put: 'attempt', value: attempt('j-known.main.0.1', { job: id }) }]);
  const parts = { dir, store, historyDays: 90, nowMs: NOW_MS };
  expect(await removeOldFiles(parts)).toBe(2);
  expect(gone.map((path) => existsSync(path))).toEqual([false, false]);
  expect([...young, ...known].map((path) => existsSync(path))).toEqual([true, true, true, true]);
  // Again: nothing is left to do. Without folders as well.
  expect(await removeOldFiles(parts)).toBe(0);
  rmSync(layout.logs(dir), { recursive: true });
  rmSync(layout.checkpointsOfAll(dir), { recursive: true });
  expect(await removeOldFiles(parts)).toBe(0);
});

describe('folders that the engine made for jobs without a working directory', () => {
  const ids = ['j-1mpewm6qrvve45z', 'j-1mpewm6qrvve460', 'j-1mpewm6qrvve461', 'j-1mpewm6qrvve462'] as const;
  const parts = () => ({ dir, store, historyDays: 90, nowMs: NOW_MS });
  const made = (name: string, days: number): string => {
    const folder = join(ownFolders(dir), name);
    mkdirSync(join(folder, 'results'), { recursive: true });
    writeFileSync(join(folder, 'results', 'table.csv'), 'x');
    for (const path of [join(folder, 'results', 'table.csv'), join(folder, 'results'), folder]) aged(path, days);
    return folder;
  };
  const left = (): string[] => readdirSync(ownFolders(dir)).filter((name) => !name.startsWith('.'));

  it('go once their job has aged out, unless something in them is younger', async () => {
    const [gone, young, known, touched] = ids;
    made(gone, 91);
    made(young, 89);
    made(known, 400);
    aged(join(made(touched, 400), 'results', 'table.csv'), 1);
    await store.submit([{ job: job(known), idempotency: null }]);
    expect(await removeOldFiles(parts())).toBe(1);
    expect(left()).toEqual([young, known, touched]);
  });

  it('stay where a user made them, or named them as a working directory', async () => {
    const [named, through, inside, gone] = ids;
    for (const id of ids) made(id, 400);
    made('my-results', 400);
    made('j-mine', 400);
    const folders = new NamedFolders(dir);
    symlinkSync(ownFolder(dir, through), join(dir, 'link'));
    for (const workdir of [
      ownFolder(dir, named),
      join(dir, 'link'),
      join(ownFolder(dir, inside), 'results'),
      dir,
      join(dir, 'nothing'),
      tmpdir(),
    ]) {
      await folders.note(workdir);
    }
    expect(await removeOldFiles(parts())).toBe(1);
    expect(left()).toEqual([named, through, inside, 'j-mine', 'my-results']);
    expect(existsSync(join(ownFolder(dir, gone)))).toBe(false);
  });

  it('all stay where a user named the folder of all of them', async () => {
    made(ids[0], 400);
    await new NamedFolders(dir).note(ownFolders(dir));
    expect(await removeOldFiles(parts())).toBe(0);
  });
});
