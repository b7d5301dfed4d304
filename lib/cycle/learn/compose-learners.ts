import type { LearnerFactory } from '../../policy/learner.ts';
import { Learners } from '../../policy/learners.ts';
import { LEARNERS } from '../../stages/learners.ts';
import { SPENT_PREFIX } from '../money/deployment-limits.ts';
import { BACK_OFF_PREFIX } from '../observe/back-off.ts';
import { DISK_PREFIX } from '../observe/disk-room.ts';

/** Rows of the store's memory that no learner writes. */
const TAKEN = [SPENT_PREFIX, BACK_OFF_PREFIX, DISK_PREFIX];

interface Composition {
  /** Learners beside those that come with this version. */
  readonly more?: readonly LearnerFactory[];
  /** False for a simulation, whose beliefs are never read again. Default: true. */
  readonly isKept?: boolean;
}

/**
 * The learners of every driver. All of them learn, whatever the preset reads: a preset chosen later finds what happened
 * before. What a preset's policies declare (Preset.learners) says which of them a process recalls.
 */
export const composeLearners = ({ more = [], isKept = true }: Composition = {}): Learners =>
  new Learners([...Object.values(LEARNERS), ...more], { isKept, taken: TAKEN });
