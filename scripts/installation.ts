/**
 * Tools of tests and checks beyond npm's packages, pinned by hash. They are installed once per set of pins into the
 * user's cache, which all checkouts share.
 */
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { EbbError } from '../lib/kernel/errors.ts';
import { lockDirectory } from '../lib/drivers/local/engine/engine-lock.ts';

/** Python of LocalStack 4.9.2; all pins were resolved for it. */
export const PYTHON = 'python3.11';
const INSTALLER = fileURLToPath(new URL('installer.txt', import.meta.url));
const RETRY_LOCK_MS = 100;

/** Key of an installation: its name, its files of pins, and its other dependencies. */
interface Pins {
  readonly name: string;
  readonly files: readonly string[];
  readonly more?: string;
}

/** Folder filled by `make`, now or earlier. Safe to call concurrently. */
export async function installOnce(pins: Pins, make: (home: string) => Promise<void>): Promise<string> {
  const digest = createHash('sha256');
  for (const file of pins.files) digest.update(readFileSync(file));
  digest.update(pins.more ?? '');
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const home = join(cache, 'ebbtide', `${pins.name}-${digest.digest('hex').slice(0, 16)}`);
  const done = join(home, 'installed');
  if (existsSync(done)) return home;
  mkdirSync(home, { recursive: true });
  const held = await awaitedLock(join(home, 'lock'));
  try {
    if (!existsSync(done)) {
      await make(home);
      writeFileSync(done, '');
    }
  } finally {
    held.release();
  }
  return home;
}

/** Waits for the lock. */
export async function awaitedLock(path: string): Promise<{ release(): void }> {
  for (;;) {
    try {
      return lockDirectory(path);
    } catch (error) {
      if (!(error instanceof EbbError) || error.code !== 'engine.running') throw error;
      await sleep(RETRY_LOCK_MS);
    }
  }
}

/** New virtual environment with exactly the pins of `requirements`. */
export async function makeVenv(venv: string, requirements: string): Promise<void> {
  const python = join(venv, 'bin', 'python');
  await must(PYTHON, ['-m', 'venv', '--clear', venv]);
  const quiet = ['--quiet', '--disable-pip-version-check', '--require-hashes'];
  await must(python, ['-m', 'pip', 'install', ...quiet, '-r', INSTALLER]);
  const uv = ['-m', 'uv', 'pip', 'install', '--quiet', '--python', python, '--require-hashes'];
  await must(python, [...uv, '-r', requirements]);
}

/** Folder of the programs in `requirements`, installed if missing. */
export async function pythonPrograms(name: string, requirements: string): Promise<string> {
  const home = await installOnce({ name, files: [INSTALLER, requirements] }, (folder) =>
    makeVenv(join(folder, 'venv'), requirements),
  );
  return join(home, 'venv', 'bin');
}

/** Missing prerequisite of virtual environments, for people; null: none. */
export const missingPython = (): string | null =>
  answers(PYTHON, ['-c', 'import venv, ensurepip']) ? null : `${PYTHON} with venv`;

export const answers = (command: string, args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore', timeout: 20_000 }).status === 0;

/** Runs a command; throws with the end of its output if it fails. */
export async function must(command: string, args: string[]): Promise<void> {
  try {
    await promisify(execFile)(command, args, { maxBuffer: 2 ** 26 });
  } catch (error) {
    const { stderr, stdout } = error as { stderr?: string; stdout?: string };
    const said = `${stdout ?? ''}${stderr ?? ''}`.trim().split('\n').slice(-15).join('\n');
    throw new Error(`${command} ${args.slice(0, 4).join(' ')} ... failed\n${said}`, { cause: error });
  }
}
