/**
 * Could a trained forecast of capacity beat the program's own (lib/market/forecast/hazard.ts)? (docs/forecast.md)
 *   node bench/forecast-capacity.ts --data DATASET --series FOLDER,FOLDER,..     draws the data set from series of availability
 *   npm run train:preemption -- --data DATASET --output VERSION                  trains on it
 *   node bench/forecast-capacity.ts --data DATASET --model VERSION               judges both, by splits and horizons
 */
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openMarket } from '../lib/local/market-import.ts';
import { openModel } from '../lib/models/model.ts';
import { machine } from './figures.ts';
import { ALL_SOURCES, cellsOf, rowsOf, type Forecast, type Row } from '../lib/models/evaluation/cells.ts';
import { lossModel } from '../lib/models/preemption.ts';
import { askedOf, atHorizon, curvesOf, type Curves } from '../lib/models/evaluation/curves.ts';
import { npyColumn } from '../lib/local/npy-column.ts';
import { writeOutages, type Source } from './forecast/outages.ts';
import { datasetRows } from '../lib/local/models/dataset-rows.ts';
import { outcomeWithin, type DatasetRows } from '../lib/models/evaluation/rows.ts';
import { intervalText, METRIC_NAMES, METRICS } from '../lib/models/evaluation/scores.ts';

const SEED = 1;
const INSTANTS_PER_SERIES = 3000;
const SPLITS = ['test', 'unseen'];

const { values } = parseArgs({
  options: { data: { type: 'string' }, series: { type: 'string' }, model: { type: 'string' } },
});
if (values.data === undefined) throw new Error('--data is needed: see the head of bench/forecast-capacity.ts');
const data = resolve(values.data);
if (values.series !== undefined) await draw(values.series.split(','));
else await judge();

async function draw(folders: readonly string[]): Promise<void> {
  const sources: Source[] = [];
  for (const folder of folders) {
    const { trace } = await openMarket(resolve(folder), join(tmpdir(), 'ebb-outages'));
    sources.push({ name: basename(folder), trace });
  }
  const { rows } = writeOutages(data, sources, { seed: SEED, instantsPerSeries: INSTANTS_PER_SERIES });
  console.log(`${data}: ${rows} samples of ${sources.length} sources`);
}

async function judge(): Promise<void> {
  const rows = datasetRows(data);
  const asked = askedOf(rows, SPLITS);
  const curves: Curves[] = [
    { name: 'evidence (hazard.ts)', horizonsS: rows.manifest.horizonsS, p: floats(join(data, 'empirical.npy')) },
  ];
  if (values.model !== undefined) {
    const opening = await openModel(resolve(values.model), rows.manifest.features);
    if (opening.kind !== 'open') throw new Error(opening.what);
    curves.push(await curvesOf(lossModel(opening.model, rows.manifest.features), rows, asked));
    await opening.model.close();
  }
  console.log(`${machine()}; ${rows.manifest.rows} samples, seed ${rows.manifest.plan.seed}`);
  for (const horizonS of rows.manifest.horizonsS) {
    const forecasts = [shareLost(rows, horizonS), ...curves.map((c) => atHorizon(c, horizonS))];
    const cells = cellsOf(rows, SPLITS, horizonS).filter((c) => c.protocol === 'paper');
    for (const cell of cells) {
      if (cell.source !== ALL_SOURCES && horizonS !== 3600) continue;
      console.log(
        `\n${cell.source}, ${cell.split}, within ${horizonS} s: ${cell.rows.length} samples, ${cell.days} days`,
      );
      print(rowsOf(cell, forecasts, SEED));
    }
  }
}

function print(list: readonly Row[]): void {
  console.log(`  ${''.padEnd(24)}${METRICS.map((m) => METRIC_NAMES[m].padEnd(22)).join('')}`);
  for (const row of list) {
    console.log(`  ${row.forecast.padEnd(24)}${METRICS.map((m) => intervalText(row.scores[m]).padEnd(22)).join('')}`);
  }
}

function floats(path: string): Float32Array {
  const { values: numbers } = npyColumn(path);
  if (!(numbers instanceof Float32Array)) throw new Error(`${path}: not of 32-bit numbers`);
  return numbers;
}

/** One number for all: the share lost in the training range. */
function shareLost(rows: DatasetRows, horizonS: number): Forecast {
  const train = askedOf(rows, ['train']).map((row) => outcomeWithin(rows, row, horizonS));
  const known = train.filter((o) => o !== 'unknown');
  const share = known.filter((o) => o === 'lost').length / known.length;
  return { name: 'share lost in training', p: new Float32Array(rows.atMs.length).fill(share) };
}
