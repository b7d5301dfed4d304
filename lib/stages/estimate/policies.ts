import { policy } from '../../policy/policy.ts';
import { userHint } from './hint.ts';
import { jvuPredict } from './jvupredict.ts';
import { jvuPredictTasks, told } from './points.ts';
import { recurring } from './recurring.ts';

/** Forecasts of running times. */
export const ESTIMATE = [
  policy(
    'estimate',
    {
      name: 'recurring',
      about: 'recent runs of the feature with the best hit rate, expectedRuntime corrected by its record, own tasks',
      source: 'ours, after JamaisVu, section 3',
      learners: ['runtimes'],
    },
    recurring,
  ),
  policy(
    'estimate',
    {
      name: 'jvupredict',
      about: 'from runs of similar jobs, then expectedRuntime, then a wide prior',
      source: 'JamaisVu, section 3 (JVuPredict)',
      learners: ['runtimes'],
    },
    jvuPredict,
  ),
  policy(
    'estimate',
    {
      name: 'jvupredict-tasks',
      about: 'one number, from the average task running times of similar jobs; past it a task is half done',
      source: 'Stratus, section 3.2.4',
      learners: ['task-averages'],
    },
    jvuPredictTasks,
  ),
  policy(
    'estimate',
    {
      name: 'told',
      about: 'expectedRuntime as one number; past it a task is half done; learns nothing',
      source: 'Stratus, sections 3.3.3 and 3.4.4 (true running times, and times off by a known factor)',
    },
    told,
  ),
  policy(
    'estimate',
    {
      name: 'user-hint',
      about: 'expectedRuntime, else the prior; learns nothing',
      source: 'baseline of JamaisVu, section 5',
    },
    userHint,
  ),
];
