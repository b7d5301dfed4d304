/**
 * The deadline guard: deadline work on spot that must move to on-demand now.
 * Work that loses nothing with an interruption never has to. While it runs, its slack stays as it is. An interruption
 * then costs what the move costs, a start on on-demand, and may not come.
 * Until the last safe start of other work (`latestSafeStartMs`: begin or resume on on-demand and still be done in time
 * at the safety quantile) an interruption costs only money, because on-demand would still be in time. After it an
 * interruption may mean a missed deadline. So within two cycles of that time, two strategies are compared:
 *   stay:  P(late) = q P(left > slack - restart - lost work) + (1 - q) P(left > slack)
 *   move:  P(late) = P(left > slack - stop - start-up - restore - redone work)
 * q = P(interrupted before it is done), 0 if it is expected to end within the notice. Work without a checkpoint loses
 * all it has done by then.
 * Both are given the elapsed running time, which a restart does not reset: a task without a checkpoint that has run for
 * an hour takes more than an hour wherever it begins. The attempt moves if that makes lateness less likely. An attempt
 * that is nearly done stays.
 */
import { gt, lte, msBetween, raw, seconds, secondsBetween, excess } from '../../kernel/units.ts';
import { nonInterruptibleOnly } from '../../domain/constraints.ts';
import { pInterruptedWithin } from '../../domain/forecast.ts';
import { forecastFor } from '../../domain/forecasts.ts';
import { NOTICE_S } from '../../domain/instance.ts';
import {
  runningParts,
  workDoneS,
  workKeptS,
  type InstanceView,
  type RunningTask,
  type Snapshot,
} from '../../domain/snapshot.ts';
import type { DecisionContext, Move } from '../../policy/contracts.ts';
import { begunBy, doneOnceS, exceedsToDo } from '../../domain/work-to-do.ts';
import { once } from '../../kernel/once.ts';
import { moveStopS } from '../../policy/move-cost.ts';
import { GUARD_CYCLES, isGuarded } from '../../policy/last-safe-moment.ts';
import { lossOf, meanLeftS } from '../../policy/work-left.ts';

/**
 * Smallest reduction of P(late) that justifies a move. Ours: below the error of any runtime forecast. Without it a move
 * would be ordered for nothing and dropped while its instance starts.
 */
const LEAST_GAIN = 0.01;

/**
 * Attempts to move, by id, without those that are ending or whose instance is going. O(running attempts with a deadline
 * on spot); only those whose last safe start may be near are examined.
 */
export function guardMoves(input: DecisionContext, tolerates: Tolerates = () => null): readonly Move[] {
  const { snapshot, worths, config } = input;
  const withinS = GUARD_CYCLES * config.cyclePeriodS;
  const together = once(() => countTogether(snapshot));
  const moves: Move[] = [];
  for (const running of runningParts(snapshot).atRisk) {
    if (worths.mayBeDue?.(running, withinS) === false) continue;
    const view = snapshot.instances.get(running.attempt.instance);
    if (view === undefined || view.instance.state === 'warned') continue;
    // A hard constraint is never widened: work that may only use spot stays there.
    if (nonInterruptibleOnly(running.stage.constraints) === null) continue;
    const reason = reasonToMove({ running, view, together, tolerates }, input);
    if (reason !== null) moves.push({ attempt: running.attempt.id, reason, running, view, ...restartOf(running) });
  }
  return moves.sort((a, b) => (a.attempt < b.attempt ? -1 : 1));
}

/** The move of a task without a checkpoint is a restart, which each policy here has found to be better. */
export const restartOf = ({ stage }: Pick<RunningTask, 'stage'>): Pick<Move, 'restarts'> =>
  stage.checkpoint === null ? { restarts: true } : {};

/** Attempts on spot by job and pool: the market takes those of one pool together. */
function countTogether(snapshot: Snapshot): (running: RunningTask) => number {
  const key = ({ attempt }: RunningTask): string =>
    `${attempt.job} ${snapshot.instances.get(attempt.instance)?.pool.id ?? ''}`;
  const counts = new Map<string, number>();
  for (const running of runningParts(snapshot).atRisk) counts.set(key(running), (counts.get(key(running)) ?? 0) + 1);
  return (running) => counts.get(key(running)) ?? 1;
}

