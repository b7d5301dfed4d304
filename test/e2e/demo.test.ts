import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';

/* The example of `npm start`: its work lasts as long on any machine, long enough for the market to take an instance. */

const ROOT = process.cwd();
const scratch = mkdtempSync(join(tmpdir(), 'ebb-demo-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function example(name: string): string {
  const folder = join(scratch, name);
  cpSync(join(ROOT, 'examples', 'factor'), folder, {
    recursive: true,
    filter: (source) => !source.includes(join('factor', 'outputs')),
  });
  return folder;
}

type Numbers = Record<string, { primes: string[]; open: string[] }>;
const factored = (folder: string): string[] =>
  Object.entries(JSON.parse(readFileSync(join(folder, 'outputs', 'part-0.json'), 'utf8')) as Numbers).flatMap(
    ([text, { open }]) => (open.length === 0 ? [text] : []),
  );

function factor(folder: string, seconds: number): string {
  const checkpoint = join(folder, 'checkpoint');
  mkdirSync(checkpoint, { recursive: true });
  const { status, stdout, stderr } = spawnSync(process.execPath, ['factor.mjs', 'numbers.txt', '0', '1'], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '', EBB_CHECKPOINT_DIR: checkpoint, FACTOR_SECONDS: String(seconds) },
  });
  expect([status, stderr]).toEqual([0, '']);
  return stdout;
}

describe('the example of `npm start`', () => {
  it('goes on beyond its list while there is time, and its result is right', () => {
    const folder = example('short-list');
    writeFileSync(join(folder, 'numbers.txt'), '2^67-1\n');
    factor(folder, 3);
    expect(factored(folder).length).toBeGreaterThan(1);
    const verify = spawnSync(process.execPath, ['verify.mjs'], { cwd: folder, encoding: 'utf8' });
    expect(verify.stdout).toMatch(/^\d+ factorisations are right/);
  });

  it('counts the time of all its attempts: one that goes on with its time used up does nothing more', () => {
    const folder = example('used-up');
    factor(folder, 2);
    const before = factored(folder);
    expect(factor(folder, 2)).toMatch(/^resumed: .* in 2 s\n$/);
    expect(factored(folder)).toEqual(before);
  });

  it('loses an instance to the market, goes on elsewhere, and tells refunds apart', () => {
    const folder = example('whole');
    const args = ['bin/ebb.mjs', 'run', join(folder, 'job.yaml'), '--speed', '60', '--dir', join(scratch, 'engine')];
    const { status, stdout } = spawnSync(process.execPath, [...args, '--json'], { encoding: 'utf8', cwd: ROOT });
    expect(status).toBe(0);
    const figures = JSON.parse(stdout) as Record<string, number>;
    expect(figures['instancesLost']).toBeGreaterThanOrEqual(1);
    expect(figures['tasksMoved']).toBeGreaterThanOrEqual(1);
    expect(figures['refundedUsd']).toBeGreaterThan(0);
    expect(figures['savedWithoutRefunds']).toBeLessThan(figures['saved'] ?? 0);
  }, 400_000);
});
