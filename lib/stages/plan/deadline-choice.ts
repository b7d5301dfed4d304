/**
 * The deadline program's answer for a waiting group: take spot, take on-demand, or wait for spot to come back
 * (lib/policy/deadline-program). It speaks of groups with a deadline whose programs save their state when they are
 * interrupted, and that may use both kinds of capacity. Tasks of a group share one answer.
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
    const usd = view === undefined ? Infinity : expectedRate(offer, { pool: view.pool, left }, input);
    return view !== undefined && usd < (least?.usd ?? onDemandUsd) ? { usd, pool: view.pool } : least;
  }, null);
  if (cheapest === null || !Number.isFinite(onDemandUsd)) return null;
  const guarded = isGuarded(worth, snapshot.nowMs, config.cyclePeriodS);
  const poolCount = new Set(spot.map(({ offer }) => offer.pool)).size;
  const price = lateUsd(latePrice(snapshot.jobs.get(group.job), input), onDemandUsd);
  // The market takes all instances of a pool together: tasks that start together are as many risks as they have pools.
  const late = price * Math.min(1, poolCount / group.count);
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
