/**
 * What tests and checks use besides npm's packages: each thing pinned by hash, installed once per set of pins into the
 * person's cache and shared by all checkouts.
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

/** LocalStack 4.9.2 runs on this Python; all pins were resolved for it. */
export const PYTHON = 'python3.11';
const INSTALLER = fileURLToPath(new URL('installer.txt', import.meta.url));
const RETRY_LOCK_MS = 100;

/** What decides about an installation: its name, the files that pin it, and what else it depends on. */
interface Pins {
  readonly name: string;
  readonly files: readonly string[];
  readonly more?: string;
}

/** The folder that `make` has filled, now or earlier. Safe to call at once. */
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

/** The lock, once nobody else has it. */
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

/** A new virtual environment with exactly what `requirements` pins. */
export async function makeVenv(venv: string, requirements: string): Promise<void> {
  const python = join(venv, 'bin', 'python');
  await must(PYTHON, ['-m', 'venv', '--clear', venv]);
  const quiet = ['--quiet', '--disable-pip-version-check', '--require-hashes'];
  await must(python, ['-m', 'pip', 'install', ...quiet, '-r', INSTALLER]);
  const uv = ['-m', 'uv', 'pip', 'install', '--quiet', '--python', python, '--require-hashes'];
  await must(python, [...uv, '-r', requirements]);
}

/** The folder of the programs that `requirements` pins, installed if they are not. */
export async function pythonPrograms(name: string, requirements: string): Promise<string> {
  const home = await installOnce({ name, files: [INSTALLER, requirements] }, (folder) =>
    makeVenv(join(folder, 'venv'), requirements),
  );
  return join(home, 'venv', 'bin');
}

/** Null where virtual environments can be made here; else what is missing, for people. */
export const missingPython = (): string | null =>
  answers(PYTHON, ['-c', 'import venv, ensurepip']) ? null : `${PYTHON} with venv`;

export const answers = (command: string, args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore', timeout: 20_000 }).status === 0;

/** Runs it; throws with the end of what it said where it fails. */
export async function must(command: string, args: string[]): Promise<void> {
  try {
    await promisify(execFile)(command, args, { maxBuffer: 2 ** 26 });
  } catch (error) {
    const { stderr, stdout } = error as { stderr?: string; stdout?: string };
    const said = `${stdout ?? ''}${stderr ?? ''}`.trim().split('\n').slice(-15).join('\n');
    throw new Error(`${command} ${args.slice(0, 4).join(' ')} ... failed\n${said}`, { cause: error });
  }
}
