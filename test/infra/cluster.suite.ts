import { beforeAll, describe, expect, it } from '@jest/globals';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { Stack } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import { Ebbtide } from '../../lib/infra/ebbtide.ts';
import { shown } from './policies.ts';
import { checkedDeployment } from '../../lib/infra/config-rules.ts';
import { ebbtideStacks } from '../../lib/infra/stacks.ts';
import { newApp, resourcesOf, synthesis } from './synthesis.ts';

const templateData = (main: Template): Record<string, unknown> => {
  const [template] = Object.values(resourcesOf(main, 'AWS::EC2::LaunchTemplate'));
  return template?.Properties['LaunchTemplateData'] as Record<string, unknown>;
};
const environment = (main: Template): Record<string, string> => {
  const [, found] =
    Object.entries(resourcesOf(main, 'AWS::Lambda::Function')).find(([id]) =>
      id.startsWith('EbbtideFunctionsSnapshot'),
    ) ?? [];
  const { Variables } = found!.Properties['Environment'] as { Variables: Record<string, unknown> };
  return Object.fromEntries(Object.entries(Variables).map(([key, value]) => [key, shown(value)]));
};

describe('instances', () => {
  let main: Template;
  beforeAll(() => {
    ({ main } = synthesis());
  });

  it('answer metadata requests of version 2 only, and not to containers', () => {
    expect(templateData(main)['MetadataOptions']).toMatchObject({
      HttpTokens: 'required',
      HttpPutResponseHopLimit: 1,
      InstanceMetadataTags: 'enabled',
    });
  });

  it('have encrypted volumes that go with them, and no key pair', () => {
    const { BlockDeviceMappings, KeyName } = templateData(main);
    expect(KeyName).toBeUndefined();
    expect(BlockDeviceMappings).toEqual([
      {
        DeviceName: '/dev/xvda',
        Ebs: { Encrypted: true, DeleteOnTermination: true, VolumeSize: 100, VolumeType: 'gp3' },
      },
    ]);
  });

  it('let nobody in', () => {
    main.resourceCountIs('AWS::EC2::SecurityGroupIngress', 0);
    for (const { Properties } of Object.values(resourcesOf(main, 'AWS::EC2::SecurityGroup')))
      expect(Properties).not.toHaveProperty('SecurityGroupIngress');
  });

  it('start AWS’s current image for ECS, of the right architecture', () => {
    expect(templateData(main)['ImageId']).toBe(
      'resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id',
    );
    expect(templateData(synthesis({ families: ['c7g'] }).main)['ImageId']).toBe(
      'resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2023/arm64/recommended/image_id',
    );
  });

  it('join the cluster as what they were bought as', () => {
    const { 'Fn::Base64': script } = templateData(main)['UserData'] as { 'Fn::Base64': unknown };
    const lines = shown(script).split('\n');
    expect(lines[0]).toBe('#!/bin/bash');
    expect(lines).toContainEqual(expect.stringMatching(/^ECS_CLUSTER=\{EbbtideCapacityCluster\w+\}$/));
    expect(lines).toContainEqual(expect.stringMatching(/^ECS_INSTANCE_ATTRIBUTES=.*"ebb\.instance".*tag ebb:instance/));
    expect(lines).toContainEqual(expect.stringContaining('disable --now amazon-ssm-agent'));
    // How long a stopped container may take is the task definition's to say (`stopTimeout`), which wins over the
    // agent's own limit.
    expect(lines.filter((line) => line.startsWith('ECS_CONTAINER_STOP_TIMEOUT'))).toEqual([]);
  });
});

