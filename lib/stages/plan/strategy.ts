/**
 * Plans of strategies with one answer per task: take spot, take non-interruptible capacity, or wait. First come, first
 * served, deadline work before best-effort, this cycle only: the strategies that the "spot or on-demand" literature
 * compares, made to run on many jobs at once.
 */
import { isSpotPool } from '../../domain/pool.ts';
import { nonInterruptibleOnly } from '../../domain/constraints.ts';
import type { GroupId } from '../../kernel/ids.ts';
import type { Offer } from '../../domain/forecast.ts';
import { unsolved, type Allotment } from '../../domain/plan.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import { withOffers, type GroupOffers, type PlanInput, type PlanPolicy } from '../../policy/contracts.ts';
import { allotmentOf } from './allotment.ts';
import { fill } from './fill.ts';
import { firstComeFirstServed } from './order.ts';
import { nowAlone, problemOf } from './problem.ts';

/** Answer for a task, with a reason for people. */
export interface Choice {
  readonly take: 'spot' | 'on-demand' | 'wait';
  readonly why: string;
}

/** Answer for a waiting task. `spot` requires an open spot pool (`hasSpot`). */
export type Strategy = (group: PendingGroup, input: PlanInput) => Choice;

/** True if an open spot pool serves the group: it is not in back-off after a refusal. */
export const hasSpot = (group: PendingGroup, input: PlanInput): boolean =>
  (input.offers.get(group.id)?.offers ?? []).some(isSpotNow);

const isSpot = (offer: Offer): boolean => isSpotPool(offer.pool);
const isSpotNow = (offer: Offer): boolean => isSpot(offer) && offer.opens === undefined;

/** Answer where all machines are the user's own: there is no spot to wait for. */
const OWN_ALONE: Choice = { take: 'on-demand', why: 'all machines are your own' };

export function strategyPlan(strategy: Strategy): PlanPolicy<unknown> {
  return (input: PlanInput) => {
    const waiting = new Map<GroupId, string>();
    const offers = new Map<GroupId, GroupOffers>();
    const sells = input.snapshot.pools.some(({ pool }) => pool.isOwn !== true);
    for (const group of input.snapshot.groups) {
      const all = input.offers.get(group.id);
      if (all === undefined) continue;
      const { take, why } = sells ? withinConstraints(strategy(group, input), group, input) : OWN_ALONE;
      if (take === 'wait') waiting.set(group.id, why);
      const suited = all.offers.filter((offer) => suits(offer, take));
      offers.set(group.id, withOffers(all, suited));
    }
    // Nothing is put off to a later slot, so only starts of this cycle matter.
    const problem = problemOf(nowAlone({ ...input, offers }));
    const selection = fill(problem, firstComeFirstServed(problem), { preemptFor: 'deadlines' });
    const allotment = allotmentOf(problem, selection, unsolved(selection.objectiveUsd));
    return Promise.resolve({ ...allotment, waits: allotment.waits.map((wait) => told(wait, waiting)) });
  };
}

/**
 * A hard constraint is never widened: spot-only work takes spot if its strategy asks for on-demand, and work without
 * spot does not wait for it.
 */
function withinConstraints(choice: Choice, group: PendingGroup, input: PlanInput): Choice {
  if (group.stage.constraints.purchaseOptions?.includes('spot') === false)
    return { take: 'on-demand', why: 'it may not use spot' };
  if (choice.take !== 'on-demand' || nonInterruptibleOnly(group.stage.constraints) !== null) return choice;
  return hasSpot(group, input)
    ? { take: 'spot', why: `${choice.why}, and it may only use spot` }
    : { take: 'wait', why: `${choice.why}, and no spot pool that it may use gives capacity now` };
}

const suits = (offer: Offer, take: Choice['take']): boolean =>
  take === 'spot' ? isSpotNow(offer) : take === 'on-demand' && !isSpot(offer);

function told(wait: Allotment['waits'][number], waiting: ReadonlyMap<GroupId, string>): Allotment['waits'][number] {
  const detail = waiting.get(wait.group);
  return detail === undefined ? wait : { ...wait, why: 'capacity', detail };
}
