import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DatasetRows, Numbers } from '../../../models/evaluation/dataset-rows.ts';
import { OBSERVED_COLUMN } from '../datasets/capacity-dataset-folder.ts';
import { npyColumn } from '../datasets/npy-column.ts';

/** Rows of a data set folder: by `ebb market dataset`, or of capacity (capacity-dataset-folder.ts). */
export function datasetRows(folder: string): DatasetRows {
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as DatasetRows['manifest'];
  const column = (name: string): Numbers => npyColumn(join(folder, `${name}.npy`)).values;
  const features = column('features');
  if (manifest.version !== 1 || !(features instanceof Float32Array)) {
    throw new Error(`${folder}: not a data set of version 1`);
  }
  const observed = manifest.risk === 'capacity' ? column(OBSERVED_COLUMN) : null;
  return {
    manifest,
    features,
    ...(observed instanceof Float32Array ? { observed } : {}),
    lossS: column('lossS'),
    watchedS: column('watchedS'),
    atMs: column('atMs'),
    bidUsd: column('bidUsd'),
    pool: column('pool'),
    source: column('source'),
    split: column('split'),
    bidKind: column('bidKind'),
  };
}
