/** Answers of models to rows of a data set, through onnxruntime-node as in production. */
import type { LossModel } from '../../domain/forecast.ts';
import type { Forecast } from './cells.ts';
import type { DatasetRows } from './dataset-rows.ts';

const BATCH = 8192;

export interface Curves {
  readonly name: string;
  readonly horizonsS: readonly number[];
  /** Rows of the data set x horizons; NaN for rows that were not asked. */
  readonly p: Float32Array;
}

export const askedOf = ({ manifest, split }: DatasetRows, splits: readonly string[]): number[] =>
  Array.from(split.keys()).filter((row) => splits.includes(manifest.splits[split[row] ?? -1] ?? ''));

export async function curvesOf(model: LossModel, rows: DatasetRows, asked: readonly number[]): Promise<Curves> {
  const width = rows.manifest.features.length;
  const { version, horizonsS } = model;
  const p = new Float32Array(rows.atMs.length * horizonsS.length).fill(NaN);
  for (let from = 0; from < asked.length; from += BATCH) {
    const part = asked.slice(from, from + BATCH);
    const batch = new Float32Array(part.length * width);
    part.forEach((row, i) => batch.set(rows.features.subarray(row * width, (row + 1) * width), i * width));
    const answer = await model.run(batch);
    if (answer.kind === 'failed') throw new Error(`${version}: ${answer.what}`);
    if (answer.kind === 'not-finite') throw new Error(`${version} gives numbers that are not finite`);
    part.forEach((row, i) =>
      p.set(answer.values.subarray(i * horizonsS.length, (i + 1) * horizonsS.length), row * horizonsS.length),
    );
  }
  return { name: version, horizonsS, p };
}

export function atHorizon({ name, p, horizonsS }: Curves, horizonS: number): Forecast {
  const k = horizonsS.indexOf(horizonS);
  const at = (_: unknown, row: number): number => p[row * horizonsS.length + k] ?? NaN;
  return { name, p: Float32Array.from({ length: p.length / horizonsS.length }, at) };
}
