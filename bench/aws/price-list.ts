/**
 * AWS prices in us-east-1 (N. Virginia), USD, without taxes, discounts and free tiers, for `npm run bench:aws-cost`.
 * Each row names the page that publishes it. Figures are of 2025, those of DynamoDB since its reduction of November
 * 2024. Compare them with the pages before you rely on a figure. `free` is the permanent monthly free tier, not that of
 * the first year.
 */
export interface Price {
  readonly usd: number;
  readonly per: number;
  readonly of: string;
  readonly free?: number;
  readonly page: string;
}

export const PRICES_OF = 'us-east-1, 2025';

const price = (amount: readonly [usd: number, per: number], of: string, page: string, free?: number): Price => ({
  usd: amount[0],
  per: amount[1],
  of,
  page: `https://aws.amazon.com/${page}`,
  ...(free === undefined ? {} : { free }),
});

const MILLION = 1_000_000;

export const PRICES = {
  writeUnits: price([0.625, MILLION], 'write request units', 'dynamodb/pricing/on-demand/'),
  readUnits: price([0.125, MILLION], 'read request units', 'dynamodb/pricing/on-demand/'),
  // Published per month; 25 GB of storage are free.
  storageGbMonths: price([0.25, 1], 'GB of the table for a month', 'dynamodb/pricing/on-demand/', 25),
  backupGbMonths: price([0.2, 1], 'GB of point-in-time recovery for a month', 'dynamodb/pricing/on-demand/'),
  invocations: price([0.2, MILLION], 'Lambda requests', 'lambda/pricing/', MILLION),
  lambdaGbS: price([13.3334, MILLION], 'Lambda GB-seconds, Arm', 'lambda/pricing/', 400_000),
  apiRequests: price([3.5, MILLION], 'REST API requests', 'api-gateway/pricing/'),
  queueRequests: price([0.4, MILLION], 'SQS requests', 'sqs/pricing/', MILLION),
  executions: price([1, MILLION], 'Express executions', 'step-functions/pricing/'),
  executionGbS: price([16.67, MILLION], 'Express GB-seconds', 'step-functions/pricing/'),
  puts: price([0.005, 1000], 'S3 PUT, LIST', 's3/pricing/'),
  gets: price([0.0004, 1000], 'S3 GET', 's3/pricing/'),
  s3Events: price([1, MILLION], 'S3 events through EventBridge', 'eventbridge/pricing/'),
  schedules: price([1, MILLION], 'Scheduler invocations', 'eventbridge/pricing/', 14_000_000),
  logGb: price([0.5, 1], 'GB of ingested logs', 'cloudwatch/pricing/', 5),
  traces: price([5, MILLION], 'X-Ray traces recorded', 'xray/pricing/', 100_000),
  metricMonths: price([0.3, 1], 'custom metrics for a month', 'cloudwatch/pricing/', 10),
  alarmMonths: price([0.1, 1], 'metrics of alarms for a month', 'cloudwatch/pricing/', 10),
  dashboardMonths: price([3, 1], 'dashboards for a month', 'cloudwatch/pricing/', 3),
} as const satisfies Record<string, Price>;

export type Item = keyof typeof PRICES;
export type Usage = Readonly<Partial<Record<Item, number>>>;

export const usdOf = (item: Item, amount: number): number => (amount * PRICES[item].usd) / PRICES[item].per;

export const totalUsd = (usage: Usage): number =>
  Object.entries(usage).reduce((sum, [item, amount]) => sum + usdOf(item as Item, amount), 0);
