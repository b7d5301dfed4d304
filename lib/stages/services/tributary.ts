/**
 * Tributary's AcquireMgr (sections 2.2.2 to 2.2.4): instances from pools and at bids that bring the expected share of
 * requests in time to the target at the lowest expected cost. An allocation ends with its window, while an interruption
 * within it is refunded; a new one begins a new window.
 */
import { compareText } from '../../kernel/compare.ts';
import { instanceId } from '../../kernel/ids.ts';
import { msBetween, usdPerHour } from '../../kernel/units.ts';
import { capUsd, rateText, type Pool } from '../../domain/pool.ts';
import type {
  FootprintChange,
  FootprintContext,
  FootprintPolicy,
  HeldInstance,
} from '../../policy/services/contracts.ts';
import { candidatesOf, type Candidate } from './candidates.ts';
import { Holdings, type Worth } from './holdings.ts';
import { firstWhere, leastUnits, unitsHeld, unitsOf } from './units.ts';
import { endedWindows, WINDOW_MS, windowLeftMs } from './windows.ts';

const HOUR_S = 3600;
/** A step of a purchase has a sixteenth of what is missing, at least an instance: so many steps reach any target. */
const PARTS = 16;
const MOST_STEPS = 128;
/** Most instances given back in one decision; the next is a minute away. */
const MOST_RELEASED = 64;
/** Gains of utility below this are rounding. */
const EPS = 1e-9;
/** Difference of scores below which bids count as equal. */
const NEARLY_EQUAL = 0.03;
/** Cost of what is free, US dollars: gains per dollar then compare. */
const LEAST_USD = 1e-6;

export interface TributarySettings {
  /** Time over which losses count for the utility, seconds. The paper: within the next hour. */
  readonly lossHorizonS: number;
}

/** O(units x instances) for a step of a purchase and an instance given back, and O(units) for each candidate. */
export const tributary =
  ({ lossHorizonS }: TributarySettings = { lossHorizonS: HOUR_S }): FootprintPolicy =>
  (context) => {
    const holdings = new Holdings(context, lossHorizonS);
    const release = [...endedWindows(context), ...scaleIn(holdings, context)];
    return { release, buy: scaleOut(holdings, context) };
  };

/**
 * Gives instances back while the target holds, the one with the least time left in its window first (section 2.2.4).
 * An instance that is likely to be free stays.
 */
function scaleIn(holdings: Holdings, context: FootprintContext): FootprintChange['release'] {
  const { target } = context.demand;
  const released: FootprintChange['release'][number][] = [];
  while (released.length < MOST_RELEASED) {
    const worth = holdings.worth(0);
    if (worth.utility <= target) break;
    const next = firstOfEach(holdings.all(), context)
      .filter((held) => !isLikelyFree(held, holdings, context))
      .find((held) => worth.having(held.pool, without(holdings, held)) > target);
    if (next === undefined) break;
    holdings.set(next.pool, without(holdings, next));
    released.push({
      instance: next.id,
      reason: `${shareText(worth.utility)} of requests are expected in time, and the target of ${shareText(target)} holds without it`,
    });
  }
  return released;
}

const without = (holdings: Holdings, held: HeldInstance): readonly HeldInstance[] =>
  holdings.of(held.pool).filter((h) => h.id !== held.id);

/** Of alike instances (pool, bid) the one with the least time left; those in the order of that time. */
function firstOfEach(all: readonly HeldInstance[], context: FootprintContext): readonly HeldInstance[] {
  const left = (held: HeldInstance): number => windowLeftMs(held, context);
  const order = all.toSorted((a, b) => (left(a) === left(b) ? compareText(a.id, b.id) : left(a) - left(b)));
  const alike = Map.groupBy(order, (h) => `${h.pool.id} ${capUsd(h.bid)}`);
  return [...alike.values()].flatMap(([first]) => first ?? []);
}

/**
 * True where running on until the window ends costs less than half of its price, in expectation: what has been used is
 * paid for if we end it, and free if the market does.
 */
