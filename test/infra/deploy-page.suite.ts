import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { METRICS, type MetricFacts } from '../../lib/drivers/aws/metrics/metrics.ts';
import { deploymentConfig } from '../../lib/infra/config.ts';
import { PURCHASE_OPTIONS } from '../../lib/infra/metrics.ts';
import { resourcesOf, synthesis } from './synthesis.ts';

const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8');

describe('docs/deploy.md', () => {
  it('lists exactly the keys of the configuration', () => {
    const [, table = ''] = /\| key [^]*?\n((?:\|.*\n)+)/.exec(page) ?? [];
    const keys = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, key]) => key);
    expect(keys.sort()).toEqual(Object.keys(deploymentConfig.shape).sort());
  });

  it('gives the defaults that are taken', () => {
    const defaults = deploymentConfig.parse({});
    for (const [key, value] of Object.entries(defaults)) {
      if (typeof value === 'object') continue;
      const [, cell = ''] = new RegExp(`^\\| \`${key}\` +\\| ([^|]+)\\|`, 'm').exec(page) ?? [];
      expect(`${key}: ${cell.trim().replaceAll('`', '')}`).toBe(`${key}: ${String(value)}`);
    }
    expect(page).toContain(defaults.families.join(', '));
  });

  it('counts the metrics that are billed, by name and value of a further dimension', () => {
    const names: readonly MetricFacts[] = Object.values(METRICS);
    const series = names.reduce((sum, m) => sum + (m.by === undefined ? 1 : PURCHASE_OPTIONS.length), 0);
    const [, shownNames, shownSeries, usd] =
      /metrics, .*?: (\d+) names, (\d+) series .*?up to ([\d.]+) a month/.exec(page) ?? [];
    expect([Number(shownNames), Number(shownSeries)]).toEqual([names.length, series]);
    // https://aws.amazon.com/cloudwatch/pricing/: 0.30 USD a month each, of the first 10,000.
    expect(Number(usd)).toBeCloseTo(series * 0.3, 6);
  });

  it('explains every alarm', () => {
    const alarms = Object.values(resourcesOf(synthesis().main, 'AWS::CloudWatch::Alarm')).map(
      (a) => a.Properties['AlarmName'],
    );
    expect(alarms.length).toBeGreaterThanOrEqual(5);
    for (const name of alarms) expect(page).toContain(`| \`${String(name).replace(/^ebbtide-/, '')}\``);
  });
});
