/**
 * Bounds on our own stops of a task, so that it makes progress. A move beyond them is not planned, and reserves no
 * room.
 */
import { most, raw, seconds, type Seconds, excess } from '../../kernel/units.ts';
import { mean } from '../../domain/distribution.ts';
import { forecastFor } from '../../domain/forecasts.ts';
import { workKeptS, type RunningTask } from '../../domain/snapshot.ts';
import type { ValueContext } from '../../policy/contracts.ts';
import { begunBy } from '../../domain/work-to-do.ts';
import { moveS } from '../../policy/move-cost.ts';

/** Most own stops per hour of a task's running time. One is always allowed. */
const STOPS_PER_HOUR = 2;
/** Largest share of a task's running time that all own stops may lose together. */
const MOST_LOST = 0.1;

/**
 * True if a running task may be stopped to go on elsewhere. Own stops, with this one, stay within STOPS_PER_HOUR, and
 * the work lost to them, change-overs included, within MOST_LOST of its running time: work without a checkpoint is
 * hardly ever stopped.
 */
export function keepsProgress(
  running: RunningTask,
  { snapshot, forecasts, config }: Pick<ValueContext, 'snapshot' | 'forecasts' | 'config'>,
): boolean {
  const { keptS: doneS, ranS } = begunBy(running, snapshot.nowMs);
  const forecast = forecastFor(forecasts.runtime, running);
  const wholeS = raw(forecast === undefined ? ranS : most(ranS, mean(forecast.runtime)));
  const { count, lostS } = running.ownStops ?? NO_STOPS;
  const saves = running.stage.checkpoint !== null;
  const losesS = (saves ? 0 : excess(doneS, workKeptS(running, snapshot.nowMs))) + moveS(running, config);
  return count + 1 <= 1 + (STOPS_PER_HOUR * wholeS) / 3600 && raw(lostS) + losesS <= MOST_LOST * wholeS;
}

const NO_STOPS: { readonly count: number; readonly lostS: Seconds } = { count: 0, lostS: seconds(0) };
