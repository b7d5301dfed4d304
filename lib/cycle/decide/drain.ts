import { effectKey, type PlanId } from '../../kernel/ids.ts';
import type { Effect } from '../../domain/plan.ts';
import type { Snapshot } from '../../domain/snapshot.ts';

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
