import { stageKey } from '../../domain/job.ts';
import { isStopping } from '../../domain/snapshot.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import { restartOf } from './deadline-guard.ts';
import { keepsProgress } from './own-stops.ts';

/** What moves at once: a task, or the gang that it belongs to. */
const unitOf = ({ running: { attempt, stage } }: Pick<Move, 'running'>): string =>
  stage.gang ? stageKey(attempt) : attempt.id;

/**
 * Moves that lose little enough work. All tasks of a gang on spot leave it together, because to stop one is to stop
 * all; none leaves if one of them would lose too much. O(moves), and O(running tasks) if a gang moves.
 */
export function affordableMoves(moves: readonly Move[], context: DecisionContext): readonly Move[] {
  const whole = moves.some((m) => m.running.stage.gang) ? [...moves, ...matesOf(moves, context)] : moves;
  const losing = new Set(whole.filter((m) => !keepsProgress(m.running, context)).map(unitOf));
  return whole.filter((m) => !losing.has(unitOf(m))).sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
}

/** Moves of the tasks that share a gang with one that moves, are on spot, and have none yet. */
function matesOf(moves: readonly Move[], { snapshot: { running, instances } }: DecisionContext): readonly Move[] {
  const gangs = new Map(moves.filter((m) => m.running.stage.gang).map((m) => [unitOf(m), m]));
  const moved = new Set(moves.map((m) => m.attempt));
  return running.flatMap((r): Move[] => {
    const first = gangs.get(unitOf({ running: r }));
    const view = instances.get(r.attempt.instance);
    if (first === undefined || view?.pool.option !== 'spot' || isStopping(r) || moved.has(r.attempt.id)) return [];
    const reason = `with its gang: ${first.reason}`;
    return [{ attempt: r.attempt.id, reason, running: r, view, ...restartOf(r) }];
  });
}
