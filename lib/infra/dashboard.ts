/** The dashboard: money above, health below. A dashboard costs 3 USD a month beyond an account's three free ones. */
import { Duration } from 'aws-cdk-lib';
import type * as apigateway from 'aws-cdk-lib/aws-apigateway';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { BOOKED, HELD } from '../drivers/aws/metrics/metrics.ts';
import type { DeploymentConfig } from './config.ts';
import type { EbbtideAlarms } from './alarms.ts';
import { PURCHASE_OPTIONS, type EbbtideMetrics } from './metrics.ts';

export interface DashboardProps {
  readonly config: Pick<DeploymentConfig, 'name' | 'budgetUsdPerDay'>;
  readonly metrics: EbbtideMetrics;
  readonly alarms: EbbtideAlarms;
  readonly deadLetters: sqs.IQueue;
  readonly rest: apigateway.RestApi;
  /** Logs of the functions that book costs. */
  readonly booking: readonly ILogGroup[];
}

const HOUR = Duration.hours(1);
const HALF = 12;
const HEIGHT = 6;
const EXPECTED_POOLS = 20;

export class EbbtideDashboard extends cloudwatch.Dashboard {
  constructor(scope: Construct, id: string, props: DashboardProps) {
    super(scope, id, {
      dashboardName: props.config.name,
      defaultInterval: Duration.days(1),
      periodOverride: cloudwatch.PeriodOverride.AUTO,
      widgets: [heading('Money'), ...money(props), heading('Health'), ...health(props)],
    });
  }
}

type Rows = cloudwatch.IWidget[][];

function money({ config, metrics, booking }: DashboardProps): Rows {
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
      booked(booking, 'Cost per owner, USD', { by: 'owner', view: cloudwatch.LogQueryVisualizationType.BAR }),
      booked(booking, 'Cost per job, USD: the 50 dearest', { by: 'job, owner', limit: 50 }),
    ],
    [
      new cloudwatch.TextWidget({
        markdown:
          'Costs per owner and job are those of instances that ended in the time shown, read from logs. To the cent, and from the beginning: `ebb cost`, `ebb cost --by owner`, `ebb cost --by pool`.',
        width: 2 * HALF,
        height: 2,
      }),
    ],
  ];
}

function health({ metrics, alarms, deadLetters, rest, booking }: DashboardProps): Rows {
  return [
    [
      new cloudwatch.AlarmStatusWidget({
        title: 'Alarms for a person to act on',
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
        right: [sum(metrics, 'modelsRefused'), sum(metrics, 'bidsByHistory')],
      }),
      graph('Instances', {
        left: [metrics.metric('liveInstances')],
        right: [sum(metrics, 'leakedInstances'), sum(metrics, 'reservationsUnusable')],
      }),
    ],
    [
      graph('Interruptions of spot instances that ended, as forecast and as they came, summed over the time shown', {
        left: [metrics.summed('endedExpected'), metrics.summed('endedInterrupted')],
        leftYAxis: { min: 0 },
      }),
      held(booking, 'The same, capacity and price apart', { width: HALF }),
    ],
    [held(booking, `The same by pool: the ${EXPECTED_POOLS} with most to expect`, { by: 'pool', width: 2 * HALF })],
    [
      graph('Age of prices, seconds', { left: [metrics.metric('priceAge', { statistic: cloudwatch.Stats.MAXIMUM })] }),
      graph('Failed or unstarted executions; denied effects; invalid launches; held jobs', {
        left: [sum(metrics, 'cycleFaults'), sum(metrics, 'effectsDenied'), sum(metrics, 'launchesInvalid')],
        right: [metrics.metric('heldJobs', { statistic: cloudwatch.Stats.MAXIMUM })],
      }),
    ],
    failures({ deadLetters, rest }),
  ];
}

const failures = ({ deadLetters, rest }: Pick<DashboardProps, 'deadLetters' | 'rest'>): cloudwatch.IWidget[] => [
  graph('Dead letters in the queue', {
    left: [
      deadLetters.metricApproximateNumberOfMessagesVisible({
        statistic: cloudwatch.Stats.MAXIMUM,
        label: 'Messages and events that failed for good.',
      }),
    ],
    leftYAxis: { min: 0 },
  }),
  graph('Failed requests that are not the caller’s fault (5xx), per hour', {
    left: [rest.metricServerError({ statistic: cloudwatch.Stats.SUM, period: HOUR })],
    leftYAxis: { min: 0 },
  }),
];

const heading = (title: string): cloudwatch.IWidget[] => [
  new cloudwatch.TextWidget({ markdown: `# ${title}`, width: 2 * HALF, height: 1 }),
];

/**
 * Sums of log lines from lib/drivers/aws/metrics/measures.ts. A metric per job or owner would cost 0.30 USD a month.
 */
const booked = (
  logs: readonly ILogGroup[],
  title: string,
  of: { readonly by: string; readonly limit?: number; readonly view?: cloudwatch.LogQueryVisualizationType },
): cloudwatch.LogQueryWidget =>
  new cloudwatch.LogQueryWidget({
    title,
    logGroupNames: logs.map((log) => log.logGroupName),
    view: of.view ?? cloudwatch.LogQueryVisualizationType.TABLE,
    queryLines: [
      `filter message = "${BOOKED}"`,
      'fields coalesce(job, "(idle)") as job, coalesce(owner, "(idle)") as owner',
      `stats sum(workUsd) as work, sum(wastedUsd) as wasted, sum(speculativeUsd) as speculative, sum(movedUsd) as moved, sum(idleUsd) as idle, sum(usd) as total by ${of.by}`,
      'sort total desc',
      `limit ${of.limit ?? 20}`,
    ],
    width: HALF,
    height: HEIGHT,
  });

/**
 * Forecast and observed interruptions, capacity and price apart, from log lines of lib/drivers/aws/metrics/measures.ts.
 */
const held = (
  logs: readonly ILogGroup[],
  title: string,
  of: { readonly by?: 'pool'; readonly width: number },
): cloudwatch.LogQueryWidget =>
  new cloudwatch.LogQueryWidget({
    title,
    logGroupNames: logs.map((log) => log.logGroupName),
    view: cloudwatch.LogQueryVisualizationType.TABLE,
    queryLines: [
      `filter message = "${HELD}"`,
      `stats ${HELD_SUMS.map(([field, name]) => `sum(${field}) as ${name}`).join(', ')}${of.by === undefined ? '' : ` by ${of.by}`}`,
      ...(of.by === undefined ? [] : ['sort forecast desc', `limit ${EXPECTED_POOLS}`]),
    ],
    width: of.width,
    height: HEIGHT,
  });

const HELD_SUMS = [
  ['hours', 'held'],
  ['expected', 'forecast'],
  ['interrupted', 'came'],
  ['capacityExpected', 'capacityForecast'],
  ['capacityInterrupted', 'capacityCame'],
  ['priceExpected', 'priceForecast'],
  ['priceInterrupted', 'priceCame'],
] as const;

const graph = (title: string, props: cloudwatch.GraphWidgetProps): cloudwatch.GraphWidget =>
  new cloudwatch.GraphWidget({ title, width: HALF, height: HEIGHT, ...props });

const sum = (metrics: EbbtideMetrics, key: Parameters<EbbtideMetrics['metric']>[0]): cloudwatch.Metric =>
  metrics.metric(key, { statistic: cloudwatch.Stats.SUM, period: HOUR });
