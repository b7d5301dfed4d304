import type { AttemptId } from '../../kernel/ids.ts';
import type { Seconds } from '../../kernel/units.ts';
import { instanceParts, type InstanceView, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import type { Host } from '../../policy/contracts.ts';
import { InstanceHost } from '../../policy/hosts.ts';
import { longestLeft, type LeftOf } from '../../policy/left-of.ts';

/**
 * Instances that can take a task now or once they are up. Warned, releasing and soon-to-be-rebalanced ones take none.
 */
export function hostsThere(snapshot: Snapshot, leftOf: LeftOf, stopping: ReadonlySet<AttemptId>): Host[] {
  const hosts: Host[] = [];
  const staying = ({ attempts, distinct }: InstanceView): readonly RunningTask[] =>
    stopping.size === 0 ? (distinct ?? attempts) : attempts.filter((r) => !stopping.has(r.attempt.id));
  const remainingOf = (view: InstanceView): Seconds => longestLeft(staying(view), leftOf);
  for (const there of instanceParts(snapshot).takingTasks.values()) {
    for (const view of there) hosts.push(new InstanceHost(view, remainingOf));
  }
  return hosts;
}
