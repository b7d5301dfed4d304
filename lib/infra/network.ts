/** Network of instances: one subnet per zone, and a security group without inbound access. */
import { ContextProvider, RemovalPolicy, Stack, Token } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as logs from 'aws-cdk-lib/aws-logs';
import { ContextProvider as ContextProviderKind } from 'aws-cdk-lib/cloud-assembly-schema';
import { Construct } from 'constructs';
import { EbbError } from '../kernel/errors.ts';
import type { DeploymentConfig } from './config.ts';

/** VPC interface or class: with exact optional properties the interface does not admit the class. */
export type AnyVpc = ec2.IVpc | ec2.Vpc;

export interface NetworkProps {
  readonly config: Pick<DeploymentConfig, 'vpc' | 'zones'>;
  readonly flowLogRetention: logs.RetentionDays;
  /** VPC in place of the configuration's. */
  readonly vpc?: AnyVpc;
}

export interface ZoneSubnet {
  /** Name of the zone, or a CloudFormation token if the region is unknown at synthesis. */
  readonly zone: string;
  readonly subnetId: string;
}

/** Key of a failed look-up in the CDK's answers (aws-cdk-lib/cx-api, PROVIDER_ERROR_KEY). */
const PROVIDER_ERROR_KEY = '$providerError';

export class Network extends Construct {
  readonly vpc: ec2.IVpc;
  readonly subnets: readonly ZoneSubnet[];
  readonly securityGroup: ec2.SecurityGroup;

  constructor(scope: Construct, id: string, props: NetworkProps) {
    super(scope, id);
    this.vpc = (props.vpc ?? this.#vpc(props)) as ec2.IVpc;
    this.subnets = this.#subnets(props);
    this.securityGroup = new ec2.SecurityGroup(this, 'Instances', {
      vpc: this.vpc,
      description:
        'Ebbtide instances: nobody connects to them; they reach ECS, image registries and what their tasks need.',
      allowAllOutbound: true,
    });
  }

  #vpc({ config, flowLogRetention }: NetworkProps): AnyVpc {
    const { vpc } = config;
    if (vpc === 'new') return this.#newVpc(config.zones, flowLogRetention);
    if (vpc === 'default') return this.#defaultVpc();
    return ec2.Vpc.fromVpcAttributes(this, 'Vpc', {
      vpcId: vpc.id,
      availabilityZones: Object.keys(vpc.subnets),
    });
  }

  /**
   * New VPC with public subnets. An instance pays for its public address while it lives (0.005 USD an hour); a NAT
   * gateway would cost day and night and per gigabyte. Nothing can connect to instances in either case.
   */
  #newVpc(zones: number, retention: logs.RetentionDays): ec2.Vpc {
    const vpc = new ec2.Vpc(this, 'Vpc', {
      maxAzs: zones,
      natGateways: 0,
      restrictDefaultSecurityGroup: false,
      subnetConfiguration: [{ name: 'instances', subnetType: ec2.SubnetType.PUBLIC, cidrMask: 20 }],
      gatewayEndpoints: {
        // Free endpoint, which keeps checkpoints and image layers off the public route.
        S3: { service: ec2.GatewayVpcEndpointAwsService.S3 },
      },
    });
    const logGroup = new logs.LogGroup(this, 'Rejected', { retention, removalPolicy: RemovalPolicy.DESTROY });
    vpc.addFlowLog('RejectedTraffic', {
      destination: ec2.FlowLogDestination.toCloudWatchLogs(logGroup),
      trafficType: ec2.FlowLogTrafficType.REJECT,
    });
    return vpc;
  }

  #defaultVpc(): ec2.IVpc {
    const { account, region } = Stack.of(this);
    if (Token.isUnresolved(account) || Token.isUnresolved(region)) {
      throw new EbbError('usage', {
        what: 'vpc: default is looked up in one account and region, and this stack has none',
        next: 'set account and region, or set vpc to new',
      });
    }
    this.#refuseAbsent(region);
    return ec2.Vpc.fromLookup(this, 'Vpc', { isDefault: true });
  }

  /** Refusal of a missing VPC. The CDK's command line stores the failed look-up as its answer and synthesises again. */
  #refuseAbsent(region: string): void {
    const props = { filter: { isDefault: 'true' }, returnAsymmetricSubnets: true };
    const { key } = ContextProvider.getKey(this, { provider: ContextProviderKind.VPC_PROVIDER, props });
    const fault = (this.node.tryGetContext(key) as Partial<Record<string, unknown>> | undefined)?.[PROVIDER_ERROR_KEY];
    if (fault === undefined) return;
    throw new EbbError('usage', {
      what: `vpc: the default VPC of ${region} cannot be used`,
      got: typeof fault === 'string' ? fault : JSON.stringify(fault),
      next: 'set vpc to new, or to the id and subnets of one that you have',
    });
  }

  #subnets({ config }: NetworkProps): readonly ZoneSubnet[] {
    if (typeof config.vpc === 'object') {
      return Object.entries(config.vpc.subnets).map(([zone, subnetId]) => ({ zone, subnetId }));
    }
    const { publicSubnets, privateSubnets } = this.vpc;
    const usable = publicSubnets.length > 0 ? publicSubnets : privateSubnets;
    if (usable.length === 0) {
      throw new EbbError('usage', {
        what: 'the VPC has no subnet from which instances could reach ECS',
        got: 'neither public subnets nor private ones with a NAT gateway',
        next: 'give vpc as id and subnets, with one subnet per zone that has a way out',
      });
    }
    const perZone = new Map(usable.map((s) => [s.availabilityZone, s.subnetId]));
    return [...perZone].map(([zone, subnetId]) => ({ zone, subnetId }));
  }
}

/** Subnets as text `zone=subnet,...` for the Lambdas. */
export const subnetList = (subnets: readonly ZoneSubnet[]): string =>
  subnets.map(({ zone, subnetId }) => `${zone}=${subnetId}`).join(',');
