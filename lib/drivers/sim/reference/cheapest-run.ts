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
    .flatMap(({ rates, share }) => stretchesOf(piecesWithin(rates, window)).map((pieces) => ({ pieces, share })))
    .map((s) => ({ ...s, least: s.share * s.pieces.reduce((rate, p) => Math.min(rate, p.rate), Infinity) }))
    .sort((a, b) => a.least - b.least);
  return (lengthMs) => {
    let least = Infinity;
    for (const { pieces, share, least: rate } of stretches) {
      if (rate * lengthMs >= least) break;
      least = Math.min(least, share * cheapestWithin(pieces, lengthMs));
    }
    return least;
  };
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

function cheapestWithin(stretch: readonly Piece[], lengthMs: number): number {
  const [fromMs, toMs] = [stretch[0]?.fromMs ?? 0, stretch.at(-1)?.toMs ?? 0];
  if (toMs - fromMs < lengthMs - EPSILON_MS) return Infinity;
  // Cost from the beginning of the stretch to each edge.
  const edges = [fromMs, ...stretch.map((p) => p.toMs)];
  let usd = 0;
  const before = [0, ...stretch.map((p) => (usd += p.rate * (p.toMs - p.fromMs)))];
  const upTo = (t: number, at: number): number =>
    (before[at] ?? 0) + (stretch[Math.min(at, stretch.length - 1)]?.rate ?? 0) * (t - (edges[at] ?? 0));
  const starts = [...edges, ...edges.map((t) => t - lengthMs)]
    .filter((t) => t >= fromMs && t + lengthMs <= toMs + EPSILON_MS)
    .sort((a, b) => a - b);
  let [low, high, least] = [0, 0, Infinity];
  for (const start of starts) {
    while ((edges[low + 1] ?? Infinity) <= start) low++;
    while ((edges[high + 1] ?? Infinity) <= start + lengthMs) high++;
    least = Math.min(least, upTo(Math.min(toMs, start + lengthMs), high) - upTo(start, low));
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
