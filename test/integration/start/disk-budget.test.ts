/** A budget for the engine's folder, with real engines and real files: told, held, refused, and gone on from. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExplanationView, HealthView, JobView, SubmitAnswer } from '../../../lib/api/schemas.ts';
import { layout } from '../../../lib/drivers/local/fleet/layout.ts';
import { openSqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import { processesOf } from '../../support/local-fleet.ts';
import { describeOnSmallDisks } from '../../support/small-disk.ts';
import { until } from '../../support/until.ts';

const NODE = ['--disable-warning=ExperimentalWarning', join(process.cwd(), 'bin', 'ebb.ts')];
const MIB = 1024 ** 2;
const LOG_BYTES = 1_000_000;
const TASKS = 14;
/** Each task leaves a log of a megabyte behind; two at once take longer than the engine needs to measure its folder. */
const JOB = {
  name: 'talker',
  tasks: TASKS,
  command: `head -c ${LOG_BYTES} /dev/zero | tr "\\0" x; sleep 2`,
  resources: { cpu: 1, memory: '64MiB' },
  expectedRuntime: '1m',
};
const FAST = ['--speed', '120', '--seed', '3', '--vcpus', '2'];

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'ebb-budget-'));
  writeFileSync(join(cwd, 'job.json'), JSON.stringify(JOB));
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

const ebb = (env: Record<string, string>, ...args: string[]) =>
  spawnSync(process.execPath, [...NODE, ...args, '--no-color'], {
    cwd,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 120_000,
    killSignal: 'SIGKILL',
  });

/** An engine's folder in which somebody has put a file of that size. */
function folderWith(fillerBytes: number): { readonly dir: string; readonly filler: string } {
  const dir = mkdtempSync(join(cwd, 'd-'));
  const filler = join(dir, 'filler');
  writeFileSync(filler, Buffer.alloc(fillerBytes, 'x'));
  return { dir, filler };
}

const levelsTold = async (dir: string): Promise<unknown[]> => {
  const store = openSqliteStore({ path: join(dir, 'ebb.db') });
  const events = await store.events(0, 10_000);
  await store.close();
  return events.filter((e) => e.type === 'disk-budget').map((e) => e.data['level']);
};

describe('ebb up --disk', () => {
  it('tells of 80 %, holds starts at 100 %, refuses jobs, and goes on by itself once something is deleted', async () => {
    const { dir, filler } = folderWith(25 * MIB);
    const engine = spawn(
      process.execPath,
      [...NODE, 'up', '--port', '0', '--json', '--dir', dir, '--disk', '32MiB', ...FAST],
      { cwd },
    );
    const said = { out: '', err: '' };
    engine.stdout.on('data', (text: Buffer) => (said.out += text.toString()));
    engine.stderr.on('data', (text: Buffer) => (said.err += text.toString()));
    const ended = new Promise<number | null>((resolve) => engine.once('exit', (code) => resolve(code)));
    try {
      await until(() => said.out.includes('}'));
      const { url, tokenFile } = JSON.parse(said.out) as { url: string; tokenFile: string };
      const token = readFileSync(tokenFile, 'utf8').trim();
      const get = async <T>(path: string): Promise<T> =>
        (await fetch(new URL(path, url), { headers: { authorization: `Bearer ${token}` } })).json() as Promise<T>;
      const client = { EBB_URL: url, EBB_TOKEN: token };
      const health = () => get<HealthView>('/api/health');

      expect(await health()).toMatchObject({ status: 'ok', disk: { level: 'enough', budgetBytes: 32 * MIB } });
      writeFileSync(filler, Buffer.alloc(27 * MIB, 'x'));
      await until(async () => (await health()).disk?.level === 'low');
      const submitted = ebb(client, 'submit', 'job.json', '--json');
      expect(submitted).toMatchObject({ status: 0 });
      const [answer] = [JSON.parse(submitted.stdout) as SubmitAnswer | SubmitAnswer[]].flat();
      const id = answer?.job.id ?? '';
      const job = () => get<JobView>(`/api/jobs/${id}`);

      await until(async () => (await health()).disk?.level === 'used-up' && (await job()).tasks.running === 0);
      const { tasks } = await job();
      expect(tasks.succeeded).toBeGreaterThan(2);
      expect(tasks.succeeded).toBeLessThan(TASKS);
      expect(tasks.failed).toBe(0);
      const full = await health();
      expect(full).toMatchObject({
        status: 'degraded',
        detail: expect.stringMatching(/disk budget is used up.*--disk/),
      });
      expect(full.disk?.usedBytes).toBeGreaterThanOrEqual(32 * MIB);
      await until(async () => (await get<ExplanationView>(`/api/jobs/${id}/explain`)).placed.length === 0);
      const { waiting, headline } = await get<ExplanationView>(`/api/jobs/${id}/explain`);
      expect(waiting).toMatchObject([{ why: 'disk', tasks: TASKS - tasks.succeeded }]);
      expect(headline).toContain('the disk budget is used up');
      expect(ebb(client, 'status', 'talker').stdout).toMatch(/^disk +3[3-9].* MB of 33\.6 MB \(1\d\d %\)/m);

      const refused = ebb(client, 'submit', 'job.json');
      expect(refused).toMatchObject({ status: 9 });
      expect(refused.stderr).toMatch(/^error: the disk budget is used up: .* of 33\.6 MB .*\(store\.full\)$/m);
      expect(refused.stderr).toMatch(/next: .*delete.*--disk.*historyDays/);
      expect(readdirSync(dir)).not.toContain('work');

      rmSync(filler);
      await until(async () => (await job()).state === 'succeeded');
      expect(await health()).toMatchObject({ status: 'ok', detail: null, disk: { level: 'enough' } });
      expect(ebb(client, 'submit', 'job.json')).toMatchObject({ status: 0 });
    } finally {
      engine.kill('SIGINT');
      expect(await ended).toBe(0);
    }
    expect(await levelsTold(dir)).toEqual(['low', 'used-up', 'enough']);
    expect(said.err.match(/^warning: the disk budget (runs low|is used up)/gm)).toEqual([
      'warning: the disk budget runs low',
      'warning: the disk budget is used up',
    ]);
    expect(said.err).toContain('there is room on the disk again');
  });
});

