import { createHash } from 'node:crypto';
import { EbbError } from '../kernel/errors.ts';
import { seconds } from '../kernel/units.ts';
import { schedulerConfig } from '../domain/config.ts';
import {
  poolName,
  rangesOf,
  sampleCapacity,
  seriesOf,
  unseenPools,
  type CapacityPlan,
  type CapacityRanges,
  type CapacitySample,
} from '../market/capacity-dataset.ts';
import { LABEL_HORIZONS_S, SPLITS } from '../market/dataset.ts';
import { CAPACITY_FEATURES } from '../market/features/capacity-features.ts';
import { survivesCapacity } from '../market/forecast/hazard.ts';
import type { MarketTrace } from '../market/trace.ts';
import type { SourceOfRows } from '../models/evaluation/rows.ts';
import {
  closeColumns,
  columnsIn,
  DATASET_VERSION,
  writeWhole,
  type Columns,
  type ColumnTypes,
} from './dataset-columns.ts';
import type { DatasetSource } from './dataset-folder.ts';

/** What observed interruptions say (lib/market/forecast/hazard.ts), beside the columns of every data set: samples x LABEL_HORIZONS_S. */
export const OBSERVED_COLUMN = 'observed';

const COLUMNS = {
  features: 'float32',
  [OBSERVED_COLUMN]: 'float32',
  lossS: 'float32',
  watchedS: 'float32',
  atMs: 'float64',
  bidUsd: 'float32',
  pool: 'int32',
  source: 'uint8',
  split: 'uint8',
  bidKind: 'uint8',
} as const satisfies ColumnTypes;
const WIDTHS = {
  features: CAPACITY_FEATURES.length,
  [OBSERVED_COLUMN]: LABEL_HORIZONS_S.length,
};

export interface CapacityDatasetPlan extends Omit<CapacityPlan, 'unseen'> {
  /** Share of the pools, in all sources together, that are never trained on. */
  readonly unseenShare: number;
}

export interface CapacityDataset {
  readonly rows: number;
  readonly sources: readonly SourceOfRows[];
}

/** Writes a data set as `ebb market dataset` does, of capacity and so without bids. Throws `market.invalid` when there is no series. */
export function writeCapacityDataset(
  folder: string,
  sources: readonly DatasetSource[],
  { unseenShare, ...plan }: CapacityDatasetPlan,
): CapacityDataset {
  const names = [...new Set(sources.flatMap(({ trace }) => seriesOf(trace).map(poolName)))];
  if (names.length === 0) throw noSeries(sources);
  const unseen = unseenPools(names, unseenShare, plan.seed);
  const manifest = writeWhole(folder, (partial) => filled(partial, { names, sources, plan: { ...plan, unseen } }));
  return { rows: manifest.rows, sources: manifest.sources };
}

interface Filling {
  /** TYPE/ZONE of the pools, as the column `pool` counts through them. */
  readonly names: readonly string[];
  readonly sources: readonly DatasetSource[];
  readonly plan: CapacityPlan;
}

function filled(partial: string, { names, sources, plan }: Filling) {
  const columns = columnsIn(partial, COLUMNS, WIDTHS);
  let rows = 0;
  const summaries = sources.map(({ name, trace }, source) => {
    for (const sample of sampleCapacity(trace, plan)) {
      write(columns, sample, { source, pool: names.indexOf(poolName(sample.pool)) });
      rows++;
    }
    return summaryOf(name, trace, rangesOf(trace, plan.shares));
  });
  return {
    version: DATASET_VERSION,
    risk: 'capacity',
    rows,
    plan: { seed: plan.seed, instants: plan.instantsPerPool, bidsPerInstant: 1 },
    horizonsS: LABEL_HORIZONS_S,
    features: CAPACITY_FEATURES,
    kinds: { pool: CAPACITY_FEATURES.length, sequence: 0, bid: 0 },
    splits: SPLITS,
    bidKinds: ['none'],
    pools: names,
    unseen: [...plan.unseen],
    sha256: closeColumns<typeof COLUMNS>(columns),
    sources: summaries,
  };
}

/** The configured prior of the default settings: a data set is not of one deployment. */
const PRIOR = schedulerConfig.parse({});

function write(
  columns: Columns<typeof COLUMNS>,
  sample: CapacitySample,
  at: { readonly source: number; readonly pool: number },
): void {
  const posterior = sample.evidence.posterior(sample.pool.id, PRIOR);
  columns.features.pushAll(sample.features);
  columns.observed.pushAll(Float32Array.from(LABEL_HORIZONS_S, (h) => 1 - survivesCapacity(posterior, seconds(h))));
  columns.lossS.push(sample.lossS);
  columns.watchedS.push(sample.watchedS);
  columns.atMs.push(sample.atMs);
  columns.bidUsd.push(NaN);
  columns.pool.push(at.pool);
  columns.source.push(at.source);
  columns.split.push(SPLITS.indexOf(sample.split));
  columns.bidKind.push(0);
}

function summaryOf(
  name: string,
  trace: MarketTrace,
  { startMs, validationMs, testMs, endMs }: CapacityRanges,
): SourceOfRows {
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    name,
    sha256: seriesDigest(trace),
    from: iso(startMs),
    validationFrom: iso(validationMs),
    testFrom: iso(testMs),
    to: iso(endMs),
  };
}

/** SHA-256 of the series: pools, instants and what was available from each on, in their order. */
function seriesDigest(trace: MarketTrace): string {
  const hash = createHash('sha256');
  for (const pool of seriesOf(trace)) {
    const series = trace.availability(pool.id);
    if (series === null) continue;
    hash.update(`${pool.id}\0`);
    for (const { buffer, byteOffset, byteLength } of [series.atMs, series.available])
      hash.update(new Uint8Array(buffer, byteOffset, byteLength));
  }
  return hash.digest('hex');
}

const noSeries = (sources: readonly DatasetSource[]): EbbError =>
  new EbbError('market.invalid', {
    what: 'no market tells when there was capacity',
    got: sources.map((s) => s.name).join(', '),
    allowed: 'series of availability, such as those of "Can’t Be Late" (docs/datasets.md)',
    next: 'see what a market tells with `ebb market show`',
  });
