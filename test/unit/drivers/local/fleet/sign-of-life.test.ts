import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { SignOfLife } from '../../../../../lib/drivers/local/fleet/sign-of-life.ts';

const dir = mkdtempSync(join(tmpdir(), 'ebb-life-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

it('adds up silence from look to look, and begins anew with each sign', () => {
  const path = join(dir, 'a');
  writeFileSync(path, 'x');
  const life = new SignOfLife(path);
  expect([0, 1000, 3000].map((at) => life.silentMs(at))).toEqual([0, 1000, 3000]);
  utimesSync(path, new Date(5000), new Date(5000));
  expect([4000, 6000].map((at) => life.silentMs(at))).toEqual([0, 2000]);
});

it('blames nobody for a pause of the machine, or of the one who looks', () => {
  const life = new SignOfLife(join(dir, 'never-there'));
  expect([0, 3_600_000].map((at) => life.silentMs(at))).toEqual([0, 5000]);
});
