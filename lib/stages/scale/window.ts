import { epochMs, msBetween, raw, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { startedHourEndMs } from '../../domain/instance.ts';
import type { InstanceView } from '../../domain/snapshot.ts';

const HOUR_MS = 3_600_000;

/**
 * End of an instance's window (Tributary 2.2: an allocation that reaches the end of its preemption window is the
 * second of four occasions to decide): its cost so far is then paid, or no longer refunded, and whether to keep it is a
 * new question. Under per-hour billing each started hour ends one; under per-second billing only the first hour of a
 * spot instance does, if an interruption in it is free. Null: no end is to come, or the instance is ending.
 */
export function windowEndMs(
  { instance, pool }: Pick<InstanceView, 'instance' | 'pool'>,
  nowMs: EpochMs,
  { billing, refundRule }: Pick<SchedulerConfig, 'billing' | 'refundRule'>,
): EpochMs | null {
  const { state, launchedMs } = instance;
  if (launchedMs === null || (state !== 'starting' && state !== 'ready')) return null;
  if (billing === 'per-hour') return startedHourEndMs(launchedMs, nowMs);
  const age = Math.max(0, msBetween(launchedMs, nowMs));
  if (refundRule === 'none' || pool.option !== 'spot' || age >= HOUR_MS) return null;
  return epochMs(raw(launchedMs) + HOUR_MS);
}
