import { appraise } from './appraise/appraise.ts';
import { cheapestSpot } from './scale/cheapest-spot.ts';
import { onDemandOnly } from './scale/on-demand-only.ts';
import { priceCapacityOptimized } from './scale/price-capacity-optimized.ts';
import { releaseIdle } from './scale/release.ts';
import { stratusTributary } from './scale/stratus-tributary.ts';
import { appraiseWithoutSpot } from './appraise/without-spot.ts';
import type { Stages } from '../domain/stages.ts';
import { userHint } from './estimate/hint.ts';
import { jvuPredict } from './estimate/jvupredict.ts';
import { EbbError } from '../kernel/errors.ts';
import { firstFit } from './place/first-fit.ts';
import { onePerInstance } from './place/one-per-instance.ts';
import { eachItsPlace, shortTasksQueue } from './queue/queue.ts';
import { stratusPack } from './place/stratus.ts';
import { fcfsPlan } from './plan/fcfs.ts';
import { greedyPlan } from './plan/greedy.ts';
import { guardMoves } from './plan/guard.ts';
import { milpPlan, milpPlanWith } from './plan/milp.ts';
import type { Solver } from './plan/solver.ts';
import { spotGreedyPlan } from './plan/spot-greedy.ts';
import { uniformProgressPlan } from './plan/uniform-progress.ts';
import { jvuSched } from './value/jvusched.ts';
import { strictPriority } from './value/strict-priority.ts';

interface Preset {
  readonly about: string;
  readonly stages: Stages<Solver>;
  /** How prices are forecast where the setting `forecast` leaves it to the preset; absent: from history. */
  readonly forecast?: string;
}

/** The shipped model that is an LSTM over the last ten prices, as Tributary's is (section 2.2.1). */
const LSTM = '2026-11-21-lstm';

const ebbtide: Stages<Solver> = {
  estimate: jvuPredict,
  value: jvuSched,
  appraise,
  plan: milpPlan,
  acquire: stratusTributary,
  release: releaseIdle,
  place: stratusPack,
  queue: shortTasksQueue,
};

/** Every preset names one policy per stage; leaving a stage out does not compile. */
const PRESETS = {
  ebbtide: { about: 'the default: JVuPredict, one MILP, Stratus packing, Tributary diversification', stages: ebbtide },
  tributary: {
    about: 'ebbtide with price losses forecast by the LSTM (Tributary) in place of history',
    stages: ebbtide,
    forecast: LSTM,
  },
  greedy: { about: 'ebbtide with the greedy plan alone: no solver', stages: { ...ebbtide, plan: greedyPlan } },
  'on-demand': {
    about: 'packs as ebbtide does, buys on-demand only',
    stages: { ...ebbtide, appraise: appraiseWithoutSpot, plan: milpPlanWith(guardMoves), acquire: onDemandOnly },
  },
  'spot-greedy': {
    about: 'the cheapest spot pool until the last safe moment, then on-demand; waits while there is no spot',
    stages: { ...ebbtide, plan: spotGreedyPlan, acquire: cheapestSpot },
  },
  'uniform-progress': {
    about: "spot where there is some, on-demand when behind a line of even progress (Can't Be Late, NSDI 2024)",
    stages: { ...ebbtide, plan: uniformProgressPlan, acquire: cheapestSpot },
  },
  fleet: {
    about: 'first come, first served, one task per instance, as EC2 Fleet with price-capacity-optimized',
    stages: {
      estimate: userHint,
      value: strictPriority,
      appraise,
      plan: fcfsPlan,
      acquire: priceCapacityOptimized,
      release: releaseIdle,
      place: onePerInstance,
      queue: eachItsPlace,
    },
  },
  'spot-fleet': {
    about: 'first come, first served on the cheapest spot pool, as EC2 Fleet with lowestPrice',
    stages: {
      estimate: userHint,
      value: strictPriority,
      appraise,
      plan: fcfsPlan,
      acquire: cheapestSpot,
      release: releaseIdle,
      place: firstFit,
      queue: eachItsPlace,
    },
  },
} satisfies Record<string, Preset>;

export const presetList = (): readonly { readonly name: string; readonly about: string }[] =>
  Object.entries(PRESETS).map(([name, { about }]) => ({ name, about }));

/** Throws `usage` for a name that is none. */
export const presetNamed = (name: string): Stages<Solver> => named(name).stages;

/** What the setting `forecast` comes to with a preset: `history`, `model` or a version. Throws `usage` for a preset that is none. */
export const forecastNamed = (setting: string, preset: string): string =>
  setting === 'preset' ? (named(preset).forecast ?? 'history') : setting;

function named(name: string): Preset {
  const preset = Object.entries<Preset>(PRESETS).find(([known]) => known === name);
  if (preset !== undefined) return preset[1];
  throw new EbbError('usage', {
    what: 'no such preset',
    got: name,
    allowed: Object.keys(PRESETS).join(', '),
    next: 'see `ebb config --presets`',
  });
}
