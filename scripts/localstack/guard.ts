/**
 * One LocalStack and its keeper. Lifecycle: `start` (server.ts) spawns it detached -> LocalStack starts on a free port
 * -> `ready.json` when the stores answer -> SIGTERM, or the end of the owner's process -> LocalStack and all that it
 * started are ended, the folder is removed. The folder holds all of LocalStack's state.
 *
 *   node guard.ts FOLDER OWNER-PID|0 stores|functions
 */
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, openSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pidtree from 'pidtree';
import { install, wayToRun, type Need } from './install.ts';
import { SERVICES, STORES } from './server.ts';

/** The same release as in requirements.txt. */
const IMAGE = 'localstack/localstack:4.9.2';
const START_WITHIN_MS = 120_000;
/** Time limit of a service's first answer; it is asked again after that. */
const LOAD_WITHIN_MS = 30_000;
const POLL_MS = 200;
const LAMBDA = fileURLToPath(new URL('lambda', import.meta.url));

const [folder = '', owner = '0', need = 'stores'] = process.argv.slice(2);
let server: ChildProcess | null = null;
let ending = false;
/** Name of the container, if any: it outlives a killed `docker` command. */
let container: string | null = null;

process.on('SIGTERM', () => void end());
process.on('SIGINT', () => void end());
if (Number(owner) > 0) void watchOwner(Number(owner));
try {
  await serve();
} catch (error) {
  report('failed.json', { error: error instanceof Error ? error.message : String(error) });
  await end({ keepFolder: true });
}

async function serve(): Promise<void> {
  const way = wayToRun(need as Need);
  if (way.mode === null) throw new Error(way.missing);
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  // Port of DynamoDB. Only LocalStack's own port of a container is reachable from outside.
  const dynamodbPort = way.mode === 'docker' ? port : await freePort();
  const dynamodb = `http://127.0.0.1:${dynamodbPort}`;
  server = way.mode === 'docker' ? await startContainer(port) : await startOnHost(port, dynamodbPort, way.javaHome);
  const died = new Promise<never>((_, reject) => {
    server?.on('error', reject);
    server?.on('exit', (code, signal) => reject(new Error(`LocalStack ended (${signal ?? code}): see ${folder}/log`)));
  });
  died.catch(() => void end({ keepFolder: !existsSync(join(folder, 'ready.json')) }));
  await Promise.race([healthy(endpoint), died]);
  report('ready.json', { endpoint, dynamodb, guard: process.pid, mode: way.mode });
}

