import { seconds } from '../../../../lib/kernel/units.ts';
import type { Deciders } from '../../../../lib/drivers/sim/simulation.ts';
import { resources } from '../../../support/builders.ts';
import { SAVES, SAVES_SLOWLY } from '../../../support/mixed-workload.ts';
import { runOf, staysOf, zones, type Run, type Setting } from '../../../support/observed-run.ts';
import { simulatedJob } from '../../../support/simulated.ts';
import { describeTactic, bringing, without } from '../../../support/tactics.ts';

/**
 * Tactics of the move stage. All work saves its state; what an interruption costs hours leaves spot in time. Presets
 * that weigh lateness in dollars begin such work on on-demand where the vCPU limit has no room to leave spot.
 */

const HOUR_S = 3600;

const whole = { resources: resources(4), checkpoint: SAVES };

/** Runs for twice as long as was said, so that its last safe moment comes while it is on spot. */
const slow = simulatedJob('slow', 0, [6 * HOUR_S], {
  deadlineS: 8 * HOUR_S,
  stage: { ...whole, checkpoint: SAVES_SLOWLY, expectedRuntimeS: seconds(3 * HOUR_S) },
});
const slowOn = (vcpus: number): Setting => ({
  jobs: [slow],
  trace: zones({}),
  vcpus,
  config: { hazardPriorPerHour: 0.05 },
});

/** How a job's task went from instance to instance: purchase options, and how each stay ended. */
const way = (run: Run, job: string): readonly string[] =>
  staysOf(run, job).map(({ option, end }) => `${option} ${end}`);

/** True if it left spot, named as a move or, where the target is bought later, as preempted. */
const leavesSpot =
  (vcpus: number, end: 'moved' | 'preempted') =>
  async (deciders: Deciders): Promise<boolean> => {
    const went = way(await runOf(slowOn(vcpus), deciders), 'slow');
    return went.join() === `spot ${end},on-demand succeeded`;
  };

describeTactic({
  tactic: 'work leaves spot when its last safe moment is near',
  acts: leavesSpot(64, 'moved'),
  under: ['ebbtide', 'tributary', 'greedy', 'spot-greedy', 'uniform-progress'],
  mixed: [
    without('work that stays', { move: 'stay' }),
    { about: 'spot-greedy that stays', preset: { extends: 'spot-greedy', move: 'stay' }, acts: false },
    bringing('a spot fleet with the guard', { extends: 'spot-fleet', move: 'guard' }),
  ],
});

describeTactic({
  tactic: 'work that leaves spot stops first where the vCPU limit has no room for its target',
  acts: leavesSpot(4, 'preempted'),
  under: ['spot-greedy', 'uniform-progress'],
  mixed: [
    without('work that stays', { move: 'stay' }),
    { about: 'spot-greedy that stays', preset: { extends: 'spot-greedy', move: 'stay' }, acts: false },
    {
      about: 'spot-greedy with a guard that does not vacate',
      preset: { extends: 'spot-greedy' },
      swap: (of) => ({ ...of, move: { ...of.move, vacate: () => null } }),
      acts: false,
    },
  ],
});

/** On spot for ten minutes, then there is none until the fifth hour. */
const outlasting = simulatedJob('outlasting', 0, [6 * HOUR_S], {
  deadlineS: 16 * HOUR_S,
  stage: { ...whole, expectedRuntimeS: seconds(6 * HOUR_S) },
});

describeTactic({
  tactic: 'work on on-demand goes back to spot',
  acts: async (deciders) => {
    const run = await runOf(
      { jobs: [outlasting], trace: zones({ outages: [[600, 5 * HOUR_S]] }), config: { lateBudget: 0 } },
      deciders,
    );
    return way(run, 'outlasting').join() === 'spot interrupted,on-demand moved,spot succeeded';
  },
  under: [
    'ebbtide',
    'tributary',
    'greedy',
    'uniform-progress',
    'hotspot',
    'supercloud',
    'supercloud-online',
    'supercloud-scaler',
    'supercloud-clearing',
  ],
  mixed: [
    without('work that stays', { move: 'stay' }),
    without('the guard alone', { move: 'guard' }),
    bringing('a fleet with the way back', { extends: 'fleet', move: 'guard-and-return' }),
  ],
});

/** Two of these fill a machine until their short tasks are done, and leave a quarter of it in use each. */
const leftOver = [1, 2].map((n) =>
  simulatedJob(`left-over-${n}`, n, [4 * HOUR_S, 1200], {
    stage: { ...whole, command: [`left-over-${n}`], resources: resources(2), expectedRuntimeS: seconds(4 * HOUR_S) },
  }),
);

describeTactic({
  tactic: 'work leaves an instance that others have room for',
  acts: async (deciders) => {
    const { stays } = await runOf({ jobs: leftOver, trace: zones({}) }, deciders);
    return stays.some((s) => s.end === 'moved');
  },
  under: ['ebbtide', 'tributary', 'greedy'],
  mixed: [
    without('work that stays', { move: 'stay' }),
    without('the guard and the way back alone', { move: 'guard-and-return' }),
    bringing('a fleet that consolidates', {
      extends: 'fleet',
      place: 'stratus',
      value: 'jvusched',
      move: 'guard-return-and-consolidate',
    }),
  ],
});

/** The first time that a run leaves spot of its own accord; null: never. */
function stopped(run: Run): number | null {
  const stay = run.stays.find((s) => s.end === 'moved' && s.option === 'spot');
  return stay === undefined ? null : stay.untilS;
}

describeTactic({
  tactic: 'room is kept on the target of a move while the work stops',
  // The same once more, with a task that could use the target and comes while the work stops.
  acts: async (deciders) => {
    const untilS = stopped(await runOf(slowOn(64), deciders));
    if (untilS === null) return false;
    const rival = simulatedJob('rival', untilS - 1, [600], {
      stage: { ...whole, command: ['rival'], constraints: { purchaseOptions: ['on-demand'] } },
    });
    const setting = { ...slowOn(64), jobs: [slow, rival], minGapS: 0.5 };
    const run = await runOf(setting, deciders);
    const target = staysOf(run, 'slow').at(-1);
    const [first] = staysOf(run, 'rival');
    if (target === undefined || first === undefined) throw new Error('both run');
    return target.fromS < untilS + 10 && first.instance !== target.instance;
  },
  under: ['ebbtide', 'tributary', 'greedy', 'spot-greedy', 'uniform-progress'],
  mixed: [
    without('work that stays', { move: 'stay' }),
    {
      about: 'spot-greedy with nobody returning',
      preset: { extends: 'spot-greedy' },
      swap: (of) => ({ ...of, move: { ...of.move, returning: () => [] } }),
      acts: false,
    },
  ],
});
