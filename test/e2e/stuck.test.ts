/**
 * A decision or a request that never comes back, in the very process of a user: all else goes on, and a stop is a stop.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { tokenIn } from '../../lib/api/server/token.ts';

/** The sources themselves, whose policies the test can reach: the launcher runs a compiled copy. */
const EBB = join(process.cwd(), 'bin', 'ebb.ts');
const POLICY = new URL('../fixtures/threads/spinning-policy.mjs', import.meta.url).href;
const API = new URL('../fixtures/threads/spinning-api.mjs', import.meta.url).href;
const scratch = mkdtempSync(join(tmpdir(), 'ebb-stuck-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
/** The engine waits for half a minute before it doubts a decision; a busy machine takes its time besides. */
const PATIENCE_MS = 480_000;

function running(name: string, ...jobs: readonly string[]) {
  const cwd = mkdtempSync(join(scratch, `${name}-`));
  for (const owner of jobs) {
    const file = { name: owner, owner, command: 'true', resources: { cpu: 1, memory: '64MiB' }, class: 'best-effort' };
    writeFileSync(join(cwd, `${owner}.json`), JSON.stringify(file));
  }
  const args = [EBB, 'run', ...jobs.map((j) => `${j}.json`), '--preset', 'greedy', '--speed', '120', '--json'];
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, NODE_OPTIONS: `--import=${POLICY}` },
  });
  const said = { out: '', err: '' };
  child.stdout.on('data', (text: Buffer) => (said.out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (said.err += text.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
  return { child, said, ended, cwd };
}

describe('a decision that never comes back', () => {
  it(
    'costs a minute: its job is held, all others are done, and the run says so',
    async () => {
      const { said, ended } = running('held', 'ana', 'spinner', 'zoe');
      expect(await ended).toBe(3);
      expect(said.err).toMatch(/did not come back from "decide"/);
      const { jobs } = JSON.parse(said.out) as {
        jobs: { job: { name: string; state: string; stateReason: string } }[];
      };
      expect(jobs.map(({ job }) => [job.name, job.state])).toEqual([
        ['ana', 'succeeded'],
        ['spinner', 'held'],
        ['zoe', 'succeeded'],
      ]);
      expect(jobs[1]?.job.stateReason).toMatch(/does not end within/);
    },
    PATIENCE_MS,
  );

  it(
    'keeps nobody from stopping the engine',
    async () => {
      const { child, said, ended } = running('stopped', 'spinner');
      const started = new Promise<void>((resolve) => child.stdout.on('data', () => resolve()));
      const submitted = new Promise<void>((resolve) => child.stderr.on('data', () => resolve()));
      await Promise.race([started, submitted]);
      // By then, or a moment later, the only cycle there is hangs.
      await new Promise((resolve) => setTimeout(resolve, 3000));
      child.kill('SIGTERM');
      expect(await ended).toBe(143);
      expect(said.err).toContain('nothing is left running');
    },
    PATIENCE_MS,
  );
});

describe('a request that never comes back', () => {
  it(
    'is ended, while all else goes on, and keeps nobody from stopping the engine',
    async () => {
      const dir = mkdtempSync(join(scratch, 'api-'));
      const args = [EBB, 'up', '--dir', dir, '--port', '0', '--preset', 'greedy', '--json'];
      const child = spawn(process.execPath, args, { env: { ...process.env, NODE_OPTIONS: `--import=${API}` } });
      let err = '';
      child.stderr.on('data', (text: Buffer) => (err += text.toString()));
      const ended = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)));
      const listening = new Promise<{ url: string }>((resolve) => {
        child.stdout.once('data', (text: Buffer) => resolve(JSON.parse(text.toString()) as { url: string }));
      });
      const { url } = await listening;
      const authorization = `Bearer ${tokenIn(join(dir, 'token'))}`;
      const asked = (path: string, init: RequestInit = {}): Promise<Response> =>
        fetch(`${url}${path}`, { ...init, headers: { authorization, 'content-type': 'application/json' } });
      const spin = (): Promise<Response> => asked('/api/jobs', { method: 'POST', body: '{"name":"spin-the-api"}' });

      const [first, beside] = await Promise.all([spin(), asked('/api/health')]);
      expect(first.status).toBe(500);
      expect(await first.json()).toMatchObject({ code: 'internal', retryable: false });
      // Waited for its turn, and had it or was ended with the other.
      expect([200, 500]).toContain(beside.status);
      expect((await asked('/api/health')).status).toBe(200);

      const second = spin().catch(() => null);
      await new Promise((resolve) => setTimeout(resolve, 2000));
      child.kill('SIGTERM');
      expect(await ended).toBe(0);
      expect(err).toContain('a request kept the engine from answering');
      expect(err).toContain('nothing is left running');
      await second;
    },
    PATIENCE_MS,
  );
});
