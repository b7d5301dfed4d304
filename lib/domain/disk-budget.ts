/** Budget of an engine's folder on the disk: limit, level, and the sentence for people. Sizes in bytes. */
import { sizeText } from './job-file/amounts.ts';

export interface DiskUse {
  /** All files of the folder, as the disk counts them. */
  readonly usedBytes: number;
  /** The most that the folder may use. */
  readonly budgetBytes: number;
  /** Free space of the file system for the user of the engine. */
  readonly freeBytes: number;
  /** Part of the free space that is never used, so that running tasks can end and be recorded. */
  readonly reserveBytes: number;
}

/** low: people are told. used-up: no task starts and no job is accepted; running tasks go on. */
export type DiskLevel = 'enough' | 'low' | 'used-up';

export interface DiskState {
  readonly level: DiskLevel;
  readonly use: DiskUse;
  /** One sentence about the level. */
  readonly text: string;
}

/** Per cent of the budget at which people are told first. */
export const LOW_PERCENT = 80;
/** Each level ends lower than it begins, else it would begin again with the next file. */
const LOW_ENDS_PERCENT = 75;
const USED_UP_ENDS_PERCENT = 95;
/** Thresholds of free space, in reserves. */
const LOW_RESERVES = { begins: 2, ends: 2.5 } as const;
const USED_UP_RESERVES = { begins: 1, ends: 1.25 } as const;

/** Smallest budget: the database and its log alone may take a quarter of it. */
export const LEAST_BUDGET_BYTES = 32 * 1024 ** 2;

const MOST_RESERVE_BYTES = 256 * 1024 ** 2;
const RESERVE_SHARE = 0.1;

/** Reserve of a file system of that size: 256 MiB, or 10 % of a small one. */
export const reserveOf = (fileSystemBytes: number): number =>
  Math.min(MOST_RESERVE_BYTES, Math.floor(fileSystemBytes * RESERVE_SHARE));

/** Budget without a setting: the folder may grow by half of the free space. */
export const defaultBudget = ({ usedBytes, freeBytes }: Pick<DiskUse, 'usedBytes' | 'freeBytes'>): number =>
  usedBytes + Math.floor(freeBytes / 2);

/** `before`: the level until now. */
export function diskLevel(use: DiskUse, before: DiskLevel): DiskLevel {
  const { usedBytes, budgetBytes, freeBytes, reserveBytes } = use;
  const percent = (100 * usedBytes) / budgetBytes;
  const isUsedUp =
    before === 'used-up'
      ? percent > USED_UP_ENDS_PERCENT || freeBytes < USED_UP_RESERVES.ends * reserveBytes
      : percent >= 100 || freeBytes <= USED_UP_RESERVES.begins * reserveBytes;
  if (isUsedUp) return 'used-up';
  const isLow =
    before === 'enough'
      ? percent >= LOW_PERCENT || freeBytes <= LOW_RESERVES.begins * reserveBytes
      : percent > LOW_ENDS_PERCENT || freeBytes < LOW_RESERVES.ends * reserveBytes;
  return isLow ? 'low' : 'enough';
}

/** `4.1 GB of 5 GB (82 %)`. */
export const useText = ({ usedBytes, budgetBytes }: Pick<DiskUse, 'usedBytes' | 'budgetBytes'>): string =>
  `${sizeText(usedBytes)} of ${sizeText(budgetBytes)} (${Math.floor((100 * usedBytes) / budgetBytes)} %)`;

/** One sentence: usage, limit, consequence. */
export function diskText(use: DiskUse, level: DiskLevel, dir: string): string {
  const { freeBytes, reserveBytes } = use;
  const budget = `${dir} uses ${useText(use)}`;
  const free = `${sizeText(freeBytes)} are free on the file system of ${dir}`;
  switch (level) {
    case 'enough':
      return budget;
    case 'low':
      return isByBudget(use)
        ? `the disk budget runs low: ${budget}; at 100 % no further task starts`
        : `the disk runs low: ${free}; at ${sizeText(reserveBytes)} no further task starts`;
    case 'used-up':
      return isByBudget(use)
        ? `the disk budget is used up: ${budget}; tasks start again below ${USED_UP_ENDS_PERCENT} %`
        : `the disk is nearly full: ${free}; tasks start again at ${sizeText(USED_UP_RESERVES.ends * reserveBytes)}`;
  }
}

/** True if the budget runs out before the file system. */
const isByBudget = ({ usedBytes, budgetBytes, freeBytes, reserveBytes }: DiskUse): boolean =>
  budgetBytes - usedBytes <= freeBytes - reserveBytes;

/** Remedy for people. */
export const diskWayOut = (use: DiskUse, dir: string): string =>
  isByBudget(use)
    ? `delete what is no longer needed below ${dir} (work, logs), or start the engine again with a larger --disk; files of jobs go by themselves 90 days after their end, or as --set historyDays=N says`
    : `free some space on the file system of ${dir}`;
