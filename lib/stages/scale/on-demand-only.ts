import type { Acquire } from './acquire.ts';
import { raw } from '../../kernel/units.ts';
import { fillInOrder } from './fill.ts';

/**
 * Baseline: the on-demand pool, or machine of the user's own, with the lowest price for a task's share of an instance,
 * and nothing else. Work without such an offer waits.
 */
export const onDemandOnly: Acquire = (input) =>
  fillInOrder(
    input,
    (a, b) => raw(a.offer.priceUsdPerHour) * a.offer.newShare - raw(b.offer.priceUsdPerHour) * b.offer.newShare,
    ({ pool }) => pool.option === 'on-demand' || pool.isOwn === true,
  );
