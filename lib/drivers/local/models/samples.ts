import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EbbError } from '../../../kernel/errors.ts';
import { msBetween } from '../../../kernel/units.ts';
import type { DatasetRows, SourceOfRows } from '../../../models/evaluation/dataset-rows.ts';
import { LEAST_DAYS } from '../../../models/evaluation/comparison.ts';
import type { Risk } from '../../../models/preemption.ts';
import { lossesIn, type CapacityRecord } from '../../../market/capacity-record.ts';
import { writeCapacityDataset, writeRecordDataset, type RecordSource } from '../datasets/capacity-dataset-folder.ts';
import type { DatasetProgress } from '../datasets/dataset-columns.ts';
import { writeDataset, type DatasetSource } from '../datasets/dataset-folder.ts';
import { onSuddenEnd } from '../sudden-end.ts';
import { datasetRows } from './dataset-rows.ts';

/**
 * Split of a directory's own history: to train, to calibrate, and the rest to judge. A quarter to judge, where `ebb
 * market dataset` takes a fifth: of four weeks that is the least number of days for a conclusion
 * (lib/models/evaluation/comparison.ts).
 */
const SHARES = { train: 0.6, validation: 0.15 } as const;
export const JUDGED_SPLIT = 'test';
const BIDS_PER_INSTANT = 4;
/** Four weeks: the last of them is held out. */
const LEAST_HISTORY_DAYS = 28;
/** For series of availability, all together: the quarter that is held out covers enough days for a conclusion. */
const LEAST_SERIES_DAYS = (LEAST_DAYS - 0.5) * 4;
const DAY_MS = 86_400_000;
/**
 * Fewest losses of held capacity: ten for each of the six fitted hazards. Peduzzi et al., "A simulation study of the
 * number of events per variable", Journal of Clinical Epidemiology 49, 1996. That is for one number each; the judging
 * tells if features add anything.
 */
const LEAST_LOSSES = 60;

export interface Drawing {
  readonly risk: Risk;
  /** Histories of prices or series of availability, or (of capacity) the record of an engine's own instances. */
  readonly from: { readonly traces: readonly DatasetSource[] } | { readonly own: RecordSource };
  readonly seed: number;
  /** Random instants of the whole time: per market; of capacity per pool. */
  readonly instants: number;
  readonly onProgress: (progress: DatasetProgress) => void;
}

/**
 * A data set of samples, in a folder. No pool is held out, because a training for one's own market should learn all of
 * it.
 */
export async function writeSamples(
  folder: string,
  { risk, from, seed, instants, onProgress }: Drawing,
): Promise<{ readonly rows: number; readonly sources: readonly SourceOfRows[] }> {
  const plan = { seed, shares: SHARES, unseenShare: 0 };
  const ofCapacity = { ...plan, instantsPerPool: instants };
  if ('own' in from) return writeRecordDataset(folder, from.own, ofCapacity, onProgress);
  const { traces } = from;
  if (risk === 'capacity') return writeCapacityDataset(folder, traces, ofCapacity, onProgress);
  const ofPrices = { ...plan, instants, bidsPerInstant: BIDS_PER_INSTANT, points: 'times' } as const;
  return writeDataset(folder, traces, ofPrices, onProgress);
}

/** Bids for judging: those of the last part of the time (JUDGED_SPLIT), among others. */
export async function judgedRows(drawing: Drawing): Promise<DatasetRows> {
  const scratch = mkdtempSync(join(tmpdir(), 'ebb-judged-'));
  const discard = (): void => rmSync(scratch, { recursive: true, force: true });
  const unwatch = onSuddenEnd(discard);
  try {
    const folder = join(scratch, 'dataset');
    await writeSamples(folder, drawing);
    return datasetRows(folder);
  } finally {
    unwatch();
    discard();
  }
}

/** Throws `market.invalid` where there is too little to train on and be judged after. */
export function mustSuffice({ risk, from }: Pick<Drawing, 'risk' | 'from'>): void {
  if ('own' in from) ownMustSuffice(from.own.record);
  else tracesMustSuffice(risk, from.traces);
}

function ownMustSuffice(record: CapacityRecord): void {
  const days = msBetween(record.startMs, record.endMs) / DAY_MS;
  const losses = lossesIn(record);
  if (days >= LEAST_HISTORY_DAYS && losses >= LEAST_LOSSES) return;
  throw new EbbError('market.invalid', {
    what: 'the engine has seen too little of capacity to train on',
    got: `${record.lives.length} spot instances within ${days.toFixed(1)} days; capacity that was held ended ${losses} times, ${record.refusals.length} launches found none`,
    allowed: `at least ${LEAST_HISTORY_DAYS} days, of which the last quarter is held out to judge by, in which capacity that was held ended ${LEAST_LOSSES} times`,
    next: 'train later, or on series of availability, with --markets; until then `capacityForecast=observed` goes by the rate of interruptions',
  });
}

function tracesMustSuffice(risk: Risk, sources: readonly DatasetSource[]): void {
  const lengths = sources.map(({ name, trace }) => ({ name, days: msBetween(trace.startMs, trace.endMs) / DAY_MS }));
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
