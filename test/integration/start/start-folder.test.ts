import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { lockDirectory } from '../../../lib/drivers/local/engine/engine-lock.ts';
import { openSqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import { submission } from '../../contract/store-samples.ts';

const scratch = mkdtempSync(join(tmpdir(), 'ebb-start-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const script = (...args: string[]) =>
  spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', 'scripts/start-folder.ts', ...args], {
    encoding: 'utf8',
  });

/** What a start left: a database with a job that is not over, or without any; used `ageS` ago. */
async function left(base: string, name: string, of: { readonly unfinished: boolean; readonly ageS: number }) {
  const folder = join(base, name);
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'ebb.db');
  const store = openSqliteStore({ path });
  if (of.unfinished) await store.submit([submission('j1')]);
  await store.close();
  const usedS = Date.now() / 1000 - of.ageS;
  utimesSync(path, usedS, usedS);
  return folder;
}
const base = (): string => mkdtempSync(join(scratch, 'b-'));

describe('the folder of `npm start`', () => {
  it('is a new one each time; what is over goes', async () => {
    const below = base();
    const over = await left(below, 'run-over', { unfinished: false, ageS: 10 });
    const { status, stdout, stderr } = script(below);
    expect([status, stderr]).toEqual([0, '']);
    expect(readdirSync(below).map((name) => join(below, name))).toEqual([stdout]);
    expect(stdout).not.toBe(over);
  });

  it('keeps the newest unfinished start and says how to go on with it', async () => {
    const below = base();
    const older = await left(below, 'run-a', { unfinished: true, ageS: 100 });
    const newer = await left(below, 'run-b', { unfinished: true, ageS: 50 });
    const over = await left(below, 'run-c', { unfinished: false, ageS: 10 });
    const { stdout, stderr } = script(below);
    expect(stderr).toContain(`${newer}: \`npm start -- --resume\` goes on`);
    expect([older, newer, over].map((folder) => existsSync(folder))).toEqual([false, true, false]);
    expect(stdout).not.toBe(newer);
  });

  it('is the newest unfinished one to resume, and nothing is touched', async () => {
    const below = base();
    const older = await left(below, 'run-a', { unfinished: true, ageS: 100 });
    const newer = await left(below, 'run-b', { unfinished: true, ageS: 50 });
    const { status, stdout } = script(below, '--resume');
    expect([status, stdout]).toEqual([0, newer]);
    expect(readdirSync(below)).toHaveLength(2);
    expect(existsSync(older)).toBe(true);
  });

  it('says so when there is nothing to resume', () => {
    const { status, stdout, stderr } = script(base(), '--resume');
    expect([status, stdout]).toEqual([6, '']);
    expect(stderr).toContain('no start is unfinished');
    expect(stderr).toContain('npm start');
  });

  it('leaves alone where an engine runs, and removes what is no database', async () => {
    const below = base();
    const running = await left(below, 'run-a', { unfinished: true, ageS: 10 });
    const lock = lockDirectory(join(running, 'engine.lock'));
    const broken = join(below, 'run-b');
    mkdirSync(broken);
    writeFileSync(join(broken, 'ebb.db'), 'not a database, and long enough to be taken for one');
    try {
      expect(script(below).status).toBe(0);
    } finally {
      lock.release();
    }
    expect([existsSync(running), existsSync(broken)]).toEqual([true, false]);
  });
});
