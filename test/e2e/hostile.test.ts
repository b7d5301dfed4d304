/** Jobs that once stopped the scheduler for everybody, submitted to a real engine beside others. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, it } from '@jest/globals';
import type { HealthView, JobList, SubmitAnswer } from '../../lib/api/schemas.ts';
import { stopAtOnce } from '../support/stop-at-once.ts';

const EBB = join(process.cwd(), 'bin', 'ebb.mjs');
const scratch = mkdtempSync(join(tmpdir(), 'ebb-hostile-'));
let engine: ChildProcess | null = null;
afterAll(async () => {
  if (engine !== null) await stopAtOnce(engine);
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});
/** An answer that takes longer is none. Before, none came for minutes. */
const ANSWER_MS = 20_000;
const PATIENCE_MS = 240_000;

const JOB = { workdir: scratch, command: 'true', resources: { cpu: 1, memory: '64MiB' } };
/** Exponential for a regular expression made of it; hides in a preference, which only a decision evaluates. */
const STARS = { ...JOB, name: 'stars', preferences: [{ prefer: { zones: `${'*'.repeat(63)}x` }, weight: 0.1 }] };
/** 2^22 patterns; the second stands for as many as are allowed, and one of them for a file. */
const BRACES = { ...JOB, name: 'braces', inputs: '{a,b}'.repeat(22) };
const FEWER_BRACES = { ...JOB, name: 'fewer-braces', inputs: '{a,b}'.repeat(9) };

async function up() {
  const args = [EBB, 'up', '--json', '--port', '0', '--dir', join(scratch, 'engine'), '--speed', '120'];
  const env = { PATH: process.env['PATH'] ?? '', HOME: scratch };
  const child = spawn(process.execPath, args, { cwd: scratch, env, stdio: ['ignore', 'pipe', 'pipe'] });
  engine = child;
  const said = { err: '' };
  child.stderr.on('data', (text: Buffer) => (said.err += text.toString()));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const first = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once('line', resolve);
    void ended.then((code) => reject(new Error(`ebb up ended with ${code}: ${said.err}`)));
  });
  const { url, tokenFile } = JSON.parse(first) as { url: string; tokenFile: string };
  const authorization = `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`;
  const ask = async (path: string, body?: object): Promise<{ readonly status: number; readonly answer: unknown }> => {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const headers = { authorization, 'content-type': 'application/json' };
    const response = await fetch(
      url + path,
      body === undefined ? { headers, signal } : { headers, signal, method: 'POST', body: JSON.stringify(body) },
    );
    return { status: response.status, answer: await response.json() };
  };
  return { child, said, ended, ask };
}

describe('patterns with many stars and braces', () => {
  it(
    'hold up nobody: the jobs beside them are done, health stays ok, and SIGTERM ends the engine',
    async () => {
      writeFileSync(join(scratch, 'a'.repeat(9)), '');
      const { child, said, ended, ask } = await up();
      const outcomes: number[] = [];
      for (const job of [{ ...JOB, name: 'before' }, STARS, BRACES, FEWER_BRACES, { ...JOB, name: 'after' }]) {
        const { status, answer } = await ask('/api/jobs', job);
        outcomes.push(status);
        if (status === 201) expect((answer as SubmitAnswer).job.name).toBe(job.name);
        else expect(answer).toMatchObject({ code: 'job-file.invalid' });
      }
      const health = new Set<string>();
      const states = async (): Promise<(readonly [string, string])[]> => {
        health.add(((await ask('/api/health')).answer as HealthView).status);
        const { items } = (await ask('/api/jobs')).answer as JobList;
        return items.map(({ name, state }) => [name, state] as const).sort();
      };
      let seen = await states();
      while (seen.some(([, state]) => state === 'pending' || state === 'running')) {
        await new Promise((resolve) => setTimeout(resolve, 200));
        seen = await states();
      }
      expect(seen).toEqual(['after', 'before', 'fewer-braces', 'stars'].map((name) => [name, 'succeeded']));
      expect([...health]).toEqual(['ok']);
      expect(outcomes).toEqual([201, 201, 400, 201, 201]);

      // One more is being decided on when the signal comes.
      expect((await ask('/api/jobs', { ...STARS, name: 'last' })).status).toBe(201);
      child.kill('SIGTERM');
      expect(await ended).toBe(0);
      engine = null;
      expect(said.err).toContain('nothing is left running');
    },
    PATIENCE_MS,
  );
});
