/**
 * Least cost of one task in its window, by three relaxations. Rates are those of `rates.ts` times the task's share.
 *
 * - `CheapestTime`: the cheapest moments of the window, in any pools, as if changing between them took no time. Any run
 *   uses that much time at no less than these rates.
 * - `cheapestRuns`: one run without a break in one pool, for work that cannot be kept. The last attempt is such a run.
 *   The cost is piecewise linear in the beginning, so the least lies where an end of the run meets a change of rate.
 * - `cheapestStays`: stays in pools, each with a changeover c before work goes on. With a multiplier m >= 0 on work w,
 *     g(m) = min over sets of stays in the window of  sum of cost + m (w - sum of (length - c)),
 *   and g(m) bounds the cost of every set of stays that does work w from below, for any m (weak duality). For given m
 *   the cost is linear in each end of a stay between two changes of rate, so a dynamic program over changes is exact:
 *   V_p = min(V_p, V_nowhere + m c), V_nowhere = min(V_nowhere, V_p), V_p grows by (rate_p - m) times time. A stay
 *   shorter than c counts as negative work, which only lowers g. g is concave; thirds find a good m.
 *   O(STEPS x changes x pools).
 */
import { once } from '../../../kernel/once.ts';
import { piecesWithin, type Piece, type Rates, type Span } from './rates.ts';

export interface SharedRates {
  readonly rates: Rates;
  readonly share: number;
}

/** Least cost by running time, in one window. O(pieces log pieces), then O(log pieces) per question. */
export class CheapestTime {
  /** Ends of the pieces from the cheapest on, as sums of time and of cost. */
  readonly #timeMs: Float64Array;
  readonly #usd: Float64Array;
  readonly #rate: Float64Array;

  constructor(rates: Rates, window: Span) {
    const pieces = piecesWithin(rates, window).sort((a, b) => a.rate - b.rate);
    let [timeMs, usd] = [0, 0];
    this.#rate = Float64Array.from(pieces, (p) => p.rate);
    this.#timeMs = Float64Array.from(pieces, (p) => (timeMs += p.toMs - p.fromMs));
    this.#usd = Float64Array.from(pieces, (p) => (usd += p.rate * (p.toMs - p.fromMs)));
  }

  /** Lowest rate of the window; 0 in an empty one. */
  get leastRate(): number {
    return this.#rate[0] ?? 0;
  }

