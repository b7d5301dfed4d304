import { isStopping, type RunningTask, type Snapshot } from '../../domain/snapshot.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import { keepsProgress } from './own-stops.ts';

const gangOf = ({ attempt }: RunningTask): string => `${attempt.job}/${attempt.stage}`;

/**
 * Moves in which all tasks of a gang on spot leave it together: to stop one is to stop all. None of a gang moves if one
 * of its tasks would lose too much work by it. O(moves), and O(running tasks) if a gang moves.
 */
export function wholeGangs(moves: readonly Move[], context: DecisionContext): readonly Move[] {
  const gangs = new Map(moves.filter((m) => m.running.stage.gang).map((m) => [gangOf(m.running), m]));
  if (gangs.size === 0) return moves;
  const whole = [...moves, ...matesOf(gangs, moves, context.snapshot)];
  const lost = new Set(
    whole.filter((m) => m.running.stage.gang && !keepsProgress(m.running, context)).map((m) => gangOf(m.running)),
  );
  return whole
    .filter((m) => !m.running.stage.gang || !lost.has(gangOf(m.running)))
    .sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
}

/** Moves of the tasks that share a gang with one that moves, are on spot, and have none yet. */
function matesOf(
  gangs: ReadonlyMap<string, Move>,
  moves: readonly Move[],
  { running, instances }: Snapshot,
): readonly Move[] {
  const moved = new Set(moves.map((m) => m.attempt));
  return running.flatMap((r): Move[] => {
    const first = gangs.get(gangOf(r));
    const view = instances.get(r.attempt.instance);
    if (first === undefined || view?.pool.option !== 'spot' || isStopping(r) || moved.has(r.attempt.id)) return [];
    return [{ attempt: r.attempt.id, reason: `with its gang: ${first.reason}`, running: r, view }];
  });
}
