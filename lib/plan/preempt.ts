/**
 * Running best-effort attempts that may give way, and what that costs (JamaisVu section 4.1.2).
 *
 * Cost of stopping one (USD) = the worth it would bring running on (the curve over the remaining time), plus the price of
 * the work past the checkpoint that is done again and of another start-up, plus an epsilon. As in the paper the cost
 * begins at the work's own value: work stops only where capacity is contended, and there nothing promises that it starts
 * again in time. The epsilon is the paper's too: work that runs is never exchanged for equal work that waits.
 */
import { raw } from '../kernel/units.ts';
import type { AttemptId } from '../kernel/ids.ts';
import { certain, mean, remaining, type Distribution } from '../domain/distribution.ts';
import type { PreemptOption } from '../domain/plan.ts';
import { dominantShare } from '../domain/resources.ts';
import type { InstanceView, RunningTask } from '../domain/snapshot.ts';
import type { PlanInput } from '../domain/stages.ts';
import { expectedWorth } from '../domain/utility.ts';

/** USD; above solver tolerances and rounding, below the cost of a minute on the smallest instance. */
export const EPSILON_USD = 1e-4;
/** And a share of what running on costs, so that close calls do not flip from cycle to cycle. */
export const EPSILON_SHARE = 0.02;

/** One attempt that may be stopped. */
export interface Preemptible {
  readonly running: RunningTask;
  readonly view: InstanceView;
  readonly costUsd: number;
  readonly remaining: Distribution;
  /** Slots until it would end by itself; >= 1. */
  readonly slots: number;
}

/** Distribution of what an attempt still has to run. */
export function leftOf(running: RunningTask, doneS: RunningTask['doneS'], input: PlanInput): Distribution {
  const forecast = input.forecasts.runtime.get(`${running.attempt.job}/${running.attempt.stage}`);
  return forecast === undefined ? certain(doneS) : remaining(forecast.runtime, doneS);
}

/** Slots that an attempt is expected to hold its resources from now; >= 1. */
export function slotsLeft(left: Distribution, slotS: number): number {
  return Math.max(1, Math.ceil(raw(mean(left)) / slotS - 1e-9));
}

/** The attempt's preemption, or null where it may not be stopped. */
export function preemptible(running: RunningTask, view: InstanceView, input: PlanInput): Preemptible | null {
  const { state } = running.attempt;
  const worth = input.worths.attempts.get(running.attempt.id);
  if (running.class !== 'best-effort' || (state !== 'running' && state !== 'starting') || worth === undefined)
    return null;
  const { snapshot, config } = input;
  const left = leftOf(running, running.doneS, input);
  const again = leftOf(running, running.keptS, input);
  const forgone = expectedWorth(worth.curve, snapshot.nowMs, left);
  const usdPerS =
    (raw(view.pool.onDemandUsdPerHour) * dominantShare(running.attempt.resources, view.pool.type.capacity)) / 3600;
  const redoneS = raw(mean(again)) - raw(mean(left));
  const redone = (Math.max(0, redoneS) + config.startDelayMeanS + config.restoreS) * usdPerS;
  const epsilon = EPSILON_USD + EPSILON_SHARE * raw(mean(left)) * usdPerS;
  return {
    running,
    view,
    costUsd: Math.max(0, forgone) + redone + epsilon,
    remaining: left,
    slots: slotsLeft(left, config.slotS),
  };
}

/** Attempts alike in pool, stage and remaining slots, with costs equal to two digits, as one option. */
export function preemptOptions(all: readonly Preemptible[]): readonly (PreemptOption & { readonly slots: number })[] {
  const byKind = Map.groupBy(all, alike);
  return [...byKind.keys()].sort().flatMap((key) => {
    const alikes = [...(byKind.get(key) ?? [])].sort(cheapestFirst);
    const first = alikes[0];
    if (first === undefined) return [];
    const attempts: AttemptId[] = alikes.map((p) => p.running.attempt.id);
    return [
      {
        pool: first.view.pool.id,
        attempts,
        need: first.running.attempt.resources,
        // The dearest of them, so that no stop is booked for less than it costs.
        costUsd: alikes.reduce((most, p) => Math.max(most, p.costUsd), 0),
        remaining: first.remaining,
        slots: first.slots,
      },
    ];
  });
}

/** Key of attempts that an option treats as one kind. */
export const alike = (p: Preemptible): string =>
  [p.view.pool.id, p.running.attempt.job, p.running.attempt.stage, p.slots, p.costUsd.toPrecision(2)].join('|');

const cheapestFirst = (a: Preemptible, b: Preemptible): number =>
  a.costUsd - b.costUsd || (a.running.attempt.id < b.running.attempt.id ? -1 : 1);
