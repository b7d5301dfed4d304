import type { CloudWatchClient, GetMetricDataCommandInput } from '@aws-sdk/client-cloudwatch';
import { describe, expect, it } from '@jest/globals';
import { completeUntilMs, requestMetrics } from '../../../../../lib/drivers/aws/traffic/request-metrics.ts';

const MINUTE_MS = 60_000;
const FROM_MS = 1_700_000_040_000;
const ASKED = {
  loadBalancer: 'arn:aws:elasticloadbalancing:eu-central-1:1:loadbalancer/app/ebb/0123',
  group: 'arn:aws:elasticloadbalancing:eu-central-1:1:targetgroup/ebbtide-abc/4567',
  fromMs: FROM_MS,
  toMs: FROM_MS + 2 * MINUTE_MS,
  latencyS: 0.25,
};

/** Values by statistic for each of the two minutes; null: none. */
type Points = Readonly<Record<string, readonly [number | null, number | null]>>;

function answering(points: Points): { readonly client: CloudWatchClient; readonly asked: GetMetricDataCommandInput[] } {
  const asked: GetMetricDataCommandInput[] = [];
  const send = async ({ input }: { readonly input: GetMetricDataCommandInput }) => {
    asked.push(input);
    const MetricDataResults = (input.MetricDataQueries ?? []).map(({ Id, MetricStat }) => {
      const of = points[`${MetricStat?.Metric?.MetricName ?? ''} ${MetricStat?.Stat ?? ''}`] ?? [null, null];
      const known = of.flatMap((value, i) => (value === null ? [] : [[FROM_MS + i * MINUTE_MS, value] as const]));
      return { Id, Timestamps: known.map(([ms]) => new Date(ms)), Values: known.map(([, value]) => value) };
    });
    return { MetricDataResults };
  };
  return { client: { send } as unknown as CloudWatchClient, asked };
}

describe('requests in CloudWatch', () => {
  it('are summed over minutes; slow ones follow from the percentile rank, quantiles are those of the worst', async () => {
    const { client, asked } = answering({
      'HealthyHostCount Maximum': [2, 2],
      'RequestCount Sum': [110, 200],
      'TargetConnectionErrorCount Sum': [10, null],
      'TargetResponseTime PR(:0.25)': [90, 95],
      'TargetResponseTime p50': [0.1, 0.05],
      'TargetResponseTime p95': [0.3, 0.4],
      'TargetResponseTime p99': [0.9, 0.5],
    });
    expect(await requestMetrics(client, ASKED)).toEqual({
      requests: 300,
      failed: 10,
      slow: 20,
      p50S: 0.1,
      p95S: 0.4,
      p99S: 0.9,
      queued: 0,
    });
    const dimensions = asked[0]?.MetricDataQueries?.[0]?.MetricStat?.Metric?.Dimensions;
    expect(dimensions).toEqual([
      { Name: 'LoadBalancer', Value: 'app/ebb/0123' },
      { Name: 'TargetGroup', Value: 'targetgroup/ebbtide-abc/4567' },
    ]);
  });

  it('are none where the minute is there and nobody asked', async () => {
    const { client } = answering({ 'HealthyHostCount Maximum': [1, 1] });
    expect(await requestMetrics(client, ASKED)).toMatchObject({ requests: 0, slow: 0, failed: 0, p50S: null });
  });

  it('are unknown while CloudWatch does not have the last minute: no data is not no load', async () => {
    const { client } = answering({ 'HealthyHostCount Maximum': [1, null], 'RequestCount Sum': [50, null] });
    expect(await requestMetrics(client, ASKED)).toBeNull();
  });

  it('are asked for by whole minutes that have ended for a while', () => {
    expect(completeUntilMs(FROM_MS + 89_999)).toBe(FROM_MS - MINUTE_MS);
    expect(completeUntilMs(FROM_MS + 90_000)).toBe(FROM_MS);
  });
});
