import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';

/** The tutorial as a reader follows it: its files as they stand, then its commands in their order. */
const ROOT = process.cwd();
const text = readFileSync(join(ROOT, 'docs', 'write-a-policy.md'), 'utf8');
const files = [...text.matchAll(/^```(?:ts|yaml)\n(?:\/\/|#) (\S+)\n(.*?)^```$/gms)].map(
  ([, path = '', code = '']) => ({
    path,
    code,
  }),
);
const commands = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, lines = '']) => lines.trim().split('\n'));

const cwd = mkdtempSync(join(tmpdir(), 'ebb-tutorial-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));
writeFileSync(join(cwd, 'package.json'), '{"type":"module"}');
mkdirSync(join(cwd, 'examples'));
cpSync(join(ROOT, 'examples', 'hello.yaml'), join(cwd, 'examples', 'hello.yaml'));
for (const { path, code } of files) {
  mkdirSync(dirname(join(cwd, path)), { recursive: true });
  writeFileSync(join(cwd, path), code);
}

function run(command: string, ...more: readonly string[]) {
  const [, args = ''] = /^npm run -s ebb -- (.*)$/.exec(command) ?? [];
  const given = [join(ROOT, 'bin', 'ebb.mjs'), ...args.split(' '), ...more];
  return spawnSync(process.execPath, given, { cwd, encoding: 'utf8', timeout: 110_000 });
}

describe('the tutorial “Write a policy”', () => {
  it('has a module, settings and commands', () => {
    expect(files.map((f) => f.path)).toEqual([
      'my-policies/best-fit.ts',
      'my-policies/settings.yaml',
      'my-policies/patient.ts',
      'my-policies/wrapped.yaml',
    ]);
    const names = commands.map((c) => /^npm run -s ebb -- (\w+)/.exec(c)?.[1]);
    expect(names).toEqual(['config', 'simulate', 'run', 'simulate']);
  });

  it('compiles as strictly as this project, and fails to with a wrong answer', () => {
    const tsc = (path: string) => {
      const { compilerOptions } = JSON.parse(readFileSync(join(ROOT, 'tsconfig.json'), 'utf8')) as {
        compilerOptions: { paths: Readonly<Record<string, readonly string[]>> };
      };
      const paths = Object.fromEntries(
        Object.entries(compilerOptions.paths).map(([name, of]) => [name, of.map((p) => resolve(ROOT, p))]),
      );
      const own = { ...compilerOptions, paths, typeRoots: [join(ROOT, 'node_modules', '@types')] };
      writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions: own, files: [path] }));
      const bin = join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
      return spawnSync(process.execPath, [bin, '-p', join(cwd, 'tsconfig.json')], { cwd, encoding: 'utf8' });
    };
    const good = tsc('my-policies/best-fit.ts');
    expect([good.stdout, good.status]).toEqual(['', 0]);
    const wraps = tsc('my-policies/patient.ts');
    expect([wraps.stdout, wraps.status]).toEqual(['', 0]);
    const wrong = readFileSync(join(cwd, 'my-policies/best-fit.ts'), 'utf8').replace('return placements;', 'return 5;');
    writeFileSync(join(cwd, 'my-policies/wrong.ts'), wrong);
    expect(tsc('my-policies/wrong.ts').stdout).toContain("'number' is not assignable to type 'readonly Placement[]'");
  }, 120_000);

  const [list = '', simulate = '', start = '', simulateWrapped = ''] = commands;
  it('is found, simulated beside the default, and run on processes', () => {
    const listed = run(list, '--json');
    expect(listed.stderr).toBe('');
    expect(JSON.parse(listed.stdout)).toContainEqual(
      expect.objectContaining({ stage: 'place', name: 'best-fit', settings: ['spareVcpus'] }),
    );
    const { presets, warnings } = JSON.parse(run(simulate, '--json').stdout) as {
      presets: readonly { preset: string; succeeded: number }[];
      warnings: readonly string[];
    };
    expect(presets.map((p) => [p.preset, p.succeeded]).sort()).toEqual([
      ['ebbtide', 40],
      ['mine', 40],
    ]);
    expect(warnings.join(' ')).not.toContain('refused');
    const ran = run(start);
    expect([ran.status, ran.stdout]).toEqual([0, expect.stringContaining('hello succeeded')]);
    expect(ran.stderr).not.toContain('refused');
  }, 240_000);

  it('a wrapped policy does all work, and none of its answers is refused', () => {
    const { presets, warnings } = JSON.parse(run(simulateWrapped, '--json').stdout) as {
      presets: readonly { preset: string; succeeded: number }[];
      warnings: readonly string[];
    };
    expect(presets.map((p) => [p.preset, p.succeeded]).sort()).toEqual([
      ['ebbtide', 40],
      ['patient', 40],
    ]);
    expect(warnings.join(' ')).not.toContain('refused');
  }, 120_000);

  it('tells of a wrong answer, and the work is done all the same', () => {
    const path = join(cwd, 'my-policies/best-fit.ts');
    const code = readFileSync(path, 'utf8');
    writeFileSync(path, code.replace('return placements;', 'return [...placements, ...placements];'));
    const { stdout, stderr, status } = run(start);
    expect(status).toBe(0);
    expect(stdout + stderr).toContain('an answer of your policy place: best-fit was refused: it places');
    expect(stdout).toContain('hello succeeded');
  }, 120_000);
});
