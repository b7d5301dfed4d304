/** Scaling policies of services, by name: how much load to be ready for. */
import type { NamedPolicy, ScalingPolicy } from '../../policy/services/contracts.ts';
import { linearRegressionPolicy, movingAverage, reactive } from './scaling.ts';
import { seasonal } from './seasonal.ts';

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
} as const satisfies Readonly<Record<string, NamedPolicy<ScalingPolicy>>>;

export const SCALING_NAMES: readonly string[] = Object.keys(SCALING);

/** Null: there is none of that name. */
export const scalingNamed = (name: string): ScalingPolicy | null =>
  Object.hasOwn(SCALING, name) ? SCALING[name as keyof typeof SCALING].policy : null;
