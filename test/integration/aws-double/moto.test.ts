import {
  CreateLaunchTemplateCommand,
  DescribeAvailabilityZonesCommand,
  DescribeInstancesCommand,
  DescribeInstanceTypesCommand,
  DescribeLaunchTemplateVersionsCommand,
  DescribeSubnetsCommand,
  EC2Client,
  TerminateInstancesCommand,
} from '@aws-sdk/client-ec2';
import {
  CreateClusterCommand,
  DescribeClustersCommand,
  DescribeTaskDefinitionCommand,
  ECSClient,
  ListTasksCommand,
  RegisterTaskDefinitionCommand,
} from '@aws-sdk/client-ecs';
import { CloudWatchLogsClient, GetLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeOnMoto } from '../../support/moto.ts';
import { Bench, refusal } from './bench.ts';

/**
 * The double beside moto, another stand-in for AWS that shares nothing with it, where both play the same thing. Not
 * compared is what moto (5.2) does not do as AWS documents it: CreateFleet's prices, tokens and errors, spot prices,
 * tasks (a missing one is an internal error there, or not mentioned), tags on instances that are not there (accepted).
 */
/** Members that AWS documents (API_AvailabilityZone, API_TaskDefinition) and moto leaves out. */
const NOT_IN_MOTO = ['.AvailabilityZones[].OptInStatus: string', '.taskDefinition.registeredAt: time'];

interface Clients {
  readonly ec2: EC2Client;
  readonly ecs: ECSClient;
  readonly logs: CloudWatchLogsClient;
}

describeOnMoto('beside moto', (server) => {
  let bench: Bench;
  let moto: Clients;

  beforeAll(async () => {
    bench = await Bench.start();
    const { config } = server;
    moto = { ec2: new EC2Client(config), ecs: new ECSClient(config), logs: new CloudWatchLogsClient(config) };
    await moto.ecs.send(new CreateClusterCommand({ clusterName: 'ebb' }));
  });
  afterAll(async () => {
    for (const client of [moto.ec2, moto.ecs, moto.logs]) client.destroy();
    await bench.close();
  });

  const refusals: Readonly<Record<string, (on: Clients) => Promise<unknown>>> = {
    'describing an instance that is not there': (on) =>
      on.ec2.send(new DescribeInstancesCommand({ InstanceIds: ['i-0123456789abcdef0'] })),
    'terminating one': (on) => on.ec2.send(new TerminateInstancesCommand({ InstanceIds: ['i-0123456789abcdef0'] })),
    'a subnet that is not there': (on) =>
      on.ec2.send(new DescribeSubnetsCommand({ SubnetIds: ['subnet-0123456789abcdef0'] })),
    'a type that is not there': (on) =>
      on.ec2.send(new DescribeInstanceTypesCommand({ InstanceTypes: ['x9.large' as 'c5.large'] })),
    'a template made twice': async (on) => {
      const twice = { LaunchTemplateName: 'twice', LaunchTemplateData: { ImageId: 'ami-1' } };
      await on.ec2.send(new CreateLaunchTemplateCommand(twice));
      return on.ec2.send(new CreateLaunchTemplateCommand(twice));
    },
    'a template that is not there': (on) =>
      on.ec2.send(
        new DescribeLaunchTemplateVersionsCommand({ LaunchTemplateId: 'lt-0123456789abcdef0', Versions: ['1'] }),
      ),
    'a cluster that is not there': (on) => on.ecs.send(new ListTasksCommand({ cluster: 'none' })),
    'a definition that is not there': (on) =>
      on.ecs.send(new DescribeTaskDefinitionCommand({ taskDefinition: 'none' })),
    'a log that is not there': (on) =>
      on.logs.send(new GetLogEventsCommand({ logGroupName: 'none', logStreamName: 'none' })),
  };
  it.each(Object.keys(refusals))('%s is refused in the same words', async (name) => {
    const call = refusals[name]!;
    const [ours, theirs] = [await refusal(call(bench)), await refusal(call(moto))];
    expect([ours.name, ours.status]).toEqual([theirs.name, theirs.status]);
  });

  it('a type has the same shape', async () => {
    const typeOf = async (on: Clients) => {
      const { InstanceTypes } = await on.ec2.send(new DescribeInstanceTypesCommand({ InstanceTypes: ['c5.large'] }));
      const { VCpuInfo, MemoryInfo, ProcessorInfo, SupportedUsageClasses, BareMetal } = InstanceTypes![0]!;
      const { SupportedArchitectures } = ProcessorInfo!;
      return [
        VCpuInfo!.DefaultVCpus,
        MemoryInfo,
        SupportedArchitectures,
        [...SupportedUsageClasses!].sort(),
        BareMetal,
      ];
    };
    expect(await typeOf(bench)).toEqual(await typeOf(moto));
  });

  /** Names of members that have a value, at any depth. */
  const members = (value: unknown, at = ''): string[] => {
    if (Array.isArray(value)) return value.slice(0, 1).flatMap((item) => members(item, `${at}[]`));
    if (typeof value !== 'object' || value === null || value instanceof Date) return [`${at}: ${kindOf(value)}`];
    return Object.entries(value).flatMap(([name, inner]) =>
      inner === undefined || name === '$metadata' ? [] : members(inner, `${at}.${name}`),
    );
  };
  const kindOf = (value: unknown): string => (value instanceof Date ? 'time' : typeof value);

  const answers: Readonly<Record<string, (on: Clients) => Promise<object>>> = {
    DescribeAvailabilityZones: (on) => on.ec2.send(new DescribeAvailabilityZonesCommand({})),
    DescribeSubnets: (on) => on.ec2.send(new DescribeSubnetsCommand({})),
    CreateLaunchTemplate: (on) =>
      on.ec2.send(
        new CreateLaunchTemplateCommand({
          LaunchTemplateName: 'shape',
          LaunchTemplateData: { ImageId: 'ami-1', UserData: 'eA==' },
        }),
      ),
    DescribeLaunchTemplateVersions: (on) =>
      on.ec2.send(new DescribeLaunchTemplateVersionsCommand({ LaunchTemplateName: 'shape', Versions: ['1'] })),
    CreateCluster: (on) => on.ecs.send(new CreateClusterCommand({ clusterName: 'other' })),
    DescribeClusters: (on) => on.ecs.send(new DescribeClustersCommand({ clusters: ['none'] })),
    RegisterTaskDefinition: (on) =>
      on.ecs.send(
        new RegisterTaskDefinitionCommand({
          family: 'f',
          containerDefinitions: [{ name: 'main', image: 'i', memory: 64, cpu: 1 }],
        }),
      ),
  };
  it.each(Object.keys(answers))('what %s answers is answered there too, in values of the same kind', async (name) => {
    const [ours, theirs] = [await answers[name]!(bench), await answers[name]!(moto)];
    const found = members(ours).filter((member) => !NOT_IN_MOTO.includes(member));
    expect(found.length).toBeGreaterThan(0);
    expect(found.filter((member) => !members(theirs).includes(member))).toEqual([]);
  });
});
