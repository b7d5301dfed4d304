/**
 * The deadline guard's comparison in dollars (lib/policy/late-budget.ts): what staying on spot risks, P(late) gained by
 * moving times the price of being late, against what leaving costs: the rest at the price of on-demand instead of
 * spot, what has to be done again, and a move.
 */
import { raw } from '../../kernel/units.ts';
import { usdPerHourOf } from '../../domain/pool.ts';
import { latePrice, lateUsd } from '../../policy/late-budget.ts';
import type { Tolerates } from './deadline-guard.ts';

export const byDollars: Tolerates = ({ running, view, stayLate, moveLate, leftS, againS }, input) => {
  const { snapshot, config } = input;
  const onDemandUsd = raw(view.pool.onDemandUsdPerHour);
  const late = lateUsd(latePrice(snapshot.jobs.get(running.attempt.job), input), onDemandUsd);
  if (late === Infinity) return null;
  const quote = snapshot.pools.find(({ pool }) => pool.id === view.pool.id)?.quote;
  const dearer = Math.max(0, onDemandUsd - usdPerHourOf(view.pool, quote));
  const changeoverS = config.migrationS + config.startDelayMeanS + config.restoreS;
  const leavesUsd = (dearer * leftS + onDemandUsd * (againS + changeoverS)) / 3600;
  const risksUsd = (stayLate - moveLate) * late;
  const why = `staying risks $${risksUsd.toPrecision(2)} of lateness, leaving costs $${leavesUsd.toPrecision(2)}`;
  return { stays: risksUsd < leavesUsd, why };
};
