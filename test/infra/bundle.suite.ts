import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assemble, codeDigest } from '../../lib/infra/bundle.ts';
import { CYCLE_STEPS } from '../../lib/infra/cycle.ts';
import { PLATFORMS, type Platform } from '../../lib/infra/packages.ts';
import { writeModel } from '../support/onnx-model.ts';
import { factsOf, FUNCTION_NAMES, type FunctionName } from '../../lib/infra/functions.ts';

const MB = 1_000_000;
/** Local header, central directory entry and end of a zip file: "4.3 Overall .ZIP file format", APPNOTE. */
const ZIP_BYTES_PER_FILE = 200;
/** Quick; what is packed better is smaller still. */
const LEVEL = { level: 1 };

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
      assembleFor(PLATFORMS.arm64, name, folder);
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

  it('is the handler and what it shares with others, and WebAssembly only where the solver is', () => {
    for (const [name, { files }] of assets) {
      expect([name, files[0]]).toEqual([name, 'index.mjs']);
      const other = files.filter((f) => !/^index\.mjs$|^[\w-]+-[\dA-Z]{8}\.mjs$|^node_modules\//.test(f));
      const isModel = (f: string): boolean => /^models\/preemption\/[^/]+\/(?:model\.onnx|manifest\.json)$/.test(f);
      expect([name, other.length > 0, other.every(isModel)]).toEqual([name, name === 'forecast', true]);
    }
    const packages = [...assets].map(([name, { files }]) => [name, files.filter((f) => f.startsWith('node_modules'))]);
    expect(Object.fromEntries(packages.filter(([, files]) => files?.length !== 0))).toEqual({
      forecast: expect.arrayContaining([
        'node_modules/onnxruntime-node/bin/napi-v6/linux/arm64/libonnxruntime.so.1',
        'node_modules/onnxruntime-node/bin/napi-v6/linux/arm64/onnxruntime_binding.node',
      ]),
      solve: [
        'node_modules/highs/LICENSE',
        'node_modules/highs/build/highs.mjs',
        'node_modules/highs/build/highs.wasm',
        'node_modules/highs/package.json',
      ],
    });
  });

  it('has a name, by which steps of the cycle tell theirs from other code', () => {
    const names = [codeDigest(CYCLE_STEPS), codeDigest(['api']), codeDigest(['snapshot'])];
    expect(names).toEqual(names.map(() => expect.stringMatching(/^[\da-f]{16}$/)));
    expect(new Set(names).size).toBe(3);
    expect(codeDigest([...CYCLE_STEPS].reverse())).toBe(names[0]);
  });

  it('has native files of Lambda’s platform only', () => {
    const files = [...assets].flatMap(([name, asset]) => asset.files.map((file) => join(root, name, file)));
    const native = files.filter((file) => /^\x7fELF/.test(readFileSync(file).toString('latin1', 0, 4)));
    // ELF header, e_machine: 183 is AArch64, 62 is x86-64.
    expect(native.map((file) => readFileSync(file).readUInt16LE(18))).toEqual([183, 183]);
    expect(files.filter((file) => /\.(?:node|so|dll|dylib)(?:\.|$)/.test(file)).sort()).toEqual(native.sort());
    const intel = join(root, 'intel');
    assembleFor(PLATFORMS.x86_64, 'forecast', intel);
    const library = 'node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1';
    expect(readFileSync(join(intel, library)).readUInt16LE(18)).toBe(62);
    expect(measured(intel).zippedBytes).toBeLessThan(50 * MB);
  });

  it('has nothing that it does not import', () => {
    for (const [name, { files }] of assets) {
      const modules = files.filter((f) => /^[^/]+\.mjs$/.test(f));
      const text = modules.map((f) => readFileSync(join(root, name, f), 'utf8')).join('\n');
      expect(modules.filter((f) => f !== 'index.mjs' && !text.includes(`"./${f}"`))).toEqual([]);
    }
  });

  it('has those shapes of EC2 that it uses, not all', () => {
    const modules = (assets.get('act')?.files ?? []).filter((f) => /^[^/]+\.mjs$/.test(f));
    const text = modules.map((f) => readFileSync(join(root, 'act', f), 'utf8')).join('\n');
    expect(text).toContain('CreateFleetRequest');
    expect(text).not.toContain('WithdrawByoipCidr');
  });

  it('names no place of this machine', () => {
    for (const [name, { files }] of assets)
      for (const file of files.filter((f) => f.endsWith('.mjs')))
        expect([name, file, readFileSync(join(root, name, file)).includes(process.cwd())]).toEqual([name, file, false]);
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

describe('the forecast’s code', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-forecast-'));
  beforeAll(() => assembleFor({ os: process.platform, arch: process.arch }, 'forecast', folder));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const start = `const { handler } = await import(${JSON.stringify(join(folder, 'index.mjs'))});
    const { sharedObjects } = process.report.getReport();
    console.log(JSON.stringify([typeof handler, sharedObjects.some((file) => file.includes('onnxruntime'))]));`;

  it('starts without opening its model, and without ONNX Runtime', () => {
    expect(runAlone(folder, start)).toEqual({ stdout: '["function",false]\n', stderr: '' });
  });

  it('has an ONNX Runtime that asks a model', () => {
    writeModel(join(folder, 'small'), { weights: [[1], [1]], bias: [0.5], activation: 'Sigmoid' });
    writeFileSync(
      join(folder, 'ask.mjs'),
      `import onnx from 'onnxruntime-node';
      const session = await onnx.InferenceSession.create(${JSON.stringify(join(folder, 'small', 'model.onnx'))});
      const x = new onnx.Tensor('float32', Float32Array.of(1, -1.5), [1, 2]);
      const { answer } = await session.run({ x });
      console.log(JSON.stringify([...answer.data]));`,
    );
    // 1 - 1.5 + 0.5 = 0, of which the sigmoid is a half.
    expect(runAlone(folder, `await import(${JSON.stringify(join(folder, 'ask.mjs'))});`)).toEqual({
      stdout: '[0.5]\n',
      stderr: '',
    });
  });
});

function assembleFor(platform: Platform, name: FunctionName, folder: string): void {
  const { packaged = [], models = [] } = factsOf(name);
  assemble(name, folder, { packaged, models, platform });
}

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
    (sum, file) =>
      sum + deflateRawSync(readFileSync(join(folder, file)), LEVEL).length + ZIP_BYTES_PER_FILE + 2 * file.length,
    0,
  );
  return { files, zippedBytes };
}
