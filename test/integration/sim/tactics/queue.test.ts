import { seconds } from '../../../../lib/kernel/units.ts';
import { resources } from '../../../support/builders.ts';
import { runOf, zones } from '../../../support/observed-run.ts';
import { simulatedJob } from '../../../support/simulated.ts';
import { bringing, describeTactic, without } from '../../../support/tactics.ts';

/** Tactics of the queue stage. Each task fills an instance. */

const TASKS = 30;
/** lib/stages/queue/first-runs.ts. */
const FIRST_RUNS = 8;

const alike = (runtimeS: number, expectedRuntimeS: number | null) => [
  simulatedJob('alike', 0, new Array<number>(TASKS).fill(runtimeS), {
    stage: {
      resources: resources(4),
      expectedRuntimeS: expectedRuntimeS === null ? null : seconds(expectedRuntimeS),
    },
  }),
];

describeTactic({
  tactic: 'short tasks share the places that are bought for some of them',
  acts: async (deciders) => {
    const { bought } = await runOf({ jobs: alike(5, 5), trace: zones({}), vcpus: 1000 }, deciders);
    return 4 * bought.length < TASKS;
  },
  under: ['ebbtide', 'tributary', 'greedy', 'on-demand', 'spot-greedy', 'uniform-progress'],
  mixed: [
    without('a place for each task', { queue: 'none' }),
    bringing('a fleet whose short tasks wait', { extends: 'fleet', queue: 'short-tasks-wait' }),
    bringing('a spot fleet whose short tasks wait', { extends: 'spot-fleet', queue: 'short-tasks-wait' }),
  ],
});

describeTactic({
  tactic: 'of a program that never ran a few tasks are tried first',
  acts: async (deciders) => {
    const { bought, stays } = await runOf({ jobs: alike(300, null), trace: zones({}), vcpus: 1000 }, deciders);
    const [first] = stays;
    if (first === undefined) throw new Error('something runs');
    return bought.filter((b) => b.atS <= first.fromS).length === FIRST_RUNS;
  },
  under: ['ebbtide', 'tributary', 'greedy', 'on-demand', 'spot-greedy', 'uniform-progress'],
  mixed: [
    without('a place for each task', { queue: 'none' }),
    bringing('a fleet that tries a few', { extends: 'fleet', queue: 'short-tasks-wait' }),
    bringing('a spot fleet that tries a few', { extends: 'spot-fleet', queue: 'short-tasks-wait' }),
  ],
});
