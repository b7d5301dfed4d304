import { seconds } from '../../../../lib/kernel/units.ts';
import { resources } from '../../../support/builders.ts';
import { runOf, staysOf, zones } from '../../../support/observed-run.ts';
import { simulatedJob } from '../../../support/simulated.ts';
import { bringing, describeTactic, without, SHORT_OF_MACHINES, BY_NEIGHBOURS } from '../../../support/tactics.ts';

/** Tactics of the order and place stages: who gets the room that there is. */

const HOUR_S = 3600;

const timed = (cpus: number, runtimeS: number) => ({
  resources: resources(cpus),
  expectedRuntimeS: seconds(runtimeS),
  // Each a template of its own.
  command: [`for ${runtimeS}`],
});
const ON_DEMAND = { constraints: { purchaseOptions: ['on-demand'] } } as const;

describeTactic({
  tactic: 'urgent work has the first instance that is up',
  // Each is bought an instance; the packer would give the first to the longer one.
  acts: async (deciders) => {
    const jobs = [
      simulatedJob('urgent', 0, [100], { deadlineS: 330, stage: { ...timed(4, 100), ...ON_DEMAND } }),
      simulatedJob('long', 0, [1200], { stage: { ...timed(4, 1200), ...ON_DEMAND } }),
    ];
    const { stays } = await runOf({ jobs, trace: zones({}) }, deciders);
    return stays[0]?.job === 'urgent';
  },
  under: ['ebbtide', 'tributary', 'greedy', 'on-demand', 'spot-greedy', 'uniform-progress'],
  mixed: [
    without('starts as packed', { order: 'as-packed' }),
    bringing('a fleet that puts urgent work first', { extends: 'fleet', order: 'urgent-first' }),
    bringing('a spot fleet that puts urgent work first', { extends: 'spot-fleet', order: 'urgent-first' }),
  ],
});

describeTactic({
  tactic: 'work that is meant for spot leaves an idle on-demand instance alone',
  // The on-demand instance is kept until its paid hour ends; the later work would take longer than that.
  acts: async (deciders) => {
    const jobs = [
      simulatedJob('busy', 0, [5 * HOUR_S], { stage: timed(4, 5 * HOUR_S) }),
      simulatedJob('steady', 0, [600], { stage: { ...timed(4, 600), ...ON_DEMAND } }),
      simulatedJob('later', 1000, [2 * HOUR_S], { owner: 'other', stage: timed(4, 2 * HOUR_S) }),
    ];
    const run = await runOf({ jobs, trace: zones({}), config: { billing: 'per-hour' } }, deciders);
    return staysOf(run, 'later')[0]?.option === 'spot';
  },
  under: [
    'ebbtide',
    'tributary',
    'greedy',
    'spot-greedy',
    'uniform-progress',
    'supercloud',
    'srpt-speculation',
    'fair-speculation',
  ],
  mixed: [
    without('starts as packed', { order: 'as-packed' }),
    bringing('a fleet that keeps to the option', { extends: 'fleet', order: 'urgent-first' }),
    bringing('a spot fleet that keeps to the option', { extends: 'spot-fleet', order: 'urgent-first' }),
  ],
});

describeTactic({
  tactic: 'tasks share an instance',
  acts: async (deciders) => {
    const jobs = [simulatedJob('wide', 0, new Array<number>(6).fill(600), { stage: timed(1, 600) })];
    return (await runOf({ jobs, trace: zones({}) }, deciders)).bought.length === 2;
  },
  under: [
    'ebbtide',
    'tributary',
    'greedy',
    'on-demand',
    'spot-greedy',
    'uniform-progress',
    'spot-fleet',
    'stratus-no-clearing',
    'stratus',
    'fifo',
    ...BY_NEIGHBOURS,
    'resource-aware',
    'eva',
    'srpt',
    'las',
    'supercloud',
    'supercloud-online',
    'supercloud-scaler',
    'supercloud-clearing',
    'fleet-binpack',
    'jvusched',
    'jvusched-greedy',
    'jvusched-base',
    'prio',
    ...SHORT_OF_MACHINES,
  ],
  mixed: [
    without('one task per instance', { place: 'one-per-instance' }),
    // Who buys an instance for each task has no use for a packer.
    { about: 'a fleet that packs', preset: { extends: 'fleet', place: 'stratus' }, acts: false },
    bringing('a fleet that packs and buys so', { extends: 'fleet', place: 'stratus', scale: 'stratus-tributary' }),
  ],
});

describeTactic({
  tactic: 'tasks that end together share an instance',
  // Four instances with a vCPU to spare: two that are busy for hours and two for minutes.
  acts: async (deciders) => {
    const jobs = [
      simulatedJob('hours', 0, [3 * HOUR_S, 3 * HOUR_S], { stage: timed(3, 3 * HOUR_S) }),
      simulatedJob('minutes', 0, [1800, 1800], { stage: timed(3, 1800) }),
      simulatedJob('long', 400, [2.8 * HOUR_S], { stage: timed(1, 2.8 * HOUR_S) }),
      simulatedJob('short', 400, [1300], { stage: timed(1, 1300) }),
    ];
    const run = await runOf({ jobs, trace: zones({}) }, deciders);
    const beside = (one: string, other: string): boolean => {
      const there = staysOf(run, other).map((s) => s.instance);
      return staysOf(run, one).every((s) => there.includes(s.instance));
    };
    return beside('long', 'hours') && beside('short', 'minutes');
  },
  under: [
    'ebbtide',
    'tributary',
    'greedy',
    'on-demand',
    'spot-greedy',
    'uniform-progress',
    'stratus-no-clearing',
    'stratus',
  ],
  mixed: [
    without('the first instance that has room', { place: 'first-fit' }),
    bringing('a spot fleet that packs by time', { extends: 'spot-fleet', place: 'stratus' }),
    bringing('a fleet that packs by time', { extends: 'fleet', place: 'stratus' }),
  ],
});
