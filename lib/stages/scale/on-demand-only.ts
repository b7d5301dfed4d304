import { raw } from '../../kernel/units.ts';
import type { AcquirePolicy } from '../../domain/stages.ts';
import { fillInOrder } from './fill.ts';

/** Baseline: the on-demand pool with the lowest price for the share of an instance that a task pays, and nothing else. Work without an on-demand offer waits. */
export const onDemandOnly: AcquirePolicy = (input) =>
  fillInOrder(
    input,
    (a, b) => raw(a.offer.priceUsdPerHour) * a.offer.newShare - raw(b.offer.priceUsdPerHour) * b.offer.newShare,
    ({ pool }) => pool.option === 'on-demand',
  );
