import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../lib/kernel/random.ts';
import { BID_FEATURES, FEATURES } from '../../../lib/market/features/names.ts';
import { modelManifest } from '../../../lib/models/manifest.ts';
import { openForecast } from '../../../lib/models/preemption.ts';
import { shippedModels } from '../../../lib/models/versions.ts';
import type { ForecastAnswered, ForecastQuestion } from '../../support/ask-forecast.ts';
import { writeModel } from '../../support/onnx-model.ts';

const MODELS = fileURLToPath(new URL('../../../models/preemption/', import.meta.url));
const versions = readdirSync(MODELS);
/** What golden parity is held to: between JAX, which made the file, and ONNX Runtime, which is asked. */
const TOLERANCE = 1e-5;
const MB = 1_000_000;

interface Golden {
  readonly inputs: readonly (readonly number[])[];
  readonly outputs: readonly (readonly number[])[];
}

const read = <T>(...path: readonly string[]): T => JSON.parse(readFileSync(join(MODELS, ...path), 'utf8')) as T;

function ask(question: ForecastQuestion): ForecastAnswered {
  const program = fileURLToPath(new URL('../../support/ask-forecast.ts', import.meta.url));
  const flags = ['--disable-warning=ExperimentalWarning', program];
  const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8', input: JSON.stringify(question) });
  if (stderr !== '') throw new Error(stderr);
  return JSON.parse(stdout) as ForecastAnswered;
}

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));
function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ebb-models-'));
  folders.push(folder);
  return folder;
}

it('the program finds the models that came along with it', () => {
  expect(shippedModels('preemption')).toBe(MODELS.slice(0, -1));
  expect(versions.length).toBeGreaterThan(0);
});

describe.each(versions)('the shipped model %s', (version) => {
  const places = { shipped: MODELS, own: null };

  it('is the file of its manifest, small, and takes what this program computes', () => {
    const manifest = modelManifest.parse(read(version, 'manifest.json'));
    const onnx = readFileSync(join(MODELS, version, 'model.onnx'));
    expect(manifest.version).toBe(version);
    expect(manifest.sha256).toBe(createHash('sha256').update(onnx).digest('hex'));
    expect(manifest.input.features.filter((name) => !FEATURES.includes(name))).toEqual([]);
    expect(statSync(join(MODELS, version, 'model.onnx')).size).toBeLessThan(5 * MB);
  });

  it('answers as it did where it was trained, in a batch and row by row', () => {
    const { inputs, outputs } = read<Golden>(version, 'golden.json');
    expect(inputs.length).toBeGreaterThanOrEqual(16);
    const { answers, refused } = ask({ chosen: version, places, batches: [inputs.flat(), ...inputs] });
    expect(refused).toBe(null);
    const [batch, ...single] = answers as readonly (readonly number[])[];
    const worst = (of: readonly number[], against: readonly number[]): number =>
      Math.max(...against.map((p, i) => Math.abs(p - (of[i] ?? NaN))));
    expect(worst(batch ?? [], outputs.flat())).toBeLessThanOrEqual(TOLERANCE);
    expect(worst(single.flat(), batch ?? [])).toBeLessThanOrEqual(TOLERANCE);
  });

  it('says no less for a longer time, and no more for a higher bid', () => {
    const random = randomStream(5, 'test/raised-bids');
    const STEPS = 5;
    // No feature of the bid falls when it rises, which is what a model may rely on: each row raises some of them by any
    // amount.
    const raised = read<Golden>(version, 'golden.json').inputs.flatMap((row) => {
      const rows = [[...row]];
      for (let s = 1; s < STEPS; s++) {
        const isRaised = (i: number): boolean => i >= FEATURES.length - BID_FEATURES.length && random() < 0.7;
        rows.push((rows.at(-1) ?? []).map((x, i) => (isRaised(i) ? x + random() * s : x)));
      }
      return rows;
    });
    const { answers } = ask({ chosen: version, places, batches: [raised.flat()] });
    const p = answers[0] as readonly number[];
    const width = p.length / raised.length;
    let fell = 0;
    for (const [at, here] of p.entries()) {
      if (at % width > 0) expect(here).toBeGreaterThanOrEqual((p[at - 1] ?? NaN) - 1e-7);
      if (at % (STEPS * width) < width) continue;
      const before = p[at - width] ?? NaN;
      expect(here).toBeLessThanOrEqual(before + 1e-7);
      if (here < before - 0.01) fell++;
    }
    expect(fell).toBeGreaterThan(10);
  });

  it('is refused when a byte of it is another, and history is left', async () => {
    const shipped = newFolder();
    cpSync(join(MODELS, version), join(shipped, version), { recursive: true });
    const file = join(shipped, version, 'model.onnx');
    const onnx = readFileSync(file);
    onnx[onnx.length >> 1] = (onnx[onnx.length >> 1] ?? 0) ^ 1;
    writeFileSync(file, onnx);
    const opened = await openForecast('model', { shipped, own: null }, FEATURES);
    expect(opened).toMatchObject({ chosen: 'model', model: null, fault: 'damaged' });
    expect(opened.refused).toMatch(/SHA-256/);
  });
});

describe('a model of one’s own', () => {
  it('takes the features that its manifest names, in its order', () => {
    const own = newFolder();
    const model = { weights: [[2], [-1]], bias: [0], activation: 'Sigmoid' as const };
    writeModel(join(own, 'v1'), model, (m) => ({
      ...m,
      input: { ...m.input, features: ['bidCalm7d', 'priceUsd'] },
    }));
    const row = FEATURES.map((name) => (name === 'priceUsd' ? 3 : name === 'bidCalm7d' ? 0.5 : 100));
    const { answers, version } = ask({ chosen: 'v1', places: { shipped: MODELS, own }, batches: [[...row, ...row]] });
    const expected = 1 / (1 + Math.exp(-(2 * 0.5 - 3)));
    expect(version).toBe('v1');
    expect(answers).toEqual([[expect.closeTo(expected, 5), expect.closeTo(expected, 5)]]);
  });
});
