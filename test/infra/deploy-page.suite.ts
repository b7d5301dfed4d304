import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { METRICS, type MetricFacts } from '../../lib/drivers/aws/metrics/metrics.ts';
import { PURCHASE_OPTIONS } from '../../lib/infra/metrics.ts';

const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8');

describe('docs/deploy.md', () => {
  it('counts the metrics that are billed, by name and value of a further dimension', () => {
    const names: readonly MetricFacts[] = Object.values(METRICS);
    const series = names.reduce((sum, m) => sum + (m.by === undefined ? 1 : PURCHASE_OPTIONS.length), 0);
    const [, shownNames, shownSeries, usd] =
      /metrics, .*?: (\d+) names, (\d+) series .*?up to ([\d.]+) a month/.exec(page) ?? [];
    expect([Number(shownNames), Number(shownSeries)]).toEqual([names.length, series]);
    // https://aws.amazon.com/cloudwatch/pricing/: 0.30 USD a month each, of the first 10,000.
    expect(Number(usd)).toBeCloseTo(series * 0.3, 6);
  });
});
