/** An import that is stopped leaves nothing behind. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-stopped-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));
const module = (path: string): string => JSON.stringify(new URL(`../../../lib/${path}`, import.meta.url).href);
const partials = (): string[] => readdirSync(cwd).filter((name) => name.endsWith('.partial'));

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly said: string;
}

/** Imports in a process of its own, stopped in the middle by itself: at the first progress that it is told of. */
const stopped = (how: string): Promise<Ended> =>
  ended(`
    import { readdirSync } from 'node:fs';
    import { importMarket } from ${module('local/market-import.ts')};
    await importMarket('prices.csv', 'p.ebbmarket', {
      onProgress: () => { console.log(readdirSync('.').filter((n) => n.endsWith('.partial')).length); ${how} },
    });
    console.log('done');`);

/** The same by the command, which draws its progress on a terminal. */
const stoppedCommand = (signal: string): Promise<Ended> =>
  ended(`
    import { importSource } from ${module('cli/actions/market.ts')};
    const stderr = {
      isTTY: true,
      write: (text) => {
        if (text.includes('reading')) process.kill(process.pid, '${signal}');
        else process.stdout.write(text);
      },
    };
    await importSource({ stdout: process.stdout, stderr, signals: process }, 'prices.csv', { output: 'p.ebbmarket', maxIssues: 20 });
    console.log('done');`);

async function ended(program: string): Promise<Ended> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd });
  let said = '';
  child.stdout.on('data', (chunk) => (said += String(chunk)));
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) =>
    child.on('close', (...of) => resolve(of)),
  );
  return { code, signal, said };
}

describe('an import that is stopped', () => {
  const rows = Array.from(
    { length: 50_000 },
    (_, i) => `${new Date(Date.UTC(2021, 0, 1) + i * 60_000).toISOString()},us-east-1a,c5.large,0.0${1 + (i % 9)}`,
  );
  writeFileSync(join(cwd, 'prices.csv'), `timestamp_utc,az,instance_type,price_usd_hr\n${rows.join('\n')}\n`);

  it.each(['SIGINT', 'SIGTERM'])('by %s: dies of it, and nothing half-written is left', async (signal) => {
    const ended = await stopped(`process.kill(process.pid, '${signal}');`);
    expect(ended.said).toMatch(/^1\n/);
    expect(ended.said).not.toContain('done');
    expect(ended.signal).toBe(signal);
    expect(partials()).toEqual([]);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('by %s to the command: says so, exits with %i, and nothing half-written is left', async (signal, code) => {
    const end = await stoppedCommand(signal);
    expect(end).toMatchObject({ code, said: expect.stringContaining('p.ebbmarket was not written') });
    expect(end.said).not.toContain('done');
    expect(readdirSync(cwd)).toEqual(['prices.csv']);
  });

  it('by an exit: the same', async () => {
    expect(await stopped('process.exit(7);')).toMatchObject({ code: 7 });
    expect(partials()).toEqual([]);
  });
});
