/** Named targets of copies and moves: which of them a running attempt may have. */
import { brokenConstraint } from '../domain/constraints.ts';
import type { NamedTarget } from '../domain/plan.ts';
import { capUsd, isBid, type Pool } from '../domain/pool.ts';
import { lackText } from '../domain/resources.ts';
import { liveBeside, type RunningTask, type Snapshot } from '../domain/snapshot.ts';
import type { Move } from './contracts.ts';

/** The fault in a target, as the end of a sentence; null: it may be had. */
export function wrongTarget(to: NamedTarget, running: RunningTask, snapshot: Snapshot): string | null {
  if (to.instance === undefined) {
    const pool = snapshot.pools.find((p) => p.pool.id === to.pool)?.pool;
    if (pool === undefined) return `to the pool ${to.pool}, which does not exist`;
    if (!isBid(to.bid) || (pool.option !== 'spot' && to.bid !== 'uncapped'))
      return `to the pool ${to.pool} with the bid ${capUsd(to.bid)}`;
    return notFor(running, pool);
  }
  const view = snapshot.instances.get(to.instance);
  if (view === undefined) return `to ${to.instance}, which is not held`;
  const isThere = [running, ...liveBeside(snapshot, running)].some((r) => r.attempt.instance === to.instance);
  return isThere ? `to ${to.instance}, where its task runs already` : notFor(running, view.pool);
}

function notFor({ attempt, stage }: RunningTask, pool: Pool): string | null {
  const broken = brokenConstraint(stage.constraints, pool);
  if (broken !== null) return `to the pool ${pool.id}, which its constraint ${broken} excludes`;
  const lack = lackText(attempt.resources, pool.type.capacity);
  return lack === null ? null : `to the pool ${pool.id}, whose machines it does not fit for want of ${lack}`;
}

/** The same for a move. A gang restarts as a whole, wherever all of it has room: its tasks have no named target. */
export function wrongMove({ running, to }: Pick<Move, 'running' | 'to'>, snapshot: Snapshot): string | null {
  if (to === undefined || to === 'spot') return null;
  const why = running.stage.gang ? 'to a named target, being one of a gang' : wrongTarget(to, running, snapshot);
  return why === null ? null : `it moves ${running.attempt.id} ${why}`;
}
