import { seconds } from '../../../../lib/kernel/units.ts';
import { resources } from '../../../support/builders.ts';
import { runOf, zones } from '../../../support/observed-run.ts';
import { simulatedJob } from '../../../support/simulated.ts';
import { bringing, describeTactic, without } from '../../../support/tactics.ts';

/** Tactics of the scale and appraise stages: what is bought. */

const HOUR_S = 3600;
const stage = { resources: resources(4), expectedRuntimeS: seconds(2 * HOUR_S) };

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
  under: ['ebbtide', 'tributary', 'greedy', 'spot-greedy', 'uniform-progress', 'fleet', 'spot-fleet'],
  mixed: [
    without('offers that are not spot', { appraise: 'without-spot' }),
    bringing('on-demand with spot', { extends: 'on-demand', appraise: 'cost-and-risk', scale: 'stratus-tributary' }),
  ],
});
