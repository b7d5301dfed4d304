/** Golden check: a model must answer here as it did where it was trained (`golden.json` beside it). */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { Model } from './model.ts';

const numbers = z.array(z.array(z.number()));
const golden = z.object({ tolerance: z.number().positive(), inputs: numbers, outputs: numbers });

export type Parity =
  /** `worst`: largest difference of an answered probability. */
  | { readonly kind: 'compared'; readonly rows: number; readonly worst: number; readonly tolerance: number }
  | { readonly kind: 'unknown'; readonly what: string };

export async function goldenParity(folder: string, model: Model): Promise<Parity> {
  let read: z.output<typeof golden>;
  try {
    read = golden.parse(JSON.parse(await readFile(join(folder, 'golden.json'), 'utf8')));
  } catch {
    return { kind: 'unknown', what: 'golden.json is not there or cannot be read' };
  }
  const { inputs, outputs, tolerance } = read;
  const answer = await model.run(Float32Array.from(inputs.flat()));
  if (answer.kind !== 'values') return { kind: 'unknown', what: `row ${answer.row} has no number` };
  const expected = outputs.flat();
  if (expected.length !== answer.values.length) return { kind: 'unknown', what: 'golden.json is of another model' };
  const worst = expected.reduce((most, p, i) => Math.max(most, Math.abs(p - (answer.values[i] ?? Infinity))), 0);
  return { kind: 'compared', rows: inputs.length, worst, tolerance };
}
