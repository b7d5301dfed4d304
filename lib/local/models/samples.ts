import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { raw } from '../../kernel/units.ts';
import type { DatasetRows, SourceOfRows } from '../../models/evaluation/rows.ts';
import { LEAST_DAYS } from '../../models/evaluation/comparison.ts';
import type { Risk } from '../../models/preemption.ts';
import { writeCapacityDataset } from '../capacity-dataset-folder.ts';
import { writeDataset, type DatasetProgress, type DatasetSource } from '../dataset-folder.ts';
import { datasetRows } from './dataset-rows.ts';

/**
 * What a directory's own history is split into: to train, to calibrate, and the rest to judge. A quarter to judge, where `ebb market dataset`
 * takes a fifth: of four weeks that is the week of days below which nothing is concluded (lib/models/evaluation/comparison.ts).
 */
const SHARES = { train: 0.6, validation: 0.15 } as const;
export const JUDGED_SPLIT = 'test';
const BIDS_PER_INSTANT = 4;
/** Four weeks: the last of them is held out. */
const LEAST_HISTORY_DAYS = 28;
/** Of series of availability, all together: the quarter that is held out touches as many days as it takes to conclude something. */
const LEAST_SERIES_DAYS = (LEAST_DAYS - 0.5) * 4;
const DAY_MS = 86_400_000;

export interface Drawing {
  readonly risk: Risk;
  readonly sources: readonly DatasetSource[];
  readonly seed: number;
  /** Random instants of the whole time: per market; of capacity per pool. */
  readonly instants: number;
  readonly onProgress: (progress: DatasetProgress) => void;
}

/** A data set of them, in a folder. No pool is held out: whoever trains for their own market wants all of it learned. */
export function writeSamples(
  folder: string,
  { risk, sources, seed, instants, onProgress }: Drawing,
): { readonly rows: number; readonly sources: readonly SourceOfRows[] } {
  const plan = { seed, shares: SHARES, unseenShare: 0 };
  if (risk === 'capacity') return writeCapacityDataset(folder, sources, { ...plan, instantsPerPool: instants });
  return writeDataset(folder, sources, { ...plan, instants, bidsPerInstant: BIDS_PER_INSTANT }, onProgress);
}

/** Bids to judge by: those of the last part of the time (JUDGED_SPLIT), among others. */
export function judgedRows(drawing: Drawing): DatasetRows {
  const scratch = mkdtempSync(join(tmpdir(), 'ebb-judged-'));
  try {
    const folder = join(scratch, 'dataset');
    writeSamples(folder, drawing);
    return datasetRows(folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Throws `market.invalid` where a market is too short to train on and be judged after. */
export function mustSuffice({ risk, sources }: Pick<Drawing, 'risk' | 'sources'>): void {
  const lengths = sources.map(({ name, trace }) => ({ name, days: (raw(trace.endMs) - raw(trace.startMs)) / DAY_MS }));
  const total = lengths.reduce((sum, { days }) => sum + days, 0);
  if (risk === 'price' ? lengths.every(({ days }) => days >= LEAST_HISTORY_DAYS) : total >= LEAST_SERIES_DAYS) return;
  throw new EbbError('market.invalid', {
    what: 'there is too little history to train on',
    got: lengths.map(({ name, days }) => `${name}: ${days.toFixed(1)} days`).join(', '),
    ...(risk === 'price'
      ? {
          allowed: `at least ${LEAST_HISTORY_DAYS} days of prices: of these the last quarter is held out, to judge by`,
          next: 'train later, or on longer histories, which AWS keeps for 90 days: `ebb market import`, then --markets',
        }
      : {
          allowed: `at least ${LEAST_SERIES_DAYS} days of availability in all: of these the last quarter is held out, to judge by`,
          next: 'give longer series, or more of them, with --markets',
        }),
  });
}