describe('ebb run --disk', () => {
  it('ends with store.full when its tasks have ended, and goes on with a larger budget', async () => {
    const { dir } = folderWith(27 * MIB);
    const first = ebb({}, 'run', 'job.json', '--dir', dir, '--disk', '32MiB', ...FAST);
    expect(first).toMatchObject({ status: 9, stdout: expect.stringContaining('at 100 % no further task starts') });
    expect(first.stderr.split('\n').filter((line) => line.startsWith('error:'))).toEqual([
      expect.stringMatching(/the disk budget is used up: .*\(store\.full\)$/),
    ]);
    expect(first.stderr).toMatch(/next: .*--disk.*then go on with: ebb run --resume --dir /);
    expect(first.stdout).not.toMatch(/preempted|failed/);
    expect(processesOf(dir)).toEqual([]);

    // The limit holds until the work is done that it was given for.
    expect(ebb({}, 'run', '--resume', '--dir', dir)).toMatchObject({ status: 9 });
    const last = ebb({}, 'run', '--resume', '--dir', dir, '--disk', '1GB');
    expect({ status: last.status, stderr: last.stderr }).toMatchObject({ status: 0 });
    expect(last.stdout).toContain(`talker succeeded: ${TASKS}/${TASKS} tasks`);
    const levels = await levelsTold(dir);
    expect(levels.slice(0, 2)).toEqual(['low', 'used-up']);
    // The second run may find a little room before it uses that up too.
    expect(levels.slice(2, -1).filter((level, i) => level !== ['low', 'used-up'][i % 2])).toEqual([]);
    expect(levels.at(-1)).toBe('enough');
  });
});

describeOnSmallDisks('ebb run on a disk that others fill', (mount) => {
  it('stops before the disk is full, and nothing that ran is lost', async () => {
    const disk = mount('128m');
    const dir = join(disk, 'ebb');
    mkdirSync(dir, { mode: 0o700 });
    const filler = join(disk, 'filler');
    const { bavail, bsize, blocks } = statfsSync(disk);
    const reserveBytes = 0.1 * blocks * bsize;
    writeFileSync(filler, Buffer.alloc(bavail * bsize - Math.ceil(reserveBytes) - 7 * MIB));
    const first = ebb({}, 'run', 'job.json', '--dir', dir, '--disk', '1TB', ...FAST);
    expect({ status: first.status, stderr: first.stderr }).toMatchObject({ status: 9 });
    expect(first.stderr).toMatch(
      /^error: the disk is nearly full: .* are free on the file system of .*\(store\.full\)$/m,
    );
    expect(statfsSync(disk).bavail).toBeGreaterThan(0);
    const logs = readdirSync(layout.logs(dir)).flatMap((of) =>
      readdirSync(join(layout.logs(dir), of)).flatMap((name) =>
        name.endsWith('.out') ? [readFileSync(join(layout.logs(dir), of, name)).length] : [],
      ),
    );
    expect(logs.length).toBeGreaterThan(0);
    expect(new Set(logs)).toEqual(new Set([LOG_BYTES]));

    rmSync(filler);
    const again = ebb({}, 'run', '--resume', '--dir', dir);
    expect({ status: again.status, stderr: again.stderr }).toMatchObject({ status: 0 });
    expect(again.stdout).toContain(`talker succeeded: ${TASKS}/${TASKS} tasks`);
  });
});
