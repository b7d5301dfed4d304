import type { Acquire } from './acquire.ts';
import { ascending } from '../../kernel/units.ts';
import { fillInOrder } from './fill.ts';

/**
 * Baseline: Spot Fleet's lowestPrice strategy (Tributary 2.1.2, Stratus 3.1.1): the pool with the lowest current price,
 * at the highest bid on offer, whatever its risk and the footprint there. Non-interruptible choices of the plan are
 * kept.
 */
export const cheapestSpot: Acquire = (input) =>
  fillInOrder(
    input,
    (a, b) =>
      Number(b.pool.option === 'spot') - Number(a.pool.option === 'spot') ||
      ascending(a.offer.priceUsdPerHour, b.offer.priceUsdPerHour),
    () => true,
  );
