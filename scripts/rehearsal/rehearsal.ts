/**
 * Rehearsal of a deployment: this repository's app on LocalStack, with EC2, ECS and task logs in the double, over a
 * replayed market.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateLaunchTemplateCommand, DescribeSubnetsCommand, EC2Client } from '@aws-sdk/client-ec2';
import { CreateClusterCommand, ECSClient } from '@aws-sdk/client-ecs';
import { CreateLoadBalancerCommand, ElasticLoadBalancingV2Client } from '@aws-sdk/client-elastic-load-balancing-v2';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import type { Client } from '../../lib/cli/client.ts';
import { deploymentClient } from '../../lib/cli/deployment.ts';
import type { EpochMs } from '../../lib/kernel/units.ts';
import type { CapacityTruth } from '../../lib/market/capacity-truth.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import { startAwsDouble, type AwsDouble } from '../aws-double/double.ts';
import { putEventsTo } from '../aws-double/events.ts';
import { ebb, type Answer } from './command-line.ts';
import { makeCustomResources } from './custom-resources.ts';
import { ACCOUNT, Assembly, awsEnvironment, bootstrap, type Outputs } from './deploy.ts';
import { launchTemplateData, type Template } from './template.ts';

export interface Stage {
  readonly trace: MarketTrace;
  /** Fate of instances that differs from the trace. */
  readonly truth?: CapacityTruth;
  readonly from: EpochMs;
  /** Market seconds per wall second. */
  readonly speed: number;
  /** Region of the market's zones. */
  readonly region: string;
  readonly families: readonly string[];
  /** Settings of the scheduler, including presets. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Name of the preset. Absent: the default preset. */
  readonly preset?: string;
  /** Variables of every function, over those of a rehearsal. The argument is the double's address. */
  readonly functions?: (double: string) => Promise<Readonly<Record<string, string>>>;
  /** Stops a deployment in progress. */
  readonly signal?: AbortSignal;
}

export class Rehearsal {
  readonly double: AwsDouble;
  readonly outputs: Outputs;
  /** Synthesised template, before the rehearsal's changes. */
  readonly template: Template;
  readonly #endpoint: string;
  readonly #folder: string;
  readonly #region: string;

  private constructor(parts: {
    double: AwsDouble;
    outputs: Outputs;
    template: Template;
    endpoint: string;
    folder: string;
    region: string;
  }) {
    this.double = parts.double;
    this.outputs = parts.outputs;
    this.template = parts.template;
    this.#endpoint = parts.endpoint;
    this.#folder = parts.folder;
    this.#region = parts.region;
  }

  /** Deploys. After a failure, everything that began is ended. */
  static async begin(endpoint: string, stage: Stage): Promise<Rehearsal> {
    const folder = mkdtempSync(join(tmpdir(), 'ebb-rehearsal-'));
    const ends: (() => Promise<void>)[] = [];
    try {
      const { signal } = stage;
      const target = { endpoint, region: stage.region, folder, ...(signal && { signal }) };
      const network = await networkOf(endpoint, stage.region);
      const double = await startAwsDouble({
        ...stage,
        ...network,
        account: ACCOUNT,
        dir: join(folder, 'double'),
        deliver: putEventsTo(endpoint),
        files: objectsAt(endpoint, stage.region),
      });
      ends.push(() => double.close());
      const zones = new Set(stage.trace.pools.map((pool) => pool.zone));
      const subnets = Object.entries(network.subnets).filter(([zone]) => zones.has(zone));
      const config = {
        account: ACCOUNT,
        region: stage.region,
        vpc: { id: network.vpcId, subnets: Object.fromEntries(subnets) },
        families: stage.families,
        services: 'internal',
        // Architecture of this machine, where LocalStack runs functions: a trained model needs native files.
        lambdaArch: process.arch === 'arm64' ? 'arm64' : 'x86_64',
        ...(stage.preset === undefined ? {} : { preset: stage.preset }),
        settings: stage.settings ?? {},
      };
      const [clusterArn, balancer, assembly] = await Promise.all([
        clusterIn(double.url, stage.region),
        balancerIn(double.url, stage.region),
        Assembly.of(target, config, STACK),
        bootstrap(target),
      ]);
      const cluster = { 'AWS::ECS::Cluster': { Ref: CLUSTER, Arn: clusterArn } };
      const { template } = assembly;
      const data = launchTemplateData(template, cluster);
      const Ref = await templateIn(double.url, stage.region, data);
      const elsewhere = {
        ...cluster,
        'AWS::EC2::LaunchTemplate': { Ref, LatestVersionNumber: '1' },
        'AWS::ElasticLoadBalancingV2::LoadBalancer': balancer,
        ...UNUSED,
      };
      const functions = { ...functionsOn(double), ...(await stage.functions?.(double.url)) };
      const outputs = await assembly.deploy({ elsewhere, functions, schedule: 'rate(1 minute)' });
      await makeCustomResources(template, target);
      return new Rehearsal({ double, outputs, template, endpoint, folder, region: stage.region });
    } catch (error) {
      for (const end of ends) await end();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      throw error;
    }
  }

