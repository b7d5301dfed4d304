/**
 * Moves that begin: each is appraised as work that waits, worth and last safe moment included, for the next plan
 * appraises stopped work so. A return to spot that the next plan would not choose is not begun; a named target was
 * judged by the policy that named it.
 */
import { capUsd, isSpotPool, type Bid } from '../../domain/pool.ts';
import type { GroupId } from '../../kernel/ids.ts';
import type { EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import type { Offer } from '../../domain/forecast.ts';
import { workKeptS, type PendingGroup, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import { begunBy } from '../../domain/work-to-do.ts';
import {
  withOffers,
  type AppraisedMoves,
  type BeginInput,
  type DecisionContext,
  type GroupOffers,
  type PlannedMove,
} from '../../policy/contracts.ts';
import { moveGroup } from '../../policy/move-group.ts';
import { keepsProgress } from './own-stops.ts';
import { pendingAgain } from '../../policy/pending-again.ts';

export const begin = (input: BeginInput): AppraisedMoves => beginIf(keepsProgress, input);

/** The same where `mayStop` bounds our own stops of a task. */
export function beginIf(
  mayStop: (running: RunningTask, context: DecisionContext) => boolean,
  { moves, value, appraise, offers: given, ...context }: BeginInput,
): AppraisedMoves {
  if (moves.length === 0) return { moves, worths: new Map(), groups: new Map(), offers: new Map() };
  const { snapshot, config } = context;
  const groups = new Map(moves.map((m) => [moveGroup(m), groupToMove(m, snapshot.nowMs)]));
  const waiting = { ...snapshot, groups: [...groups.values()], instances: withoutLeft(snapshot, moves) };
  const valued = value({ ...context, snapshot: waiting });
  const worths = new Map(moves.map((m) => [moveGroup(m), valued.groups.get(moveGroup(m)) ?? m.worth]));
  const all = appraise({ ...context, snapshot: waiting, worths: { groups: worths, ofRunning: () => undefined } });
  const offers = new Map<GroupId, GroupOffers>();
  for (const m of moves) {
    const of = all.get(moveGroup(m));
    if (of !== undefined) offers.set(moveGroup(m), withOffers(of, offersFor(m, of.offers, config)));
  }
  const begins = (m: PlannedMove): boolean =>
    mayStop(m.running, { ...context, offers: given }) &&
    (m.to !== undefined || !m.toSpot || (offers.get(moveGroup(m))?.offers ?? []).length > 0);
  return { moves: moves.filter(begins), worths, groups, offers };
}

/**
 * The work of a move as it would wait after the stop. A program with a checkpoint signal saves when it is told to stop,
 * so that it goes on from all it has done.
 */
function groupToMove(m: PlannedMove, nowMs: EpochMs): PendingGroup {
  const keptS = workKeptS(m.running, nowMs);
  const { keptS: doneS, ranS } = begunBy(m.running, nowMs);
  const saves = (m.toSpot || m.to !== undefined) && m.running.stage.checkpoint !== null;
  return pendingAgain(m.running, {
    id: moveGroup(m),
    constraints: m.constraints,
    keptS: saves ? doneS : keptS,
    ranS,
  });
}

/**
 * Instances less those that the moves leave: room there is no room to move to, and staying costs the whole instance.
 * O(instances).
 */
function withoutLeft({ instances }: Snapshot, moves: readonly PlannedMove[]): Snapshot['instances'] {
  const left = new Set(moves.map((m) => m.running.attempt.instance));
  return new Map(
    [...instances.values()].flatMap((view) => (left.has(view.instance.id) ? [] : [[view.instance.id, view] as const])),
  );
}

/**
 * Work that returns to spot needs an open pool, a small enough P(late), and a cost below that of non-interruptible
 * offers. Work that leaves spot for its deadline takes any non-interruptible offer. A named pool is bought at the bid
 * that is named, at the risk of the nearest one that is tried; for a named instance nothing is bought.
 */
function offersFor({ to, toSpot }: PlannedMove, offers: readonly Offer[], config: SchedulerConfig): readonly Offer[] {
  if (to !== undefined) return to.pool === undefined ? [] : offersAt(to.bid, offers);
  const staying = offers.filter((o) => !isSpotPool(o.pool));
  if (!toSpot) return staying;
  const nonInterruptibleUsd = staying.reduce((least, o) => Math.min(least, o.expectedCostUsd), Infinity);
  return offers.filter(
    (o) =>
      isSpotPool(o.pool) &&
      o.opens === undefined &&
      o.pLate <= config.maxLateProbability &&
      o.expectedCostUsd < nonInterruptibleUsd,
  );
}

/** The offer of one pool whose bid is nearest, at this bid. */
function offersAt(bid: Bid, offers: readonly Offer[]): readonly Offer[] {
  const open = offers.filter((o) => o.opens === undefined);
  const awayUsd = (o: Offer): number => (o.bid === bid ? 0 : Math.abs(capUsd(o.bid) - capUsd(bid)));
  const [nearest] = open.toSorted((a, b) => ascending(awayUsd(a), awayUsd(b)));
  return nearest === undefined ? [] : [{ ...nearest, bid }];
}

/** Two uncapped bids are alike, and every other is infinitely far from one. */
const ascending = (a: number, b: number): number => (a === b ? 0 : a < b ? -1 : 1);
