import type { InstanceId, JobId } from '../../kernel/ids.ts';
import type { MoveUsd } from '../../domain/job.ts';
import type { Explanation, MovePlace } from '../../domain/plan.ts';
import { lackText } from '../../domain/resources.ts';
import { runningParts } from '../../domain/snapshot.ts';
import type { PlannedMove } from '../../policy/contracts.ts';
import { moveGroup } from '../../policy/move-group.ts';
import type { Deliberation } from '../decide/deliberation.ts';

type MoveSeen = NonNullable<Explanation['moves']>[number];

/** Moves kept in one job's record. */
const MOST_SEEN = 12;

/** Moves of each job: those that are nearly there first. */
export function movesByJob(d: Deliberation): ReadonlyMap<JobId, readonly MoveSeen[]> {
  const seen = new Map<JobId, MoveSeen[]>();
  const see = (job: JobId, move: MoveSeen): void => {
    const mine = seen.get(job);
    if (mine === undefined) seen.set(job, [move]);
    else mine.push(move);
  };
  const at = (instance: MovePlace['instance']): MovePlace => ({
    instance,
    pool: instance === null ? null : (d.snapshot.instances.get(instance)?.pool.id ?? null),
  });
  for (const { job, stage, index, goesTo, departed } of d.snapshot.tasks) {
    if (goesTo === undefined || departed === undefined) continue;
    const { instance, pool, why } = departed;
    see(job, { stage, index, from: { instance, pool }, to: at(goesTo), state: 'arrives', why, ...dollarsOf(departed) });
  }
  for (const { attempt } of runningParts(d.snapshot).stopping) {
    const { job, stage, index, instance, goesTo, leaving, reason } = attempt;
    if (goesTo === undefined || leaving === undefined) continue;
    const why = reason ?? '';
    see(job, { stage, index, from: at(instance), to: at(goesTo), state: 'saves', why, ...dollarsOf(leaving) });
  }
  const leaves = new Set(d.moving.stops.flatMap((s) => (s.to === undefined ? [] : [s.attempt])));
  const targets = new Map(d.moving.placed.map((p) => [p.group, p.on]));
  for (const m of d.moving.appraised.moves) {
    const { id, job, stage, index, instance } = m.running.attempt;
    const on = targets.get(moveGroup(m));
    const to = on === undefined ? (named(m, at) ?? { instance: null, pool: poolToBuy(d, m) }) : at(on);
    const state = leaves.has(id) ? 'saves' : 'waits';
    const why = on === undefined ? m.reason + roomText(d, m) : m.reason;
    see(job, { stage, index, from: at(instance), to, state, why, ...dollarsOf(m) });
  }
  return seen;
}

/** Pool in which the target of a move is bought; null: nothing says. */
function poolToBuy({ moving }: Deliberation, move: PlannedMove): MovePlace['pool'] {
  return move.to?.pool ?? moving.appraised.offers.get(moveGroup(move))?.offers[0]?.pool ?? null;
}

const named = ({ to }: PlannedMove, at: (instance: InstanceId) => MovePlace): MovePlace | undefined =>
  to?.instance === undefined ? undefined : at(to.instance);

/** What a named instance lacks; a checkpoint counts as disk that its job asks for. */
function roomText({ snapshot }: Deliberation, { to, running }: PlannedMove): string {
  const free = to?.instance === undefined ? undefined : snapshot.instances.get(to.instance)?.free;
  const lack = free === undefined ? null : lackText(running.attempt.resources, free);
  return lack === null ? '' : `; ${to?.instance} has no room for it: ${lack}`;
}

const dollarsOf = ({ savedUsd, riskUsd }: MoveUsd): MoveUsd => ({
  ...(savedUsd === undefined ? {} : { savedUsd }),
  ...(riskUsd === undefined ? {} : { riskUsd }),
});

export const movesSeen = (moves: readonly MoveSeen[] = []): Pick<Explanation, 'moves'> =>
  moves.length === 0 ? {} : { moves: moves.slice(0, MOST_SEEN) };
