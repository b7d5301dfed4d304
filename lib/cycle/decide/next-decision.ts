import { gt, raw, seconds, secondsBetween, type Seconds } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import { windowEndMs } from '../../stages/scale/window.ts';

/**
 * Time before the end of an allocation's window at which a decision is due (Tributary, section 2.2: the second of its
 * four occasions), seconds: enough to give an instance back in time. Where decisions are not further apart than that,
 * one comes anyway.
 */
const BEFORE_END_S = 60;

/**
 * Time until the next decision: the earliest of the cycle's period, the end of a pause and the end of a window, in
 * engine time. O(blocked + instances).
 */
export function nextDecisionS(
  { blocked, instances, nowMs }: Pick<Snapshot, 'blocked' | 'instances' | 'nowMs'>,
  config: Pick<SchedulerConfig, 'cyclePeriodS' | 'billing' | 'refundRule'>,
): Seconds {
  const pauses = blocked.flatMap(({ untilMs }) =>
    untilMs !== null && gt(untilMs, nowMs) ? [secondsBetween(nowMs, untilMs)] : [],
  );
  let dueS: number = Math.min(config.cyclePeriodS, ...pauses);
  if (config.cyclePeriodS <= BEFORE_END_S) return seconds(dueS);
  for (const view of instances.values()) {
    const endMs = windowEndMs(view, nowMs, config);
    const inS = endMs === null ? 0 : (raw(endMs) - raw(nowMs)) / 1000 - BEFORE_END_S;
    if (inS > 0) dueS = Math.min(dueS, inS);
  }
  return seconds(dueS);
}
