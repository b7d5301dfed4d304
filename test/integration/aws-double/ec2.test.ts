import {
  CreateLaunchTemplateCommand,
  CreateTagsCommand,
  DescribeAvailabilityZonesCommand,
  DescribeInstancesCommand,
  DescribeInstanceTypesCommand,
  DescribeLaunchTemplateVersionsCommand,
  DescribeRegionsCommand,
  DescribeSpotPriceHistoryCommand,
  DescribeSubnetsCommand,
  TerminateInstancesCommand,
  paginateDescribeSpotPriceHistory,
  type Instance,
} from '@aws-sdk/client-ec2';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { raw } from '../../../lib/kernel/units.ts';
import { START_MS } from '../../contract/fleet.ts';
import { Bench, idsOf, refusal } from './bench.ts';

const INSTANCE_STATE = 'EC2 Instance State-change Notification';
const at = (s: number): Date => new Date(raw(START_MS) + s * 1000);

async function instance(bench: Bench, id: string): Promise<Instance> {
  const { Reservations } = await bench.ec2.send(new DescribeInstancesCommand({ InstanceIds: [id] }));
  return Reservations![0]!.Instances![0]!;
}

describe('what can be bought', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await Bench.start();
  });
  afterAll(async () => bench.close());

  it('prices are those of the market up to now: changes in the window, the one in force at its start, and no future', async () => {
    const { SpotPriceHistory: known } = await bench.ec2.send(
      new DescribeSpotPriceHistoryCommand({
        StartTime: at(-3600),
        EndTime: at(1e6),
        InstanceTypes: ['c5.large'],
        ProductDescriptions: ['Linux/UNIX'],
        Filters: [{ Name: 'availability-zone', Values: ['spiky', 'l*'] }],
      }),
    );
    expect(known!.length).toBeGreaterThanOrEqual(1);
    expect(
      known!.every((price) => price.AvailabilityZone === 'spiky' && price.ProductDescription === 'Linux/UNIX'),
    ).toBe(true);
    const first = known!.at(-1)!;
    expect(Number(first.SpotPrice)).toBe(0.03);
    expect(first.Timestamp).toEqual(at(-86_400));
    const now = raw(bench.double.now());
    expect(known!.filter((price) => price.Timestamp!.getTime() > now)).toEqual([]);
    const { SpotPriceHistory: windows } = await bench.ec2.send(
      new DescribeSpotPriceHistoryCommand({ ProductDescriptions: ['Windows'], StartTime: at(-3600) }),
    );
    expect(windows).toEqual([]);
  });

  it('prices come in pages that together are the whole', async () => {
    const whole = await bench.ec2.send(new DescribeSpotPriceHistoryCommand({ StartTime: at(-3600), EndTime: at(0) }));
    const paged: unknown[] = [];
    let pages = 0;
    const query = { StartTime: at(-3600), EndTime: at(0), MaxResults: 1 };
    for await (const page of paginateDescribeSpotPriceHistory({ client: bench.ec2 }, query)) {
      paged.push(...(page.SpotPriceHistory ?? []));
      pages++;
    }
    expect(whole.SpotPriceHistory!.map((p) => p.AvailabilityZone).sort()).toEqual(['calm', 'empty', 'spiky']);
    expect(pages).toBe(3);
    expect(paged).toEqual(whole.SpotPriceHistory);
  });

  it('types, zones and subnets are those of the market', async () => {
    const { InstanceTypes } = await bench.ec2.send(new DescribeInstanceTypesCommand({ InstanceTypes: ['c5.large'] }));
    expect(InstanceTypes).toHaveLength(1);
    expect(InstanceTypes![0]).toMatchObject({
      InstanceType: 'c5.large',
      VCpuInfo: { DefaultVCpus: 2 },
      MemoryInfo: { SizeInMiB: 4096 },
      ProcessorInfo: { SupportedArchitectures: ['x86_64'] },
    });
    const { AvailabilityZones } = await bench.ec2.send(new DescribeAvailabilityZonesCommand({}));
    const zones = ['calm', 'empty', 'late', 'spiky'];
    expect(AvailabilityZones!.map((z) => z.ZoneName)).toEqual(zones);
    expect(AvailabilityZones!.every((z) => z.State === 'available')).toBe(true);
    const { Subnets } = await bench.ec2.send(
      new DescribeSubnetsCommand({ Filters: [{ Name: 'availability-zone', Values: ['calm'] }] }),
    );
    expect(Subnets!.map((s) => [s.SubnetId, s.AvailabilityZone])).toEqual([
      [bench.double.subnets.find((s) => s.zone === 'calm')!.id, 'calm'],
    ]);
    const unknown = bench.ec2.send(new DescribeInstanceTypesCommand({ InstanceTypes: ['x9.large' as 'c5.large'] }));
    expect(await refusal(unknown)).toMatchObject({ name: 'InvalidInstanceType', status: 400 });
  });

  it('launch templates are kept as they were made, by token once', async () => {
    const data = {
      ImageId: 'ami-1',
      UserData: Buffer.from('a < b & "c"').toString('base64'),
      SecurityGroupIds: ['sg-1', 'sg-2'],
      IamInstanceProfile: { Arn: 'arn:aws:iam::1:instance-profile/p' },
      MetadataOptions: { HttpTokens: 'required' as const, HttpPutResponseHopLimit: 1 },
      BlockDeviceMappings: [
        { DeviceName: '/dev/xvda', Ebs: { Encrypted: true, VolumeSize: 30, VolumeType: 'gp3' as const } },
      ],
      TagSpecifications: [{ ResourceType: 'instance' as const, Tags: [{ Key: 'k & <l>', Value: 'v "w"' }] }],
      NetworkInterfaces: [{ DeviceIndex: 0, AssociatePublicIpAddress: true, Groups: ['sg-3'] }],
      Monitoring: { Enabled: true },
    };
    const create = { LaunchTemplateName: 'full', ClientToken: 'one', LaunchTemplateData: data };
    const { LaunchTemplate: made } = await bench.ec2.send(new CreateLaunchTemplateCommand(create));
    const { LaunchTemplate: again } = await bench.ec2.send(new CreateLaunchTemplateCommand(create));
    expect(again).toEqual(made);
    const taken = bench.ec2.send(new CreateLaunchTemplateCommand({ ...create, ClientToken: 'two' }));
    expect(await refusal(taken)).toMatchObject({ name: 'InvalidLaunchTemplateName.AlreadyExistsException' });
    const { LaunchTemplateVersions } = await bench.ec2.send(
      new DescribeLaunchTemplateVersionsCommand({ LaunchTemplateId: made!.LaunchTemplateId!, Versions: ['$Latest'] }),
    );
    expect(LaunchTemplateVersions![0]).toMatchObject({
      VersionNumber: 1,
      DefaultVersion: true,
      LaunchTemplateData: data,
    });
    const missing = bench.ec2.send(
      new DescribeLaunchTemplateVersionsCommand({ LaunchTemplateId: 'lt-1', Versions: ['1'] }),
    );
    expect(await refusal(missing)).toMatchObject({ name: 'InvalidLaunchTemplateId.NotFound' });
  });

  it('what it does not play is refused and said aloud', async () => {
    expect(await refusal(bench.ec2.send(new DescribeRegionsCommand({})))).toMatchObject({
      name: 'InvalidAction',
      status: 400,
    });
    const filtered = bench.ec2.send(
      new DescribeInstancesCommand({ Filters: [{ Name: 'hypervisor', Values: ['xen'] }] }),
    );
    // A filter is only looked at when there is something to filter.
    await bench.ec2.send(bench.fleet('calm'));
    const again = bench.ec2.send(new DescribeInstancesCommand({ Filters: [{ Name: 'hypervisor', Values: ['xen'] }] }));
    expect((await filtered).Reservations).toEqual([]);
    expect(await refusal(again)).toMatchObject({ name: 'InvalidParameterValue' });
    const ignored = bench.ec2.send(bench.fleet('calm', { ReplaceUnhealthyInstances: true }));
    expect(await refusal(ignored)).toMatchObject({
      name: 'UnknownParameter',
      message: 'The parameter ReplaceUnhealthyInstances is not recognized',
    });
    expect(bench.double.calls.filter((c) => c.status === 400).map((c) => c.action)).toContain('DescribeRegions');
  });
});

