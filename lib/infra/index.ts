/** Exports of `import ... from 'ebbtide'`, for CDK apps: the construct, its parts and its metrics. */
export { Ebbtide, type EbbtideProps } from './ebbtide.ts';
export { EbbtideData, type EbbtideDataProps } from './data.ts';
export { EbbtideMetrics } from './metrics.ts';
export type { DeploymentConfig, DeploymentConfigInput } from './config.ts';
export type { EbbtideFunction, FunctionName } from './functions.ts';
export type { AnyVpc } from './network.ts';
export type { MetricKey } from '../drivers/aws/metrics/metrics.ts';
export type { PurchaseOption } from '../domain/pool.ts';
