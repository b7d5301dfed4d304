/** What `ebb market dataset` wrote, and what came of each bid within a horizon. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SourceSummary } from '../../lib/local/dataset-folder.ts';
import { npyColumn, type Numbers } from './npy.ts';

export type SourceOfRows = Pick<SourceSummary, 'name' | 'sha256' | 'from' | 'validationFrom' | 'testFrom' | 'to'>;

interface Manifest {
  readonly version: number;
  readonly rows: number;
  readonly plan: { readonly seed: number; readonly instants: number; readonly bidsPerInstant: number };
  readonly features: readonly string[];
  readonly splits: readonly string[];
  readonly pools: readonly string[];
  readonly horizonsS: readonly number[];
  readonly sources: readonly SourceOfRows[];
  readonly sha256: Readonly<Record<string, string>>;
}

export interface DatasetRows {
  readonly manifest: Manifest;
  readonly features: Float32Array;
  readonly lossS: Numbers;
  readonly watchedS: Numbers;
  readonly atMs: Numbers;
  readonly bidUsd: Numbers;
  readonly pool: Numbers;
  readonly source: Numbers;
  readonly split: Numbers;
  readonly bidKind: Numbers;
}

export function datasetRows(folder: string): DatasetRows {
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest;
  const column = (name: string): Numbers => npyColumn(join(folder, `${name}.npy`)).values;
  const features = column('features');
  if (manifest.version !== 1 || !(features instanceof Float32Array)) {
    throw new Error(`${folder}: not a data set of version 1`);
  }
  return {
    manifest,
    features,
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

export type Outcome = 'lost' | 'lived' | 'unknown';

/**
 * Unknown also near the end of a trace whatever was seen: to count losses there, where lives cannot be told, would make bids look
 * worse than they were.
 */
export function outcomeWithin(rows: DatasetRows, row: number, horizonS: number): Outcome {
  const to = Date.parse(rows.manifest.sources[rows.source[row] ?? -1]?.to ?? '');
  if (!(to - (rows.atMs[row] ?? NaN) >= horizonS * 1000)) return 'unknown';
  if ((rows.lossS[row] ?? Infinity) <= horizonS) return 'lost';
  return (rows.watchedS[row] ?? 0) >= horizonS ? 'lived' : 'unknown';
}
