/**
 * Plans of policies that say one thing of each task: take spot, take capacity that stays, or wait. First come, first
 * served, deadline work before best-effort, this cycle only: what the "spot or on-demand" literature compares, made to
 * run on many jobs at once.
 */
import { steadyOnly } from '../../domain/constraints.ts';
import type { AttemptId, GroupId } from '../../kernel/ids.ts';
import type { Offer } from '../../domain/forecast.ts';
import { unsolved, type Allotment } from '../../domain/plan.ts';
import type { InstanceView, PendingGroup, RunningTask } from '../../domain/snapshot.ts';
import { withOffers, type GroupOffers, type PlanInput, type PlanPolicy } from '../../domain/stages.ts';
import { allotmentOf } from './allotment.ts';
import { fill } from './fill.ts';
import { guardMoves, type Move, type MovesOf } from './guard.ts';
import { firstComeFirstServed } from './order.ts';
import { problemOf } from './problem.ts';

/** What is to become of a task, and why, for people. */
export interface Course {
  readonly take: 'spot' | 'steady' | 'wait';
  readonly why: string;
}

export interface Courses {
  /** Of tasks that wait. `spot` where a spot pool can be had now (`hasSpot`). */
  readonly pending: (group: PendingGroup, input: PlanInput) => Course;
  /** Of an attempt that runs: where it is to go on; null to stay. Absent: all stay, but for the deadline guard. */
  readonly running?: (running: RunningTask, view: InstanceView, input: PlanInput) => Move | null;
  /** Moves besides those; default: the deadline guard's. */
  readonly moves?: MovesOf;
}

/** Whether a spot pool that serves the group can be had now, as far as is known: it is not resting after a refusal. */
export const hasSpot = (group: PendingGroup, input: PlanInput): boolean =>
  (input.offers.get(group.id)?.offers ?? []).some(isSpotNow);

const isSpot = (offer: Offer): boolean => offer.pool.endsWith('/spot');
const isSpotNow = (offer: Offer): boolean => isSpot(offer) && offer.opens === undefined;

export function coursePlan(courses: Courses): PlanPolicy<unknown> {
  return (input: PlanInput) => {
    const waiting = new Map<GroupId, string>();
    const offers = new Map<GroupId, GroupOffers>();
    for (const group of input.snapshot.groups) {
      const all = input.offers.get(group.id);
      if (all === undefined) continue;
      const { take, why } = withinConstraints(courses.pending(group, input), group, input);
      if (take === 'wait') waiting.set(group.id, why);
      const suited = all.offers.filter((offer) => suits(offer, take));
      offers.set(group.id, withOffers(all, suited));
    }
    // Nothing is put off to a later slot: of the window only what starts now matters.
    const config = { ...input.config, lookAheadSlots: 1 };
    const problem = problemOf({ ...input, offers, config }, (of) => movesOf(courses, of));
    const selection = fill(problem, firstComeFirstServed(problem), { giveWay: true });
    const allotment = allotmentOf(problem, selection, unsolved(selection.objectiveUsd));
    return Promise.resolve({ ...allotment, waits: allotment.waits.map((wait) => told(wait, waiting)) });
  };
}

/** A hard constraint is never widened: work that may only use spot takes spot where its course asks for capacity that stays. */
function withinConstraints(course: Course, group: PendingGroup, input: PlanInput): Course {
  if (course.take !== 'steady' || steadyOnly(group.stage.constraints) !== null) return course;
  return hasSpot(group, input)
    ? { take: 'spot', why: `${course.why}, and it may only use spot` }
    : { take: 'wait', why: `${course.why}, and no spot pool that it may use gives capacity now` };
}

const suits = (offer: Offer, take: Course['take']): boolean =>
  take === 'spot' ? isSpotNow(offer) : take === 'steady' && !isSpot(offer);

function told(wait: Allotment['waits'][number], waiting: ReadonlyMap<GroupId, string>): Allotment['waits'][number] {
  const detail = waiting.get(wait.group);
  return detail === undefined ? wait : { ...wait, why: 'capacity', detail };
}

function movesOf({ running, moves = guardMoves }: Courses, input: PlanInput): readonly Move[] {
  const byAttempt = new Map<AttemptId, Move>(moves(input).map((m) => [m.attempt, m]));
  if (running !== undefined) {
    for (const view of input.snapshot.instances.values()) {
      for (const r of view.attempts) {
        const move = byAttempt.has(r.attempt.id) || r.attempt.state !== 'running' ? null : running(r, view, input);
        if (move !== null) byAttempt.set(move.attempt, move);
      }
    }
  }
  return [...byAttempt.values()].sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
}
