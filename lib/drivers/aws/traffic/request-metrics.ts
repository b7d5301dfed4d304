/**
 * Requests of a service as CloudWatch has them, minute by minute ("CloudWatch metrics for your Application Load
 * Balancer"). A metric without requests has no data, so the count of healthy hosts tells whether a minute is there yet.
 */
import { GetMetricDataCommand, type CloudWatchClient, type MetricDataQuery } from '@aws-sdk/client-cloudwatch';
import type { PeriodMeasures } from '../../../domain/service.ts';
import { classify } from '../errors.ts';

export const MINUTE_MS = 60_000;
/** CloudWatch has a minute of a load balancer complete so long after its end, as a rule. */
const LATE_MS = 90_000;

/** End of the newest minute that can be asked for, wall ms. */
export const completeUntilMs = (nowMs: number): number => Math.floor((nowMs - LATE_MS) / MINUTE_MS) * MINUTE_MS;

export interface MetricsAsked {
  /** ARNs. */
  readonly loadBalancer: string;
  readonly group: string;
  /** Whole minutes, wall ms. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Latency of the service's target, seconds. */
  readonly latencyS: number;
}

export type Requests = Omit<PeriodMeasures, 'replicas' | 'fromMs' | 'toMs'>;

const STATISTICS = {
  hosts: ['HealthyHostCount', 'Maximum'],
  requests: ['RequestCount', 'Sum'],
  errors: ['TargetConnectionErrorCount', 'Sum'],
  p50: ['TargetResponseTime', 'p50'],
  p95: ['TargetResponseTime', 'p95'],
  p99: ['TargetResponseTime', 'p99'],
} as const;

type Series = Readonly<Record<string, ReadonlyMap<number, number>>>;

/**
 * Requests of these minutes; null where CloudWatch does not have the last one. Answers are counted as in time by the
 * percentile rank of the latency. Quantiles are those of the worst minute: quantiles of several cannot be added.
 * A request for which the load balancer found no target is counted for all services together by AWS, not here.
 */
export async function requestMetrics(client: CloudWatchClient, asked: MetricsAsked): Promise<Requests | null> {
  const series = await seriesOf(client, asked);
  const minutes = Math.max(1, Math.round((asked.toMs - asked.fromMs) / MINUTE_MS));
  const startsMs = Array.from({ length: minutes }, (_, i) => asked.toMs - (i + 1) * MINUTE_MS);
  if (series['hosts']?.get(startsMs[0] ?? 0) === undefined) return null;
  const at = (name: string, ms: number): number => series[name]?.get(ms) ?? 0;
  let requests = 0;
  let failed = 0;
  let slow = 0;
  for (const ms of startsMs) {
    const errors = at('errors', ms);
    const answered = Math.max(0, at('requests', ms) - errors);
    requests += answered;
    failed += errors;
    if (answered > 0) slow += answered * (1 - (series['inTime']?.get(ms) ?? 100) / 100);
  }
  const worst = (name: string): number | null => {
    const values = startsMs.flatMap((ms) => series[name]?.get(ms) ?? []);
    return values.length === 0 ? null : Math.max(...values);
  };
  return {
    requests,
    slow: Math.round(slow),
    failed,
    p50S: worst('p50'),
    p95S: worst('p95'),
    p99S: worst('p99'),
    // An Application Load Balancer has no queue of its own.
    queued: 0,
  };
}

async function seriesOf(client: CloudWatchClient, asked: MetricsAsked): Promise<Series> {
  const statistics = Object.entries({
    ...STATISTICS,
    inTime: ['TargetResponseTime', `PR(:${asked.latencyS})`] as const,
  });
  const queries = statistics.map(([Id, [metric, statistic]]) => queryOf({ Id, metric, statistic }, asked));
  try {
    const answer = await client.send(
      new GetMetricDataCommand({
        MetricDataQueries: queries,
        StartTime: new Date(asked.fromMs),
        EndTime: new Date(asked.toMs),
      }),
    );
    return Object.fromEntries(
      (answer.MetricDataResults ?? []).map(({ Id = '', Timestamps = [], Values = [] }) => [
        Id,
        new Map(Timestamps.map((time, i) => [time.getTime(), Values[i] ?? 0])),
      ]),
    );
  } catch (error) {
    throw classify(error, 'cloudwatch GetMetricData');
  }
}

const queryOf = (
  { Id, metric, statistic }: { readonly Id: string; readonly metric: string; readonly statistic: string },
  { loadBalancer, group }: MetricsAsked,
): MetricDataQuery => ({
  Id,
  MetricStat: {
    Metric: {
      Namespace: 'AWS/ApplicationELB',
      MetricName: metric,
      Dimensions: [
        { Name: 'LoadBalancer', Value: afterLast(loadBalancer, ':loadbalancer/') },
        { Name: 'TargetGroup', Value: `targetgroup/${afterLast(group, ':targetgroup/')}` },
      ],
    },
    Period: 60,
    Stat: statistic,
  },
});

const afterLast = (text: string, mark: string): string => text.slice(text.lastIndexOf(mark) + mark.length);
