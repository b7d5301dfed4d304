import type { Distribution } from '../../domain/distribution.ts';
import { readCurve, type CurvePoint, type CurveTable } from './curve-table.ts';

/** Terms for the appraisal of one task on one offer. Times in seconds, rates in USD per second of one task's share. */
export interface Terms {
  readonly rate: number;
  /** Rate of the cheapest on-demand pool that fits, for flight after an interruption; null: none. */
  readonly fallbackRate: number | null;
  /** Work that an interruption costs at most: 0 = saved at the warning, Infinity = all since the start. */
  readonly lossS: number;
  /** Reading the checkpoint when going on after an interruption. */
  readonly restoreS: number;
  /** Expected and longest time from buying an instance to its first task. */
  readonly startMeanS: number;
  readonly startMaxS: number;
  /** Time from now to the task's deadline and to the last safe start on on-demand; null without a deadline. */
  readonly deadlineInS: number | null;
  readonly safeInS: number | null;
  /** Interruptions earlier than this are not charged; 0 under the rule `none`. */
  readonly freeBeforeS: number;
}

/** Fields of Offer that depend on the running time and the curve; see lib/domain/forecast.ts. */
export interface Outcome {
  readonly pInterrupted: number;
  readonly pLate: number;
  readonly lostS: number;
  readonly durationS: number;
  /** Infinity when it would never finish. */
  readonly costUsd: number;
}

/** The part of the terms that no deadline is in. */
type UndatedTerms = Omit<Terms, 'deadlineInS' | 'safeInS'>;

/** Outcome without a deadline: the same for all tasks that differ only in their deadline. */
export interface Unhurried {
  /** P(late) is 0, or 1 where it is never done. */
  readonly outcome: Outcome;
  /** Value of `safeInS` from which on the last safe start forbids no try, seconds. */
  readonly safeFromS: number;
}

/**
 * Expectations over the running time (discrete, r with weight w) and the time T of the first interruption (curve F), in
 * closed form. O(bins x horizons), nothing allocated per bin.
 * One try of length r: interrupted with F(r); lives alive(r) in expectation; E[T; T<=r] = G(r) = alive(r) - r (1-F(r)).
 * An interruption at t loses min(t, loss), in all M(r) = G(m) + loss (F(r) - F(m)), m = min(r, loss). Not charged: E[T;
 * T <= min(r, hour)], the first-hour refund (Tributary 2.1.1, eq. 2.2 with the window as part of the task's time).
 * After an interruption the task either flees to on-demand ("flee": one interruption at most), or tries again on the
 * same offer ("again"): then tries renew, so without checkpoint there are F/(1-F) interruptions, and with one their
 * rate is F(r) / alive(r) per second of running (renewal reward), over r and what is run twice. The cheaper of the two
 * is taken, "flee" where trying again would pass the last safe start. Lateness counts the flight: late is a run that is
 * too long by itself or whose flight is.
 * The first start-up is not charged here: it is the same for all offers and nothing where an instance is at hand.
 * Start-ups that interruptions cause are.
 * This part is the outcome without a deadline, and how near the last safe start may come before it is another one.
 */
export const unhurriedOutcome = (runtime: Distribution, table: CurveTable, t: UndatedTerms): Unhurried =>
  expected(runtime, table, { ...t, safeInS: null });

/**
 * The outcome with a deadline, from the one without: a far deadline changes nothing. `longest`: running time for
 * lateness, where it is uncertain how much neighbours slow the work down.
 */
export function outcomeBefore(
  { outcome, safeFromS }: Unhurried,
  of: {
    readonly runtime: Distribution;
    readonly longest?: Distribution;
    readonly table: CurveTable;
    readonly terms: Terms;
  },
): Outcome {
  const { runtime, longest = runtime, table, terms } = of;
  const isFree = terms.safeInS === null || terms.safeInS >= safeFromS;
  const tried = isFree ? outcome : expected(runtime, table, terms).outcome;
  if (terms.deadlineInS === null || tried.costUsd === Infinity) return tried;
  const pLate = lateness(longest, table, terms);
  if (pLate === 0) return tried;
  const { pInterrupted, lostS, durationS, costUsd } = tried;
  return { pInterrupted, pLate, lostS, durationS, costUsd };
}

