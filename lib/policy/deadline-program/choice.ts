/**
 * Wait, spot or on-demand for a task with a deadline, by the program, in dollars.
 * Work left and slack come from the forecast of its running time. Where lateness must not happen, the mean is left to
 * do and the safety quantile has to fit (Worth.latestSafeStartMs). Where lateness has a price, costs are means over the
 * running times, each with the slack that it leaves: the program then counts runs that are late anyway.
 * Approximations: a mean over running times takes the time to be known from the next moment on, so that waiting looks a
 * little cheaper than it is. Each task decides alone, at the share of a late job's price that the caller gives it. All
 * pools are one, as good as the cheapest, and a change of zone is a start.
 */
import { raw, secondsBetween, type EpochMs } from '../../kernel/units.ts';
import type { SchedulerConfig } from '../../domain/config.ts';
import { mean, quantile, type Distribution } from '../../domain/distribution.ts';
import type { MarketForecast } from '../../domain/forecasts.ts';
import type { Worth } from '../../domain/plan.ts';
import type { Pool } from '../../domain/pool.ts';
import { GUARD_CYCLES } from '../last-safe-moment.ts';
import type { SceneContext } from '../contracts.ts';
import {
  best,
  IDLE_DOWN,
  IDLE_UP,
  ON_DEMAND_UP,
  type Action,
  type ActionCosts,
  type DeadlineProgram,
  type State,
  type Terms,
} from './program.ts';
import { NEVER_LATE_H, programFor } from './programs.ts';
import { ageIndex, agesAtRandom, upFactor, type Ages } from './spells.ts';

/** Work before its deadline. */
export interface Task {
  readonly worth: Worth;
  readonly left: Distribution;
  /** Price of missing the deadline, US dollars; Infinity: never. */
  readonly lateUsd: number;
}

/** Spot and on-demand capacity as the task would use it. */
export interface Rates {
  /** US dollars per hour of the task. */
  readonly spotUsd: number;
  readonly onDemandUsd: number;
  /** Spot pools that suit it, >= 1. */
  readonly pools: number;
  /** Factor on the hazard of interruptions (spells.ts). */
  readonly upFactor: number;
}

/** Costs of the actions in US dollars; Infinity: not possible. */
export interface Choice {
  readonly action: Action;
  readonly stayUsd: number;
  readonly spotUsd: number;
  readonly onDemandUsd: number;
}

/** Times after which work on on-demand may also go back, hours. */
const LATER_H = [0.5, 1.5, 4.5];

/** Most pools that the program tells apart: more are no safer. */
const MOST_POOLS = 8;

/** A point of the running time: work left, slack, probability. */
interface Point {
  readonly workH: number;
  readonly slackH: number;
  readonly weight: number;
}

export class DeadlineChoice {
  readonly #program: DeadlineProgram;
  readonly #points: readonly Point[];
  readonly #usdPerHour: number;

  constructor(task: Task, rates: Rates, { snapshot, config, memory }: SceneContext) {
    this.#points = pointsOf(task, { nowMs: snapshot.nowMs, config });
    this.#usdPerHour = rates.onDemandUsd;
    this.#program = programFor(memory, termsOf(task, rates, { points: this.#points, config }));
  }

  /** Nothing runs, and a spot pool is not known to refuse, or has not refused for `knownS`. */
  whenUp(knownS: number): Choice {
    const ages = agesAtRandom(knownS / 3600);
    return this.#choice(this.#mean((p) => this.#overAges(ages, { ...p, place: IDLE_UP })));
  }