describe('CreateFleet', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.start();
  });
  afterEach(async () => bench.close());

  it('launches, tags and describes an instance: pending, then running after 30 s or more', async () => {
    const answer = await bench.ec2.send(
      bench.fleet('calm', {
        maxPrice: '0.05',
        TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'ebb:key', Value: 'k<1>' }] }],
      }),
    );
    expect(answer.Errors).toEqual([]);
    expect(answer.Instances).toHaveLength(1);
    expect(answer.Instances![0]).toMatchObject({
      Lifecycle: 'spot',
      InstanceType: 'c5.large',
      LaunchTemplateAndOverrides: { Overrides: { MaxPrice: '0.05', AvailabilityZone: 'calm' } },
    });
    const [id] = idsOf(answer) as [string];
    expect(id).toMatch(/^i-[0-9a-f]{17}$/);
    const pending = await instance(bench, id);
    expect(pending).toMatchObject({
      State: { Name: 'pending', Code: 0 },
      InstanceLifecycle: 'spot',
      Placement: { AvailabilityZone: 'calm' },
    });
    const tags = Object.fromEntries(pending.Tags!.map((t) => [t.Key, t.Value]));
    expect(tags).toMatchObject({ 'ebb:key': 'k<1>', from: 'template', 'aws:ec2:fleet-id': answer.FleetId });
    const ready = await bench.until('running', async () => {
      const seen = await instance(bench, id);
      return seen.State!.Name === 'running' ? seen : undefined;
    });
    expect(ready.State!.Code).toBe(16);
    const [first, second] = bench.events(INSTANCE_STATE, { 'instance-id': id });
    expect([first!.detail['state'], second!.detail['state']]).toEqual(['pending', 'running']);
    const startS = (Date.parse(second!.time) - ready.LaunchTime!.getTime()) / 1000;
    expect(startS).toBeGreaterThanOrEqual(29);
    expect(first).toMatchObject({
      source: 'aws.ec2',
      region: 'us-east-1',
      resources: [`arn:aws:ec2:us-east-1:000000000000:instance/${id}`],
    });
  });

  it('says per override why it got nothing', async () => {
    const codes = async (zone: string, maxPrice?: string): Promise<unknown> => {
      const { Errors, Instances } = await bench.ec2.send(bench.fleet(zone, maxPrice === undefined ? {} : { maxPrice }));
      expect(Instances).toEqual([]);
      return Errors!.map((e) => [e.ErrorCode, e.Lifecycle, e.LaunchTemplateAndOverrides?.Overrides?.AvailabilityZone]);
    };
    expect(await codes('calm', '0.02')).toEqual([['SpotMaxPriceTooLow', 'spot', 'calm']]);
    expect(await codes('empty', '0.05')).toEqual([['InsufficientInstanceCapacity', 'spot', 'empty']]);
    expect(await codes('late')).toEqual([['InsufficientInstanceCapacity', 'spot', 'late']]);
    expect(await codes('calm', '0.001')).toEqual([['InvalidParameterValue', 'spot', 'calm']]);
    const config = { LaunchTemplateSpecification: { LaunchTemplateId: bench.templateId, Version: '1' } };
    const other = async (override: object): Promise<unknown> => {
      const LaunchTemplateConfigs = [{ ...config, Overrides: [override] }];
      return (await bench.ec2.send(bench.fleet('calm', { LaunchTemplateConfigs }))).Errors!.map((e) => e.ErrorCode);
    };
    expect(await other({ InstanceType: 'c5.metal', AvailabilityZone: 'calm' })).toEqual(['InvalidFleetConfiguration']);
    expect(await other({ InstanceType: 'c5.large', SubnetId: 'subnet-1' })).toEqual(['InvalidSubnetID.NotFound']);
    const unknown = bench.fleet('calm', {
      LaunchTemplateConfigs: [
        {
          LaunchTemplateSpecification: { LaunchTemplateId: 'lt-1', Version: '1' },
          Overrides: [{ InstanceType: 'c5.large' }],
        },
      ],
    });
    expect(await refusal(bench.ec2.send(unknown))).toMatchObject({ name: 'InvalidLaunchTemplateId.NotFound' });
    expect(await refusal(bench.ec2.send(bench.fleet('calm', { Type: 'maintain' })))).toMatchObject({
      name: 'InvalidParameterValue',
    });
    expect(bench.double.events).toEqual([]);
  });

  it('goes on to the next override, and buys on demand where it is asked to', async () => {
    const overrides = ['empty', 'calm'].map((zone) => ({ InstanceType: 'c5.large' as const, AvailabilityZone: zone }));
    const LaunchTemplateConfigs = [
      { LaunchTemplateSpecification: { LaunchTemplateName: 'workers', Version: '$Default' }, Overrides: overrides },
    ];
    const answer = await bench.ec2.send(
      bench.fleet('calm', {
        LaunchTemplateConfigs,
        TargetCapacitySpecification: {
          TotalTargetCapacity: 3,
          OnDemandTargetCapacity: 1,
          DefaultTargetCapacityType: 'spot',
        },
      }),
    );
    expect(answer.Errors!.map((e) => [e.ErrorCode, e.LaunchTemplateAndOverrides?.Overrides?.AvailabilityZone])).toEqual(
      [['InsufficientInstanceCapacity', 'empty']],
    );
    expect(
      answer.Instances!.map((i) => [
        i.Lifecycle,
        i.LaunchTemplateAndOverrides?.Overrides?.AvailabilityZone,
        i.InstanceIds!.length,
      ]),
    ).toEqual([
      ['on-demand', 'empty', 1],
      ['spot', 'calm', 2],
    ]);
    expect(new Set(idsOf(answer)).size).toBe(3);
  });

  it('answers a repeated token the same, launches once, and refuses it with other parameters', async () => {
    const fleet = bench.fleet('calm', { ClientToken: 'token', maxPrice: '0.05' });
    const [first, second] = await Promise.all([bench.ec2.send(fleet), bench.ec2.send(fleet)]);
    const third = await bench.ec2.send(fleet);
    expect(idsOf(first)).toHaveLength(1);
    expect([idsOf(second), idsOf(third), third.FleetId]).toEqual([idsOf(first), idsOf(first), first.FleetId]);
    const other = bench.ec2.send(bench.fleet('calm', { ClientToken: 'token', maxPrice: '0.06' }));
    expect(await refusal(other)).toMatchObject({ name: 'IdempotentParameterMismatch', status: 400 });
    const none = await bench.ec2.send(bench.fleet('empty', { ClientToken: 'none' }));
    expect((await bench.ec2.send(bench.fleet('empty', { ClientToken: 'none' }))).FleetId).toBe(none.FleetId);
    const { Reservations } = await bench.ec2.send(new DescribeInstancesCommand({}));
    expect(Reservations).toHaveLength(1);
  });

  it('keeps to quotas, which terminated instances give back', async () => {
    bench.double.knobs.set({ spotVcpus: 4, onDemandVcpus: 2 });
    const first = await bench.ec2.send(bench.fleet('calm', { count: 3 }));
    expect(idsOf(first)).toHaveLength(2);
    expect(first.Errors!.map((e) => e.ErrorCode)).toEqual(['MaxSpotInstanceCountExceeded']);
    const onDemand = { TotalTargetCapacity: 2, DefaultTargetCapacityType: 'on-demand' as const };
    const second = await bench.ec2.send(bench.fleet('calm', { TargetCapacitySpecification: onDemand }));
    expect(idsOf(second)).toHaveLength(1);
    expect(second.Errors!.map((e) => e.ErrorCode)).toEqual(['VcpuLimitExceeded']);
    await bench.ec2.send(new TerminateInstancesCommand({ InstanceIds: idsOf(first) }));
    expect(idsOf(await bench.ec2.send(bench.fleet('calm')))).toHaveLength(1);
  });
});

