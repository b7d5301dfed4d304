import type { Distribution, Doubles } from '../../domain/distribution.ts';
import type { Bins } from './histogram.ts';

/**
 * Distribution of the next runtime after `runs` runs: the ascending `values` with their `weights`, and a share of
 * 1/(runs + 1) for unseen running times (Laplace's rule of succession), in equal halves at half the shortest and at
 * twice the longest runtime. It keeps a thin history from looking certain: up to nine runs the 95 % quantile is twice
 * the longest. The factor two is JamaisVu's measure of a good prediction (section 6.2). Equal values merge.
 */
export function withUnseen(
  values: Float64Array,
  weights: Float64Array,
  bins: Bins & { readonly runs: number; readonly doubles: Doubles },
): Distribution {
  const { count, runs, doubles } = bins;
  let total = 0;
  let distinct = 1;
  for (let i = 0; i < count; i++) {
    total += weights[bins.weights + i] as number;
    if (i > 0 && values[bins.values + i] !== values[bins.values + i - 1]) distinct++;
  }
  const seen = runs / (runs + 1) / total;
  const atS = doubles.take(distinct + 2);
  const weight = doubles.take(distinct + 2);
  atS[0] = (values[bins.values] as number) / 2;
  weight[0] = 0.5 / (runs + 1);
  let last = 0;
  for (let i = 0; i < count; i++) {
    const s = values[bins.values + i] as number;
    if (i === 0 || s !== atS[last]) atS[++last] = s;
    weight[last] = (weight[last] as number) + (weights[bins.weights + i] as number) * seen;
  }
  atS[last + 1] = (atS[last] as number) * 2;
  weight[last + 1] = 0.5 / (runs + 1);
  return { atS, weight };
}
