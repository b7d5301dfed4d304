/** Estimates that grow while a task outlives them (JamaisVu, section 4.2). */
import { most, raw, type Seconds } from '../../kernel/units.ts';
import { distributionOf, quantile, type Distribution } from '../../domain/distribution.ts';
import type { RuntimeForecast } from '../../domain/forecast.ts';
import type { EstimatePolicy } from '../../policy/contracts.ts';
import { FEATURES } from '../../policy/features.ts';
import { slot } from '../../policy/memory.ts';
import { LEAST_S, POINTS } from './points.ts';
import { runtimeLearner } from './runtime-learner.ts';
import { forecastStages } from './stage-forecasts.ts';

/** How a task that outlives its estimate is thought of: by one cycle more at a time, or by 1, 2, 4, ... cycles. */
export type BackOff = 'incby1' | 'expinc';

/**
 * Number of increments, and the weight of each over the one before: the next one that is not outlived is all but
 * certain. A task that outlives all of them is thought half done.
 */
const INCREMENTS = { incby1: { count: 40, weight: 0.05 }, expinc: { count: 16, weight: 0.001 } };

/**
 * An estimate with its increments (JamaisVu, section 4.2): T, and what it becomes each time that a task outlives it,
 * T + 1, T + 2, ... cycles (`incby1`), or T + 1, T + 1 + 2, T + 1 + 2 + 4, ... cycles (`expinc`).
 */
export function withBackOff(estimate: Seconds, cycleS: number, by: BackOff): Distribution {
  const { count, weight } = INCREMENTS[by];
  const atS = Float64Array.from({ length: count + 1 }, (_, t) => {
    const cycles = by === 'incby1' ? t : 2 ** t - 1;
    return raw(most(LEAST_S, estimate)) + cycles * cycleS;
  });
  return distributionOf(
    atS,
    atS.map((_, t) => weight ** t),
  );
}

/** JVuPredict's number for the task, with increments where it is outlived. */
export const jvuPredictPoint =
  (by: BackOff): EstimatePolicy =>
  ({ snapshot, beliefs, memory, config }) => {
    const history = beliefs.of(runtimeLearner);
    const features = memory.of(FEATURES);
    const points = memory.of(POINTS);
    const outlived = memory.of(OUTLIVED);
    return forecastStages(snapshot, (job, stage) => {
      const known = history.predict(features.of(job.spec, stage, job.submittedMs));
      return outlived.of(known === null ? points.told(stage) : points.ofHistory(known), config.cyclePeriodS, by);
    });
  };

/** The user's `expectedRuntime`, with increments where it is outlived. */
export const toldPoint =
  (by: BackOff): EstimatePolicy =>
  ({ snapshot, memory, config }) => {
    const points = memory.of(POINTS);
    const outlived = memory.of(OUTLIVED);
    return forecastStages(snapshot, (_, stage) => outlived.of(points.told(stage), config.cyclePeriodS, by));
  };

/** Estimates with increments, so that one record stays the same from cycle to cycle. */
class Outlived {
  readonly #known = new WeakMap<RuntimeForecast, Map<string, RuntimeForecast>>();

  of(point: RuntimeForecast, cycleS: number, by: BackOff): RuntimeForecast {
    let of = this.#known.get(point);
    if (of === undefined) this.#known.set(point, (of = new Map<string, RuntimeForecast>()));
    const key = `${by} ${cycleS}`;
    let known = of.get(key);
    if (known === undefined)
      of.set(key, (known = { ...point, runtime: withBackOff(quantile(point.runtime, 0.5), cycleS, by) }));
    return known;
  }
}
const OUTLIVED = slot(() => new Outlived());