  /** Nothing runs, and all spot pools have refused for `downS`; now, or if that goes on for `laterS` more. */
  whenDown(downS: number, laterS = 0): Choice {
    const age = ageIndex((downS + laterS) / 3600);
    return this.#choice(
      this.#mean((p) => this.#program.actions({ ...p, slackH: p.slackH - laterS / 3600, place: IDLE_DOWN, age })),
    );
  }

  /**
   * On on-demand, where nobody sees how spot is: it goes back now, where that costs no more than to go after any of
   * LATER_H, or never. The age of an up spell can then be larger. Slack is what is left when the target has started.
   */
  onDemand(knownS: number, startsS: number): Choice {
    const stays = this.#mean((point) => every(this.#staying(point))).stay;
    const goes = (laterH: number): number =>
      this.#mean((point) => {
        const workH = point.workH - laterH;
        if (workH <= 0) return every(this.#staying(point));
        const state = { place: ON_DEMAND_UP, workH, slackH: point.slackH - startsS / 3600 } as const;
        return every(laterH + this.#overAges(agesAtRandom(knownS / 3600 + laterH), state).spot);
      }).spot;
    const stay = LATER_H.reduce((least, laterH) => Math.min(least, goes(laterH)), stays);
    return this.#choice({ stay, spot: goes(0), onDemand: Infinity });
  }

  /** Cost of on-demand to the end. */
  #staying({ workH, slackH }: Point): number {
    return slackH < 0 ? this.#program.terms.late + workH : workH;
  }

  #overAges(ages: Ages, state: Omit<State, 'age'>): ActionCosts {
    return meanOf(ages.map((weight, age) => ({ weight, costs: this.#program.actions({ ...state, age }) })));
  }

  #mean(of: (point: Point) => ActionCosts): ActionCosts {
    return meanOf(this.#points.map((point) => ({ weight: point.weight, costs: of(point) })));
  }

  #choice({ stay, spot, onDemand }: ActionCosts): Choice {
    const usd = (hours: number): number => hours * this.#usdPerHour;
    const action = best({ stay, spot, onDemand });
    return { action, stayUsd: usd(stay), spotUsd: usd(spot), onDemandUsd: usd(onDemand) };
  }

  /** Time after which waiting ends if no spot comes, seconds, to `stepS`; at most the slack. */
  waitsForS(downS: number, stepS: number): number {
    const mostS = 3600 * this.#points.reduce((most, { slackH }) => Math.max(most, slackH), 0);
    let waitsS = 0;
    while (waitsS < mostS && this.whenDown(downS, waitsS).action === 'stay') waitsS += stepS;
    return waitsS;
  }
}

const every = (cost: number): ActionCosts => ({ stay: cost, spot: cost, onDemand: cost });

function meanOf(of: readonly { readonly weight: number; readonly costs: ActionCosts }[]): ActionCosts {
  let [stay, spot, onDemand] = [0, 0, 0];
  for (const { weight, costs } of of) {
    stay += weight * costs.stay;
    spot += weight * costs.spot;
    onDemand += weight * costs.onDemand;
  }
  return { stay, spot, onDemand };
}

interface At {
  readonly nowMs: EpochMs;
  readonly config: SchedulerConfig;
}

/**
 * Slack that a start takes: the longest start-up and the restore of a checkpoint. It is reserved up to the last safe
 * start less the guard's cycles, from where on nothing may wait any more.
 */
const takesS = (config: SchedulerConfig): number => config.startDelayMaxS + config.restoreS;

function pointsOf({ worth, left, lateUsd }: Task, { nowMs, config }: At): readonly Point[] {
  const safeMs = worth.latestSafeStartMs ?? nowMs;
  const slackS = secondsBetween(nowMs, safeMs) - GUARD_CYCLES * config.cyclePeriodS + takesS(config);
  if (lateUsd === Infinity || left.atS.length === 1)
    return [{ workH: raw(mean(left)) / 3600, slackH: slackS / 3600, weight: 1 }];
  const safeS = raw(quantile(left, config.safetyQuantile));
  return Array.from(left.atS, (s, i) => ({
    workH: s / 3600,
    slackH: (slackS + safeS - s) / 3600,
    weight: left.weight[i] ?? 0,
  }));
}

function termsOf(
  { lateUsd }: Task,
  rates: Rates,
  { points, config }: { readonly points: readonly Point[]; readonly config: SchedulerConfig },
): Terms {
  const most = (of: (p: Point) => number): number => points.reduce((m, p) => Math.max(m, of(p)), 0);
  return {
    mostWorkH: most((p) => p.workH),
    mostSlackH: most((p) => p.slackH),
    price: rates.spotUsd / rates.onDemandUsd,
    takesH: takesS(config) / 3600,
    paidH: (config.startDelayMeanS + config.restoreS) / 3600,
    late: Math.min(NEVER_LATE_H, lateUsd / rates.onDemandUsd),
    upFactor: rates.upFactor,
    pools: Math.min(MOST_POOLS, rates.pools),
  };
}

/** Factor on the hazard of a pool's interruptions, from the forecast of its capacity; 1 where there is none. */
export function upFactorOf(pool: Pool, market: MarketForecast, config: SchedulerConfig): number {
  const curve = market.capacity?.(pool) ?? null;
  const at = curve?.horizonS.findIndex((s) => s >= 3600) ?? -1;
  if (curve === null || at < 0) return upFactor(config.hazardPriorPerHour, pool, config.hazardPriorPerHour);
  const p = Math.min(1 - 1e-9, curve.pInterrupted[at] ?? 0);
  return upFactor((-Math.log1p(-p) * 3600) / (curve.horizonS[at] ?? 3600), pool, config.hazardPriorPerHour);
}
