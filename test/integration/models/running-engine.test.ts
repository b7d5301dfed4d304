import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, expect, it } from '@jest/globals';
import type { PlanList } from '../../../lib/api/schemas.ts';
import { always } from '../../support/constant-model.ts';
import { stopAtOnce } from '../../support/stop-at-once.ts';

const EBB = join(process.cwd(), 'bin', 'ebb.mjs');
const SHIPPED = '2026-11-21-trees';
const scratch = mkdtempSync(join(tmpdir(), 'ebb-running-engine-'));
const dir = join(scratch, 'engine');
let engine: ChildProcess | null = null;

afterEach(async () => {
  if (engine !== null) await stopAtOnce(engine);
});
afterAll(() => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }));

function ebb(...args: string[]): void {
  const { status, stderr } = spawnSync(process.execPath, [EBB, ...args], { cwd: scratch, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** `ebb up`, its address and its number of process. */
async function up(...args: string[]): Promise<{ readonly url: string; readonly pid: number }> {
  const child = spawn(process.execPath, [EBB, 'up', '--json', '--port', '0', '--dir', dir, ...args], {
    cwd: scratch,
    env: { ...process.env, XDG_STATE_HOME: scratch },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  engine = child;
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`ebb up ended with ${code}`)));
    createInterface({ input: child.stdout }).once('line', (line) =>
      resolve(JSON.parse(line) as { url: string; pid: number }),
    );
  });
}

async function asked<T>(url: string, init?: RequestInit & { readonly headers?: Record<string, string> }): Promise<T> {
  const authorization = `Bearer ${readFileSync(join(dir, 'token'), 'utf8').trim()}`;
  const answer = await fetch(url, { ...init, headers: { ...init?.headers, authorization } });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as T;
}

let jobs = 0;
/** What made the forecast of the first plan that decides on a job which is submitted now. */
async function forecastOfNewJob(url: string): Promise<PlanList['items'][number]['forecast']> {
  const body = JSON.stringify({
    name: `job-${++jobs}`,
    owner: 'tester',
    class: 'best-effort',
    stages: [{ name: 'main', command: ['true'], workdir: scratch, resources: { cpu: 1, memory: '64MiB' } }],
  });
  const headers = { 'content-type': 'application/json' };
  const { job } = await asked<{ job: { id: string } }>(`${url}/api/jobs`, { method: 'POST', headers, body });
  for (;;) {
    const { items } = await asked<PlanList>(`${url}/api/plans?limit=200`);
    const first = items.findLast((plan) => plan.jobs.includes(job.id));
    if (first !== undefined) return first.forecast;
    await sleep(50);
  }
}

it('a running engine asks the version that is chosen meanwhile, and the one before after a rollback', async () => {
  const market = join(scratch, 'market.ebbmarket');
  const of = ['--days', '10', '--types', 'm5.large', '--zones', 'us-east-1a'];
  ebb('market', 'generate', '-o', market, '--seed', '7', ...of);
  always(join(dir, 'models', 'preemption', 'mine'), 0.3);
  const from = ['--market', market, '--from', '2026-01-13T00:00:00Z', '--speed', '60'];
  const { url, pid } = await up(...from, '--set', 'forecast=model');
  expect(await forecastOfNewJob(url)).toMatchObject({ chosen: 'model', refused: null, version: SHIPPED });
  ebb('models', 'use', 'mine', '--dir', dir);
  expect(await forecastOfNewJob(url)).toMatchObject({ chosen: 'model', refused: null, version: 'mine' });
  ebb('models', 'use', '--rollback', '--dir', dir);
  expect(await forecastOfNewJob(url)).toMatchObject({ refused: null, version: SHIPPED });
  // It is the same process all along.
  expect(engine).toMatchObject({ pid, exitCode: null });
}, 60_000);
