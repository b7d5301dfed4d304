import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';
import { openModel, type Opening } from '../../../lib/models/model.ts';
import type { Asked, Question } from '../../support/ask-model.ts';
import { denseModel, writeModel, type DenseModel } from '../../support/onnx-model.ts';

const SIGMOID: DenseModel = {
  weights: [
    [1, -2, 0.5],
    [0, 3, -1],
  ],
  bias: [0.1, -0.2, 0],
  activation: 'Sigmoid',
};
const FEATURES = ['feature0', 'feature1'];

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-model-'));
  folders.push(folder);
  return folder;
}
function folderWith(...[model, change]: [DenseModel, Parameters<typeof writeModel>[2]?]): string {
  const folder = newFolder();
  writeModel(folder, model, change);
  return folder;
}
function ask(folder: string, batches: Question['batches'], known: readonly string[] = FEATURES): Asked {
  const question: Question = { folder, known, batches };
  const program = fileURLToPath(new URL('../../support/ask-model.ts', import.meta.url));
  const flags = ['--disable-warning=ExperimentalWarning', program, JSON.stringify(question)];
  const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8' });
  if (stderr !== '') throw new Error(stderr);
  return JSON.parse(stdout) as Asked;
}

describe('a model', () => {
  it('may say in its manifest where it comes from', () => {
    const training = {
      seed: 1,
      sources: [{ name: 'a', from: '2016-02-24T00:00:00Z' }],
      normalisation: { mean: [0.5] },
    };
    const folder = folderWith(SIGMOID, (m) => ({ ...m, training }));
    expect(ask(folder, [[0, 0]]).kind).toBe('open');
  });

  it('answers what its formula gives, row by row', () => {
    const rows = [
      [0, 0],
      [1, -1],
      [-3.5, 2],
    ];
    const { answers, horizonsS } = ask(folderWith(SIGMOID), [rows.flat()]);
    const expected = rows.flatMap(([a = 0, b = 0]) =>
      SIGMOID.bias.map((c, j) => {
        const sum = a * (SIGMOID.weights[0]?.[j] ?? 0) + b * (SIGMOID.weights[1]?.[j] ?? 0) + c;
        return 1 / (1 + Math.exp(-sum));
      }),
    );
    expect(answers).toEqual([{ values: expected.map((value) => expect.closeTo(value, 5)) }]);
    expect(horizonsS).toEqual([3600, 7200, 10800]);
  });

  it('answers nothing for no rows, and refuses half a row', () => {
    const { answers } = ask(folderWith(SIGMOID), [[], [1, 2, 3]]);
    expect(answers).toEqual([{ values: [] }, expect.stringContaining('rows of 2')]);
  });

  it('says which row has no number', () => {
    const { answers } = ask(folderWith({ weights: [[1]], bias: [1], activation: 'Log' }), [[0, 3, -4]]);
    expect(answers).toEqual([{ row: 2 }]);
  });

  it('that gives no numbers is refused', () => {
    const { kind, what } = ask(folderWith({ weights: [[1]], bias: [-1], activation: 'Log' }), []);
    expect([kind, what]).toEqual(['not-finite', 'the model preemption v1 gives numbers that are not finite']);
  });

  const refusals: readonly [string, (folder: string) => void, Partial<Opening>, RegExp][] = [
    ['without files', () => undefined, { kind: 'missing' }, /manifest\.json|model\.onnx/],
    [
      'of other bytes',
      (folder) => {
        writeModel(folder, SIGMOID);
        writeFileSync(join(folder, 'model.onnx'), denseModel({ ...SIGMOID, bias: [0, 0, 0] }));
      },
      { kind: 'damaged' },
      /preemption v1 .*SHA-256/,
    ],
    [
      'that is no model',
      (folder) => {
        writeModel(folder, SIGMOID, (m) => ({
          ...m,
          sha256: '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824',
        }));
        writeFileSync(join(folder, 'model.onnx'), 'hello');
      },
      { kind: 'damaged' },
      /cannot be loaded/,
    ],
    [
      'with a manifest that is no JSON',
      (folder) => {
        writeModel(folder, SIGMOID);
        writeFileSync(join(folder, 'manifest.json'), '{');
      },
      { kind: 'damaged' },
      /manifest\.json cannot be read: it is no JSON/,
    ],
    [
      'with a manifest of other widths',
      (folder) =>
        writeModel(folder, SIGMOID, (m) => ({ ...m, input: { ...m.input, width: 3 }, unknown: 1, opset: undefined })),
      { kind: 'damaged' },
      /opset.*unknown|unknown.*opset/s,
    ],
    [
      'that takes features which nobody computes',
      (folder) => writeModel(folder, SIGMOID, (m) => ({ ...m, input: { ...m.input, features: ['feature0', 'tide'] } })),
      { kind: 'mismatch' },
      /does not compute: tide$/,
    ],
    [
      'whose input has another name',
      (folder) => writeModel(folder, SIGMOID, (m) => ({ ...m, input: { ...m.input, name: 'features' } })),
      { kind: 'mismatch' },
      /inputs x and not the one that its manifest names, features/,
    ],
    [
      'whose output is wider than said',
      (folder) => writeModel(folder, SIGMOID, (m) => ({ ...m, output: { ...m.output, width: 1, horizonsS: [3600] } })),
      { kind: 'mismatch' },
      /output of float32 \[rows x 3\] and not of rows x 1/,
    ],
  ];
  it.each(refusals)('%s is refused, and said why', async (_, make, expected, what) => {
    const folder = newFolder();
    make(folder);
    const opening = await openModel(folder, FEATURES);
    expect(opening).toMatchObject(expected);
    expect('what' in opening ? opening.what : '').toMatch(what);
  });
});

describe('ONNX Runtime', () => {
  it('is loaded for a model that fits and not for one whose manifest is refused', () => {
    const folder = folderWith(SIGMOID);
    expect(ask(folder, [], ['feature0'])).toMatchObject({ kind: 'mismatch', isLoaded: false });
    expect(ask(folder, [])).toMatchObject({ kind: 'open', isLoaded: true });
  });
});
