/** Ratios of sums with bootstrap intervals over clusters: windows are resampled with all their jobs. */
import { Bootstrap, type Estimate } from '../lib/report/bootstrap.ts';

export interface Pair {
  readonly cluster: number;
  readonly over: number;
  readonly under: number;
}

/** Sum of `over` divided by the sum of `under`, as in reports of simulations. */
export function clusterRatio(pairs: readonly Pair[]): Estimate {
  const clusters = [...Map.groupBy(pairs, (p) => p.cluster)].sort(([a], [b]) => a - b);
  const sum = (list: readonly Pair[], of: 'over' | 'under'): number => list.reduce((s, p) => s + p[of], 0);
  return new Bootstrap().ratio(clusters.map(([, list]) => ({ above: sum(list, 'over'), below: sum(list, 'under') })));
}

export const fractionText = ({ value, interval }: Estimate): string =>
  `${value?.toFixed(3) ?? '-'}${interval === null ? '' : ` [${interval.low.toFixed(3)}, ${interval.high.toFixed(3)}]`}`;
