import { plus, seconds, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Release } from '../../domain/plan.ts';
import { instanceParts, type InstanceView } from '../../domain/snapshot.ts';
import type { ScaleInput } from '../../policy/contracts.ts';

/** Policy of releases. */
export type Return = (input: Pick<ScaleInput, 'snapshot' | 'used' | 'config'>) => readonly Release[];

/** Per-second billing charges at least this long (EC2 since 2017-10-02; Tributary 2.1.1). */
const MINIMUM_S = 60;
const HOUR_S = 3600;
/** A paid hour is left early enough that a slow cycle does not begin the next one. */
const MARGIN_S = 30;

/**
 * Releases instances that are empty and got nothing this cycle; instances that start for waiting tasks are among
 * `used`. Paid time is kept while that is free: the first minute under per-second billing, the started hour under
 * per-hour billing, up to the last cycle before it ends. Requested instances (outcome unknown) and ending ones are left
 * alone.
 */
export const releaseIdle: Return = ({ snapshot, used, config }) => {
  const releases: Release[] = [];
  const idle: InstanceView[] = [];
  for (const view of instanceParts(snapshot).idle) {
    const { id, state } = view.instance;
    if ((state === 'starting' || state === 'ready') && !used.has(id)) idle.push(view);
  }
  for (const view of idle.sort(byId)) {
    const reason = reasonToRelease(view, snapshot.nowMs, config);
    if (reason !== null) releases.push({ instance: view.instance.id, reason });
  }
  return releases;
};

function reasonToRelease({ instance }: InstanceView, now: EpochMs, config: SchedulerConfig): string | null {
  if (instance.launchedMs === null) return 'nothing waits for it and it is not charged for yet';
  const ageS = secondsBetween(instance.launchedMs, now);
  const paidS = config.billing === 'per-hour' ? (Math.floor(Math.max(0, ageS) / HOUR_S) + 1) * HOUR_S : MINIMUM_S;
  const next = plus(now, seconds(config.cyclePeriodS));
  const nextAgeS = secondsBetween(instance.launchedMs, next);
  const margin = config.billing === 'per-hour' ? MARGIN_S : 0;
  if (nextAgeS + margin <= paidS) return null;
  return config.billing === 'per-hour'
    ? 'no task is on it and its paid hour ends before the next decision'
    : 'no task is on it and every further second is charged';
}

const byId = (a: InstanceView, b: InstanceView): number => (a.instance.id < b.instance.id ? -1 : 1);
