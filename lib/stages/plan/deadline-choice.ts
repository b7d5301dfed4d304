/**
 * The deadline program's answer for a waiting group: take spot, take on-demand, or wait for spot to come back
 * (lib/policy/deadline-program). It speaks of groups with a deadline whose programs save their state when they are
 * interrupted, and that may use both kinds of capacity. Tasks of a group share one answer.
 */
import { isPositive, raw, secondsBetween } from '../../kernel/units.ts';
import type { Distribution } from '../../domain/distribution.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { Worth } from '../../domain/plan.ts';
import type { Pool, PoolView } from '../../domain/pool.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import { doneOnceS } from '../../domain/work-to-do.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import { DeadlineChoice, upFactorOf, type Choice } from '../../policy/deadline-program/choice.ts';
import { lastRefusal } from '../../policy/deadline-program/spells.ts';
import { latePrice, lateUsd } from '../late-budget.ts';
import { isGuarded } from '../../policy/last-safe-moment.ts';
import { lossOf } from '../../policy/work-left.ts';
import { REFUSED_FOR_MS } from '../../market/features/capacity-features.ts';

/** What a group does now, with what each way is expected to cost to the end, US dollars per task. */
export interface DeadlineAnswer {
  readonly take: 'spot' | 'on-demand' | 'wait';
  /** Null at the last safe start, where nothing is weighed any more. */
  readonly choice: Choice | null;
  /** Time that a wait lasts if no spot comes, seconds, and the cost of on-demand then. Worked out when read. */
  readonly wait: () => { readonly lastsS: number; readonly thenUsd: number };
}

interface Asking {
  readonly group: PendingGroup;
  readonly worth: Worth;
  readonly left: Distribution | null;
  readonly offers: readonly Offer[];
  readonly viewOf: (offer: Offer) => PoolView | undefined;
}

/** Null: the program has nothing to say, for lack of a deadline, of checkpoints or of cheaper spot. */
export function deadlineAnswer(asking: Asking, input: PlanInput): DeadlineAnswer | null {
  const { group, worth, left, offers, viewOf } = asking;
  const { snapshot, config } = input;
  if (worth.latestSafeStartMs === null || left === null || lossOf(group.stage) > 0) return null;
  const pools = offers.map((offer) => ({ offer, view: viewOf(offer) }));
  const spot = pools.filter(({ view }) => view?.pool.option === 'spot');
  const staying = pools.filter(({ view }) => view !== undefined && view.pool.option !== 'spot');
  const onDemandUsd = staying.reduce((least, { offer }) => Math.min(least, rateOf(offer)), Infinity);
  const cheapest = spot.reduce<Priced | null>((least, { offer, view }) => {
    const usd = view === undefined ? Infinity : expectedRate(offer, view.pool, input);
    return view !== undefined && usd < (least?.usd ?? onDemandUsd) ? { usd, pool: view.pool } : least;
  }, null);
  if (cheapest === null || !Number.isFinite(onDemandUsd)) return null;
  const guarded = isGuarded(worth, snapshot.nowMs, config.cyclePeriodS);
  // Before the last safe start no deadline is at risk: on-demand is still in time after a loss of spot.
  const late = guarded ? lateUsd(latePrice(snapshot.jobs.get(group.job), input), onDemandUsd) : Infinity;
  // Past it, a known running time is not weighed, with which on-demand is surely in time. Nor is work that has run: the
  // deadline guard has just stopped it, or would stop it at once.
  const isSettled = late === Infinity || left.atS.length === 1 || isPositive(doneOnceS(group));
  if (guarded && isSettled) return GUARDED;
  const rates = {
    spotUsd: cheapest.usd,
    onDemandUsd,
    pools: new Set(spot.map(({ offer }) => offer.pool)).size,
    upFactor: upFactorOf(cheapest.pool, input.forecasts.market, config),
  };
  const program = new DeadlineChoice({ worth, left, lateUsd: late }, rates, input);
  const views = spot.map(({ view }) => view);
  const downS = downForS(views);
  const choice =
    downS > 0 ? program.whenDown(downS) : program.whenUp(secondsBetween(lastRefusal(views), snapshot.nowMs));
  const wait = (): ReturnType<DeadlineAnswer['wait']> => {
    const lastsS = program.waitsForS(downS, config.cyclePeriodS);
    return { lastsS, thenUsd: program.whenDown(downS, lastsS).onDemandUsd };
  };
  return { take: choice.action === 'stay' ? 'wait' : choice.action, choice, wait };
}

interface Priced {
  readonly usd: number;
  readonly pool: Pool;
}

const GUARDED: DeadlineAnswer = { take: 'on-demand', choice: null, wait: () => ({ lastsS: 0, thenUsd: 0 }) };

const rateOf = (offer: Offer): number => raw(offer.priceUsdPerHour) * offer.chargedShare;

/** Price now, or the mean of the pool's history where that is higher: the work outlasts a low. */
function expectedRate(offer: Offer, pool: Pool, { forecasts }: PlanInput): number {
  const mean = forecasts.market.meanPrice?.(pool) ?? null;
  return Math.max(raw(offer.priceUsdPerHour), mean === null ? 0 : raw(mean)) * offer.chargedShare;
}

/**
 * Time for which all pools have refused: that of the pool with the fewest refusals in a row. 0: one is not in back-off.
 */
function downForS(spot: readonly (PoolView | undefined)[]): number {
  const fewest = Math.min(...spot.map((view) => view?.backOff?.refusals ?? 0));
  return fewest === 0 ? 0 : ((fewest - 0.5) * REFUSED_FOR_MS) / 1000;
}
