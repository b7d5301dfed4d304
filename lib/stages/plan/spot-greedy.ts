import { hasSpot, strategyPlan, type Choice } from './strategy.ts';
import { isGuarded } from '../../policy/last-safe-moment.ts';

const SPOT: Choice = { take: 'spot', why: 'a spot pool can be had' };
const ON_DEMAND: Choice = { take: 'on-demand', why: 'its last safe moment has come' };

/**
 * Baseline: the greedy policy of Wu et al., "Can't Be Late" (NSDI 2024, section 4). Spot if available, else nothing,
 * until the last time from which on-demand still meets the deadline; then on-demand to the end. Work without a deadline
 * waits for spot without end. Ours: running work leaves spot at that time too, and the time has margins (start-up,
 * restore, two cycles).
 */
export const spotGreedyPlan = strategyPlan((group, input) => {
  const worth = input.worths.groups.get(group.id);
  if (worth !== undefined && isGuarded(worth, input.snapshot.nowMs, input.config.cyclePeriodS)) return ON_DEMAND;
  if (hasSpot(group, input)) return SPOT;
  const until = group.deadlineMs === null ? '' : ', until on-demand is all that still meets the deadline';
  return { take: 'wait', why: `no spot pool that suits it gives capacity now; it waits for one${until}` };
});