/** Probabilities of lateness of both strategies, how long the rest takes, and what a move has to do again. */
export interface Risk {
  readonly running: RunningTask;
  readonly view: InstanceView;
  readonly stayLate: number;
  readonly moveLate: number;
  readonly leftS: number;
  readonly againS: number;
  /** Attempts of the job that the market takes together with this one, itself included. */
  readonly together: number;
}

/** Comparison of dollars: whether the risk of staying is worth it, with both amounts. Null: they are not compared. */
export type Tolerates = (
  risk: Risk,
  input: DecisionContext,
) => { readonly stays: boolean; readonly why: string } | null;

interface Guarded {
  readonly running: RunningTask;
  readonly view: InstanceView;
  readonly together: () => (running: RunningTask) => number;
  readonly tolerates: Tolerates;
}

function reasonToMove({ running, view, together, tolerates }: Guarded, input: DecisionContext): string | null {
  const { snapshot, config, worths, forecasts } = input;
  const worth = worths.ofRunning(running);
  const lossS = lossOf(running.stage);
  if (worth === undefined || worth.taskDeadlineMs === null || lossS === 0) return null;
  if (!isGuarded(worth, snapshot.nowMs, config.cyclePeriodS)) return null;
  const slackS = secondsBetween(snapshot.nowMs, worth.taskDeadlineMs);
  const doneS = workDoneS(running, snapshot.nowMs);
  // A program with a checkpoint signal saves when told to stop; without one, only its own saves are kept.
  const kept = running.stage.checkpoint === null ? workKeptS(running, snapshot.nowMs) : doneS;
  const overheadS = config.startDelayMaxS + config.restoreS;
  const againS = excess(doneS, kept);
  const moveLate = pLeftOver(running, slackS - moveStopS(running, config) - overheadS - againS, input);
  const curve = forecasts.market.interruption(view.pool, view.instance.bid);
  const left = seconds(meanLeftS(running, input));
  const lost = lte(left, NOTICE_S) ? 0 : pInterruptedWithin(curve, left);
  // Without a checkpoint all is run again after the interruption, which comes half-way on average.
  const lostS = lossS === Infinity ? raw(doneS) + raw(left) / 2 : lossS;
  const lostLate = pLeftOver(running, slackS - config.migrationS - overheadS - lostS, input);
  const stayLate = lost * lostLate + (1 - lost) * pLeftOver(running, slackS, input);
  if (moveLate > stayLate - LEAST_GAIN) return null;
  const risk = { running, view, stayLate, moveLate, leftS: raw(left), againS, together: together()(running) };
  const dollars = tolerates(risk, input);
  if (dollars?.stays === true) return null;
  const minutes = Math.round(msBetween(snapshot.nowMs, worth.latestSafeStartMs ?? snapshot.nowMs) / 6000) / 10;
  const moment = minutes >= 0 ? `is in ${minutes} min` : `was ${-minutes} min ago`;
  return (
    `the last moment from which on-demand still meets the deadline ${moment}: staying on ${view.pool.id} would be late ` +
    `with probability ${percent(stayLate)}, moving with ${percent(moveLate)}${dollars === null ? '' : `; ${dollars.why}`}`
  );
}

/** P(more than `overS` is left to run). */
export function pLeftOver(running: RunningTask, overS: number, { snapshot, forecasts }: DecisionContext): number {
  const of = begunBy(running, snapshot.nowMs);
  const forecast = forecastFor(forecasts.runtime, running);
  const workS = seconds(overS / (running.attempt.slowdown ?? 1));
  if (forecast === undefined) return gt(doneOnceS(of), workS) ? 1 : 0;
  return exceedsToDo(forecast.runtime, of, workS);
}

const percent = (p: number): string => `${(100 * p).toFixed(1)} %`;
