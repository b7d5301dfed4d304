/**
 * Asks versions about rows of a data set, in a process of its own for the reason that ask-model.ts has.
 * `node test/support/ask-rows.ts DATASET SPLIT VERSION..` prints an AskedRows.
 */
import { datasetRows } from '../../lib/drivers/local/models/dataset-rows.ts';
import { askedOf, curvesOf } from '../../lib/models/evaluation/curves.ts';
import { openModel } from '../../lib/models/model.ts';
import { lossModel } from '../../lib/models/preemption.ts';

export interface AskedRows {
  readonly atMs: readonly number[];
  /** Of each version: row by row, P(lost within each horizon). */
  readonly said: readonly (readonly (readonly number[])[])[];
}

const [folder = '', split = '', ...versions] = process.argv.slice(2);
const rows = datasetRows(folder);
const asked = askedOf(rows, [split]);
const said: number[][][] = [];
for (const version of versions) {
  const opening = await openModel(version, rows.manifest.features);
  if (opening.kind !== 'open') throw new Error(opening.what);
  const { p, horizonsS } = await curvesOf(lossModel(opening.model, rows.manifest.features), rows, asked);
  said.push(asked.map((row) => [...p.subarray(row * horizonsS.length, (row + 1) * horizonsS.length)]));
  await opening.model.close();
}
process.stdout.write(JSON.stringify({ atMs: asked.map((row) => rows.atMs[row] ?? NaN), said } satisfies AskedRows));
