/**
 * Cost of a move in time: how long a task makes no progress (Stratus, section 3.3.1: memory footprint over a transfer
 * rate, and the set-up on the target).
 *   stop:    max(migrationS, requested memory / migrationMBPerS); the source stays reserved
 *   set-up:  restoreS, on the target
 * The two parts of `stop` overlap: a program that takes `migrationS` to reach a point where it can save writes its
 * memory meanwhile. A task without a checkpoint saves nothing and stops in `migrationS`. The start of an instance for
 * the target is no part of it, because the task runs on until its target is up.
 */
import { megabytes } from '../kernel/units.ts';
import type { SchedulerConfig } from '../domain/config.ts';
import type { RunningTask } from '../domain/snapshot.ts';

type Movable = { readonly attempt: Pick<RunningTask['attempt'], 'resources'> } & {
  readonly stage: Pick<RunningTask['stage'], 'checkpoint'>;
};
type Rates = Pick<SchedulerConfig, 'migrationS' | 'migrationMBPerS'>;

/** Time from the order to stop until the checkpoint is on the target, seconds. */
export function moveStopS({ attempt, stage }: Movable, { migrationS, migrationMBPerS }: Rates): number {
  if (stage.checkpoint === null) return migrationS;
  return Math.max(migrationS, megabytes(attempt.resources.memory) / migrationMBPerS);
}

/** Time without progress in all, seconds. */
export const moveS = (task: Movable, config: Rates & Pick<SchedulerConfig, 'restoreS'>): number =>
  moveStopS(task, config) + config.restoreS;
