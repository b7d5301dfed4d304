import { gt, seconds, secondsBetween, type Seconds } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Snapshot } from '../../domain/snapshot.ts';

/** Budget left to the next decision: the earliest of the cycle's period and the end of a pause, in engine time. */
export function nextDecisionS(snapshot: Snapshot, config: SchedulerConfig): Seconds {
  const untils = snapshot.blocked.flatMap((b) =>
    b.untilMs !== null && gt(b.untilMs, snapshot.nowMs) ? [secondsBetween(snapshot.nowMs, b.untilMs)] : [],
  );
  return seconds(Math.min(config.cyclePeriodS, ...untils));
}
