import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { putOutputs, type Places } from '../../../../../lib/drivers/local/fleet/staging.ts';

let dir: string;
let places: Places;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'ebb-outputs-'));
  places = { workdir: join(dir, 'project'), scratch: join(dir, 'scratch'), fleetDir: join(dir, 'fleet') };
  for (const name of ['project', 'scratch', 'fleet', 'elsewhere']) mkdirSync(join(dir, name));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const produce = (...path: string[]): void => {
  const file = join(places.scratch, ...path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, 'result');
};

describe('outputs below a link that leads out of the working directory', () => {
  it('are refused before any folder is made there', async () => {
    symlinkSync(join(dir, 'elsewhere'), join(places.workdir, 'out'));
    produce('out', 'a', 'b', 'file');
    await expect(putOutputs(['out/a/b/file'], places)).rejects.toThrow(/leads out of the working directory/);
    await expect(putOutputs(['out'], places)).rejects.toThrow(/leads out of the working directory/);
    expect(readdirSync(join(dir, 'elsewhere'))).toEqual([]);
  });

  it('are refused where the link leads to nothing', async () => {
    symlinkSync(join(dir, 'not-there'), join(places.workdir, 'out'));
    produce('out', 'a', 'file');
    await expect(putOutputs(['out/a/file'], places)).rejects.toThrow(/leads through a link to nothing/);
    expect(existsSync(join(dir, 'not-there'))).toBe(false);
  });

  it('are put where a link stays inside, and where folders are missing', async () => {
    mkdirSync(join(places.workdir, 'real'));
    symlinkSync('real', join(places.workdir, 'out'));
    produce('out', 'a', 'file');
    produce('new', 'deep', 'file');
    await putOutputs(['out/a/file', 'new/**'], places);
    expect(readFileSync(join(places.workdir, 'real', 'a', 'file'), 'utf8')).toBe('result');
    expect(readFileSync(join(places.workdir, 'new', 'deep', 'file'), 'utf8')).toBe('result');
  });
});
