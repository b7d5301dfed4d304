import { policy } from '../../policy/policy.ts';
import { userHint } from './hint.ts';
import { jvuPredict } from './jvupredict.ts';

/** Forecasts of running times. */
export const ESTIMATE = [
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
