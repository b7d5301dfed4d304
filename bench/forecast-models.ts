/**
 * Quality of trained forecasts of price losses, compared with the historical median and the paper's other classifiers
 * (docs/forecast.md).
 *
 *   npm run bench:forecast -- --data DATASET --markets M,M,.. --model VERSION.. [--rivals FOLDER] [--report FILE]
 *   [--record] [--split S..]
 *
 * DATASET: output of `ebb market dataset`; M: its markets, as files or folders of traces. VERSION: folders with
 * model.onnx, run by onnxruntime-node as in service. FOLDER: output of `npm run train:preemption -- --rivals`.
 * Bootstraps resample days, seed 1.
 *
 * --split: parts to judge; default: test and unseen, which no choice may use. Use validation to compare candidates.
 * --record: writes the later range's figures into each VERSION, for `ebb models list` and `show`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { priceDigest } from '../lib/drivers/local/datasets/dataset-folder.ts';
import { openMarket } from '../lib/drivers/local/market/import.ts';
import type { MarketTrace } from '../lib/market/trace.ts';
import { openModel } from '../lib/models/model.ts';
import { lossModel } from '../lib/models/preemption.ts';
import { machine } from './figures.ts';
import { cellsOf, JUDGED_S, judgedBy, rowsOf, type Forecast, type Row } from '../lib/models/evaluation/cells.ts';
import { choices } from './forecast/choices.ts';
import { verdicts } from './forecast/verdicts.ts';
import { askedOf, atHorizon, curvesOf, type Curves } from '../lib/models/evaluation/curves.ts';
import { historicalMedians } from '../lib/drivers/local/models/medians.ts';
import { npyColumn } from '../lib/drivers/local/datasets/npy-column.ts';
import { forecastReport } from './forecast/report.ts';
import { datasetRows } from '../lib/drivers/local/models/dataset-rows.ts';
import type { DatasetRows } from '../lib/models/evaluation/dataset-rows.ts';
import { EVALUATION_FILE } from '../lib/models/evaluation/evaluation-record.ts';
import { scores } from '../lib/models/evaluation/scores.ts';
import { judge } from '../lib/drivers/local/models/judging.ts';
import { printEvaluation } from './forecast/tables.ts';
import type { CurveRow, Evaluation } from './forecast/evaluation.ts';

const SEED = 1;
const ABLATION = 'ablation: ';

const { values } = parseArgs({
  options: {
    data: { type: 'string' },
    markets: { type: 'string' },
    model: { type: 'string', multiple: true },
    rivals: { type: 'string' },
    report: { type: 'string', default: 'out/forecast.html' },
    record: { type: 'boolean', default: false },
    split: { type: 'string', multiple: true, default: ['test', 'unseen'] },
  },
});
if (values.data === undefined || values.markets === undefined) {
  throw new Error('--data and --markets are needed: see the head of bench/forecast-models.ts');
}

async function recordAll(): Promise<void> {
  for (const folder of (values.model ?? []).map((path) => resolve(path))) {
    const { record } = await judge([{ name: basename(folder), folder }], {
      risk: 'price',
      rows,
      traces,
      split: 'test',
      seed: SEED,
    });
    writeFileSync(join(folder, EVALUATION_FILE), `${JSON.stringify(record, null, 1)}\n`);
  }
}

async function modelsOf(rows: DatasetRows, asked: readonly number[]): Promise<Curves[]> {
  const found: Curves[] = [];
  for (const folder of values.model ?? []) {
    const opening = await openModel(resolve(folder), rows.manifest.features);
    if (opening.kind !== 'open') throw new Error(opening.what);
    found.push(await curvesOf(lossModel(opening.model, rows.manifest.features), rows, asked));
    await opening.model.close();
  }
  return found;
}

function rivalsOf(rows: DatasetRows): Forecast[] {
  if (values.rivals === undefined) return [];
  const about = JSON.parse(readFileSync(join(values.rivals, 'rivals.json'), 'utf8')) as {
    dataset: string;
    names: string[];
  };
  if (about.dataset !== rows.manifest.sha256['features']) throw new Error(`${values.rivals}: of another data set`);
  const p = npyColumn(join(values.rivals, 'rivals.npy')).values;
  return about.names.map((name, i) => ({
    name,
    p: Float32Array.from({ length: rows.atMs.length }, (_, r) => p[r * about.names.length + i] ?? NaN),
  }));
}

async function tracesOf(rows: DatasetRows, paths: readonly string[]): Promise<MarketTrace[]> {
  const traces = new Map<string, MarketTrace>();
  for (const path of paths) {
    const { trace } = await openMarket(resolve(path), join(tmpdir(), 'ebb-forecast-markets'));
    traces.set(priceDigest(trace), trace);
  }
  return rows.manifest.sources.map(({ name, sha256 }) => {
    const trace = traces.get(sha256);
    if (trace === undefined)
      throw new Error(`--markets has not the prices of ${name} that the data set was drawn from`);
    return trace;
  });
}

function curveRows(rows: DatasetRows, models: readonly Curves[]): CurveRow[] {
  return rows.manifest.horizonsS.flatMap((horizonS) =>
    cellsOf(rows, values.split, horizonS)
      .filter((cell) => cell.protocol === 'all bids')
      .flatMap((cell) =>
        models.map((model) => {
          const judged = judgedBy(cell, atHorizon(model, horizonS));
          const mean = (of: ArrayLike<number>): number => Array.from(of).reduce((a, b) => a + b, 0) / of.length;
          return {
            cell,
            horizonS,
            forecast: model.name,
            scores: scores(judged),
            said: mean(judged.p),
            was: mean(judged.lost),
          };
        }),
      ),
  );
}

const rows = datasetRows(resolve(values.data));
const cells = cellsOf(rows, values.split);
const asked = askedOf(rows, values.split);
const traces = await tracesOf(rows, values.markets.split(','));
if (values.record) await recordAll();
const medians = historicalMedians(rows, traces, asked);
const models = await modelsOf(rows, asked);
const rivals = rivalsOf(rows);
const forecasts: Forecast[] = [
  { name: 'historical median', p: medians.static },
  { name: 'rolling median', p: medians.rolling },
  ...rivals.filter(({ name }) => !name.startsWith(ABLATION)),
  ...models.map((model) => atHorizon(model, JUDGED_S)),
];
const judged = (list: readonly Forecast[]): Row[] => cells.flatMap((cell) => rowsOf(cell, list, SEED));
const evaluation: Evaluation = {
  machine: machine(),
  manifest: rows.manifest,
  seed: SEED,
  cells,
  forecasts,
  rows: judged(forecasts),
  ablation: judged(
    rivals.filter(({ name }) => name.startsWith(ABLATION)).map((f) => ({ ...f, name: f.name.slice(ABLATION.length) })),
  ),
  curve: curveRows(rows, models),
  choices: cells
    .filter((c) => c.protocol === 'all bids')
    .map((cell) => ({ cell, list: choices(rows, cell, forecasts) })),
  verdicts: cells
    .filter((c) => c.protocol === 'paper')
    .map((cell) => ({ cell, list: verdicts(rows, cell, forecasts) })),
};
printEvaluation(evaluation);
writeFileSync(values.report, await forecastReport(evaluation));
console.log(`\n${values.report}`);
