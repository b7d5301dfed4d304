/**
 * Running attempts that may be preempted (`preempts`), and the cost of that (JamaisVu section 4.1.2).
 * Cost of stopping one (USD) = the worth of running on (the curve over the remaining time), plus the price of redoing
 * the work past the checkpoint and of another start-up, plus an epsilon. Its remaining time elsewhere is, as here,
 * given the elapsed time: that work is redone in full, however short such work mostly is. As in the paper the cost
 * begins at the work's own value: work stops only under contention, and then nothing promises that it starts again in
 * time. The epsilon is the paper's too: running work is never exchanged for equal waiting work.
 */
import { plus, raw, seconds, excess } from '../../kernel/units.ts';
import type { AttemptId } from '../../kernel/ids.ts';
import { forecastFor } from '../../domain/forecasts.ts';
import type { PreemptOption } from '../../domain/plan.ts';
import { dominantShare } from '../../domain/resources.ts';
import { workKeptS, type InstanceView, type RunningTask } from '../../domain/snapshot.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import { begunBy, expectToDo } from '../../domain/work-to-do.ts';
import { hasSettled, meanLeftS } from '../../policy/work-left.ts';
import { worthAt } from '../../domain/utility.ts';
import { onDemandUsdOf } from '../../domain/pool.ts';

/** USD; above solver tolerances and rounding, below the cost of a minute on the smallest instance. */
export const EPSILON_USD = 1e-4;
/** A share of the cost of running on, so that close calls do not flip from cycle to cycle. */
export const EPSILON_SHARE = 0.02;

/** A preemptible attempt. */
export interface Preemptible {
  readonly running: RunningTask;
  readonly view: InstanceView;
  readonly costUsd: number;
  /** Key of alike attempts, which form one option: same pool, stage, remaining slots, and cost to two digits. */
  readonly equivalenceClass: string;
  /** Slots until it would end by itself; >= 1. */
  readonly slots: number;
}

/** Slots that an attempt is expected to hold its resources from now; >= 1. */
export const slotsLeft = (meanS: number, slotS: number): number => Math.max(1, Math.ceil(meanS / slotS - 1e-9));

/**
 * Slots until the place of an attempt that stops now is free: 0 if within this one. A plan without later slots takes
 * the place as free: it waits for it.
 */
export const slotsUntilFree = ({ preemptionDelayS, slotS, lookAheadSlots }: PlanInput['config']): number =>
  Math.min(lookAheadSlots - 1, Math.floor(preemptionDelayS / slotS + 1e-9));

/** True if an attempt may be preempted. */
export const mayBePreempted = (running: RunningTask, input: PlanInput): boolean =>
  input.config.preempts !== 'none' &&
  // Its controller alone ends a replica.
  running.class !== 'service' &&
  (running.class === 'best-effort' || input.config.preempts === 'all') &&
  (running.attempt.state === 'running' || running.attempt.state === 'starting') &&
  hasSettled(running, input) &&
  input.worths.ofRunning(running) !== undefined;

/** The attempt's preemption, or null where it may not be stopped. */
export function preemptible(running: RunningTask, view: InstanceView, input: PlanInput): Preemptible | null {
  const worth = input.worths.ofRunning(running);
  if (worth === undefined || !mayBePreempted(running, input)) return null;
  const { snapshot, config, forecasts } = input;
  const { attempt } = running;
  const of = begunBy(running, snapshot.nowMs);
  const againS = excess(of.keptS, workKeptS(running, snapshot.nowMs));
  const runtime = forecastFor(forecasts.runtime, running)?.runtime ?? null;
  // The curve integrated over the running time that is left (JamaisVu section 4.3 with distributions as 3Sigma has
  // them).
  const worthIn = (s: number): number => worthAt(worth.curve, plus(snapshot.nowMs, seconds(s)));
  const { slowdown = 1 } = attempt;
  const worthAfter = (workS: number): number => worthIn(workS * slowdown);
  const forgone = runtime === null ? worthAfter(raw(of.ranS)) : expectToDo(runtime, of, worthAfter);
  const leftS = meanLeftS(running, input);
  const usdPerS = (onDemandUsdOf(view.pool) * dominantShare(attempt.resources, view.pool.type.capacity)) / 3600;
  const redone = (againS + config.preemptionDelayS + config.startDelayMeanS + config.restoreS) * usdPerS;
  const epsilon = EPSILON_USD + EPSILON_SHARE * leftS * usdPerS;
  const costUsd = Math.max(0, forgone) + redone + epsilon;
  const slots = slotsLeft(leftS, config.slotS);
  const equivalenceClass = `${view.pool.id}|${attempt.job}|${attempt.stage}|${slots}|${costUsd.toPrecision(2)}`;
  return { running, view, costUsd, equivalenceClass, slots };
}

/** Attempts of one equivalence class as one option, ordered by key. */
export function preemptOptions(
  all: readonly Preemptible[],
): readonly (PreemptOption & { readonly equivalenceClass: string; readonly slots: number })[] {
  const byClass = Map.groupBy(all, (p) => p.equivalenceClass);
  return [...byClass.keys()].sort().flatMap((key) => {
    const alikes = [...(byClass.get(key) ?? [])].sort(cheapestFirst);
    const first = alikes[0];
    if (first === undefined) return [];
    const attempts: AttemptId[] = alikes.map((p) => p.running.attempt.id);
    return [
      {
        pool: first.view.pool.id,
        attempts,
        need: first.running.attempt.resources,
        // The dearest of them, so that no stop is booked below its cost.
        costUsd: alikes.reduce((most, p) => Math.max(most, p.costUsd), 0),
        equivalenceClass: key,
        slots: first.slots,
      },
    ];
  });
}

const cheapestFirst = (a: Preemptible, b: Preemptible): number =>
  a.costUsd - b.costUsd || (a.running.attempt.id < b.running.attempt.id ? -1 : 1);
