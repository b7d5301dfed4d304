import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Need, Way } from './install.ts';

/** Services of the store's tests, loaded before LocalStack is reported ready. */
export const STORES = ['dynamodb', 's3'];
/** Further services of a deployment and of the CDK, loaded at their first call. */
export const SERVICES = [
  ...STORES,
  ...['apigateway', 'cloudformation', 'cloudwatch', 'ec2', 'events', 'iam', 'kms', 'lambda', 'logs', 'scheduler'],
  ...['secretsmanager', 'sns', 'sqs', 'ssm', 'stepfunctions', 'sts'],
];

const GUARD = fileURLToPath(new URL('guard.ts', import.meta.url));
/** Time limit of a start; the first one on a machine downloads some 250 MB. */
const READY_WITHIN_MS = 600_000;

export interface LocalStack {
  readonly endpoint: string;
  /**
   * Endpoint of the DynamoDB Local behind LocalStack: requests take half the processor time, and its tables are unknown
   * to LocalStack. In a container: LocalStack's own endpoint.
   */
  readonly dynamodb: string;
  /** Pid of the process that ends LocalStack at SIGTERM. */
  readonly guard: number;
  readonly mode: 'docker' | 'host';
}

/**
 * Starts LocalStack with its state in `folder` (created, and removed at the end) and waits until every service answers.
 * It ends with the process `owner`, or without one by `stop`. Throws with LocalStack's output. Aborted while it starts,
 * it ends, and its folder is gone, before the signal's reason is thrown.
 */
export async function start(
  folder: string,
  owner: number | null,
  need: Need,
  signal?: AbortSignal,
): Promise<LocalStack> {
  mkdirSync(folder, { recursive: true });
  const log = openSync(join(folder, 'guard.log'), 'a');
  const guard = spawn(process.execPath, [GUARD, folder, String(owner ?? 0), need], {
    stdio: ['ignore', log, log],
    detached: true,
  });
  guard.unref();
  const patience = performance.now() + READY_WITHIN_MS;
  while (performance.now() < patience) {
    const ready = read<LocalStack>(join(folder, 'ready.json'));
    if (ready !== null) return ready;
    const failed = read<{ error: string }>(join(folder, 'failed.json'));
    if (failed !== null) throw new Error(`LocalStack does not start: ${failed.error}`);
    if (signal?.aborted === true) {
      if (guard.pid !== undefined && isAlive(guard.pid)) await stop({ guard: guard.pid });
      rmSync(folder, { recursive: true, force: true });
      signal.throwIfAborted();
    }
    if (guard.exitCode !== null || guard.signalCode !== null)
      throw new Error(`LocalStack does not start: see ${folder}/guard.log`);
    await sleep(100);
  }
  guard.kill();
  throw new Error(`LocalStack was not ready within ${READY_WITHIN_MS / 1000} s: see ${folder}/log`);
}

/** Folder of a test run's LocalStack. */
export const folderOf = (owner: number, mode: Way['mode']): string =>
  join(tmpdir(), `ebb-localstack-${mode ?? 'none'}-of-${owner}`);

/** LocalStack that runs with its state in `folder`; null if there is none. */
export function running(folder: string): LocalStack | null {
  const ready = read<LocalStack>(join(folder, 'ready.json'));
  return ready !== null && isAlive(ready.guard) ? ready : null;
}

/** Ends it and waits until all its processes have ended. */
export async function stop({ guard }: Pick<LocalStack, 'guard'>): Promise<void> {
  process.kill(guard, 'SIGTERM');
  while (isAlive(guard)) await sleep(50);
}

function read<T>(path: string): T | null {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as T) : null;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
