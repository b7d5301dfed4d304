import { z } from 'zod';
import { action, type Actions } from '../api.ts';
import { NotPlayed } from '../fault.ts';
import type { Balancers } from './balancers.ts';
import type { MinuteOfRequests, RequestCounts } from './request-counts.ts';

const MINUTE_MS = 60_000;

const query = z.strictObject({
  Id: z.string().regex(/^[a-z]\w*$/),
  MetricStat: z.strictObject({
    Metric: z.strictObject({
      Namespace: z.literal('AWS/ApplicationELB', 'the double has metrics of load balancers alone'),
      MetricName: z.string(),
      Dimensions: z.array(z.strictObject({ Name: z.string(), Value: z.string() })),
    }),
    Period: z.literal(60, 'the double has minutes alone'),
    Stat: z.string(),
  }),
});

/** https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html; times are epoch seconds. */
const getMetricData = z.strictObject({
  MetricDataQueries: z.array(query).min(1).max(500),
  StartTime: z.number(),
  EndTime: z.number(),
});

/**
 * Metrics of load balancers. Those without requests have no data, as there:
 * https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-cloudwatch-metrics.html
 */
export const metricActions = (balancers: Balancers): Actions<object> => ({
  GetMetricData: action(getMetricData, ({ MetricDataQueries, StartTime, EndTime }) => ({
    MetricDataResults: MetricDataQueries.map(({ Id, MetricStat: { Metric, Stat } }) => {
      const group = Metric.Dimensions.find((d) => d.Name === 'TargetGroup')?.Value ?? '';
      const rank = /^PR\(:([\d.]+)\)$/.exec(Stat)?.[1];
      const counts = balancers.counts(group, rank === undefined ? null : Number(rank));
      const read = valueOf(Metric.MetricName, rank === undefined ? Stat : 'PR');
      const points =
        counts === undefined ? [] : pointsOf(counts, { fromMs: StartTime * 1000, toMs: EndTime * 1000 }, read);
      return {
        Id,
        Label: Metric.MetricName,
        StatusCode: 'Complete',
        Timestamps: points.map(([ms]) => new Date(ms)),
        Values: points.map(([, value]) => value),
      };
    }),
    Messages: [],
  })),
});

type Read = (minute: MinuteOfRequests) => number | null;

function valueOf(metric: string, statistic: string): Read {
  const read = READERS[`${metric} ${statistic}`];
  if (read !== undefined) return read;
  throw new NotPlayed('InvalidParameterValue', `the double has no ${metric} by ${statistic}`);
}

const nonzero = (value: number): number | null => (value === 0 ? null : value);
const READERS: Readonly<Record<string, Read>> = {
  'HealthyHostCount Maximum': (m) => m.healthyHosts,
  'RequestCount Sum': (m) => nonzero(m.requests),
  'TargetConnectionErrorCount Sum': (m) => nonzero(m.errors),
  'TargetResponseTime PR': (m) => m.inTime,
  'TargetResponseTime p50': (m) => m.p50S,
  'TargetResponseTime p95': (m) => m.p95S,
  'TargetResponseTime p99': (m) => m.p99S,
};

/** Newest first. */
const pointsOf = (
  { minutes }: RequestCounts,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  read: Read,
): readonly (readonly [number, number])[] =>
  [...minutes]
    .filter(([ms]) => ms >= fromMs && ms + MINUTE_MS <= toMs)
    .flatMap(([ms, minute]) => {
      const value = read(minute);
      return value === null ? [] : [[ms, value] as const];
    })
    .reverse();
