import { effectKey, type InstanceId, type PlanId } from '../../kernel/ids.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Effect } from '../../domain/plan.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import { releaseIdle } from '../../stages/scale/release.ts';

type Kept = Pick<ReadonlySet<InstanceId>, 'has'>;
export const NOTHING: Kept = new Set();

/**
 * Everything stops: tasks checkpoint and end, instances without tasks are given back, except those to keep. Repeat
 * until none is left.
 */
export function drainEffects(snapshot: Snapshot, plan: PlanId, kept: Kept): Effect[] {
  const effects: Effect[] = [];
  for (const { attempt } of snapshot.running) {
    if (attempt.state === 'stopping') continue;
    effects.push({
      kind: 'stop',
      key: effectKey(`${plan}/stop/${attempt.id}`),
      attempt: attempt.id,
      why: 'preempted',
      reason: 'the engine is stopping',
    });
  }
  for (const { instance, attempts } of snapshot.instances.values()) {
    if (attempts.length > 0 || instance.state === 'releasing' || instance.state === 'requested') continue;
    if (kept.has(instance.id)) continue;
    effects.push({
      kind: 'release',
      key: effectKey(`release/${instance.id}`),
      instance: instance.id,
      reason: 'nothing left to run',
    });
  }
  return effects;
}

/**
 * Instances whose started hour is paid beyond the next decision: kept when no job is left, for the next job may use the
 * rest. None under billing by the second, for an idle deployment costs nothing.
 */
export function paidHours(snapshot: Snapshot, config: SchedulerConfig): Kept {
  if (config.billing !== 'per-hour') return NOTHING;
  const ending = new Set(releaseIdle({ snapshot, used: new Set(), config }).map((release) => release.instance));
  const isKept = (id: InstanceId): boolean => {
    const state = snapshot.instances.get(id)?.instance.state;
    return (state === 'starting' || state === 'ready') && !ending.has(id);
  };
  return { has: isKept };
}
