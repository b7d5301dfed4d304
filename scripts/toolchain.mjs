// Requirements of every script here: installed dependencies, and the Node that the project runs on. Plain JavaScript
// for Node >= 20.19 without packages, because it runs before anything is installed.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { howToGetNode, packagedNode } from '../bin/runtime.mjs';

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** Installs exactly the lockfile, unless installed. */
export async function ensureInstalled() {
  const lock = join(ROOT, 'package-lock.json');
  const stamp = join(ROOT, 'node_modules', '.ebb-lock-digest');
  const digest = createHash('sha256').update(readFileSync(lock)).digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) return;
  // npm writes this file last. If it is newer than the lockfile, somebody ran npm and it finished.
  const hidden = join(ROOT, 'node_modules', '.package-lock.json');
  if (existsSync(hidden) && statSync(hidden).mtimeMs >= statSync(lock).mtimeMs) return;
  console.error('Installing dependencies ...');
  const npm = process.env.npm_execpath;
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const code =
    npm !== undefined && npm.endsWith('.js')
      ? await run(process.execPath, [npm, ...args])
      : await run('npm', args, { shell: process.platform === 'win32' });
  if (code !== 0) {
    console.error('npm ci failed; see its messages above. With a working registry, run this command again.');
    process.exit(code);
  }
  writeFileSync(stamp, digest);
}

/** Packaged Node 24, or this Node if it runs TypeScript files (>= 22.18); otherwise ends the process. */
export function projectNode() {
  const packaged = packagedNode(createRequire(join(ROOT, 'package.json')));
  if (packaged !== null) return packaged;
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major >= 24 || (major === 22 && minor >= 18)) return process.execPath;
  console.error(
    `Node ${process.versions.node} cannot run this project (22.18 or newer, 24 is tested): ${howToGetNode()}, then run the command again.`,
  );
  return process.exit(9);
}

/**
 * Runs a command on this terminal with the project's Node first on the PATH. Resolves to its exit code; for a signal
 * 128 + its number, as in shells. Ctrl-C reaches the command directly, so it is only awaited here.
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', cwd: ROOT, ...options });
    const forward = (signal) => void child.kill(signal);
    const ignore = () => undefined;
    process.on('SIGINT', ignore);
    process.on('SIGTERM', forward);
    const finish = () => {
      process.off('SIGINT', ignore);
      process.off('SIGTERM', forward);
    };
    child.on('error', (error) => {
      finish();
      reject(error);
    });
    child.on('exit', (code, signal) => {
      finish();
      resolve(code ?? 128 + ({ SIGINT: 2, SIGKILL: 9, SIGTERM: 15 }[signal] ?? 0));
    });
  });
}

/** Environment in which `node` and the tools of node_modules are the project's own. */
export function projectEnv(node) {
  const separator = process.platform === 'win32' ? ';' : ':';
  const path = [dirname(node), join(ROOT, 'node_modules', '.bin'), process.env.PATH ?? ''].join(separator);
  return { ...process.env, PATH: path };
}
