/** Zones and subnets of a configuration in a region, as CloudFormation and the CDK would find them. */
import {
  DescribeAvailabilityZonesCommand,
  DescribeSubnetsCommand,
  DescribeVpcsCommand,
  type EC2Client,
} from '@aws-sdk/client-ec2';
import { EbbError } from '../../../kernel/errors.ts';
import type { AskedInput } from '../deploying/offers.ts';

/** `vpc` of the configuration (lib/infra/config.ts). */
export type VpcChoice = 'new' | 'default' | { readonly id: string; readonly subnets: Readonly<Record<string, string>> };

export type Places = Omit<AskedInput, 'Families' | 'Reservations'>;

/** Throws `usage` if the place does not exist. Faults of EC2 are thrown unchanged. */
export async function placesOf(
  client: EC2Client,
  { vpc, zones }: { readonly vpc: VpcChoice; readonly zones: number },
): Promise<Places> {
  if (vpc === 'default') return { Zones: await zonesOfDefault(client) };
  if (vpc === 'new') return { Zones: (await zonesOfRegion(client)).slice(0, zones) };
  const pairs = Object.entries(vpc.subnets);
  return {
    Vpc: vpc.id,
    Zones: pairs.map(([zone]) => zone),
    Subnets: pairs.map(([zone, subnet]) => `${zone}=${subnet}`),
  };
}

async function zonesOfDefault(client: EC2Client): Promise<string[]> {
  const { Vpcs = [] } = await client.send(
    new DescribeVpcsCommand({ Filters: [{ Name: 'is-default', Values: ['true'] }] }),
  );
  const id = Vpcs[0]?.VpcId;
  const zones = id === undefined ? [] : await zonesOfSubnets(client, { Name: 'vpc-id', Values: [id] });
  if (zones.length > 0) return zones;
  const message = id === undefined ? 'this region has no default VPC' : `the default VPC, ${id}, has no subnet`;
  throw new EbbError('usage', {
    what: 'the default VPC cannot be used',
    issues: [{ at: 'vpc', message: `${message}; set vpc to new, or to the id and subnets of one that you have` }],
  });
}

/** Zones as in "Fn::GetAZs": those with a default subnet, unless no zone has one. */
async function zonesOfRegion(client: EC2Client): Promise<string[]> {
  const withSubnet = await zonesOfSubnets(client, { Name: 'default-for-az', Values: ['true'] });
  if (withSubnet.length > 0) return withSubnet;
  const { AvailabilityZones = [] } = await client.send(
    new DescribeAvailabilityZonesCommand({
      Filters: [
        { Name: 'state', Values: ['available'] },
        { Name: 'zone-type', Values: ['availability-zone'] },
      ],
    }),
  );
  return AvailabilityZones.flatMap(({ ZoneName }) => ZoneName ?? []).sort();
}

async function zonesOfSubnets(client: EC2Client, filter: { Name: string; Values: string[] }): Promise<string[]> {
  const { Subnets = [] } = await client.send(new DescribeSubnetsCommand({ Filters: [filter] }));
  return [...new Set(Subnets.flatMap(({ AvailabilityZone }) => AvailabilityZone ?? []))].sort();
}
