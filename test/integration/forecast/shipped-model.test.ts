import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../lib/kernel/random.ts';
import { BID_FEATURES, FEATURES } from '../../../lib/market/features/names.ts';
import type { Asked, Question } from '../../support/ask-model.ts';

const MODELS = fileURLToPath(new URL('../../../models/preemption', import.meta.url));
const VERSION = '2026-11-21-trees';

interface Golden {
  readonly tolerance: number;
  readonly inputs: readonly (readonly number[])[];
  readonly outputs: readonly (readonly number[])[];
}
const golden = JSON.parse(readFileSync(join(MODELS, VERSION, 'golden.json'), 'utf8')) as Golden;

/** One batch; the newest version of those that are shipped. */
function curves(rows: readonly (readonly number[])[]): number[][] {
  const question: Question = { folder: MODELS, known: FEATURES, batches: [rows.flat()] };
  const program = fileURLToPath(new URL('../../support/ask-model.ts', import.meta.url));
  const flags = ['--disable-warning=ExperimentalWarning', program, JSON.stringify(question)];
  const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8' });
  if (stderr !== '') throw new Error(stderr);
  const { version, horizonsS = [], answers = [] } = JSON.parse(stdout) as Asked;
  expect(version).toBe(VERSION);
  const [answer] = answers;
  if (typeof answer !== 'object' || !('values' in answer)) throw new Error('no values');
  return rows.map((_, i) => answer.values.slice(i * horizonsS.length, (i + 1) * horizonsS.length));
}

/** Rows go through the command line, which Node.js cannot report from 32 kB on. */
const short = (x: number): number => Number(x.toPrecision(6));

describe('the shipped forecast of price losses', () => {
  it('answers what the program that trained it answers', () => {
    const worst = curves(golden.inputs).flatMap((curve, i) =>
      curve.map((p, k) => Math.abs(p - (golden.outputs[i]?.[k] ?? NaN))),
    );
    expect(Math.max(...worst)).toBeLessThanOrEqual(golden.tolerance);
  });

  it('never falls with the horizon nor rises with the bid', () => {
    const random = randomStream(5, 'test/raised-bids');
    const STEPS = 5;
    // No feature of the bid falls when it rises: each row raises some of them by any amount.
    const chains = golden.inputs.slice(0, 8).map((row) => {
      const raised = [row.map(short)];
      for (let s = 1; s < STEPS; s++) {
        const next = [...(raised.at(-1) ?? [])];
        for (let i = FEATURES.length - BID_FEATURES.length; i < FEATURES.length; i++) {
          if (random() < 0.7) next[i] = short((next[i] ?? 0) + random() * s);
        }
        raised.push(next);
      }
      return raised;
    });
    const found = curves(chains.flat());
    let fell = 0;
    for (const [i, curve] of found.entries()) {
      expect([...curve].sort((a, b) => a - b)).toEqual(curve);
      if (i % STEPS === 0) continue;
      for (const [k, p] of curve.entries()) {
        const before = found[i - 1]?.[k] ?? NaN;
        expect(p).toBeLessThanOrEqual(before + 1e-6);
        if (p < before - 0.01) fell++;
      }
    }
    expect(fell).toBeGreaterThan(10);
  });
});
