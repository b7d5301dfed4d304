import { raw } from '../kernel/units.ts';
import type { AcquirePolicy } from '../domain/stages.ts';
import { fillInOrder } from './fill.ts';

/** Baseline: the on-demand pool with the lowest price for a task's share, and nothing else. Work without an on-demand offer waits. */
export const onDemandOnly: AcquirePolicy = (input) =>
  fillInOrder(
    input,
    (a, b) => raw(a.offer.priceUsdPerHour) * a.offer.share - raw(b.offer.priceUsdPerHour) * b.offer.share,
    ({ pool }) => pool.option === 'on-demand',
  );
