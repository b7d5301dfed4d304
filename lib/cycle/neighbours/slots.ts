/** Slot reuse for groups that may not be beside everybody: another task's slot may be where they must not be. */
import type { QueueInput, QueuePolicy } from '../../policy/contracts.ts';
import type { Neighbours } from './neighbours.ts';

/**
 * The same policy without groups that rules over labels keep from instances, or let nothing be bought for: they wait
 * for no slot, and nobody waits for theirs.
 */
export const queueByRules =
  (queue: QueuePolicy, neighbours: Neighbours): QueuePolicy =>
  (input) => {
    const isApart = ({ group }: QueueInput['leftovers'][number]): boolean => {
      const of = neighbours.of({ job: group.job, stage: group.stage.name });
      return of !== null && neighbours.hasLabelRules(of, 'instance');
    };
    const apart = input.leftovers.filter(isApart);
    if (apart.length === 0) return queue(input);
    const answer = queue({ ...input, leftovers: input.leftovers.filter((l) => !isApart(l)) });
    return { ...answer, leftovers: [...answer.leftovers, ...apart] };
  };
