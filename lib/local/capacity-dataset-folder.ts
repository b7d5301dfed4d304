import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
  type CapacitySample,
} from '../market/capacity-dataset.ts';
import { LABEL_HORIZONS_S, SPLITS } from '../market/dataset.ts';
import { CAPACITY_FEATURES } from '../market/features/capacity-features.ts';
import { survivesCapacity } from '../market/forecast/hazard.ts';
import type { SourceOfRows } from '../models/evaluation/rows.ts';
import { DATASET_VERSION, type DatasetSource } from './dataset-folder.ts';
import { NpyWriter, type NpyType } from './npy-file.ts';

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
} as const satisfies Record<string, NpyType>;
type Column = keyof typeof COLUMNS;
const WIDTHS: Partial<Record<Column, number>> = {
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
  mkdirSync(folder, { recursive: true });
  const writers = writersIn(folder);
  let rows = 0;
  const summaries = sources.map(({ name, trace }, source) => {
    for (const sample of sampleCapacity(trace, { ...plan, unseen })) {
      write(writers, sample, { source, pool: names.indexOf(poolName(sample.pool)) });
      rows++;
    }
    return summaryOf(name, rangesOf(trace, plan.shares));
  });
  const sha256 = Object.fromEntries(Object.entries(writers).map(([name, writer]) => [name, writer.close()]));
  const manifest = {
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
    unseen: [...unseen],
    sha256,
    sources: summaries,
  };
  writeFileSync(join(folder, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return { rows, sources: summaries };
}

const writersIn = (folder: string): Record<Column, NpyWriter> =>
  Object.fromEntries(
    Object.entries(COLUMNS).map(([name, type]) => [
      name,
      new NpyWriter(join(folder, `${name}.npy`), type, WIDTHS[name as Column] ?? 0),
    ]),
  ) as Record<Column, NpyWriter>;

/** The configured prior of the default settings: a data set is not of one deployment. */
const PRIOR = schedulerConfig.parse({});

function write(
  writers: Record<Column, NpyWriter>,
  sample: CapacitySample,
  at: { readonly source: number; readonly pool: number },
): void {
  const posterior = sample.evidence.posterior(sample.pool.id, PRIOR);
  writers.features.pushAll(sample.features);
  writers.observed.pushAll(Float32Array.from(LABEL_HORIZONS_S, (h) => 1 - survivesCapacity(posterior, seconds(h))));
  writers.lossS.push(sample.lossS);
  writers.watchedS.push(sample.watchedS);
  writers.atMs.push(sample.atMs);
  writers.bidUsd.push(NaN);
  writers.pool.push(at.pool);
  writers.source.push(at.source);
  writers.split.push(SPLITS.indexOf(sample.split));
  writers.bidKind.push(0);
}

function summaryOf(name: string, { startMs, validationMs, testMs, endMs }: ReturnType<typeof rangesOf>): SourceOfRows {
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    name,
    sha256: '',
    from: iso(startMs),
    validationFrom: iso(validationMs),
    testFrom: iso(testMs),
    to: iso(endMs),
  };
}

const noSeries = (sources: readonly DatasetSource[]): EbbError =>
  new EbbError('market.invalid', {
    what: 'no market tells when there was capacity',
    got: sources.map((s) => s.name).join(', '),
    allowed: 'series of availability, such as those of "Can’t Be Late" (docs/datasets.md)',
    next: 'see what a market tells with `ebb market show`',
  });
