/** Reads of moves from users' policies. Each throws `Unusable` (read.ts). */
import type { AttemptId, GroupId } from '../../kernel/ids.ts';
import { seconds } from '../../kernel/units.ts';
import type { MoveUsd } from '../../domain/job.ts';
import { isStopping, type PendingGroup, type RunningTask } from '../../domain/snapshot.ts';
import type { AppraisedMoves, BeginInput, DecisionContext, Move, PlannedMove } from '../contracts.ts';
import { moveGroup } from '../move-group.ts';
import { wrongMove } from '../targets.ts';
import { pendingAgain } from '../pending-again.ts';
import { worth } from './answers.ts';
import { offersByGroup, poolsById, type ReadOffers } from './offers.ts';
import {
  amount,
  answerWith,
  entries,
  fields,
  figure,
  list,
  oneOf,
  orNull,
  refuse,
  shown,
  text,
  type Fields,
} from './read.ts';
import { byAttempt, byGroup, expectAll, once, reasonOf, sideOf } from './records.ts';

export function movesProposed(answer: unknown, { snapshot }: DecisionContext): readonly Move[] {
  const running = byAttempt(snapshot.running);
  const moves = list(answer, { what: 'the list of moves', most: running.size }).map((given): Move => {
    const of = fields(given, 'a move');
    const r = running.get(of['attempt'] as AttemptId);
    if (r === undefined) return refuse(`it moves ${shown(of['attempt'])}, which does not run`);
    const { id, instance } = r.attempt;
    const view = snapshot.instances.get(instance);
    if (of['running'] !== r || view === undefined || of['view'] !== view)
      return refuse(`it moves ${id} with records that are not its own (hand back the very records)`);
    const move: Move = {
      attempt: id,
      reason: reasonOf(of, `the move of ${id}`),
      running: r,
      view,
      ...sideOf(of),
      ...termsOf(of),
    };
    const wrong = wrongMove(move, snapshot);
    return wrong === null ? move : refuse(wrong);
  });
  return once(moves, (m) => m.attempt, 'it moves');
}

/** Whether a move may be a restart, and its dollars, which only explanations show. */
function termsOf({ attempt, restarts, savedUsd, riskUsd }: Fields): Pick<Move, 'restarts' | keyof MoveUsd> {
  const of = `of the move of ${String(attempt)}`;
  return {
    ...(restarts === undefined ? {} : { restarts: oneOf(restarts, [true, false], `restarts ${of}`) }),
    ...(savedUsd === undefined ? {} : { savedUsd: figure(savedUsd, `savedUsd ${of}`) }),
    ...(riskUsd === undefined ? {} : { riskUsd: figure(riskUsd, `riskUsd ${of}`) }),
  };
}

/** With `considered` unread. */
export type BegunMoves = Omit<AppraisedMoves, 'offers'> & { readonly offers: ReadOffers };

export function movesBegun(answer: unknown, { snapshot, moves }: BeginInput): BegunMoves {
  const of = answerWith(answer, ['moves', 'worths', 'groups', 'offers']);
  const begun = list(of['moves'], { what: 'the list of moves', most: moves.length }).map((m) => {
    const planned = moves.find((p) => p === m);
    return planned ?? refuse('it begins a move that was not planned (hand back the very record)');
  });
  const planned = new Map(moves.map((m) => [moveGroup(m), m]));
  const groups = new Map<GroupId, PendingGroup>();
  for (const [id, group] of entries(of['groups'], { what: 'the map of groups', most: planned.size })) {
    const move = planned.get(id as GroupId);
    if (move === undefined) return refuse(`the group ${shown(id)} is of no planned move`);
    groups.set(moveGroup(move), movedGroup(group, move));
  }
  const ids = begun.map(moveGroup);
  const worths = byGroup(of['worths'], groups, { what: 'worths by group', read: worth });
  const offers = offersByGroup(of['offers'], groups, poolsById(snapshot));
  return {
    moves: once(begun, (m) => m.running.attempt.id, 'it begins the move of'),
    groups: expectAll(groups, ids, 'record'),
    worths: expectAll(worths, ids, 'worth'),
    offers,
  };
}

/** All but the progress that is kept follows from the move. */
function movedGroup(given: unknown, move: PlannedMove): PendingGroup {
  const id = moveGroup(move);
  const { keptS, ranS } = fields(given, `the group ${id}`);
  const kept = seconds(amount(keptS, `keptS of ${id}`));
  const { constraints } = move;
  return pendingAgain(move.running, {
    id,
    constraints,
    keptS: kept,
    ranS: ranS === undefined ? kept : seconds(amount(ranS, `ranS of ${id}`)),
  });
}

export function returning(answer: unknown, { snapshot }: DecisionContext): readonly RunningTask[] {
  const running = new Set<unknown>(snapshot.running);
  const stopping = list(answer, { what: 'the list of running tasks', most: running.size }).map((given) => {
    if (!running.has(given)) return refuse('it returns what does not run (hand back the very record)');
    const r = given as RunningTask;
    return isStopping(r) ? r : refuse(`it returns ${r.attempt.id}, which is not stopping`);
  });
  return once(stopping, (r) => r.attempt.id, 'it returns');
}

export const vacated = (why: unknown): string | null => orNull(why, (given) => text(given, 'the reason to vacate'));
