import { typeAndZone } from '../../../domain/pool.ts';
import { createHash } from 'node:crypto';
import { EbbError } from '../../../kernel/errors.ts';
import { seconds } from '../../../kernel/units.ts';
import { schedulerConfig } from '../../../domain/config.ts';
import {
  rangesOf,
  sampleCapacity,
  seriesOf,
  unseenPools,
  type CapacityPlan,
  type CapacityRanges,
  type CapacitySample,
} from '../../../market/capacity-dataset.ts';
import { sampleRecord, type CapacityRecord } from '../../../market/capacity-record.ts';
import { LABEL_HORIZONS_S, SPLITS } from '../../../market/dataset.ts';
import { CAPACITY_FEATURES } from '../../../market/features/capacity-features.ts';
import { survivesCapacity } from '../../../market/forecast/hazard.ts';
import type { MarketTrace } from '../../../market/trace.ts';
import type { SourceOfRows } from '../../../models/evaluation/dataset-rows.ts';
import {
  closeColumns,
  columnsIn,
  DATASET_VERSION,
  told,
  writeWhole,
  type Columns,
  type ColumnTypes,
  type DatasetProgress,
} from './dataset-columns.ts';
import type { DatasetSource } from './dataset-folder.ts';

/**
 * Answers of observed interruptions (lib/market/forecast/hazard.ts), beside the columns of every data set: samples x
 * LABEL_HORIZONS_S.
 */
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

/** Record of an engine's own instances, with a name for people. */
export interface RecordSource {
  readonly name: string;
  readonly record: CapacityRecord;
}

export interface CapacityDataset {
  readonly rows: number;
  readonly sources: readonly SourceOfRows[];
}

/**
 * Writes a data set as `ebb market dataset` does, of capacity and so without bids. Throws `market.invalid` when there
 * is no series.
 */
export async function writeCapacityDataset(
  folder: string,
  sources: readonly DatasetSource[],
  { unseenShare, ...plan }: CapacityDatasetPlan,
  onProgress: Progress = () => undefined,
): Promise<CapacityDataset> {
  const names = [...new Set(sources.flatMap(({ trace }) => seriesOf(trace).map(({ id }) => typeAndZone(id))))];
  if (names.length === 0) throw noSeries(sources);
  const full = { ...plan, unseen: unseenPools(names, unseenShare, plan.seed) };
  const drawn = sources.map(({ name, trace }) => ({
    summary: summaryOf(name, seriesDigest(trace), rangesOf(trace, plan.shares)),
    samples: () => sampleCapacity(trace, full),
  }));
  return written(folder, { names, drawn, plan: full, isCensored: false, onProgress });
}

/** The same of an engine's own record, whose samples are watched as far as instances were held. */
export async function writeRecordDataset(
  folder: string,
  { name, record }: RecordSource,
  plan: Omit<CapacityPlan, 'unseen'>,
  onProgress: Progress = () => undefined,
): Promise<CapacityDataset> {
  const names = [...new Set(record.lives.map(({ pool }) => typeAndZone(pool)))];
  const drawn = {
    summary: summaryOf(name, recordDigest(record), rangesOf(record, plan.shares)),
    samples: () => sampleRecord(record, { ...plan, instants: plan.instantsPerPool * names.length }),
  };
  return written(folder, { names, drawn: [drawn], plan: { ...plan, unseen: new Set() }, isCensored: true, onProgress });
}

interface Filling {
  /** TYPE/ZONE of the pools, as the column `pool` counts through them. */
  readonly names: readonly string[];
  readonly drawn: readonly { readonly summary: SourceOfRows; readonly samples: () => Iterable<CapacitySample> }[];
  readonly plan: CapacityPlan;
  readonly isCensored: boolean;
  readonly onProgress: Progress;
}
type Progress = (progress: DatasetProgress) => void;

async function written(folder: string, filling: Filling): Promise<CapacityDataset> {
  const { rows, sources } = await writeWhole(folder, (partial) => filled(partial, filling));
  return { rows, sources };
}

async function filled(partial: string, { names, drawn, plan, isCensored, onProgress }: Filling) {
  const columns = columnsIn(partial, COLUMNS, WIDTHS);
  let rows = 0;
  for (const [source, { samples, summary }] of drawn.entries()) {
    for (const sample of samples()) {
      write(columns, sample, { source, pool: names.indexOf(typeAndZone(sample.pool)) });
      await told({ source: summary.name, rows: ++rows }, onProgress);
    }
  }
  return {
    version: DATASET_VERSION,
    risk: 'capacity',
    ...(isCensored ? { censored: true } : {}),
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
    sources: drawn.map(({ summary }) => summary),
  };
}

/** The prior of the default settings: a data set belongs to no deployment. */
const PRIOR = schedulerConfig.parse({});

function write(
  columns: Columns<typeof COLUMNS>,
  sample: CapacitySample,
  at: { readonly source: number; readonly pool: number },
): void {
  const posterior = sample.evidence.posterior(sample.pool, PRIOR);
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
  sha256: string,
  { startMs, validationMs, testMs, endMs }: CapacityRanges,
): SourceOfRows {
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    name,
    sha256,
    from: iso(startMs),
    validationFrom: iso(validationMs),
    testFrom: iso(testMs),
    to: iso(endMs),
  };
}

/** SHA-256 of the series: pools, instants and availability, in their order. */
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

/** SHA-256 of the record of instances. */
const recordDigest = ({ lives, refusals }: CapacityRecord): string =>
  createHash('sha256')
    .update(JSON.stringify([lives, refusals]))
    .digest('hex');

const noSeries = (sources: readonly DatasetSource[]): EbbError =>
  new EbbError('market.invalid', {
    what: 'no market tells when there was capacity',
    got: sources.map((s) => s.name).join(', '),
    allowed: 'series of availability, such as those of "Can’t Be Late" (docs/datasets.md)',
    next: 'see what a market tells with `ebb market show`',
  });
