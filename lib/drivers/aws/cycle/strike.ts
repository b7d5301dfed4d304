import { z } from 'zod';
import type { EpochMs } from '../../../kernel/units.ts';
import type { ClockAnchor } from '../../../kernel/clock.ts';
import { lambdaClock } from '../lambda/clock.ts';

/**
 * What EventBridge sends by its clock. Functions that compare what others wrote, or what EC2 and ECS tell, with now
 * take the time of this event for now: clocks of two Lambdas may differ, and by minutes an instance that has just begun
 * would look old.
 */
export const strike = z.object({
  source: z.literal('aws.events'),
  /** When the clock struck, wall ms. */
  time: z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
});

/** Engine time of a strike. */
export const struckAt = (struckMs: number, anchor: ClockAnchor | undefined): EpochMs =>
  lambdaClock(anchor, () => struckMs).now();
