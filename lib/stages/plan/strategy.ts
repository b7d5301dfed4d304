/**
 * Plans of strategies that say one thing of each task: take spot, take capacity that is not taken away, or wait. First
 * come, first served, deadline work before best-effort, this cycle only: what the "spot or on-demand" literature
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
import { problemOf } from './problem.ts';

/** What is to become of a task, and why, for people. */
export interface Choice {
  readonly take: 'spot' | 'on-demand' | 'wait';
  readonly why: string;
}

/** Of a task that waits. `spot` where a spot pool can be had now (`hasSpot`). */
export type Strategy = (group: PendingGroup, input: PlanInput) => Choice;

/** Whether a spot pool that serves the group can be had now, as far as is known: it is not resting after a refusal. */
export const hasSpot = (group: PendingGroup, input: PlanInput): boolean =>
  (input.offers.get(group.id)?.offers ?? []).some(isSpotNow);

const isSpot = (offer: Offer): boolean => isSpotPool(offer.pool);
const isSpotNow = (offer: Offer): boolean => isSpot(offer) && offer.opens === undefined;

export function strategyPlan(strategy: Strategy): PlanPolicy<unknown> {
  return (input: PlanInput) => {
    const waiting = new Map<GroupId, string>();
    const offers = new Map<GroupId, GroupOffers>();
    for (const group of input.snapshot.groups) {
      const all = input.offers.get(group.id);
      if (all === undefined) continue;
      const { take, why } = withinConstraints(strategy(group, input), group, input);
      if (take === 'wait') waiting.set(group.id, why);
      const suited = all.offers.filter((offer) => suits(offer, take));
      offers.set(group.id, withOffers(all, suited));
    }
    // Nothing is put off to a later slot: of the window only what starts now matters.
    const config = { ...input.config, lookAheadSlots: 1 };
    const problem = problemOf({ ...input, offers, config });
    const selection = fill(problem, firstComeFirstServed(problem), { preemptFor: 'deadlines' });
    const allotment = allotmentOf(problem, selection, unsolved(selection.objectiveUsd));
    return Promise.resolve({ ...allotment, waits: allotment.waits.map((wait) => told(wait, waiting)) });
  };
}

/**
 * A hard constraint is never widened: work that may only use spot takes spot where its strategy asks for on-demand, and
 * work that may not use spot does not wait for it.
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
