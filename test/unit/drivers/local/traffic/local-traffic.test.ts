import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';

const scratch = mkdtempSync(join(tmpdir(), 'ebb-traffic-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const MODULE = JSON.stringify(
  new URL('../../../../../lib/drivers/local/traffic/local-traffic.ts', import.meta.url).href,
);

/** A program with nothing else to do than to wait for the proxy's thread. */
const PROGRAM = `
  import { LocalTraffic } from ${MODULE};
  const traffic = new LocalTraffic();
  const health = { path: '/', intervalS: 60, timeoutS: 1, graceS: 60, failures: 3 };
  const target = { latencyS: 1, percent: 95 };
  const route = { service: 'web', target, health, concurrency: null, drainS: 1, port: null, targets: [] };
  await traffic.route([route]).catch((error) => console.log('refused', error.message));
  console.log('address', typeof (await traffic.address('web')));
  await traffic.close();
  console.log('closed');
`;

describe('the thread of the proxy', () => {
  it('keeps a program alive that waits for it, and no other', () => {
    const ran = (program: string) => {
      const path = join(scratch, 'program.mjs');
      writeFileSync(path, program);
      return spawnSync(process.execPath, [path], { encoding: 'utf8', timeout: 60_000 });
    };
    const waiting = ran(PROGRAM);
    expect(waiting.stdout.split('\n').slice(-3)).toEqual(['address string', 'closed', '']);
    expect(waiting.status).toBe(0);
    const forgotten = ran(PROGRAM.replace('await traffic.close();', ''));
    expect([forgotten.status, forgotten.signal]).toEqual([0, null]);
  });
});
