import { policy } from '../../policy/policy.ts';
import { jvuPredictPoint, toldPoint } from './back-off.ts';
import { fused } from './fused.ts';
import { userHint } from './hint.ts';
import { jvuPredict } from './jvupredict.ts';
import { jvuPredictTasks, pointEstimate, sampled, threeSigma, told } from './points.ts';
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
      name: 'jvupredict-expinc',
      about: 'one number of jvupredict; a task that outlives it is expected to take 1, 2, 4, ... cycles more',
      source: 'JamaisVu, section 4.2 (exponential back-off)',
      learners: ['runtimes'],
    },
    jvuPredictPoint('expinc'),
  ),
  policy(
    'estimate',
    {
      name: 'jvupredict-incby1',
      about: 'the same with one cycle more at a time',
      source: 'JamaisVu, figure 16',
      learners: ['runtimes'],
    },
    jvuPredictPoint('incby1'),
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
      name: '3sigma',
      about: 'one number from the distribution of similar jobs: that of the mean utility, which favours short times',
      source: '3Sigma: SLearn, section 4.3',
      learners: ['task-averages'],
    },
    threeSigma,
  ),
  policy(
    'estimate',
    {
      name: 'point-est',
      about: 'the median of the same distribution',
      source: 'Point-Est: SLearn, section 5.1.3',
      learners: ['task-averages'],
    },
    pointEstimate,
  ),
  policy(
    'estimate',
    {
      name: 'sampled',
      about:
        'the mean of the tasks of the stage that have ended; stages without one as 3sigma, scaled by the first stage',
      source: 'SLearn, sections 5.1.2 and 6',
      learners: ['task-averages'],
    },
    sampled,
  ),
  policy(
    'estimate',
    {
      name: 'fused',
      about: 'the distribution of similar jobs, updated by the tasks of the stage that have ended',
      source: 'ours, after SLearn, section 7, and 3Sigma',
      learners: ['task-averages'],
    },
    fused,
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
      name: 'told-expinc',
      about: 'told, and 1, 2, 4, ... cycles more each time that a task outlives it',
      source: 'JamaisVu, section 6.3 (figure 15: estimates off by a known factor)',
    },
    toldPoint('expinc'),
  ),
  policy(
    'estimate',
    {
      name: 'told-incby1',
      about: 'told, and a cycle more each time that a task outlives it',
      source: 'JamaisVu, section 6.3 (figure 16, linear)',
    },
    toldPoint('incby1'),
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
