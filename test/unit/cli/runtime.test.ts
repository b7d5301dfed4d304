import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';

/** Plain JavaScript, which has no types. */
const RUNTIME = new URL('../../../bin/runtime.mjs', import.meta.url).href;
const { howToGetNode, NODE_PACKAGES } = (await import(RUNTIME)) as {
  readonly howToGetNode: (platform: string, arch: string) => string;
  NODE_PACKAGES: Record<string, string>;
};

const { optionalDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  optionalDependencies: Record<string, string>;
};
const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
  packages: Record<string, { version?: string }>;
};

it('brings the same Node 24 along on every platform that it brings one to', () => {
  const carried = Object.entries(optionalDependencies).filter(([name]) => /^node-/.test(name));
  expect(carried.map(([name]) => name).sort()).toEqual(Object.values(NODE_PACKAGES).sort());
  expect([...new Set(carried.map(([, version]) => version))]).toEqual([expect.stringMatching(/^24\.\d+\.\d+$/)]);
  for (const [name, version] of carried) expect(packages[`node_modules/${name}`]).toMatchObject({ version });
});

it('says where to get Node on a platform that none comes along for', () => {
  expect(howToGetNode('darwin', 'arm64')).toBe(
    'install Node 24 (https://nodejs.org or `brew install node@24`): none comes along for darwin-arm64',
  );
  expect(howToGetNode('freebsd', 'x64')).not.toContain('brew');
  expect(howToGetNode('linux', 'x64')).toContain('--omit=optional');
});