  async end(): Promise<void> {
    await this.double.close();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Address of API Gateway: LocalStack's own path, since the output's address needs a name server. */
  get apiUrl(): string {
    const { ApiUrl = '' } = this.outputs[STACK] ?? {};
    const [, api, stage] = /\/\/(\w+)\..*\/(\w+)\/?$/.exec(ApiUrl) ?? [];
    if (api === undefined || stage === undefined) throw new Error(`no REST API in the output ApiUrl: ${ApiUrl}`);
    return `${this.#endpoint}/_aws/execute-api/${api}/${stage}`;
  }

  /** Runs the command line against this deployment, as users have it. */
  ebb(...args: string[]): Promise<Answer> {
    const env = awsEnvironment({ endpoint: this.#endpoint, region: this.#region });
    return ebb(['--stack', STACK, '--region', this.#region, '--url', this.apiUrl, ...args], env);
  }

  /** Client for requests without a command. It signs in this process, like the command line. */
  client(): Client {
    const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = awsEnvironment({
      endpoint: this.#endpoint,
      region: this.#region,
    });
    Object.assign(process.env, { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY });
    return deploymentClient({ stack: STACK, profile: null, region: this.#region, url: this.apiUrl, token: null });
  }

  /** Writes a job file to submit. */
  file(name: string, job: object): string {
    mkdirSync(join(this.#folder, 'jobs'), { recursive: true });
    const path = join(this.#folder, 'jobs', `${name}.json`);
    writeFileSync(path, JSON.stringify({ name, ...job }));
    return path;
  }
}

/** Services of the double, by their names in the SDK's variables. */
const PLAYED = ['EC2', 'ECS', 'CLOUDWATCH', 'CLOUDWATCH_LOGS', 'ELASTIC_LOAD_BALANCING_V2', 'PRICING'];
/** Resources that LocalStack does not make, and that nothing refers to. */
const UNUSED = {
  'AWS::CloudWatch::Dashboard': {},
  'AWS::EC2::SecurityGroupEgress': {},
  'AWS::EC2::SecurityGroupIngress': {},
};
export const STACK = 'Ebbtide';
const CLUSTER = 'ebbtide-rehearsal';

const clientTo = (endpoint: string, region: string) => ({
  endpoint,
  region,
  credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
});

/** Variables of functions: the double's clock and services. */
const functionsOn = ({ anchor, url }: AwsDouble): Record<string, string> => ({
  EBB_CLOCK: JSON.stringify(anchor),
  ...Object.fromEntries(PLAYED.map((service) => [`AWS_ENDPOINT_URL_${service}`, url])),
});

/** Reader of LocalStack's objects. */
function objectsAt(endpoint: string, region: string): (bucket: string, key: string) => Promise<string> {
  const client = new S3Client({ ...clientTo(endpoint, region), forcePathStyle: true });
  return async (Bucket, Key) => {
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
    return (await Body?.transformToString()) ?? '';
  };
}

/** Default VPC of LocalStack, with its subnet per zone. */
async function networkOf(
  endpoint: string,
  region: string,
): Promise<{ readonly vpcId: string; readonly subnets: Readonly<Record<string, string>> }> {
  const client = new EC2Client(clientTo(endpoint, region));
  try {
    const Filters = [{ Name: 'default-for-az', Values: ['true'] }];
    const { Subnets = [] } = await client.send(new DescribeSubnetsCommand({ Filters }));
    const vpcId = Subnets[0]?.VpcId;
    if (vpcId === undefined) throw new Error(`LocalStack has no default VPC in ${region}`);
    const subnets = Subnets.map((s) => [s.AvailabilityZone ?? '', s.SubnetId ?? ''] as const);
    return { vpcId, subnets: Object.fromEntries(subnets) };
  } finally {
    client.destroy();
  }
}

async function clusterIn(double: string, region: string): Promise<string> {
  const client = new ECSClient(clientTo(double, region));
  try {
    const { cluster } = await client.send(new CreateClusterCommand({ clusterName: CLUSTER }));
    return cluster?.clusterArn ?? '';
  } finally {
    client.destroy();
  }
}

/** Load balancer of the double, as CloudFormation would tell of it. */
async function balancerIn(double: string, region: string): Promise<Readonly<Record<string, string>>> {
  const client = new ElasticLoadBalancingV2Client(clientTo(double, region));
  try {
    const Subnets = ['subnet-1', 'subnet-2'];
    const asked = new CreateLoadBalancerCommand({ Name: CLUSTER, Scheme: 'internal', Subnets });
    const { LoadBalancers } = await client.send(asked);
    const { LoadBalancerArn: arn = '', DNSName = '' } = LoadBalancers?.[0] ?? {};
    return { Ref: arn, DNSName, LoadBalancerFullName: arn.split(':loadbalancer/').at(-1) ?? '' };
  } finally {
    client.destroy();
  }
}

async function templateIn(double: string, region: string, data: Record<string, unknown>): Promise<string> {
  const client = new EC2Client(clientTo(double, region));
  try {
    const asked = { LaunchTemplateName: CLUSTER, LaunchTemplateData: data };
    const { LaunchTemplate } = await client.send(new CreateLaunchTemplateCommand(asked));
    return LaunchTemplate?.LaunchTemplateId ?? '';
  } finally {
    client.destroy();
  }
}
