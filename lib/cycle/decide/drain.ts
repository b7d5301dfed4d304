import { effectKey, type PlanId } from '../../kernel/ids.ts';
import type { Effect } from '../../domain/plan.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Snapshot } from '../../domain/snapshot.ts';
import { releaseIdle } from '../../stages/scale/release.ts';

/** Everything stops: tasks checkpoint and end, instances without tasks are given back. Repeat until none is left. */
export function drainEffects(snapshot: Snapshot, plan: PlanId): Effect[] {
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
    effects.push({
      kind: 'release',
      key: effectKey(`release/${instance.id}`),
      instance: instance.id,
      reason: 'nothing left to run',
    });
  }
  return effects;
}

/** No job is left: instances are given back at the end of the hour that is paid, for the next job may use its rest. */
export const paidHourEffects = (snapshot: Snapshot, config: SchedulerConfig): Effect[] =>
  releaseIdle({ snapshot, used: new Set(), config }).map(({ instance, reason }) => ({
    kind: 'release',
    key: effectKey(`release/${instance}`),
    instance,
    reason,
  }));
