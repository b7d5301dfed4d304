import type { LearnerFactory } from '../../policy/learner.ts';
import { Learners } from '../../policy/learners.ts';
import { SPENT_PREFIX } from '../money/deployment-limits.ts';
import { BACK_OFF_PREFIX } from '../observe/back-off.ts';
import { DISK_PREFIX } from '../observe/disk-room.ts';
import { capacityLearner } from './capacity-learner.ts';
import { latenessLearner } from './lateness-learner.ts';
import { runtimeLearner } from '../../stages/estimate/runtime-learner.ts';

/** Rows of the store's memory that no learner writes. */
const TAKEN = [SPENT_PREFIX, BACK_OFF_PREFIX, DISK_PREFIX];

interface Composition {
  /** Learners beside those that come with this version. */
  readonly more?: readonly LearnerFactory[];
  /** False for a simulation, whose beliefs are never read again. Default: true. */
  readonly isKept?: boolean;
}

/** The learners of every driver. One added here learns, and is stored, in all of them. */
export const composeLearners = ({ more = [], isKept = true }: Composition = {}): Learners =>
  new Learners([runtimeLearner, capacityLearner, latenessLearner, ...more], { isKept, taken: TAKEN });
