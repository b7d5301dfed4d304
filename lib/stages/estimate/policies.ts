import { policy } from '../../policy/policy.ts';
import { userHint } from './hint.ts';
import { jvuPredict } from './jvupredict.ts';
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
      name: 'user-hint',
      about: 'expectedRuntime, else the prior; learns nothing',
      source: 'baseline of JamaisVu, section 5',
    },
    userHint,
  ),
];