describe('instances', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.start();
  });
  afterEach(async () => bench.close());

  it('are found by tag and state, tagged later, and terminated for good', async () => {
    const [id] = idsOf(await bench.ec2.send(bench.fleet('calm'))) as [string];
    const find = async (Name: string, ...Values: string[]): Promise<unknown> => {
      const { Reservations } = await bench.ec2.send(new DescribeInstancesCommand({ Filters: [{ Name, Values }] }));
      return Reservations!.flatMap((r) => r.Instances!.map((i) => i.InstanceId));
    };
    await bench.ec2.send(new CreateTagsCommand({ Resources: [id], Tags: [{ Key: 'ebb:stack', Value: 'a' }] }));
    expect(await find('tag:ebb:stack', 'b', 'a')).toEqual([id]);
    expect(await find('tag:ebb:stack', 'b')).toEqual([]);
    expect(await find('instance-state-name', 'pending', 'running')).toEqual([id]);
    const { TerminatingInstances } = await bench.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    expect(TerminatingInstances![0]).toMatchObject({
      InstanceId: id,
      PreviousState: { Name: 'pending' },
      CurrentState: { Name: 'shutting-down', Code: 32 },
    });
    const gone = await bench.until('terminated', async () => {
      const seen = await instance(bench, id);
      return seen.State!.Name === 'terminated' ? seen : undefined;
    });
    expect(gone.StateReason!.Code).toBe('Client.UserInitiatedShutdown');
    expect(gone.StateTransitionReason).toMatch(/^User initiated \(2026-01-05 12:\d\d:\d\d GMT\)$/);
    const again = await bench.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
    expect(again.TerminatingInstances![0]).toMatchObject({
      PreviousState: { Name: 'terminated' },
      CurrentState: { Name: 'terminated' },
    });
    const states = bench.events(INSTANCE_STATE, { 'instance-id': id }).map((e) => e.detail['state']);
    expect(states.filter((s) => s !== 'running')).toEqual(['pending', 'shutting-down', 'terminated']);
    expect(bench.events('EC2 Spot Instance Interruption Warning')).toEqual([]);
  });

  it('that are not there are named, and those beside them are left alone', async () => {
    const [id] = idsOf(await bench.ec2.send(bench.fleet('calm'))) as [string];
    const absent = 'i-0123456789abcdef0';
    const terminate = bench.ec2.send(new TerminateInstancesCommand({ InstanceIds: [id, absent] }));
    expect(await refusal(terminate)).toMatchObject({
      name: 'InvalidInstanceID.NotFound',
      message: `The instance ID '${absent}' does not exist`,
    });
    expect(['pending', 'running']).toContain((await instance(bench, id)).State!.Name);
    const malformed = bench.ec2.send(new DescribeInstancesCommand({ InstanceIds: ['web-1'] }));
    expect(await refusal(malformed)).toMatchObject({ name: 'InvalidInstanceID.Malformed' });
  });

  it('are hinted at, warned two minutes before and taken when the market says', async () => {
    // Slower than the others, so that the instance is up before the hint on a busy machine as well.
    const slow = await Bench.start({ speed: 40 });
    const [id] = idsOf(await slow.ec2.send(slow.fleet('spiky', { maxPrice: '0.05' }))) as [string];
    const gone = await slow.until(
      'terminated',
      () => slow.events(INSTANCE_STATE, { 'instance-id': id, state: 'terminated' })[0],
    );
    const [hint] = slow.events('EC2 Instance Rebalance Recommendation');
    const [warning] = slow.events('EC2 Spot Instance Interruption Warning');
    expect(hint).toMatchObject({ time: '2026-01-05T12:04:10Z', detail: { 'instance-id': id } });
    expect(warning).toMatchObject({
      time: '2026-01-05T12:06:40Z',
      resources: [`arn:aws:ec2:spiky:instance/${id}`],
      detail: { 'instance-id': id, 'instance-action': 'terminate' },
    });
    expect(gone.time).toBe('2026-01-05T12:08:40Z');
    expect(
      slow.double.events
        .filter((e) => e.detail['instance-id'] === id)
        .map((e) => e.detail['state'] ?? e['detail-type']),
    ).toEqual([
      'pending',
      'running',
      'EC2 Instance Rebalance Recommendation',
      'EC2 Spot Instance Interruption Warning',
      'shutting-down',
      'terminated',
    ]);
    expect((await instance(slow, id)).StateReason!.Code).toBe('Server.SpotInstanceTermination');
    await slow.close();
  });
});
