/** Common rules of moves that empty an instance: all of its tasks go, and none loses progress. */
import { plus, raw, seconds, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { brokenConstraint } from '../../domain/constraints.ts';
import type { StageSpec } from '../../domain/job.ts';
import { usdPerHourOf, type Pool } from '../../domain/pool.ts';
import { fits, NO_RESOURCES, plusResources, type Resources } from '../../domain/resources.ts';
import { isStopping, runningParts, type InstanceView, type Snapshot } from '../../domain/snapshot.ts';
import type { DecisionContext, Move, MovePolicy } from '../../policy/contracts.ts';
import { longestLeft, type LeftOf } from '../../policy/left-of.ts';
import type { Leaving } from '../../policy/leaving.ts';
import { migrationTime } from '../../policy/migration-time.ts';
import type { PricedPool } from '../../policy/on-demand-bids.ts';
import { beginIf } from './begin.ts';

/** An instance whose tasks may all go elsewhere. */
export interface Movable {
  readonly view: InstanceView;
  /** Sum of what its tasks request. */
  readonly need: Resources;
  /** Price of the instance now, USD per hour. */
  readonly usdPerHour: number;
  /** Longest remaining running time of its tasks. */
  readonly leftS: number;
  /** Longest time without progress of a task that moves: they move at once. */
  readonly migrationS: number;
}

/** Cycles after the longest start-up until a decision is made anew. */
const PATIENCE_CYCLES = 3;

export const patientUntil = (nowMs: EpochMs, { startDelayMaxS, cyclePeriodS }: SchedulerConfig): EpochMs =>
  plus(nowMs, seconds(startDelayMaxS + PATIENCE_CYCLES * cyclePeriodS));

/**
 * Instances that are up and stay, each of whose tasks runs and can save its progress. Tasks of gangs stay, because a
 * gang stops and starts as a whole. O(running tasks).
 */
export function movables({ snapshot, config }: DecisionContext, leftOf: LeftOf): readonly Movable[] {
  const quotes = new Map(snapshot.pools.map((v) => [v.pool.id, v.quote]));
  return [...snapshot.instances.values()].flatMap((view): Movable[] => {
    const { instance, attempts, pool } = view;
    if (instance.state !== 'ready' || instance.rebalance || attempts.length === 0) return [];
    if (!attempts.every((r) => r.attempt.state === 'running' && r.stage.checkpoint !== null && mayFollow(r.stage)))
      return [];
    return [
      {
        view,
        need: attempts.reduce((sum, r) => plusResources(sum, r.attempt.resources), NO_RESOURCES),
        usdPerHour: usdPerHourOf(pool, quotes.get(pool.id)),
        leftS: raw(longestLeft(attempts, leftOf)),
        migrationS: attempts.reduce((most, r) => Math.max(most, raw(migrationTime(r.attempt.resources, config))), 0),
      },
    ];
  });
}

/** False for tasks that go nowhere for the sake of others: gangs, and those that `placement` rules keep in place. */
export const mayFollow = ({ gang, placement }: StageSpec): boolean => !gang && placement === undefined;

/** The first pool that holds all tasks of the instance at a lower price than its own. `byPrice`: cheapest first. */
export function cheaperPool({ view, need, usdPerHour }: Movable, byPrice: readonly PricedPool[]): PricedPool | null {
  for (const of of byPrice) {
    if (of.usdPerHour >= usdPerHour) return null;
    if (of.pool.id !== view.pool.id && holdsAll({ view, need }, of.pool)) return of;
  }
  return null;
}

/** True for a pool in which one instance has room for all tasks of this one, and that each of them may use. */
export const holdsAll = ({ view, need }: Pick<Movable, 'view' | 'need'>, pool: Pool): boolean =>
  fits(need, pool.type.capacity) && view.attempts.every((r) => brokenConstraint(r.stage.constraints, pool) === null);

/** All tasks of an instance to one target. */
export const allTo = (view: InstanceView, to: NonNullable<Leaving['to']>, reason: string): readonly Move[] =>
  view.attempts
    .filter((r) => !isStopping(r))
    .map((running) => ({ attempt: running.attempt.id, reason, running, view, to }));

/** Age of an instance in the sense of its bill. */
export const ageS = ({ instance: { launchedMs } }: InstanceView, { nowMs }: Pick<Snapshot, 'nowMs'>): number =>
  launchedMs === null ? 0 : Math.max(0, secondsBetween(launchedMs, nowMs));

/** Moves without bounds of ours on how often a task may be stopped: those of the papers have none. */
export const movingWhole = (propose: MovePolicy['propose']): MovePolicy => ({
  propose,
  begin: (input) => beginIf(() => true, input),
  returning: ({ snapshot }) => runningParts(snapshot).stopping,
  vacate: () => null,
});

export const byAttempt = (a: Move, b: Move): number => (a.attempt < b.attempt ? -1 : 1);
