/** An import that is stopped, or a data set being drawn, leaves nothing behind. */
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
    import { importMarket } from ${module('drivers/local/market/import.ts')};
    await importMarket('prices.csv', 'p.ebbmarket', {
      onProgress: () => { console.log(readdirSync('.').filter((n) => n.endsWith('.partial')).length); ${how} },
    });
    console.log('done');`);

/** The same by a command, which draws its progress on a terminal: `what` of it is told when it is to stop. */
const stoppedCommand = (signal: string, what: string, command: string): Promise<Ended> =>
  ended(`
    import { importSource } from ${module('cli/actions/market.ts')};
    import { dataset } from ${module('cli/actions/dataset.ts')};
    const stderr = {
      isTTY: true,
      write: (text) => {
        if (text.includes('${what}')) process.kill(process.pid, '${signal}');
        else process.stdout.write(text);
      },
    };
    const streams = { stdout: process.stdout, stderr, signals: process };
    ${command}
    console.log('done');`);

const IMPORT = {
  what: 'reading',
  target: 'p.ebbmarket',
  command: "await importSource(streams, 'prices.csv', { output: 'p.ebbmarket', maxIssues: 20 });",
};
const DRAWING = {
  what: 'sampling',
  target: 'drawn',
  command: `const plan = { seed: 1, instants: 40_000, bids: 4, train: 0.6, validation: 0.2, unseen: 0 };
  await dataset(streams, ['prices.csv'], { ...plan, output: 'drawn', cache: 'cache' });`,
};

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
    { signal: 'SIGINT', code: 130, ...IMPORT },
    { signal: 'SIGTERM', code: 143, ...IMPORT },
    { signal: 'SIGINT', code: 130, ...DRAWING },
    { signal: 'SIGTERM', code: 143, ...DRAWING },
  ])(
    'by $signal to a command: says so, exits with $code, and nothing half-written is left ($what)',
    async ({ signal, code, what, command, target }) => {
      const end = await stoppedCommand(signal, what, command);
      expect(end).toMatchObject({ code, said: expect.stringContaining(`${target} was not written`) });
      expect(end.said).not.toContain('done');
      expect(readdirSync(cwd).filter((name) => name !== 'prices.csv' && name !== 'cache')).toEqual([]);
    },
  );

  it('by an exit: the same', async () => {
    expect(await stopped('process.exit(7);')).toMatchObject({ code: 7 });
    expect(partials()).toEqual([]);
  });
});
