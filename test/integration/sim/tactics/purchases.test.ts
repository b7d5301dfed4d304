import { seconds } from '../../../../lib/kernel/units.ts';
import { resources } from '../../../support/builders.ts';
import { runOf, zones } from '../../../support/observed-run.ts';
import { simulatedJob } from '../../../support/simulated.ts';
import { bringing, describeTactic, without, SHORT_OF_MACHINES, BY_NEIGHBOURS } from '../../../support/tactics.ts';

/** Tactics of the scale and appraise stages: what is bought. */

const HOUR_S = 3600;
const stage = { resources: resources(4), expectedRuntimeS: seconds(2 * HOUR_S) };
/** Of an hour, saved at the notice. */
const saving = {
  resources: resources(4),
  expectedRuntimeS: seconds(HOUR_S),
  checkpoint: { signal: 'SIGUSR1', graceS: seconds(20), everyS: null },
} as const;

describeTactic({
  tactic: 'a large job is spread over pools that cost nearly the same',
  acts: async (deciders) => {
    const jobs = [simulatedJob('large', 0, new Array<number>(16).fill(2 * HOUR_S), { stage })];
    const trace = zones({ name: 'a', usdPerHour: 0.05 }, { name: 'b', usdPerHour: 0.0501 });
    const { bought } = await runOf({ jobs, trace }, deciders);
    return new Set(bought.map((b) => b.zone)).size === 2;
  },
  under: ['ebbtide', 'tributary', 'greedy'],
  mixed: [
    without('the cheapest spot alone', { scale: 'cheapest-spot' }),
    bringing('a spot fleet that spreads', { extends: 'spot-fleet', scale: 'stratus-tributary' }),
  ],
});

describeTactic({
  tactic: 'work is bought spot',
  acts: async (deciders) => {
    const jobs = [simulatedJob('plain', 0, [2 * HOUR_S], { stage })];
    return (await runOf({ jobs, trace: zones({}) }, deciders)).bought.some((b) => b.option === 'spot');
  },
  under: [
    'ebbtide',
    'tributary',
    'greedy',
    'spot-greedy',
    'uniform-progress',
    'fleet',
    'spot-fleet',
    'stratus-no-clearing',
    'stratus',
    'fifo',
    ...BY_NEIGHBOURS,
    'resource-aware',
    'eva',
    'srpt',
    'las',
    'no-packing',
    'hotspot',
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
    without('offers that are not spot', { appraise: 'without-spot' }),
    bringing('on-demand with spot', { extends: 'on-demand', appraise: 'cost-and-risk', scale: 'stratus-tributary' }),
  ],
});

describeTactic({
  tactic: 'deadline work of unknown running time stays off spot where it must be met',
  acts: async (deciders) => {
    const blind = { ...stage, expectedRuntimeS: null, checkpoint: null };
    const jobs = [simulatedJob('blind', 0, [600], { deadlineS: 24 * HOUR_S, stage: blind })];
    const { bought } = await runOf({ jobs, trace: zones({}), config: { lateBudget: 0 } }, deciders);
    return bought.every((b) => b.option === 'on-demand');
  },
  under: ['ebbtide', 'tributary', 'greedy', 'on-demand', 'spot-greedy', 'uniform-progress', 'fargate'],
  mixed: [
    without('offers by price', { appraise: 'by-price' }),
    bringing('a fleet that appraises risks', { extends: 'fleet', appraise: 'cost-and-risk' }),
  ],
});

describeTactic({
  tactic: 'work that must begin now to be in time is bought on-demand',
  acts: async (deciders) => {
    const jobs = [simulatedJob('tight', 0, [HOUR_S], { deadlineS: HOUR_S + 600, stage: saving })];
    return (
      (await runOf({ jobs, trace: zones({}), config: { lateBudget: 0 } }, deciders)).bought[0]?.option === 'on-demand'
    );
  },
  under: ['ebbtide', 'tributary', 'greedy', 'on-demand', 'spot-greedy', 'uniform-progress', 'fargate'],
  mixed: [
    without('first come, first served by price', { plan: 'fcfs', appraise: 'by-price' }),
    bringing('a fleet with the greedy plan', { extends: 'fleet', plan: 'greedy' }),
  ],
});

describeTactic({
  tactic: 'work with time to spare waits for spot that gives no capacity now',
  acts: async (deciders) => {
    const jobs = [simulatedJob('patient', 0, [HOUR_S], { deadlineS: 24 * HOUR_S, stage: saving })];
    const { bought } = await runOf({ jobs, trace: zones({ outages: [[0, 1200]] }) }, deciders);
    return !bought.some((b) => b.option === 'on-demand');
  },
  under: ['ebbtide', 'tributary', 'greedy', 'spot-greedy'],
  mixed: [
    without('first come, first served by price', { plan: 'fcfs', appraise: 'by-price' }),
    bringing('uniform-progress with the greedy plan', { extends: 'uniform-progress', plan: 'greedy' }),
  ],
});
