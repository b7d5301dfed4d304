/**
 * One LocalStack and its keeper. Lifecycle: spawned detached by `start` (server.ts) -> LocalStack is started on a free
 * port -> `ready.json` when every service answers -> ended by SIGTERM, or when its owner's process is gone -> LocalStack
 * and all that it started are ended, the folder is removed. All of LocalStack's state is in that folder.
 *
 *   node guard.ts FOLDER SERVICES OWNER-PID|0
 */
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, openSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pidtree from 'pidtree';
import { install, wayToRun } from './install.ts';

/** The same release as in requirements.txt. */
const IMAGE = 'localstack/localstack:4.9.2';
const START_WITHIN_MS = 120_000;
const POLL_MS = 200;
/** LocalStack ends its children in this time; then all are killed. */
const END_WITHIN_MS = 5000;

const [folder = '', services = '', owner = '0'] = process.argv.slice(2);
let server: ChildProcess | null = null;
let ending = false;
/** Set where LocalStack is a container: it outlives a `docker` command that is killed. */
let container: string | null = null;

process.on('SIGTERM', () => void end('SIGTERM'));
process.on('SIGINT', () => void end('SIGTERM'));
if (Number(owner) > 0) void watchOwner(Number(owner));
try {
  await serve();
} catch (error) {
  report('failed.json', { error: error instanceof Error ? error.message : String(error) });
  await end('SIGKILL', { keepFolder: true });
}

async function serve(): Promise<void> {
  const way = wayToRun();
  if (way.mode === null) throw new Error(way.missing);
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  server = way.mode === 'docker' ? await startContainer(port) : await startOnHost(port, way.javaHome);
  const died = new Promise<never>((_, reject) => {
    server?.on('error', reject);
    server?.on('exit', (code, signal) => reject(new Error(`LocalStack ended (${signal ?? code}): see ${folder}/log`)));
  });
  died.catch(() => void end('SIGKILL', { keepFolder: !existsSync(join(folder, 'ready.json')) }));
  await Promise.race([healthy(endpoint), died]);
  report('ready.json', { endpoint, guard: process.pid, mode: way.mode });
}

async function startContainer(port: number): Promise<ChildProcess> {
  // Apart from the start, which has a time limit.
  await promisify(execFile)('docker', ['pull', '--quiet', IMAGE]);
  container = `ebb-localstack-${process.pid}`;
  const env = { SERVICES: services, EAGER_SERVICE_LOADING: '1', DISABLE_EVENTS: '1', DYNAMODB_IN_MEMORY: '1' };
  const set = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  return launch(
    'docker',
    ['run', '--rm', '--init', '--name', container, '-p', `127.0.0.1:${port}:4566`, ...set, IMAGE],
    {},
  );
}

async function startOnHost(port: number, javaHome: string): Promise<ChildProcess> {
  const { python, libraries } = await install(javaHome);
  const root = join(folder, 'root');
  mkdirSync(join(root, 'usr', 'lib'), { recursive: true });
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  symlinkSync(libraries, join(root, 'usr', 'lib', 'localstack'));
  return launch(python, ['-m', 'localstack.runtime.main'], {
    SERVICES: services,
    EAGER_SERVICE_LOADING: '1',
    GATEWAY_LISTEN: `127.0.0.1:${port}`,
    LOCALSTACK_HOST: `127.0.0.1:${port}`,
    // Queue URLs that resolve without a name server.
    SQS_ENDPOINT_STRATEGY: 'path',
    // In a container of another kind LocalStack would take itself to be in its own image.
    OVERRIDE_IN_DOCKER: '0',
    FILESYSTEM_ROOT: root,
    TMPDIR: join(folder, 'tmp'),
    // Nothing outside is asked for or told anything.
    DNS_ADDRESS: '0',
    SKIP_SSL_CERT_DOWNLOAD: '1',
    DISABLE_EVENTS: '1',
    DYNAMODB_IN_MEMORY: '1',
  });
}

function launch(command: string, args: string[], env: Record<string, string>): ChildProcess {
  const log = openSync(join(folder, 'log'), 'a');
  // Settings of the person's own AWS account and LocalStack must not reach it.
  const kept = Object.entries(process.env).filter(([name]) => !/^(AWS_|LOCALSTACK_|PYTHON)/.test(name));
  return spawn(command, args, {
    stdio: ['ignore', log, log],
    cwd: folder,
    env: { ...Object.fromEntries(kept), ...env },
  });
}

async function healthy(endpoint: string): Promise<void> {
  const wanted = services.split(',');
  const patience = performance.now() + START_WITHIN_MS;
  for (;;) {
    try {
      const answer = await fetch(`${endpoint}/_localstack/health`, { signal: AbortSignal.timeout(2000) });
      const health = (await answer.json()) as { services: Record<string, string> };
      if (wanted.every((name) => health.services[name] === 'running')) return;
    } catch {
      // Not listening yet.
    }
    if (performance.now() > patience) throw new Error(`LocalStack did not answer within ${START_WITHIN_MS / 1000} s`);
    await sleep(POLL_MS);
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** Whole or not at all: who waits for the file never reads half of it. */
function report(name: string, content: unknown): void {
  if (!existsSync(folder)) return;
  writeFileSync(join(folder, `${name}.new`), JSON.stringify(content));
  renameSync(join(folder, `${name}.new`), join(folder, name));
}

async function watchOwner(pid: number): Promise<void> {
  while (isAlive(pid)) await sleep(POLL_MS);
  await end('SIGKILL');
}

async function end(signal: 'SIGTERM' | 'SIGKILL', options = { keepFolder: false }): Promise<void> {
  if (ending) return;
  ending = true;
  const pid = server?.exitCode === null ? server.pid : undefined;
  if (pid !== undefined) {
    // Read before LocalStack ends: afterwards nobody knows whose children they were.
    const descendants = await pidtree(pid).catch(() => [] as number[]);
    server?.kill(signal);
    const patience = performance.now() + END_WITHIN_MS;
    const all = [pid, ...descendants];
    while (all.some(isAlive) && performance.now() < patience && signal === 'SIGTERM') await sleep(POLL_MS / 4);
    for (const left of all) kill(left);
    if (container !== null) spawnSync('docker', ['rm', '--force', container], { stdio: 'ignore' });
  }
  if (!options.keepFolder) rmSync(folder, { recursive: true, force: true });
  process.exit(options.keepFolder ? 1 : 0);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}
