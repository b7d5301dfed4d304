/**
 * Expected cost of an allocation until the end of its window (Tributary, eqs. 2.1 and 2.2). The paper's is for a refund
 * that is sure: what the market takes within the window costs nothing.
 */
import type { SchedulerConfig } from '../../domain/config.ts';

export interface AllocationCost {
  /** Market price of all its instances, US dollars per hour. */
  readonly usdPerHour: number;
  /** Time left in its window, hours. */
  readonly leftH: number;
  /** Probability that the market takes it within that time, in [0, 1]. */
  readonly pLost: number;
}

/**
 * US dollars. With the refund (`first-hour`): (1 - pLost) x price x time. Without one (`none`) time is paid until the
 * loss, at a constant hazard h with pLost = 1 - exp(-h time): price x pLost / h.
 */
export function expectedCostUsd(
  { usdPerHour, leftH, pLost }: AllocationCost,
  { refundRule }: Pick<SchedulerConfig, 'refundRule'>,
): number {
  const fullUsd = usdPerHour * leftH;
  if (pLost >= 1) return 0;
  if (refundRule === 'first-hour') return (1 - pLost) * fullUsd;
  return fullUsd * expectedShare(pLost);
}

/** Share of a time that is over before a loss, in expectation, at a constant hazard that loses `pLost` within it. */
export const expectedShare = (pLost: number): number =>
  pLost < 1e-9 ? 1 : pLost >= 1 ? 0 : pLost / -Math.log1p(-pLost);