  /** Infinity where the window does not hold so much time. */
  leastUsd(lengthMs: number): number {
    let [low, high] = [0, this.#timeMs.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#timeMs[middle] ?? 0) < lengthMs - EPSILON_MS) low = middle + 1;
      else high = middle;
    }
    if (low === this.#timeMs.length) return lengthMs <= EPSILON_MS ? 0 : Infinity;
    return (this.#usd[low] ?? 0) - (this.#rate[low] ?? 0) * Math.max(0, (this.#timeMs[low] ?? 0) - lengthMs);
  }
}

const EPSILON_MS = 1e-6;

/**
 * Least cost of one run by its length, in one window. Infinity: no pool has one. O(pieces) for each pool that may be
 * cheaper than the best one before it.
 */
export function cheapestRuns(pools: readonly SharedRates[], window: Span): (lengthMs: number) => number {
  const stretches = pools
    .flatMap(({ rates, share }) => stretchesOf(piecesWithin(rates, window)).map((pieces) => stretchOf(pieces, share)))
    .sort((a, b) => a.leastRate - b.leastRate);
  return (lengthMs) => {
    let least = Infinity;
    for (const stretch of stretches) {
      if (stretch.leastRate * lengthMs >= least) break;
      least = Math.min(least, stretch.share * cheapestWithin(stretch.sums(), lengthMs));
    }
    return least;
  };
}

/** Time without a break in one pool, with the least rate times the share. Most are never cheaper than another. */
interface Stretch {
  readonly share: number;
  readonly leastRate: number;
  readonly sums: () => Sums;
}

interface Sums {
  /** Changes of the rate, from the beginning to the end. */
  readonly edgeMs: Float64Array;
  /** Rate from each edge on. */
  readonly rate: Float64Array;
  /** Cost from the beginning to each edge. */
  readonly usdBefore: Float64Array;
}

function stretchOf(pieces: readonly Piece[], share: number): Stretch {
  let least = Infinity;
  for (const { rate } of pieces) least = Math.min(least, rate);
  return { share, leastRate: share * least, sums: once(() => sumsOf(pieces)) };
}

function sumsOf(pieces: readonly Piece[]): Sums {
  const edgeMs = new Float64Array(pieces.length + 1);
  const rate = new Float64Array(pieces.length);
  const usdBefore = new Float64Array(pieces.length + 1);
  edgeMs[0] = pieces[0]?.fromMs ?? 0;
  pieces.forEach((p, i) => {
    rate[i] = p.rate;
    edgeMs[i + 1] = p.toMs;
    usdBefore[i + 1] = (usdBefore[i] ?? 0) + p.rate * (p.toMs - p.fromMs);
  });
  return { edgeMs, rate, usdBefore };
}

/** Pieces that follow one another without a break. */
function stretchesOf(pieces: readonly Piece[]): readonly (readonly Piece[])[] {
  const stretches: Piece[][] = [];
  for (const piece of pieces) {
    const last = stretches.at(-1);
    if (last?.at(-1)?.toMs === piece.fromMs) last.push(piece);
    else stretches.push([piece]);
  }
  return stretches;
}

/** The least of runs that begin at an edge, and of those that end at one. */
function cheapestWithin({ edgeMs, rate, usdBefore }: Sums, lengthMs: number): number {
  const last = edgeMs.length - 1;
  const [fromMs, toMs] = [edgeMs[0] ?? 0, edgeMs[last] ?? 0];
  if (toMs - fromMs < lengthMs - EPSILON_MS) return Infinity;
  /** Cost up to `t`, which lies in the piece from this edge on. */
  const upTo = (t: number, at: number): number =>
    (usdBefore[at] ?? 0) + (rate[Math.min(at, last - 1)] ?? 0) * (t - (edgeMs[at] ?? 0));
  let least = Infinity;
  for (let i = 0, end = 0; i <= last; i++) {
    const untilMs = Math.min(toMs, (edgeMs[i] ?? 0) + lengthMs);
    if ((edgeMs[i] ?? 0) + lengthMs > toMs + EPSILON_MS) break;
    while (end < last && (edgeMs[end + 1] ?? Infinity) <= untilMs) end++;
    least = Math.min(least, upTo(untilMs, end) - (usdBefore[i] ?? 0));
  }
  for (let i = 0, begin = 0; i <= last; i++) {
    const startMs = (edgeMs[i] ?? 0) - lengthMs;
    if (startMs < fromMs) continue;
    while (begin < last && (edgeMs[begin + 1] ?? Infinity) <= startMs) begin++;
    least = Math.min(least, (usdBefore[i] ?? 0) - upTo(startMs, begin));
  }
  return least;
}

/** Steps of the search for the multiplier; each narrows it by a third. */
const STEPS = 40;
/** Most of the multiplier, in the dearest rates of the window. Any multiplier gives a bound. */
const MOST_RATES = 50;

export interface Work {
  readonly window: Span;
  readonly workMs: number;
  readonly changeoverMs: number;
}

export function cheapestStays(pools: readonly SharedRates[], work: Work): number {
  const table = tableOf(pools, work.window);
  const dearest = table.rates.reduce(
    (most, row) => row.reduce((m, r) => (r === Infinity ? m : Math.max(m, r)), most),
    0,
  );
  const dual = (multiplier: number): number =>
    leastOfStays(table, work.changeoverMs, multiplier) + multiplier * work.workMs;
  let [low, high] = [0, MOST_RATES * dearest];
  let best = 0;
  for (let step = 0; step < STEPS; step++) {
    const [a, b] = [low + (high - low) / 3, high - (high - low) / 3];
    const [atA, atB] = [dual(a), dual(b)];
    best = Math.max(best, atA, atB);
    if (atA < atB) low = a;
    else high = b;
  }
  return best;
}

interface Table {
  /** Lengths of time between changes of any rate. */
  readonly lengthMs: Float64Array;
  /** By pool, then by time. */
  readonly rates: readonly Float64Array[];
}

function tableOf(pools: readonly SharedRates[], { fromMs, toMs }: Span): Table {
  const cuts = new Set([fromMs]);
  for (const { rates } of pools) for (const t of rates.atMs) if (t > fromMs && t < toMs) cuts.add(t);
  const atMs = Float64Array.from(cuts).sort();
  const lengthMs = atMs.map((t, i) => (atMs[i + 1] ?? toMs) - t);
  const rows = pools.map(({ rates, share }) => {
    let i = -1;
    return atMs.map((t) => {
      while ((rates.atMs[i + 1] ?? Infinity) <= t) i++;
      return i < 0 ? Infinity : share * (rates.rate[i] ?? Infinity);
    });
  });
  return { lengthMs, rates: rows };
}

/** min over stays of the sum of cost - m (length - c). */
function leastOfStays({ lengthMs, rates }: Table, changeoverMs: number, multiplier: number): number {
  const value = new Float64Array(rates.length).fill(Infinity);
  let nowhere = 0;
  for (let i = 0; i < lengthMs.length; i++) {
    const begin = nowhere + multiplier * changeoverMs;
    const length = lengthMs[i] ?? 0;
    for (let p = 0; p < value.length; p++) {
      const from = Math.min(value[p] ?? Infinity, begin);
      const to = from + ((rates[p]?.[i] ?? Infinity) - multiplier) * length;
      value[p] = to;
      if (to < nowhere) nowhere = to;
    }
  }
  return nowhere;
}
