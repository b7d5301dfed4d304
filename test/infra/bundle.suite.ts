import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { bundle, handlerFile } from '../../lib/infra/bundle.ts';
import { factsOf, FUNCTION_NAMES, type FunctionName } from '../../lib/infra/functions.ts';

const MB = 1_000_000;
/** Local header, central directory entry and end of a zip file: "4.3 Overall .ZIP file format", APPNOTE. */
const ZIP_BYTES_PER_FILE = 200;

interface Asset {
  readonly files: readonly string[];
  readonly zippedBytes: number;
}

describe('the code of the functions', () => {
  const root = mkdtempSync(join(tmpdir(), 'ebb-bundles-'));
  const assets = new Map<FunctionName, Asset>();
  beforeAll(() => {
    for (const name of FUNCTION_NAMES) {
      const folder = join(root, name);
      bundle(handlerFile(name), folder, factsOf(name).packaged ?? []);
      assets.set(name, measured(folder));
    }
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it.each(FUNCTION_NAMES)('%s is below 50 MB, zipped', (name) => {
    expect(assets.get(name)?.zippedBytes).toBeGreaterThan(1000);
    expect(assets.get(name)?.zippedBytes).toBeLessThan(50 * MB);
  });

  it('that takes jobs is below 5 MB, so that it starts fast', () => {
    expect(assets.get('intake')?.zippedBytes).toBeLessThan(5 * MB);
  });

  it('is one file, and WebAssembly only where the solver is', () => {
    for (const [name, { files }] of assets) {
      if (name === 'solve') continue;
      expect([name, files]).toEqual([name, ['index.mjs']]);
    }
    expect(assets.get('solve')?.files).toEqual([
      'index.mjs',
      'node_modules/highs/LICENSE',
      'node_modules/highs/build/highs.mjs',
      'node_modules/highs/build/highs.wasm',
      'node_modules/highs/package.json',
    ]);
  });

  it('does not depend on where the checkout lies: the same sources are the same asset', () => {
    const again = join(root, 'again');
    bundle(handlerFile('acquire'), again, []);
    const code = readFileSync(join(again, 'index.mjs'));
    expect(code.equals(readFileSync(join(root, 'acquire', 'index.mjs')))).toBe(true);
    expect(code.includes(process.cwd())).toBe(false);
  });

  it.each(FUNCTION_NAMES)('%s loads on its own and has a handler', (name) => {
    const program = `const { handler } = await import(${JSON.stringify(join(root, name, 'index.mjs'))});
      process.stdout.write(typeof handler); process.exit(0);`;
    expect(runAlone(root, program)).toEqual({ stdout: 'function', stderr: '' });
  });

  it('solves: HiGHS runs in a thread whose program is the bundle itself', () => {
    // max x + 2y, x + y <= 4.5, y <= 3, both whole: 1 + 6.
    const program = `import { Worker } from 'node:worker_threads';
      const worker = new Worker(new URL(${JSON.stringify(`file://${join(root, 'solve', 'index.mjs')}`)}), { execArgv: [] });
      worker.on('message', ({ outcome, detail }) => {
        process.stdout.write(JSON.stringify([outcome?.status ?? detail, outcome?.objective, [...(outcome?.values ?? [])]]));
        process.exit(0);
      });
      worker.postMessage({ kind: 'solve', start: null, limits: { relativeGap: 0, maxNodes: 100, maxSeconds: null }, model: {
        name: 'two', columns: 2, rows: 1, objective: Float64Array.of(1, 2),
        columnLower: Float64Array.of(0, 0), columnUpper: Float64Array.of(10, 3), integer: Uint8Array.of(1, 1),
        rowLower: Float64Array.of(-Infinity), rowUpper: Float64Array.of(4.5),
        rowStart: Int32Array.of(0, 2), columnIndex: Int32Array.of(0, 1), coefficient: Float64Array.of(1, 1),
      } });`;
    expect(runAlone(root, program)).toEqual({ stdout: '["optimal",7,[1,3]]', stderr: '' });
  });
});

/** In a process of its own, away from this checkout's node_modules: as in Lambda. */
function runAlone(root: string, program: string): { readonly stdout: string; readonly stderr: string } {
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'] ?? '' },
  });
  return { stdout, stderr };
}

function measured(folder: string): Asset {
  const files = (readdirSync(folder, { recursive: true }) as string[])
    .filter((file) => statSync(join(folder, file)).isFile())
    .sort();
  const zippedBytes = files.reduce(
    (sum, file) => sum + deflateRawSync(readFileSync(join(folder, file))).length + ZIP_BYTES_PER_FILE + 2 * file.length,
    0,
  );
  return { files, zippedBytes };
}
