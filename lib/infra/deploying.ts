/**
 * What is asked while the stack is being made: first whether the region has what the configuration wants to buy, and,
 * as soon as the function that fetches prices is there, the prices themselves, so that the first job is not refused for
 * lack of them. Both fail the deployment with the key of the configuration and what to do, and both can be asked any
 * number of times.
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

/** CloudFormation waits an hour for an answer if it is not told otherwise. */
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
      // Asked again when these change: a family that is new has no price yet.
      properties: { Families: [...families], Zones: zones, ...reserved },
    });
    this.prices.node.addDependency(this.check);
  }
}
