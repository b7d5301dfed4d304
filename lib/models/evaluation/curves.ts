/** What models answer to rows of a data set, through onnxruntime-node as when they serve. */
import type { Model } from '../model.ts';
import type { Forecast } from './cells.ts';
import type { DatasetRows } from './rows.ts';

const BATCH = 8192;

export interface Curves {
  readonly name: string;
  readonly horizonsS: readonly number[];
  /** Rows of the data set x horizons; NaN for rows that were not asked. */
  readonly p: Float32Array;
}

export const askedOf = ({ manifest, split }: DatasetRows, splits: readonly string[]): number[] =>
  Array.from(split.keys()).filter((row) => splits.includes(manifest.splits[split[row] ?? -1] ?? ''));

export async function curvesOf(model: Model, rows: DatasetRows, asked: readonly number[]): Promise<Curves> {
  const width = rows.manifest.features.length;
  const { version, output } = model.manifest;
  const p = new Float32Array(rows.atMs.length * output.width).fill(NaN);
  for (let from = 0; from < asked.length; from += BATCH) {
    const part = asked.slice(from, from + BATCH);
    const batch = new Float32Array(part.length * width);
    part.forEach((row, i) => batch.set(rows.features.subarray(row * width, (row + 1) * width), i * width));
    const answer = await model.run(batch);
    if (answer.kind !== 'values') throw new Error(`${version} gives numbers that are not finite`);
    part.forEach((row, i) =>
      p.set(answer.values.subarray(i * output.width, (i + 1) * output.width), row * output.width),
    );
  }
  return { name: version, horizonsS: output.horizonsS, p };
}

export function atHorizon({ name, p, horizonsS }: Curves, horizonS: number): Forecast {
  const k = horizonsS.indexOf(horizonS);
  const at = (_: unknown, row: number): number => p[row * horizonsS.length + k] ?? NaN;
  return { name, p: Float32Array.from({ length: p.length / horizonsS.length }, at) };
}
