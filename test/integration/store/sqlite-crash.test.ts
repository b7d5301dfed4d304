import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';
import { openSqliteStore } from '../../../lib/drivers/local/store/sqlite-store.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { randomStream } from '../../../lib/kernel/random.ts';
import { raw } from '../../../lib/kernel/units.ts';

const folder = mkdtempSync(join(tmpdir(), 'ebb-store-crash-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const WRITER = fileURLToPath(new URL('./writer.ts', import.meta.url));
const KILLS = 12;

/** Runs the writer from round `from` and kills it `afterMs` after its first word. Its last acknowledged round. */
function runAndKill(path: string, from: number, afterMs: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [WRITER, path, String(from)], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    let faults = '';
    let timer: NodeJS.Timeout | undefined;
    child.stdout.on('data', (text: Buffer) => {
      output += text.toString();
      timer ??= setTimeout(() => child.kill('SIGKILL'), afterMs);
    });
    child.stderr.on('data', (text: Buffer) => (faults += text.toString()));
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (signal !== 'SIGKILL') reject(new Error(`the writer ended by itself (${code}): ${faults}`));
      else resolve(Number(output.slice(0, output.lastIndexOf('\n')).split('\n').at(-1)));
    });
  });
}

describe('sqlite store, kill -9', () => {
  it('keeps what was acknowledged, whole, and nothing half', async () => {
    const path = join(folder, 'ebb.db');
    const random = randomStream(20261121, 'kills');
    let next = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const acknowledged = await runAndKill(path, next, random() * 120);
      expect(acknowledged).toBeGreaterThanOrEqual(next);
      const store = openSqliteStore({ path });
      const round = Number((await store.memory('round')).get('round'));
      // One more may have been written than was said.
      expect([acknowledged, acknowledged + 1]).toContain(round);
      const rows = await store.ledger('all');
      expect(rows.map((r) => r.usd)).toEqual([round, round]);
      expect((await store.tasks(jobId('shared')))[0]?.attempts).toBe(round);
      const [instance] = (await store.instances(null, 1, null)).items;
      expect(instance === undefined ? null : raw(instance.requestedMs)).toBe(round);
      const events = await store.events(0, 100_000);
      const rounds = events.filter((e) => e.type === 'round');
      expect(rounds.map((e) => e.text)).toEqual(Array.from({ length: round + 1 }, (_, n) => String(n)));
      // Each submission whole: both jobs or none, each with its event.
      const { items } = await store.jobs({}, 100_000, null);
      const ids = new Set<string>(items.map((j) => j.id));
      const announced = events.filter((e) => e.type === 'job-submitted').map((e) => e.job);
      expect(announced).toEqual(items.map((j) => j.id).reverse());
      const submitted = items.length / 2;
      expect([round + 1, round + 2]).toContain(submitted);
      for (let n = 0; n < submitted; n++) {
        expect(ids.has(`j${n}a`) && ids.has(`j${n}b`)).toBe(true);
        const job = await store.job(jobId(`j${n}a`));
        expect(job?.state).toBe(n <= round ? 'running' : 'pending');
      }
      await store.close();
      // A round whose commit was cut off is submitted again under its keys: a repetition, never a second pair of jobs.
      next = round + 1;
    }
    expect(next).toBeGreaterThan(KILLS);
  }, 120_000);
});