describe('the network', () => {
  it('is new by default: public subnets in three zones, nothing that costs while idle', () => {
    const { main } = synthesis();
    main.resourceCountIs('AWS::EC2::Subnet', 3);
    main.resourceCountIs('AWS::EC2::NatGateway', 0);
    main.resourceCountIs('AWS::EC2::EIP', 0);
    main.hasResourceProperties('AWS::EC2::FlowLog', { TrafficType: 'REJECT' });
    main.hasResourceProperties('AWS::EC2::VPCEndpoint', { VpcEndpointType: 'Gateway', ServiceName: Match.anyValue() });
  });

  it('has as many subnets as zones are asked for, in a region that has fewer too', () => {
    const subnets = Object.values(resourcesOf(synthesis({ zones: 4 }).main, 'AWS::EC2::Subnet'));
    const zones = (inRegion: readonly string[]): unknown[] =>
      subnets.map((s) => evaluated(s.Properties['AvailabilityZone'], inRegion));
    expect(zones(['a', 'b', 'c', 'd', 'e'])).toEqual(['a', 'b', 'c', 'd']);
    expect(zones(['a', 'c'])).toEqual(['a', 'c', 'a', 'c']);
    expect(zones(['b'])).toEqual(['b', 'b', 'b', 'b']);
  });

  it('is the one that was named, without a look-up', () => {
    const subnets = { 'eu-central-1a': 'subnet-0a1b2c3d', 'eu-central-1b': 'subnet-0b1b2c3d' };
    const { main } = synthesis({ region: 'eu-central-1', vpc: { id: 'vpc-0a1b2c3d', subnets } });
    main.resourceCountIs('AWS::EC2::VPC', 0);
    main.hasResourceProperties('AWS::EC2::SecurityGroup', { VpcId: 'vpc-0a1b2c3d' });
    expect(environment(main)['EBB_SUBNETS']).toBe('eu-central-1a=subnet-0a1b2c3d,eu-central-1b=subnet-0b1b2c3d');
  });

  it('is a VPC of the caller’s app', () => {
    const stack = new Stack(newApp(), 'Own');
    const vpc = new ec2.Vpc(stack, 'Mine', {
      maxAzs: 2,
      natGateways: 0,
      subnetConfiguration: [{ name: 'p', subnetType: ec2.SubnetType.PUBLIC }],
    });
    new Ebbtide(stack, 'Ebbtide', { vpc });
    const main = Template.fromStack(stack);
    main.resourceCountIs('AWS::EC2::VPC', 1);
    expect(environment(main)['EBB_SUBNETS']?.split(',')).toHaveLength(2);
  });

  it('is refused where no instance could reach ECS', () => {
    const stack = new Stack(newApp(), 'Own');
    const vpc = new ec2.Vpc(stack, 'Mine', {
      natGateways: 0,
      subnetConfiguration: [{ name: 'i', subnetType: ec2.SubnetType.PRIVATE_ISOLATED }],
    });
    expect(() => new Ebbtide(stack, 'Ebbtide', { vpc })).toThrow(/no subnet from which instances could reach ECS/);
  });

  it('is not looked up twice where the region has no default one', () => {
    const input = { account: '123456789012', region: 'eu-central-1', vpc: 'default' as const };
    const asked = (context: Record<string, unknown>) => {
      const app = newApp();
      for (const [key, value] of Object.entries(context)) app.node.setContext(key, value);
      ebbtideStacks(app, checkedDeployment(input, 'test'));
      return app.synth().manifest.missing ?? [];
    };
    const [missing] = asked({});
    expect(missing?.provider).toBe('vpc-provider');
    const answer = { $providerError: 'Could not find any VPCs matching {"isDefault":"true"}' };
    expect(() => asked({ [missing?.key ?? '']: answer })).toThrow(
      /vpc: the default VPC of eu-central-1 cannot be used/,
    );
  });

  it('is the default one only with an account and a region to look it up in', () => {
    expect(() => new Ebbtide(new Stack(newApp(), 'Own'), 'Ebbtide', { vpc: 'default' })).toThrow(
      /set account and region/,
    );
  });
});

/**
 * What CloudFormation makes of a value: Template Reference Guide, "Fn::Select", "Fn::Split", "Fn::Join", "Fn::GetAZs".
 */
function evaluated(value: unknown, zones: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((v) => evaluated(v, zones));
  if (typeof value !== 'object' || value === null) return value;
  const [[name, of] = ['', undefined]] = Object.entries(value);
  if (name === 'Fn::GetAZs') return zones;
  const [first, second] = evaluated(of, zones) as [string, unknown];
  if (name === 'Fn::Join') return (second as string[]).flat().join(first);
  if (name === 'Fn::Split') return (second as string).split(first);
  const found = name === 'Fn::Select' ? (second as unknown[])[Number(first)] : undefined;
  if (found === undefined) throw new Error(`Template error: ${name} ${JSON.stringify(of)}`);
  return found;
}
