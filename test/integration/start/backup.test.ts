import { afterAll, afterEach, expect, it } from '@jest/globals';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { signalQuietly } from '../../../lib/drivers/local/fleet/processes.ts';
import { processesOf } from '../../support/local-fleet.ts';

const NODE = ['--disable-warning=ExperimentalWarning', join(process.cwd(), 'bin', 'ebb.ts')];
const cwd = mkdtempSync(join(tmpdir(), 'ebb-backup-'));
let engine: ChildProcess | null = null;
afterEach(() => endAll());
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

function endAll(): void {
  engine?.kill('SIGKILL');
  engine = null;
  for (let left = processesOf(cwd); left.length > 0; left = processesOf(cwd)) {
    for (const { pid } of left) signalQuietly(pid, 'SIGKILL');
  }
}

const ebb = (...args: string[]) =>
  spawnSync(process.execPath, [...NODE, ...args], { cwd, encoding: 'utf8', timeout: 120_000, killSignal: 'SIGKILL' });

/** Counts to 30 in steps of 0.1 s, saves each step, and says from where it went on. */
const COUNTS = `n=0; [ "$EBB_RESUMED" = 1 ] && n=$(cat "$EBB_CHECKPOINT_DIR/n"); echo "from $n"
  while [ $n -lt 30 ]; do
    sleep 0.1; n=$((n+1)); echo $n > "$EBB_CHECKPOINT_DIR/n.tmp"; mv "$EBB_CHECKPOINT_DIR/n.tmp" "$EBB_CHECKPOINT_DIR/n"
    ln -sf n "$EBB_CHECKPOINT_DIR/latest"
    while [ $n -eq 12 ] && [ -e "$EBB_WORKDIR/wait" ]; do sleep 0.1; done
  done; echo $n > total`;

it('a backup of a running engine, restored after all was lost: the job goes on from its checkpoint', async () => {
  const job = {
    name: 'counts',
    command: COUNTS,
    outputs: ['total'],
    checkpoint: { signal: 'SIGUSR2', grace: '1s' },
    resources: { cpu: 1, memory: '64MiB' },
    expectedRuntime: '2m',
  };
  writeFileSync(join(cwd, 'job.json'), JSON.stringify(job));
  writeFileSync(join(cwd, 'wait'), '');
  // A run whose task waits in the middle, to be backed up there.
  engine = spawn(process.execPath, [...NODE, 'run', 'job.json', '--speed', '60', '--seed', '3'], {
    cwd,
    stdio: 'ignore',
  });
  const counted = (): string[] =>
    readdirSync(join(cwd, '.ebb'), { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('/0/n'));
  while (!existsSync(join(cwd, '.ebb')) || counted().length === 0 || read(counted()[0]!) !== '12') await sleep();
  const saved = ebb('backup', 'b.backup', '--json');
  expect({ status: saved.status, stderr: saved.stderr }).toEqual({ status: 0, stderr: '' });
  expect(JSON.parse(saved.stdout)).toMatchObject({ files: expect.any(Number), market: null });
  expect(statSync(join(cwd, 'b.backup')).mode & 0o777).toBe(0o600);
  expect(readdirSync(cwd).filter((name) => name.startsWith('b.'))).toEqual(['b.backup']);
  expect(ebb('backup', 'b.backup').status).toBe(6);

  engine.kill('SIGKILL');
  await once(engine, 'exit');
  endAll();
  rmSync(join(cwd, '.ebb'), { recursive: true });
  rmSync(join(cwd, 'wait'));
  const restored = ebb('restore', 'b.backup');
  expect({ status: restored.status, stderr: restored.stderr }).toMatchObject({ status: 0 });
  expect(restored.stdout + restored.stderr).toContain('1 unfinished job');
  expect(readFileSync(join(cwd, '.ebb', counted()[0]!, '..', 'latest'), 'utf8').trim()).toBe('12');
  // Only into an empty place.
  expect(ebb('restore', 'b.backup').status).toBe(6);

  const again = ebb('run', '--resume', '--json');
  if (again.status !== 0) throw new Error(again.stderr);
  expect(readFileSync(join(cwd, 'total'), 'utf8').trim()).toBe('30');
  const logs = readdirSync(join(cwd, '.ebb', 'logs'), { recursive: true, encoding: 'utf8' }).filter((p) =>
    p.endsWith('.out'),
  );
  // A move to a cheaper instance may follow, which goes on from later.
  const from = logs.map((path) => readFileSync(join(cwd, '.ebb', 'logs', path), 'utf8').trim());
  expect(Math.min(...from.map((text) => Number(text.replace('from ', ''))))).toBe(12);
  expect(processesOf(cwd)).toEqual([]);
}, 240_000);

const read = (path: string): string => readFileSync(join(cwd, '.ebb', path), 'utf8').trim();
const sleep = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

it('what is no backup, or a damaged one, is refused, and leaves nothing', () => {
  writeFileSync(join(cwd, 'text'), 'no database');
  new DatabaseSync(join(cwd, 'other.db')).exec('CREATE TABLE t (x)');
  cpSync(join(cwd, 'b.backup'), join(cwd, 'damaged'));
  const bytes = readFileSync(join(cwd, 'damaged'));
  bytes.fill(0x55, 8192, 16_384);
  writeFileSync(join(cwd, 'damaged'), bytes);
  for (const [file, status] of [
    ['text', 9],
    ['other.db', 9],
    ['damaged', 9],
    ['absent', 6],
  ] as const) {
    const { status: got, stderr } = ebb('restore', file, '--dir', 'deep/new');
    expect({ file, got, stderr }).toMatchObject({ got: status });
    // The next step is another backup, not another folder.
    if (status === 9) expect(stderr).toContain('name another file');
    expect(existsSync(join(cwd, 'deep'))).toBe(false);
  }
  expect(ebb('backup', 'x', '--dir', 'nothing').status).toBe(6);
  for (const file of ['nowhere/x', '']) expect([file, ebb('backup', file).status]).toEqual([file, 2]);
  expect(existsSync(join(cwd, 'nothing'))).toBe(false);
});
