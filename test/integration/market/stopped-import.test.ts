/** An import that is stopped leaves nothing behind. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';

const cwd = mkdtempSync(join(tmpdir(), 'ebb-stopped-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));
const module = (path: string): string => JSON.stringify(new URL(`../../../lib/local/${path}`, import.meta.url).href);
const partials = (): string[] => readdirSync(cwd).filter((name) => name.endsWith('.partial'));

/** Imports in a process of its own, stopped in the middle by itself: at the first progress that it is told of. */
async function stopped(
  how: string,
): Promise<{ readonly code: number | null; readonly signal: string | null; readonly said: string }> {
  const program = `
    import { readdirSync } from 'node:fs';
    import { importMarket } from ${module('market-import.ts')};
    await importMarket('prices.csv', 'p.ebbmarket', {
      onProgress: () => { console.log(readdirSync('.').filter((n) => n.endsWith('.partial')).length); ${how} },
    });
    console.log('done');`;
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

  it('by an exit: the same', async () => {
    expect(await stopped('process.exit(7);')).toMatchObject({ code: 7 });
    expect(partials()).toEqual([]);
  });
});
