/**
 * Fair shares of owners or queues (`fairShares`) as a constraint of the plan, where room is short. Each may start work
 * only on what is left when every other one that could start something now has (1 - `fairEpsilon`) of its share:
 * epsilon-fairness as Hopper has it for jobs (section 3.1). Shares are in proportion to weights, of the vCPUs of a
 * cluster or the vCPU limit. Nothing is stopped for them, and nothing is kept free for work that could not start now.
 */
import type { Job } from '../../domain/job.ts';
import { milliCpuIn } from '../../domain/resources.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import { slotsOf } from '../../policy/slots.ts';
import type { Draw, Partition } from './strl/supply.ts';

/** Name of the label of jobs by which `fairShares: queue` tells them apart. */
const QUEUE_LABEL = 'queue';

/** Starts of this cycle that each owner or queue may have at most. */
export interface FairShares {
  readonly partitions: readonly Partition[];
  /** What a task of the group takes of its share. */
  readonly drawOf: (group: PendingGroup) => readonly Draw[];
}

export const NO_SHARES: FairShares = { partitions: [], drawOf: () => [] };

/** Owner or queue of a job. */
export function sharerOf(job: Job | undefined, by: 'owner' | 'queue'): string {
  if (job === undefined) return '';
  return by === 'owner' ? job.spec.owner : (job.spec.labels[QUEUE_LABEL] ?? '');
}

/** `startable`: tasks of a group that could start now, if nothing else did. O(groups + running tasks). */
export function fairSharesOf(input: PlanInput, startable: (group: PendingGroup) => number): FairShares {
  const { snapshot, config } = input;
  const { fairShares: by, shareWeights, fairEpsilon } = config;
  if (by === 'none') return NO_SHARES;
  const sharers = new Map<string, { running: number; startable: number }>();
  const of = (job: PendingGroup['job']): { running: number; startable: number } => {
    const name = sharerOf(snapshot.jobs.get(job), by);
    let known = sharers.get(name);
    if (known === undefined) sharers.set(name, (known = { running: 0, startable: 0 }));
    return known;
  };
  for (const { attempt } of snapshot.running) of(attempt.job).running += milliCpuIn(attempt.resources);
  for (const group of snapshot.groups) of(group.job).startable += startable(group) * milliCpuIn(group.need);
  if (sharers.size < 2) return NO_SHARES;
  const all = slotsOf(snapshot);
  const used = [...sharers.values()].reduce((sum, { running }) => sum + running, 0);
  // Owners and queues have the names that users give: also those of an object's own functions.
  const weightOf = (name: string): number => (Object.hasOwn(shareWeights, name) ? (shareWeights[name] ?? 1) : 1);
  const weights = [...sharers.keys()].reduce((sum, name) => sum + weightOf(name), 0);
  /** What a sharer is short of now. */
  const due = new Map(
    [...sharers].map(([name, { running, startable: waiting }]) => {
      const share = weights > 0 ? (all * weightOf(name)) / weights : 0;
      return [name, Math.max(0, Math.min(waiting, (1 - fairEpsilon) * share - running))] as const;
    }),
  );
  const dueInAll = [...due.values()].reduce((sum, amount) => sum + amount, 0);
  const partitions = [...sharers.keys()].sort().map((name): Partition => {
    // Where all of them are short, each has what it is short of at least.
    const left = Math.max(due.get(name) ?? 0, all - used - (dueInAll - (due.get(name) ?? 0)));
    return {
      id: partitionOf(name),
      renewable: true,
      kinds: ['cpu'],
      // In every slot, or starting later would seem to take less of the supply.
      capacity: Array.from({ length: config.lookAheadSlots }, () => [left]),
    };
  });
  const drawOf = ({ job, need }: PendingGroup): readonly Draw[] => [
    { partition: partitionOf(sharerOf(snapshot.jobs.get(job), by)), perUnit: [milliCpuIn(need)] },
  ];
  return { partitions, drawOf };
}

const partitionOf = (name: string): string => `share_${name}`;
