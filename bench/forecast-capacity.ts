/**
 * Comparison of a trained capacity forecast with the program's own (lib/market/forecast/hazard.ts,
 * docs/forecast-capacity.md).
 *
 *   node bench/forecast-capacity.ts --data DATASET --series FOLDER,FOLDER,..    draws the data set from availability series
 *   node bench/forecast-capacity.ts --data DATASET --tuned FOLDER               draws it from the tuning part of
 *                                                                               bench/deadline-on-spot.ts, without later data
 *   npm run train:preemption -- --data DATASET --output VERSION                 trains on it
 *   node bench/forecast-capacity.ts --data DATASET --model VERSION              judges both, by splits and horizons
 */
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openMarket } from '../lib/drivers/local/market/import.ts';
import { openModel } from '../lib/models/model.ts';
import { machine } from './figures.ts';
import { ALL_SOURCES, cellsOf, rowsOf, type Forecast, type Row } from '../lib/models/evaluation/cells.ts';
import { lossModel } from '../lib/models/preemption.ts';
import { askedOf, atHorizon, curvesOf, type Curves } from '../lib/models/evaluation/curves.ts';
import { seriesIn, windowsOf } from './deadline-windows.ts';
import { epochMs } from '../lib/kernel/units.ts';
import {
  writeCapacityDataset,
  type CapacityDatasetPlan,
} from '../lib/drivers/local/datasets/capacity-dataset-folder.ts';
import type { DatasetSource } from '../lib/drivers/local/datasets/dataset-folder.ts';
import { seriesOf } from '../lib/market/capacity-dataset.ts';
import { knownUntil } from '../lib/market/until.ts';
import { datasetRows } from '../lib/drivers/local/models/dataset-rows.ts';
import { outcomeWithin, type DatasetRows } from '../lib/models/evaluation/dataset-rows.ts';
import { intervalText, METRIC_NAMES, METRICS } from '../lib/models/evaluation/scores.ts';

const SEED = 1;
const INSTANTS_PER_POOL = 3000;
const SPLITS = ['test', 'unseen'];
/** Length of the windows that bench/deadline-on-spot.ts reports. */
const WINDOW_MS = 24 * 3_600_000;

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    series: { type: 'string' },
    tuned: { type: 'string' },
    model: { type: 'string' },
  },
});
if (values.data === undefined) throw new Error('--data is needed: see the head of bench/forecast-capacity.ts');
const data = resolve(values.data);
const markets = join(tmpdir(), 'ebb-outages');
if (values.series !== undefined) await draw(values.series.split(','));
else if (values.tuned !== undefined) await drawTuned(values.tuned);
else await judge();

async function draw(folders: readonly string[]): Promise<void> {
  const sources: DatasetSource[] = [];
  for (const folder of folders) {
    sources.push({ name: basename(folder), trace: (await openMarket(resolve(folder), markets)).trace });
  }
  await write(sources, { shares: { train: 0.6, validation: 0.2 }, unseenShare: 0.2 });
}

/** Draws each folder of series up to the end of the tuning windows; later data is not used. */
async function drawTuned(folder: string): Promise<void> {
  const { found } = await seriesIn(resolve(folder), markets);
  const tuned = windowsOf(found, 'tune', WINDOW_MS);
  const sources: DatasetSource[] = [];
  for (const [path, windows] of Map.groupBy(tuned, (w) => dirname(w.series.path))) {
    const endMs = Math.min(
      ...Map.groupBy(windows, (w) => w.series.name)
        .values()
        .map((of) => (of.at(-1)?.startMs ?? NaN) + WINDOW_MS),
    );
    const { trace } = await openMarket(path, markets);
    const names = new Set(windows.map((w) => w.series.path));
    if (names.size !== seriesOf(trace).length) throw new Error(`${path}: some of its series are not to be tuned on`);
    sources.push({ name: basename(path), trace: knownUntil(trace, epochMs(endMs)) });
  }
  await write(sources, { shares: { train: 0.75, validation: 0.25 }, unseenShare: 0 });
}

async function write(
  sources: readonly DatasetSource[],
  plan: Pick<CapacityDatasetPlan, 'shares' | 'unseenShare'>,
): Promise<void> {
  const { rows, sources: drawn } = await writeCapacityDataset(data, sources, {
    seed: SEED,
    instantsPerPool: INSTANTS_PER_POOL,
    ...plan,
  });
  console.log(`${data}: ${rows} samples`);
  for (const s of drawn)
    console.log(`  ${s.name}: from ${s.from}, validation ${s.validationFrom}, test ${s.testFrom}, to ${s.to}`);
}

async function judge(): Promise<void> {
  const rows = datasetRows(data);
  const asked = askedOf(rows, SPLITS);
  const curves: Curves[] = [
    {
      name: 'observed (hazard.ts)',
      horizonsS: rows.manifest.horizonsS,
      p: rows.observed ?? new Float32Array(),
    },
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

/** Constant forecast: the share lost in the training range. */
function shareLost(rows: DatasetRows, horizonS: number): Forecast {
  const train = askedOf(rows, ['train']).map((row) => outcomeWithin(rows, row, horizonS));
  const known = train.filter((o) => o !== 'unknown');
  const share = known.filter((o) => o === 'lost').length / known.length;
  return { name: 'share lost in training', p: new Float32Array(rows.atMs.length).fill(share) };
}
