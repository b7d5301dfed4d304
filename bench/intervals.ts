/**
 * Ratios of sums with bootstrap intervals over clusters (windows): what is drawn again is a window with all its jobs.
 */
import { Bootstrap, type Estimate } from '../lib/report/bootstrap.ts';

export interface Pair {
  readonly cluster: number;
  readonly over: number;
  readonly under: number;
}

/** Sum of `over` by sum of `under`, as reports of simulations have it. */
export function clusterRatio(pairs: readonly Pair[]): Estimate {
  const clusters = [...Map.groupBy(pairs, (p) => p.cluster)].sort(([a], [b]) => a - b);
  const sum = (list: readonly Pair[], of: 'over' | 'under'): number => list.reduce((s, p) => s + p[of], 0);
  return new Bootstrap().ratio(clusters.map(([, list]) => ({ above: sum(list, 'over'), below: sum(list, 'under') })));
}

export const fractionText = ({ value, interval }: Estimate): string =>
  `${value?.toFixed(3) ?? '-'}${interval === null ? '' : ` [${interval.low.toFixed(3)}, ${interval.high.toFixed(3)}]`}`;