/** All of the outcome but lateness. */
function expected(runtime: Distribution, table: CurveTable, t: Omit<Terms, 'deadlineInS'>): Unhurried {
  const { atS, weight } = runtime;
  readCurve(table, t.freeBeforeS, point);
  const freeAllS = point.aliveS - t.freeBeforeS * (1 - point.lost);
  const finiteLoss = Number.isFinite(t.lossS) && t.lossS > 0;
  if (finiteLoss) readCurve(table, t.lossS, point);
  const lostByLoss = finiteLoss ? point.lost : 0;
  const timeByLossS = finiteLoss ? point.aliveS - t.lossS * (1 - point.lost) : 0;

  let pInterrupted = 0;
  let lostS = 0;
  let durationS = 0;
  let costUsd = 0;
  let safeFromS = -Infinity;
  let knot = 1;
  for (let i = 0; i < atS.length; i++) {
    const r = atS[i] ?? 0;
    const w = weight[i] ?? 0;
    knot = readCurve(table, r, point, knot);
    const f = point.lost;
    const alive = point.aliveS;
    pInterrupted += w * f;
    if (f <= 0) {
      durationS += w * r;
      costUsd += w * t.rate * r;
      continue;
    }
    const interruptedS = Math.max(0, alive - r * (1 - f));
    const lostOnce = t.lossS === 0 ? 0 : t.lossS >= r ? interruptedS : timeByLossS + t.lossS * (f - lostByLoss);
    const freeS = t.freeBeforeS === 0 ? 0 : r <= t.freeBeforeS ? interruptedS : freeAllS;

    const flee =
      t.fallbackRate === null
        ? Infinity
        : t.rate * (alive - freeS) + t.fallbackRate * (f * (t.startMeanS + t.restoreS + r) - interruptedS + lostOnce);
    const tries = interruptionsWhenAgain(r, point, lostOnce, t);
    const again = Number.isFinite(tries)
      ? t.rate * (r + (tries / f) * (lostOnce + f * (t.restoreS + t.startMeanS) - freeS))
      : Infinity;
    if (again === Infinity && flee === Infinity) return NEVER_DONE;
    const neededS = again > flee || t.fallbackRate === null ? -Infinity : safeTimeToTryAgainS(interruptedS / f, t);
    if (again <= flee && (t.safeInS === null || neededS <= t.safeInS)) {
      safeFromS = Math.max(safeFromS, neededS);
      costUsd += w * again;
      lostS += (w * tries * lostOnce) / f;
      durationS += w * (r + tries * (lostOnce / f + t.restoreS + t.startMeanS));
    } else {
      costUsd += w * flee;
      lostS += w * lostOnce;
      durationS += w * (r + f * (t.startMeanS + t.restoreS) + lostOnce);
    }
  }
  return { outcome: { pInterrupted: Math.min(1, pInterrupted), pLate: 0, lostS, durationS, costUsd }, safeFromS };
}

/** P(late). The interruption curve is read only for runs that the deadline is near to. */
function lateness({ atS, weight }: Distribution, table: CurveTable, t: Terms): number {
  const leftS = (t.deadlineInS ?? Infinity) - t.startMaxS;
  let pLate = 0;
  let knot = 1;
  for (let i = 0; i < atS.length; i++) {
    const r = atS[i] ?? 0;
    if (r > leftS) {
      pLate += weight[i] ?? 0;
      continue;
    }
    // Interrupted at T the flight ends at startMax + restore + r + min(T, loss): late when min(T, loss) > spare.
    const spareS = leftS - t.startMaxS - t.restoreS - r;
    if (t.fallbackRate !== null && spareS >= Math.min(t.lossS, r)) continue;
    knot = readCurve(table, r, point, knot);
    pLate += (weight[i] ?? 0) * lateWhen(table, r, { f: point.lost, leftS, spareS, terms: t });
  }
  return Math.min(1, pLate);
}

/** An offer on which some running time can never be finished. */
const NEVER_DONE: Unhurried = {
  outcome: { pInterrupted: 1, pLate: 1, lostS: Infinity, durationS: Infinity, costUsd: Infinity },
  safeFromS: -Infinity,
};

/** Reused: the core is single-threaded and no outcome is worked out within another one. */
const point: CurvePoint = { lost: 0, aliveS: 0 };

/** Expected interruptions until a task of length r is done on this offer alone; the curve is read at r. */
function interruptionsWhenAgain(r: number, { lost: f, aliveS }: CurvePoint, lostOnce: number, t: UndatedTerms): number {
  if (t.lossS >= r) return f >= 1 ? Infinity : f / (1 - f);
  const perS = aliveS > 0 ? f / aliveS : Infinity;
  const repeated = perS * (lostOnce / f + t.restoreS);
  return repeated < 1 ? (perS * r) / (1 - repeated) : Infinity;
}

/**
 * Time to the last safe start that a task needs to be tried on spot once more after an interruption at its mean time.
 */
function safeTimeToTryAgainS(meanInterruptionS: number, t: UndatedTerms): number {
  const keptS = Math.max(0, meanInterruptionS - t.lossS);
  return t.startMaxS + meanInterruptionS + t.startMaxS - keptS;
}

interface Flight {
  readonly f: number;
  /** Time to the deadline, less the longest start-up; then the part of it that remains after flight, seconds. */
  readonly leftS: number;
  readonly spareS: number;
  readonly terms: Terms;
}

/**
 * P(late | running time r) of a run that is in time without interruptions, with the longest start-ups; an upper bound
 * without on-demand to flee to.
 */
function lateWhen(table: CurveTable, r: number, { f, leftS, spareS, terms: t }: Flight): number {
  if (t.fallbackRate === null) {
    // Nowhere to flee to. Each interruption costs at most this much time and each try is interrupted with at most F(r).
    const perInterruptionS = t.startMaxS + t.restoreS + Math.min(t.lossS, r);
    return f ** (1 + Math.floor((leftS - r) / Math.max(perInterruptionS, 1)));
  }
  if (spareS < 0) return f;
  readCurve(table, spareS, point);
  return f - point.lost;
}
