/** Two dashboards: money, and health. CloudWatch gives an account three for nothing. */
import { Duration } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { Construct } from 'constructs';
import type { DeploymentConfig } from './config.ts';
import type { EbbtideAlarms } from './alarms.ts';
import { PURCHASE_OPTIONS, type EbbtideMetrics } from './metrics.ts';

export interface DashboardsProps {
  readonly config: Pick<DeploymentConfig, 'name' | 'budgetUsdPerDay'>;
  readonly metrics: EbbtideMetrics;
  readonly alarms: EbbtideAlarms;
}

const HOUR = Duration.hours(1);
const HALF = 12;
const HEIGHT = 6;

export class Dashboards extends Construct {
  readonly money: cloudwatch.Dashboard;
  readonly health: cloudwatch.Dashboard;

  constructor(scope: Construct, id: string, props: DashboardsProps) {
    super(scope, id);
    const { name } = props.config;
    const widgets = { defaultInterval: Duration.days(1), periodOverride: cloudwatch.PeriodOverride.AUTO };
    this.money = new cloudwatch.Dashboard(this, 'Money', {
      dashboardName: `${name}-money`,
      widgets: money(props),
      ...widgets,
    });
    this.health = new cloudwatch.Dashboard(this, 'Health', {
      dashboardName: `${name}-health`,
      widgets: health(props),
      ...widgets,
    });
  }
}

type Rows = cloudwatch.IWidget[][];

function money({ config, metrics }: DashboardsProps): Rows {
  return [
    [
      graph('Dollars per hour, by purchase option', {
        stacked: true,
        left: PURCHASE_OPTIONS.map((option) => metrics.metric('spendRate', { option })),
      }),
      graph('Saved against on-demand, %', { left: [metrics.savings()], leftYAxis: { max: 100 } }),
    ],
    [
      graph('Spent today, USD', {
        left: [metrics.metric('spentToday', { statistic: cloudwatch.Stats.MAXIMUM })],
        leftAnnotations: [{ value: config.budgetUsdPerDay, label: 'budget per day' }],
        leftYAxis: { min: 0 },
      }),
      graph('Waste per hour, USD: start-up, idle time, lost work', { left: [sum(metrics, 'waste')] }),
    ],
    [
      new cloudwatch.TextWidget({
        markdown: 'Cost per job, owner and pool: `ebb cost`, `ebb cost --by owner`, `ebb cost --by pool`.',
        width: 2 * HALF,
        height: 2,
      }),
    ],
  ];
}

function health({ metrics, alarms }: DashboardsProps): Rows {
  return [
    [
      new cloudwatch.AlarmStatusWidget({
        title: 'What a person must act on',
        alarms: [...alarms.all],
        width: 2 * HALF,
        height: 3,
      }),
    ],
    [
      graph('Tasks', { left: [metrics.metric('queueDepth'), metrics.metric('runningTasks')] }),
      graph('Jobs per hour', { left: [sum(metrics, 'jobsInTime'), sum(metrics, 'jobsLate')] }),
    ],
    [
      graph('Cycle, milliseconds', {
        left: ['p50', 'p95'].map((statistic) => metrics.metric('cycleTime', { statistic, label: statistic })),
      }),
      graph('Solver gap', { left: [metrics.metric('solverGap', { statistic: cloudwatch.Stats.MAXIMUM })] }),
    ],
    [
      graph('Interruptions: forecast for the next hour, and seen per hour', {
        left: [metrics.metric('interruptionsExpected', { period: HOUR }), sum(metrics, 'interruptions')],
        right: [sum(metrics, 'modelsRefused')],
      }),
      graph('Instances', { left: [metrics.metric('liveInstances')], right: [sum(metrics, 'leakedInstances')] }),
    ],
    [graph('Age of prices, seconds', { left: [metrics.metric('priceAge', { statistic: cloudwatch.Stats.MAXIMUM })] })],
  ];
}

const graph = (title: string, props: cloudwatch.GraphWidgetProps): cloudwatch.GraphWidget =>
  new cloudwatch.GraphWidget({ title, width: HALF, height: HEIGHT, ...props });

const sum = (metrics: EbbtideMetrics, key: Parameters<EbbtideMetrics['metric']>[0]): cloudwatch.Metric =>
  metrics.metric(key, { statistic: cloudwatch.Stats.SUM, period: HOUR });
