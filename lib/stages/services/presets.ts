/** Systems that run a service, by name: which instances it has, for any scaling policy. */
import type { FootprintPolicy, ScalingPolicy } from '../../policy/services/contracts.ts';
import { autoscaleDiversified, autoscaleLowest, onDemandAutoscale, withBuffer } from './autoscale.ts';
import { exosphere } from './exosphere.ts';
import { proteus } from './proteus.ts';
import { seasonal } from './seasonal.ts';
import { linearRegressionPolicy, movingAverage, reactive } from './scaling.ts';
import { tributary } from './tributary.ts';

interface Named<Of> {
  /** One line for lists. */
  readonly about: string;
  /** Paper and section; `ours` where it is this project's own. */
  readonly source: string;
  readonly policy: Of;
}

export const SCALING = {
  reactive: { about: 'the most of the last three minutes', source: 'Tributary, section 2.4.2', policy: reactive },
  'moving-average': {
    about: 'the mean of the last ten minutes',
    source: 'Tributary, section 2.4.2',
    policy: movingAverage,
  },
  'linear-regression': {
    about: 'on the line through the last ten minutes',
    source: 'Tributary, section 2.4.2',
    policy: linearRegressionPolicy,
  },
  seasonal: {
    about: 'the upper end of a forecast by the time of day; the buffer follows the uncertainty',
    source: 'ours; harmonic regression: Hyndman and Athanasopoulos, section 10.5',
    policy: seasonal,
  },
} as const satisfies Readonly<Record<string, Named<ScalingPolicy>>>;

/**
 * Time over which a loss counts, seconds: from the market's warning until the next replica serves, at most. The paper
 * counts losses within the hour of a refund; since then replicas that are warned are replaced while they serve.
 */
const UNTIL_REPLACED_S = 220;

export const FOOTPRINTS = {
  ebbtide: {
    about: 'as tributary, for losses until the next replica serves',
    source: 'ours; Tributary, sections 2.2.2 and 2.2.3',
    policy: tributary({ lossHorizonS: UNTIL_REPLACED_S }),
  },
  tributary: {
    about: 'pools and bids that meet the target at the lowest expected cost',
    source: 'Tributary, sections 2.2.2 to 2.2.4',
    policy: tributary(),
  },
  'autoscale-lowest': {
    about: 'the spot pool with the lowest price',
    source: 'Tributary, sections 2.1.2 and 2.4.3',
    policy: autoscaleLowest,
  },
  'autoscale-diversified': {
    about: 'as many instances of each spot pool',
    source: 'Tributary, sections 2.1.2 and 2.4.4',
    policy: autoscaleDiversified,
  },
  'on-demand-autoscale': {
    about: 'the cheapest on-demand pool',
    source: 'Tributary, section 2.4.3',
    policy: onDemandAutoscale,
  },
  exosphere: {
    about: 'a portfolio of spot pools with little aversion to risk',
    source: 'Tributary, sections 2.1.2 and 2.4.6',
    policy: exosphere({ alpha: 1 }),
  },
  'exosphere-averse': {
    about: 'a portfolio of spot pools with the least risk',
    source: 'Tributary, sections 2.1.2 and 2.4.6',
    policy: exosphere({ alpha: 1e9 }),
  },
  proteus: {
    about: 'the spot pool and bid with the lowest expected cost per vCPU-hour',
    source: 'Tributary, sections 2.1.2 and 2.4.6',
    policy: proteus,
  },
} as const satisfies Readonly<Record<string, Named<FootprintPolicy>>>;

/** Footprint by name; `name+0.5` has a buffer of half of what the load needs. Null: there is none of that name. */
export function footprintNamed(name: string): FootprintPolicy | null {
  const [base = '', buffer, ...more] = name.split('+');
  const share = buffer === undefined ? 0 : Number(buffer);
  if (more.length > 0 || !Object.hasOwn(FOOTPRINTS, base) || !(share >= 0)) return null;
  const { policy } = FOOTPRINTS[base as keyof typeof FOOTPRINTS];
  return share === 0 ? policy : withBuffer(policy, share);
}

export const SCALING_NAMES: readonly string[] = Object.keys(SCALING);

/** Null: there is none of that name. */
export const scalingNamed = (name: string): ScalingPolicy | null =>
  Object.hasOwn(SCALING, name) ? SCALING[name as keyof typeof SCALING].policy : null;
