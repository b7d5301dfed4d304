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
  /** Spot offers that are worth their risk, with that risk of lateness in US dollars per task; absent: all. */
  readonly spot?: ReadonlyMap<Offer, number>;
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
  /** False where vCPUs are short: interrupted work may find no on-demand capacity in time. */
  readonly canFlee: boolean;
}

/**
 * Null: there is nothing to weigh, for lack of a deadline or of cheaper spot; or what an interruption costs work must
 * not be put at risk.
 */
export function deadlineAnswer(asking: Asking, input: PlanInput): DeadlineAnswer | null {
  const { worth, left, group } = asking;
  if (worth.latestSafeStartMs === null || left === null) return null;
  if (lossOf(group.stage) > 0) return answerByRisk(asking, input);
  // The program counts on on-demand in the end.
  return asking.canFlee ? answerByProgram({ ...asking, left }, input) : null;
}

interface Seen {
  readonly offer: Offer;
  readonly view: PoolView;
}

/** Offers of both kinds, the cheapest on-demand in US dollars per hour, and a task's part of the price of lateness. */
interface Sides {
  readonly spot: readonly Seen[];
  readonly staying: readonly Seen[];
  readonly onDemandUsd: number;
  readonly pools: number;
  readonly lateUsd: number;
}

/**
 * Null without an offer of each kind. The market takes all instances of a pool together, and tasks that start together
 * start in the cheapest one or two: they are one risk, and the job is late once.
 */
function sidesOf({ group, viewOf }: Asking, offers: readonly Offer[], input: PlanInput): Sides | null {
  const seen = offers.flatMap((offer): Seen[] => {
    const view = viewOf(offer);
    return view === undefined ? [] : [{ offer, view }];
  });
  const spot = seen.filter(({ view }) => view.pool.option === 'spot');
  const staying = seen.filter(({ view }) => view.pool.option !== 'spot');
  if (spot.length === 0 || staying.length === 0) return null;
  const onDemandUsd = Math.min(...staying.map(({ offer }) => rateOf(offer)));
  const pools = new Set(spot.map(({ offer }) => offer.pool)).size;
  const listUsd = Math.min(...staying.map(({ offer }) => raw(offer.priceUsdPerHour) * Math.min(1, offer.newShare)));
  const price = lateUsd(latePrice(input.snapshot.jobs.get(group.job), input), listUsd);
  return { spot, staying, onDemandUsd, pools, lateUsd: price / group.count };
}

/**
 * Work that loses something with an interruption: spot offers whose expected cost and risk of lateness together are
 * below those of on-demand, by the appraisal of one start now.
 */
function answerByRisk(asking: Asking, input: PlanInput): DeadlineAnswer | null {
  const open = asking.offers.filter((offer) => offer.opens === undefined);
  const sides = sidesOf(asking, open, input);
  if (sides === null || sides.lateUsd === Infinity) return null;
  const late = ({ pLate, pInterrupted }: Offer): number => (asking.canFlee ? pLate : Math.min(1, pLate + pInterrupted));
  const riskUsd = (offer: Offer): number => late(offer) * sides.lateUsd;
  const dollars = ({ offer }: Seen): number => offer.expectedCostUsd + riskUsd(offer);
  const onDemandUsd = Math.min(...sides.staying.map(dollars));
  const worthy = new Map(
    sides.spot.filter((of) => dollars(of) < onDemandUsd).map(({ offer }) => [offer, riskUsd(offer)] as const),
  );
  const action = worthy.size > 0 ? 'spot' : 'on-demand';
  const choice = { action, stayUsd: Infinity, spotUsd: Math.min(...sides.spot.map(dollars)), onDemandUsd } as const;
  return { take: action, spot: worthy, choice, wait: () => ({ lastsS: 0, thenUsd: onDemandUsd }) };
}

function answerByProgram(asking: Asking & { readonly left: Distribution }, input: PlanInput): DeadlineAnswer | null {
  const { worth, left } = asking;
  const { snapshot, config } = input;
  const sides = sidesOf(asking, asking.offers, input);
  if (sides === null) return null;
  const { spot, onDemandUsd } = sides;
  const priced = spot.map(({ offer, view: { pool } }) => ({ pool, usd: expectedRate(offer, { pool, left }, input) }));
  const cheapest = priced.reduce((least, of) => (of.usd < least.usd ? of : least));
  if (cheapest.usd >= onDemandUsd) return null;
  if (sides.lateUsd === Infinity && isGuarded(worth, snapshot.nowMs, config.cyclePeriodS)) return GUARDED;
  const rates = {
    spotUsd: cheapest.usd,
    onDemandUsd,
    pools: sides.pools,
    upFactor: upFactorOf(cheapest.pool, input.forecasts.market, config),
  };
  const program = new DeadlineChoice({ worth, left, lateUsd: sides.lateUsd }, rates, input);
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

const GUARDED: DeadlineAnswer = { take: 'on-demand', choice: null, wait: () => ({ lastsS: 0, thenUsd: 0 }) };

const rateOf = (offer: Offer): number => raw(offer.priceUsdPerHour) * offer.newShare;

/** Price now, or the expected mean until the work is done where that is higher: long work outlasts a low. */
function expectedRate(offer: Offer, { pool, left }: { pool: Pool; left: Distribution }, input: PlanInput): number {
  const mean = input.forecasts.market.meanPrice?.(pool, seconds(meanS(left))) ?? null;
  return Math.max(raw(offer.priceUsdPerHour), mean === null ? 0 : raw(mean)) * offer.newShare;
}

/**
 * Time for which all pools have refused: that of the pool with the fewest refusals in a row. 0: one is not in back-off.
 */
function downForS(spot: readonly PoolView[]): number {
  const fewest = Math.min(...spot.map((view) => view.backOff?.refusals ?? 0));
  return fewest === 0 ? 0 : ((fewest - 0.5) * REFUSED_FOR_MS) / 1000;
}