async function startContainer(port: number): Promise<ChildProcess> {
  // Pull before the start, which has a time limit.
  await promisify(execFile)('docker', ['pull', '--quiet', IMAGE]);
  container = `ebb-localstack-${process.pid}`;
  const env = { SERVICES: STORES.join(','), DISABLE_EVENTS: '1', DYNAMODB_IN_MEMORY: '1' };
  const set = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`]);
  return launch(
    'docker',
    ['run', '--rm', '--init', '--name', container, '-p', `127.0.0.1:${port}:4566`, ...set, IMAGE],
    {},
  );
}

async function startOnHost(port: number, dynamodbPort: number, javaHome: string): Promise<ChildProcess> {
  const { python, libraries, cache } = await install(javaHome);
  const root = join(folder, 'root');
  mkdirSync(join(root, 'usr', 'lib'), { recursive: true });
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  symlinkSync(libraries, join(root, 'usr', 'lib', 'localstack'));
  // Option -P: otherwise the run's folder is on Python's path, and the index of plugins is rebuilt.
  return launch(python, ['-P', '-m', 'localstack.runtime.main'], {
    SERVICES: SERVICES.join(','),
    ...functionsOnHost(cache),
    GATEWAY_LISTEN: `127.0.0.1:${port}`,
    LOCALSTACK_HOST: `127.0.0.1:${port}`,
    // Queue URLs that resolve without a name server.
    SQS_ENDPOINT_STRATEGY: 'path',
    // Other containers: LocalStack would otherwise assume its own image.
    OVERRIDE_IN_DOCKER: '0',
    FILESYSTEM_ROOT: root,
    TMPDIR: join(folder, 'tmp'),
    // No requests to the outside.
    DNS_ADDRESS: '0',
    SKIP_SSL_CERT_DOWNLOAD: '1',
    DISABLE_EVENTS: '1',
    DYNAMODB_IN_MEMORY: '1',
    DYNAMODB_LOCAL_PORT: String(dynamodbPort),
    // Fast start of DynamoDB Local, which lives for minutes. The second compiler's cost is never earned back: 29 s of
    // processor time against 12 s in two suites of the store.
    JAVA_TOOL_OPTIONS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC',
  });
}

/** Functions as processes of this program's Node: see lambda/ebb_lambda.py. */
function functionsOnHost(cache: string): Record<string, string> {
  return {
    PYTHONPATH: LAMBDA,
    // Compiled files and indexes stay out of the checkout and of the user's cache.
    PYTHONPYCACHEPREFIX: join(cache, 'python'),
    XDG_CACHE_HOME: cache,
    EBB_LAMBDA_NODE: process.execPath,
    LAMBDA_RUNTIME_EXECUTOR: 'ebb-node',
    // Functions exist when reported so; CloudFormation would ask again only after five seconds.
    LAMBDA_SYNCHRONOUS_CREATE: '1',
    // Constant polling of queues, as in AWS; LocalStack would pause up to 15 s at an empty one.
    LAMBDA_EVENT_SOURCE_MAPPING_MAX_BACKOFF_ON_EMPTY_POLL_SEC: '1',
  };
}

function launch(command: string, args: string[], env: Record<string, string>): ChildProcess {
  const log = openSync(join(folder, 'log'), 'a');
  // Settings of the user's AWS account and LocalStack must not reach it.
  const kept = Object.entries(process.env).filter(([name]) => !/^(AWS_|LOCALSTACK_|PYTHON)/.test(name));
  return spawn(command, args, {
    stdio: ['ignore', log, log],
    cwd: folder,
    env: { ...Object.fromEntries(kept), ...env },
  });
}

async function healthy(endpoint: string): Promise<void> {
  const patience = performance.now() + START_WITHIN_MS;
  for (;;) {
    try {
      const answer = await fetch(`${endpoint}/_localstack/health`, { signal: AbortSignal.timeout(2000) });
      const health = (await answer.json()) as { services: Record<string, string> };
      if (STORES.every((name) => health.services[name] === 'running')) return;
      await Promise.all(STORES.map((name) => load(endpoint, name)));
    } catch {
      // Not listening yet.
    }
    if (performance.now() > patience) throw new Error(`LocalStack did not answer within ${START_WITHIN_MS / 1000} s`);
    await sleep(POLL_MS);
  }
}

/** Loads a service by any call; the answer does not matter. */
async function load(endpoint: string, service: string): Promise<void> {
  const credential = `Credential=test/20260101/us-east-1/${service}/aws4_request`;
  const headers = { authorization: `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=host, Signature=0` };
  const target = { 'x-amz-target': 'DynamoDB_20120810.ListTables', 'content-type': 'application/x-amz-json-1.0' };
  const patience = AbortSignal.timeout(LOAD_WITHIN_MS);
  const answer =
    service === 'dynamodb'
      ? await fetch(endpoint, { method: 'POST', headers: { ...headers, ...target }, body: '{}', signal: patience })
      : await fetch(endpoint, { headers, signal: patience });
  await answer.arrayBuffer();
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

/** Atomic write: readers of the file never see half of it. */
function report(name: string, content: unknown): void {
  if (!existsSync(folder)) return;
  writeFileSync(join(folder, `${name}.new`), JSON.stringify(content));
  renameSync(join(folder, `${name}.new`), join(folder, name));
}

async function watchOwner(pid: number): Promise<void> {
  while (isAlive(pid)) await sleep(POLL_MS);
  await end();
}

async function end(options = { keepFolder: false }): Promise<void> {
  if (ending) return;
  ending = true;
  const pid = server?.exitCode === null ? server.pid : undefined;
  if (pid !== undefined) {
    // Stopped first: it would start functions while its children are counted. Its state is dropped, so there is no
    // orderly end.
    signal(pid, 'SIGSTOP');
    const descendants = await pidtree(pid).catch(() => [] as number[]);
    for (const left of [pid, ...descendants]) signal(left, 'SIGKILL');
    if (container !== null) spawnSync('docker', ['rm', '--force', container], { stdio: 'ignore' });
    while ([pid, ...descendants].some(isAlive)) await sleep(POLL_MS / 10);
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

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // Process has ended.
  }
}
