/**
 * Scores of probabilities. Intervals are bootstraps over days, because bids of one day share its spikes; all forecasts
 * of a cell are drawn with the same days, so that their differences are paired.
 */
import { randomStream } from '../../kernel/random.ts';

export const METRICS = ['accuracy', 'f1', 'aucPr', 'brier', 'ece'] as const;
export type Metric = (typeof METRICS)[number];
export const METRIC_NAMES: Readonly<Record<Metric, string>> = {
  accuracy: 'accuracy',
  f1: 'F1',
  aucPr: 'AUC-PR',
  brier: 'Brier',
  ece: 'calibration error',
};
export type Scores = Readonly<Record<Metric, number>>;

export interface Judged {
  readonly p: ArrayLike<number>;
  readonly lost: ArrayLike<number>;
  /** Day of each row, from 0 on. */
  readonly day: ArrayLike<number>;
  /** Weight of each row; absent: 1. */
  readonly weight?: ArrayLike<number>;
}

/** The paper's: "will be preempted" from one half on. */
const THRESHOLD = 0.5;
const BINS = 10;
export const RESAMPLES = 200;

interface Sorted {
  readonly p: Float64Array;
  readonly lost: Uint8Array;
  readonly day: Int32Array;
  readonly days: number;
  readonly weight: Float64Array;
}

/** By descending probability, so that average precision is one pass. */
function sorted({ p, lost, day, weight }: Judged): Sorted {
  const order = Uint32Array.from({ length: p.length }, (_, i) => i).sort((a, b) => (p[b] ?? 0) - (p[a] ?? 0));
  const days = Int32Array.from(order, (i) => day[i] ?? 0);
  return {
    p: Float64Array.from(order, (i) => p[i] ?? NaN),
    lost: Uint8Array.from(order, (i) => lost[i] ?? 0),
    day: days,
    days: days.reduce((most, d) => Math.max(most, d), -1) + 1,
    weight: Float64Array.from(order, (i) => (weight === undefined ? 1 : (weight[i] ?? 0))),
  };
}

/**
 * `ofDay`: weight of the rows of each day. O(rows). Undefined ratios are NaN: without losses there is no average
 * precision.
 */
function weighted({ p, lost, day, weight }: Sorted, ofDay: ArrayLike<number>): Scores {
  const said = new Float64Array(BINS);
  const was = new Float64Array(BINS);
  let [total, hits, alarms, losses, squares, precision] = [0, 0, 0, 0, 0, 0];
  let [above, lostAbove, tied, lostTied] = [0, 0, 0, 0];
  for (let i = 0; i < p.length; i++) {
    const w = (weight[i] ?? 0) * (ofDay[day[i] ?? 0] ?? 0);
    const x = p[i] ?? 0;
    const y = (lost[i] ?? 0) * w;
    total += w;
    losses += y;
    squares += y === 0 ? w * x * x : w * (1 - x) ** 2;
    if (x >= THRESHOLD) {
      alarms += w;
      hits += y;
    }
    const bin = Math.min(BINS - 1, Math.floor(x * BINS));
    said[bin] = (said[bin] ?? 0) + w * x;
    was[bin] = (was[bin] ?? 0) + y;
    tied += w;
    lostTied += y;
    if (x === p[i + 1]) continue;
    above += tied;
    lostAbove += lostTied;
    if (lostTied > 0) precision += (lostTied * lostAbove) / above;
    [tied, lostTied] = [0, 0];
  }
  return {
    accuracy: (total - alarms - losses + 2 * hits) / total,
    f1: alarms + losses === 0 ? NaN : (2 * hits) / (alarms + losses),
    aucPr: losses === 0 ? NaN : precision / losses,
    brier: squares / total,
    ece: said.reduce((sum, s, b) => sum + Math.abs(s - (was[b] ?? 0)), 0) / total,
  };
}

export function scores(judged: Judged): Scores {
  const all = sorted(judged);
  return weighted(all, new Float64Array(all.days).fill(1));
}

export interface Drawn {
  readonly value: Scores;
  /** Scores of each resample of days; the same days at the same place for every forecast of a cell. */
  readonly draws: readonly Scores[];
}

export function drawnScores(judged: Judged, seed: number): Drawn {
  const all = sorted(judged);
  const random = randomStream(seed, 'bench/forecast/days');
  const draws = Array.from({ length: RESAMPLES }, () => {
    const weight = new Float64Array(all.days);
    for (let i = 0; i < all.days; i++) {
      const day = Math.floor(random() * all.days);
      weight[day] = (weight[day] ?? 0) + 1;
    }
    return weighted(all, weight);
  });
  return { value: weighted(all, new Float64Array(all.days).fill(1)), draws };
}

export interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** 2.5 % and 97.5 % quantiles of a statistic of the resamples. */
export function intervalOf(value: number, draws: readonly number[]): Interval {
  const known = draws.filter((x) => Number.isFinite(x)).sort((a, b) => a - b);
  const at = (q: number): number => known[Math.min(known.length - 1, Math.floor(q * known.length))] ?? NaN;
  return { value, low: at(0.025), high: at(0.975) };
}

export const intervalText = ({ value, low, high }: Interval): string =>
  Number.isFinite(value) ? `${value.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]` : '-';

export interface Bin {
  readonly said: number;
  readonly was: number;
  readonly share: number;
}

/** For reliability plots: mean probability and share lost by bins of equal width, without empty ones. */
export function reliability({ p, lost }: Pick<Judged, 'p' | 'lost'>): Bin[] {
  const bins = Array.from({ length: BINS }, () => ({ n: 0, said: 0, was: 0 }));
  for (let i = 0; i < p.length; i++) {
    const bin = bins[Math.min(BINS - 1, Math.floor((p[i] ?? 0) * BINS))];
    if (bin === undefined) continue;
    bin.n++;
    bin.said += p[i] ?? 0;
    bin.was += lost[i] ?? 0;
  }
  return bins.flatMap(({ n, said, was }) => (n === 0 ? [] : [{ said: said / n, was: was / n, share: n / p.length }]));
}

/** (recall, precision) at up to `points` thresholds, by falling threshold. */
export function precisionRecall(judged: Judged, points: number): (readonly [number, number])[] {
  const { p, lost } = sorted(judged);
  const losses = lost.reduce((sum, y) => sum + y, 0);
  const curve: [number, number][] = [];
  let hits = 0;
  let next = 1;
  for (let i = 0; i < p.length; i++) {
    hits += lost[i] ?? 0;
    const isLast = i === p.length - 1;
    if (p[i] === p[i + 1] || (hits < (next * losses) / points && !isLast)) continue;
    curve.push([hits / losses, hits / (i + 1)]);
    next = Math.floor((hits * points) / losses) + 1;
  }
  return curve;
}
