/**
 * Questions during deployment. First: does the region offer what the configuration wants to buy? Then, as soon as their
 * function exists: prices, so that the first job is not refused for lack of them. Failures fail the deployment, with
 * the key and the remedy. Both questions can be repeated.
 */
import { CustomResource, Duration } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import type { AskedInput } from '../drivers/aws/deploying/offers.ts';
import type { DeploymentConfig } from './config.ts';
import type { EbbtideFunction } from './functions.ts';
import type { ZoneSubnet } from './network.ts';

export interface DeployingProps {
  readonly config: Pick<DeploymentConfig, 'families' | 'reservations' | 'vpc'>;
  readonly subnets: readonly ZoneSubnet[];
  readonly functions: { readonly check: EbbtideFunction; readonly prices: EbbtideFunction };
}

/** Longest wait for an answer; CloudFormation's default is an hour. */
const PATIENCE = Duration.minutes(3);

export class Deploying extends Construct {
  readonly check: CustomResource;
  readonly prices: CustomResource;

  constructor(scope: Construct, id: string, { config, subnets, functions }: DeployingProps) {
    super(scope, id);
    const { families, reservations, vpc } = config;
    const reserved = reservations.length === 0 ? {} : { Reservations: [...reservations] };
    const zones = subnets.map((s) => s.zone);
    const isGiven = typeof vpc === 'object';
    this.check = new CustomResource(this, 'Region', {
      serviceToken: functions.check.functionArn,
      resourceType: 'Custom::EbbtideRegion',
      serviceTimeout: PATIENCE,
      properties: {
        Families: [...families],
        Zones: zones,
        ...reserved,
        ...(isGiven ? { Vpc: vpc.id, Subnets: subnets.map(({ zone, subnetId }) => `${zone}=${subnetId}`) } : {}),
      } satisfies AskedInput,
    });
    this.prices = new CustomResource(this, 'Prices', {
      serviceToken: functions.prices.functionArn,
      resourceType: 'Custom::EbbtidePrices',
      serviceTimeout: PATIENCE,
      // Properties whose change repeats the question: a new family has no price yet.
      properties: { Families: [...families], Zones: zones, ...reserved },
    });
    this.prices.node.addDependency(this.check);
  }
}