function isLikelyFree(held: HeldInstance, holdings: Holdings, context: FootprintContext): boolean {
  const { launchedMs, pool, bid } = held;
  const leftMs = windowLeftMs(held, context);
  if (launchedMs === null || leftMs === Infinity) return false;
  const usedMs = Math.max(0, msBetween(launchedMs, context.nowMs));
  const furtherMs = (1 - holdings.pLost(pool, bid, leftMs / 1000)) * WINDOW_MS - usedMs;
  return furtherMs < leftMs / 2;
}

/** Section 2.2.3: the candidate with the most utility gained per dollar, until the target is met. */
function scaleOut(holdings: Holdings, context: FootprintContext): FootprintChange['buy'] {
  const { target, utility, most: together = Infinity } = context.demand;
  const needed = leastUnits(utility, target);
  if (needed === null) return [];
  const candidates = candidatesOf(context, (pool, bid) => holdings.pLost(pool, bid, HOUR_S));
  const bought = new Map<Candidate, number>();
  const stepOf = (missing: number, pool: Pool): number => Math.max(1, Math.ceil(missing / unitsOf(pool) / PARTS));
  const most = candidates.reduce((units, { pool }) => Math.max(units, unitsOf(pool) * stepOf(needed, pool)), needed);
  for (let step = 0; step < MOST_STEPS; step++) {
    const worth = holdings.worth(most);
    if (worth.utility >= target) break;
    const missing = missingUnits(worth, target, needed);
    const apart = candidates.filter(
      ({ pool }) => unitsHeld(holdings.of(pool)) + stepOf(missing, pool) * unitsOf(pool) <= together,
    );
    const best = bestOf(apart.length > 0 ? apart : candidates, (of) => {
      const count = stepOf(missing, of.pool);
      const gain = worth.having(of.pool, [...holdings.of(of.pool), ...news(of, count)]) - worth.utility;
      return gain > EPS ? gain / Math.max(LEAST_USD, count * of.costUsd) : 0;
    });
    if (best === null) break;
    const count = stepOf(missing, best.pool);
    holdings.set(best.pool, [...holdings.of(best.pool), ...news(best, count)]);
    bought.set(best, (bought.get(best) ?? 0) + count);
  }
  return [...bought].map(([{ pool, bid, priceUsd, pLost }, count]) => ({
    pool: pool.id,
    bid,
    count,
    reason: `most requests in time per dollar at ${rateText(usdPerHour(priceUsd))} USD/h, P(interrupted within an hour) ${shareText(pLost)}`,
  }));
}

/** Instances to come; they are told apart from held ones by an id that no instance has. */
const news = ({ pool, bid }: Candidate, count: number): readonly HeldInstance[] =>
  Array.from({ length: count }, () => ({ id: instanceId('i-new'), pool, bid, launchedMs: null }));

/**
 * The candidate with the highest score above 0. By eqs. 2.2 and 2.3 a risky bid costs less and is worth less by the
 * same factor, so that bids of a pool hardly differ; the paper prefers those that are likely to be free. Of nearly
 * equal ones this is the riskiest, then the first.
 */
function bestOf(candidates: readonly Candidate[], score: (of: Candidate) => number): Candidate | null {
  const scores = candidates.map(score);
  const most = scores.reduce((a, b) => Math.max(a, b), 0);
  if (most <= 0) return null;
  return candidates.reduce<Candidate | null>((best, of, i) => {
    if ((scores[i] ?? 0) < most * (1 - NEARLY_EQUAL)) return best;
    return best === null || of.pLost > best.pLost ? of : best;
  }, null);
}

/** vCPUs that are missing, were they never lost (M of section 2.2.3). */
const missingUnits = (worth: Worth, target: number, most: number): number =>
  firstWhere(most, (units) => worth.beside(units) >= target);

const shareText = (share: number): string => `${(share * 100).toFixed(1)} %`;
