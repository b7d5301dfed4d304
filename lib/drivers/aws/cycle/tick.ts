import { z } from 'zod';
import type { EpochMs } from '../../../kernel/units.ts';
import type { ClockAnchor } from '../../../kernel/clock.ts';
import { lambdaClock } from '../lambda/clock.ts';

/**
 * Event of the EventBridge clock. Its time serves as "now" wherever times of other writers, EC2 or ECS are compared.
 * Clocks of Lambdas may differ by minutes, which would make a new instance look old.
 */
export const tick = z.object({
  source: z.literal('aws.events'),
  /** Time of the tick, wall ms. */
  time: z.iso.datetime({ offset: true }).transform((text) => Date.parse(text)),
});

/** Engine time of a tick. */
export const tickAt = (tickMs: number, anchor: ClockAnchor | undefined): EpochMs =>
  lambdaClock(anchor, () => tickMs).now();
