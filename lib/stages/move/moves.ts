/** Moves of running work: each way to propose them, and their common rules. */
import { runningParts } from '../../domain/snapshot.ts';
import type { DecisionContext, Move, MovePolicy } from '../../policy/contracts.ts';
import { affordableMoves } from './affordable.ts';
import { begin } from './begin.ts';
import { consolidatingMoves } from './consolidation.ts';
import { guardMoves } from './deadline-guard.ts';
import { movesThatPay } from './returns.ts';
import { backToSpot } from './uniform-progress.ts';
import { vacate } from './vacate.ts';

/** Moves that would lose too much work are dropped, and reserve no room. Stopping attempts keep their room reserved. */
export const moving = (propose: MovePolicy['propose']): MovePolicy => ({
  propose: (context) => affordableMoves(propose(context), context),
  begin,
  returning: ({ snapshot }) => runningParts(snapshot).stopping,
  vacate,
});

/** Work that has started stays where it is. */
export const staying: MovePolicy = {
  propose: () => [],
  begin: () => ({ moves: [], worths: new Map(), groups: new Map(), offers: new Map() }),
  returning: () => [],
  vacate: () => null,
};

/** Off spot to keep a deadline, and back to spot where it pays. */
export const guardedAndReturning: MovePolicy = moving(movesThatPay);

/** The same, and instances whose work goes on elsewhere at less cost are given back. */
export const guardedAndConsolidating: MovePolicy = moving((context) => {
  const own = movesThatPay(context);
  const going = new Set(own.map((m) => m.view.instance.id));
  const consolidating = consolidatingMoves(context, going);
  return consolidating.length === 0 ? own : [...own, ...consolidating].sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
});

/** Off spot to keep a deadline. */
export const guarded: MovePolicy = moving(guardMoves);

/** The same, and back to spot by Uniform Progress. */
export const guardedAndUniform: MovePolicy = moving((context) => withMoves(guardMoves(context), context));

function withMoves(guardedMoves: readonly Move[], context: DecisionContext): readonly Move[] {
  const byAttempt = new Map(guardedMoves.map((m) => [m.attempt, m]));
  for (const view of context.snapshot.instances.values()) {
    for (const r of view.attempts) {
      const move = byAttempt.has(r.attempt.id) || r.attempt.state !== 'running' ? null : backToSpot(r, view, context);
      if (move !== null) byAttempt.set(move.attempt, move);
    }
  }
  return [...byAttempt.values()].sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
}
