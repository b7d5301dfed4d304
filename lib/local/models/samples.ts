import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EbbError } from '../../kernel/errors.ts';
import { raw } from '../../kernel/units.ts';
import type { SamplingPlan } from '../../market/dataset.ts';
import type { DatasetRows } from '../../models/evaluation/rows.ts';
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
export const LEAST_HISTORY_DAYS = 28;
const DAY_MS = 86_400_000;

export interface Drawing {
  readonly sources: readonly DatasetSource[];
  readonly seed: number;
  /** Random instants per market, of the whole time. */
  readonly instants: number;
  readonly onProgress: (progress: DatasetProgress) => void;
}

/** No pool is held out: whoever trains for their own market wants all of it learned. */
export const ownPlan = ({ seed, instants }: Pick<Drawing, 'seed' | 'instants'>): SamplingPlan => ({
  seed,
  instants,
  bidsPerInstant: BIDS_PER_INSTANT,
  shares: SHARES,
  unseenShare: 0,
});

/** Bids to judge by: those of the last part of the time (JUDGED_SPLIT), among others. */
export function judgedRows({ sources, onProgress, ...of }: Drawing): DatasetRows {
  const scratch = mkdtempSync(join(tmpdir(), 'ebb-judged-'));
  try {
    const folder = join(scratch, 'dataset');
    writeDataset(folder, sources, ownPlan(of), onProgress);
    return datasetRows(folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Throws `market.invalid` where a market is too short to train on and be judged after. */
export function mustSuffice(sources: readonly DatasetSource[]): void {
  const lengths = sources.map(({ name, trace }) => ({ name, days: (raw(trace.endMs) - raw(trace.startMs)) / DAY_MS }));
  if (lengths.every(({ days }) => days >= LEAST_HISTORY_DAYS)) return;
  throw new EbbError('market.invalid', {
    what: 'there is too little history to train on',
    got: lengths.map(({ name, days }) => `${name}: ${days.toFixed(1)} days`).join(', '),
    allowed: `at least ${LEAST_HISTORY_DAYS} days of prices: of these the last quarter is held out, to judge by`,
    next: 'train later, or on longer histories, which AWS keeps for 90 days: `ebb market import`, then --markets',
  });
}
