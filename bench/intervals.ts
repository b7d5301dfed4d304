/** Ratios of means with bootstrap intervals over clusters (windows): what is drawn again is a window with all its jobs. */
import { randomStream } from '../lib/kernel/random.ts';

export interface Pair {
  readonly cluster: number;
  readonly over: number;
  readonly under: number;
}

export interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Sum of `over` by sum of `under`, with the 2.5 % and 97.5 % quantiles of the cluster bootstrap (Efron). */
export function bootstrapRatio(
  pairs: readonly Pair[],
  of: { readonly resamples: number; readonly seed: number },
): Interval {
  const clusters = [...Map.groupBy(pairs, (p) => p.cluster).values()].map((list) => ({
    over: list.reduce((sum, p) => sum + p.over, 0),
    under: list.reduce((sum, p) => sum + p.under, 0),
  }));
  const ratioOf = (list: readonly { readonly over: number; readonly under: number }[]): number =>
    list.reduce((s, c) => s + c.over, 0) / list.reduce((s, c) => s + c.under, 0);
  const random = randomStream(of.seed, 'bootstrap');
  const drawn = Array.from({ length: of.resamples }, () =>
    ratioOf(clusters.map(() => clusters[Math.floor(random() * clusters.length)] ?? { over: 0, under: 0 })),
  ).sort((a, b) => a - b);
  const at = (q: number): number => drawn[Math.min(drawn.length - 1, Math.floor(q * drawn.length))] ?? NaN;
  return { value: ratioOf(clusters), low: at(0.025), high: at(0.975) };
}

export const fractionText = ({ value, low, high }: Interval): string =>
  `${value.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`;
