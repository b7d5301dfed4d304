/** Learners by name. One added here learns and is stored in every driver, and policies may declare it. */
import type { LearnerFactory } from '../policy/learner.ts';
import { capacityLearner } from './capacity-learner.ts';
import { neighbourLearner } from '../policy/colocation/neighbour-learner.ts';
import { latenessLearner } from '../policy/lateness-learner.ts';
import { copyWinsLearner } from '../policy/speculation/copy-wins.ts';
import { samplingRatioLearner } from '../policy/turns/sampling-ratio.ts';
import { priceDriftLearner } from './price-drift-learner.ts';
import { runtimeLearner } from './estimate/runtime-learner.ts';
import { taskAverageLearner } from './estimate/task-average-learner.ts';

/**
 * Learners, in the order in which they are told of an event. `neighbours` comes after `runtimes`, which asks how much
 * an attempt was slowed down by what was known before it ended.
 */
export const LEARNERS = {
  runtimes: runtimeLearner,
  'task-averages': taskAverageLearner,
  capacity: capacityLearner,
  'price-drift': priceDriftLearner,
  lateness: latenessLearner,
  'sampling-ratio': samplingRatioLearner,
  'copy-wins': copyWinsLearner,
  neighbours: neighbourLearner,
} satisfies Readonly<Record<string, LearnerFactory>>;
