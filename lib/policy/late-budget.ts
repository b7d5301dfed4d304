/**
 * Price of a missed deadline, from the budget of lateness (`lateBudget`: share of deadline jobs that may be late).
 * A job may risk its deadline where that saves more than the price of being late times the probability. The price is
 * the same multiple of what each job costs on on-demand, so the budget goes where a chance of lateness saves most, and
 * to no job that saves nothing. A controller raises it as the jobs that ended use up the budget (`spent`), and stops
 * all risk when they have. Jobs with `mustMeet` have no price: they are never put at risk. A stated worth is a lower
 * bound.
 */
import { raw } from '../kernel/units.ts';
import { mean } from '../domain/distribution.ts';
import type { Job } from '../domain/job.ts';
import type { ValueContext } from './contracts.ts';
import { latenessLearner, type Lateness } from './lateness-learner.ts';

/**
 * Multiple of the budget that a job may risk at most for all that it costs. Few jobs are ever near their deadline,
 * and of those that are the most part of the risk is over when they have started well, so that the deadlines of one
 * job in six may be at risk. The controller stops what goes wrong. Costs over on-demand's with multiples of 2, 8 and
 * 16, on the tuning parts of four grounds of `bench:default`: many-2016-warm 0.192, 0.164, 0.156; many-2021-warm
 * 0.146, 0.096, 0.089; many-2021-cold 0.091, 0.081, 0.079; dense-2021 0.150, 0.125, 0.105. Late were the same 5 of
 * 1,763 jobs.
 */
const MOST_RISK = 16;

/** Factor on the price with half of the budget used, squared with all of it. */
const DEARER = 4;
/** Late jobs among as many as the budget allows them. */
const TOLERATED = 2;

/** Price of a job's lateness. */
export interface LatePrice {
  /** Hours of on-demand of one of its tasks; Infinity: it must not be late. */
  readonly hours: number;
  /** Stated worth of being on time, US dollars; 0: none. */
  readonly statedUsd: number;
}

const MUST_MEET: LatePrice = { hours: Infinity, statedUsd: 0 };

/** O(stages of the job). */
export function latePrice(
  job: Job | undefined,
  context: Pick<ValueContext, 'forecasts' | 'config' | 'beliefs'>,
): LatePrice {
  if (job === undefined || job.spec.mustMeet === true) return MUST_MEET;
  const { forecasts, config, beliefs } = context;
  const budget = config.lateBudget;
  if (!(budget > 0)) return MUST_MEET;
  const used = spent(budget, beliefs.of(latenessLearner));
  if (used >= 1) return MUST_MEET;
  let hours = 0;
  for (const { name, tasks } of job.spec.stages) {
    const forecast = forecasts.runtime.get(`${job.id}/${name}`);
    if (forecast !== undefined) hours += (tasks * raw(mean(forecast.runtime))) / 3600;
  }
  const { onTimeUsd } = job.spec.value;
  return {
    hours: (hours * DEARER ** (2 * used)) / (MOST_RISK * budget),
    statedUsd: onTimeUsd === null ? 0 : raw(onTimeUsd),
  };
}

/** US dollars of a missed deadline, for a task that costs so much per hour on on-demand. */
export const lateUsd = ({ hours, statedUsd }: LatePrice, onDemandUsdPerHour: number): number =>
  Math.max(hours * onDemandUsdPerHour, statedUsd);

/**
 * Share of the budget that the last jobs have used, >= 0. The last jobs are as many as may have two late ones among
 * them, also where fewer have ended: the first late job uses up a half.
 */
export function spent(budget: number, { ofLast }: Lateness): number {
  const most = TOLERATED / budget;
  return ofLast(Math.ceil(most - 1e-9)).late / TOLERATED;
}
