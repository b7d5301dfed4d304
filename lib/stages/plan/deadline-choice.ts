/**
 * What a waiting group with a deadline does that may use both kinds of capacity, in dollars: take spot, take on-demand,
 * or wait for spot to come back. Work that loses nothing to an interruption asks the deadline program
 * (lib/policy/deadline-program); other work weighs one start now. Tasks of a group share one answer.
 */
import { raw, seconds, secondsBetween } from '../../kernel/units.ts';
import { meanS, type Distribution } from '../../domain/distribution.ts';
import type { Offer } from '../../domain/forecast.ts';
import type { Worth } from '../../domain/plan.ts';
import type { Pool, PoolView } from '../../domain/pool.ts';
import type { PendingGroup } from '../../domain/snapshot.ts';
import type { PlanInput } from '../../policy/contracts.ts';
import { DeadlineChoice, upFactorOf, type Choice } from '../../policy/deadline-program/choice.ts';
import { lastRefusal } from '../../policy/deadline-program/spells.ts';
import { latePrice, lateUsd } from '../../policy/late-budget.ts';
import { isGuarded } from '../../policy/last-safe-moment.ts';
import { lossOf } from '../../policy/work-left.ts';
import { REFUSED_FOR_MS } from '../../market/features/capacity-features.ts';

/** What a group does now, with what each way is expected to cost to the end, US dollars per task. */
export interface DeadlineAnswer {
  readonly take: 'spot' | 'on-demand' | 'wait';
  /** Spot offers that are worth their risk; absent: all. */
  readonly spot?: readonly Offer[];
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

/**
 * Null: there is nothing to weigh, for lack of a deadline or of cheaper spot; or what an interruption costs work must
 * not be put at risk.
 */
export function deadlineAnswer(asking: Asking, input: PlanInput): DeadlineAnswer | null {
  const { worth, left, group } = asking;
  if (worth.latestSafeStartMs === null || left === null) return null;
  return lossOf(group.stage) > 0 ? answerByRisk(asking, input) : answerByProgram({ ...asking, left }, input);
}

/**
 * Dollars of lateness for a task. The market takes all instances of a pool together: tasks that start together are as
 * many risks as they have pools.
 */
function lateUsdOf(
  { group }: Pick<Asking, 'group'>,
  of: { readonly onDemandUsd: number; readonly pools: number },
  input: PlanInput,
): number {
  const price = lateUsd(latePrice(input.snapshot.jobs.get(group.job), input), of.onDemandUsd);
  return price * Math.min(1, of.pools / group.count);
}

/**
 * Work that loses something with an interruption: spot offers whose expected cost and risk of lateness together are
 * below those of on-demand, by the appraisal of one start now.
 */
function answerByRisk(asking: Asking, input: PlanInput): DeadlineAnswer | null {
  const { offers, viewOf } = asking;
  const open = offers.filter((offer) => offer.opens === undefined);
  const isSpot = (offer: Offer): boolean => viewOf(offer)?.pool.option === 'spot';
  const staying = open.filter((offer) => viewOf(offer) !== undefined && !isSpot(offer));
  const spot = open.filter(isSpot);
  const onDemandUsd = staying.reduce((least, offer) => Math.min(least, rateOf(offer)), Infinity);
  if (spot.length === 0 || !Number.isFinite(onDemandUsd)) return null;
  const late = lateUsdOf(asking, { onDemandUsd, pools: new Set(spot.map((o) => o.pool)).size }, input);
  if (late === Infinity) return null;
  const dollars = (offer: Offer): number => offer.expectedCostUsd + offer.pLate * late;
  const least = (of: readonly Offer[]): number => of.reduce((usd, offer) => Math.min(usd, dollars(offer)), Infinity);
  const stays = least(staying);
  const worthy = spot.filter((offer) => dollars(offer) < stays);
  const costs = { stayUsd: Infinity, spotUsd: least(spot), onDemandUsd: stays };
  const take = worthy.length > 0 ? 'spot' : 'on-demand';
  return { take, spot: worthy, choice: { action: take, ...costs }, wait: () => ({ lastsS: 0, thenUsd: stays }) };
}

function answerByProgram(asking: Asking & { readonly left: Distribution }, input: PlanInput): DeadlineAnswer | null {
  const { worth, left, offers, viewOf } = asking;
  const { snapshot, config } = input;
  const pools = offers.map((offer) => ({ offer, view: viewOf(offer) }));
  const spot = pools.filter(({ view }) => view?.pool.option === 'spot');
  const staying = pools.filter(({ view }) => view !== undefined && view.pool.option !== 'spot');
  const onDemandUsd = staying.reduce((least, { offer }) => Math.min(least, rateOf(offer)), Infinity);
  const cheapest = spot.reduce<Priced | null>((least, { offer, view }) => {
    const usd = view === undefined ? Infinity : expectedRate(offer, { pool: view.pool, left }, input);
    return view !== undefined && usd < (least?.usd ?? onDemandUsd) ? { usd, pool: view.pool } : least;
  }, null);
  if (cheapest === null || !Number.isFinite(onDemandUsd)) return null;
  const guarded = isGuarded(worth, snapshot.nowMs, config.cyclePeriodS);
  const poolCount = new Set(spot.map(({ offer }) => offer.pool)).size;
  const late = lateUsdOf(asking, { onDemandUsd, pools: poolCount }, input);
  if (guarded && late === Infinity) return GUARDED;
  const rates = {
    spotUsd: cheapest.usd,
    onDemandUsd,
    pools: poolCount,
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

/** Price now, or the expected mean until the work is done where that is higher: long work outlasts a low. */
function expectedRate(offer: Offer, { pool, left }: { pool: Pool; left: Distribution }, input: PlanInput): number {
  const mean = input.forecasts.market.meanPrice?.(pool, seconds(meanS(left))) ?? null;
  return Math.max(raw(offer.priceUsdPerHour), mean === null ? 0 : raw(mean)) * offer.chargedShare;
}

/**
 * Time for which all pools have refused: that of the pool with the fewest refusals in a row. 0: one is not in back-off.
 */
function downForS(spot: readonly (PoolView | undefined)[]): number {
  const fewest = Math.min(...spot.map((view) => view?.backOff?.refusals ?? 0));
  return fewest === 0 ? 0 : ((fewest - 0.5) * REFUSED_FOR_MS) / 1000;
}
