/**
 * The deadline guard's comparison in dollars (lib/policy/late-budget.ts) for one task and its share of an instance:
 *   risk:   P(late) gained by moving, times the task's part of the price of being late; an interruption takes all tasks
 *           of the job in that pool, and makes the job late once
 *   leave:  the rest on on-demand, with a move and what has to be done again, less the rest on spot, as charged
 */
import { raw, secondsBetween } from '../../kernel/units.ts';
import { usdPerHourOf } from '../../domain/pool.ts';
import { dominantShare } from '../../domain/resources.ts';
import { chargedS, furtherChargedS, paidForS } from '../../market/billing.ts';
import { latePrice, lateUsd } from '../../policy/late-budget.ts';
import { moveS } from '../../policy/move-cost.ts';
import type { Tolerates } from './deadline-guard.ts';

export const byDollars: Tolerates = (risk, input) => {
  const { running, view, stayLate, moveLate, leftS, againS, together } = risk;
  const { snapshot, config } = input;
  const share = dominantShare(running.attempt.resources, view.pool.type.capacity);
  const onDemandUsd = raw(view.pool.onDemandUsdPerHour) * share;
  const late = lateUsd(latePrice(snapshot.jobs.get(running.attempt.job), input), onDemandUsd);
  if (late === Infinity) return null;
  const quote = snapshot.pools.find(({ pool }) => pool.id === view.pool.id)?.quote;
  const changeoverS = moveS(running, config) + config.startDelayMeanS;
  const { launchedMs } = view.instance;
  const paidS = launchedMs === null ? 0 : paidForS(secondsBetween(launchedMs, snapshot.nowMs), config);
  const movedS = chargedS(changeoverS + againS + leftS, config);
  const staysS = furtherChargedS(Math.max(0, leftS - paidS), config);
  const leavesUsd = (onDemandUsd * movedS - usdPerHourOf(view.pool, quote) * share * staysS) / 3600;
  const risksUsd = ((stayLate - moveLate) * late) / together;
  const why = `staying risks $${risksUsd.toPrecision(2)} of lateness, leaving costs $${leavesUsd.toPrecision(2)}`;
  return { stays: risksUsd < leavesUsd, why };
};
