/** Windows of a service's instances, in which an interruption is refunded (Tributary, section 2.1.1). */
import { raw } from '../../kernel/units.ts';
import type { FootprintChange, FootprintContext, HeldInstance } from '../../policy/services/contracts.ts';

export const WINDOW_MS = 3_600_000;

type WindowContext = Pick<FootprintContext, 'nowMs' | 'config'>;

/** Time until an interruption is no longer refunded, ms; Infinity where it is not refunded at all. */
export function windowLeftMs({ pool, launchedMs }: HeldInstance, { nowMs, config }: WindowContext): number {
  if (config.refundRule === 'none' || pool.option !== 'spot') return Infinity;
  return launchedMs === null ? WINDOW_MS : raw(launchedMs) + WINDOW_MS - raw(nowMs);
}

/** False for an instance whose window ends before a new one would serve: its replacement is due. */
export const lastsUntilReplaced = (held: HeldInstance, context: WindowContext): boolean =>
  windowLeftMs(held, context) > context.config.startDelayMeanS * 1000;

/** Instances whose window has ended are given back (section 2.2.4). */
export const endedWindows = (context: WindowContext & Pick<FootprintContext, 'held'>): FootprintChange['release'] =>
  context.held
    .filter((held) => windowLeftMs(held, context) <= 0)
    .map(({ id }) => ({ instance: id, reason: 'its window has ended: an interruption is no longer refunded' }));
