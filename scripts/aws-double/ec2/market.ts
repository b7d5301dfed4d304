import { z } from 'zod';
import type { InstanceType, Pool } from '../../../lib/domain/pool.ts';
import { epochMs, raw } from '../../../lib/kernel/units.ts';
import { action, type Actions } from '../api.ts';
import { AwsFault } from '../fault.ts';
import { nowMs, zoneId, zonesOf, type Place } from '../place.ts';
import { filters, form, page, passes, type XmlValue } from '../query.ts';

/** Public data of EC2: types, zones, networks, spot prices up to now. */
const LINUX = ['Linux/UNIX', 'Linux/UNIX (Amazon VPC)'];

const prices = z.strictObject({
  StartTime: form.date.optional(),
  EndTime: form.date.optional(),
  InstanceType: z.array(z.string()).default([]),
  ProductDescription: z.array(z.string()).default([]),
  AvailabilityZone: z.string().optional(),
  Filter: filters,
  MaxResults: form.number.min(1).max(1000).default(1000),
  NextToken: z.string().optional(),
});
const types = z.strictObject({
  InstanceType: z.array(z.string()).max(100).default([]),
  Filter: filters,
  MaxResults: form.number.min(5).max(100).default(100),
  NextToken: z.string().optional(),
});
const offerings = z.strictObject({
  LocationType: z.enum(['region', 'availability-zone']).default('region'),
  Filter: filters,
  MaxResults: form.number.min(5).max(1000).default(1000),
  NextToken: z.string().optional(),
});
const subnets = z.strictObject({
  SubnetId: z.array(z.string()).default([]),
  Filter: filters,
  MaxResults: form.number.min(5).max(1000).default(1000),
  NextToken: z.string().optional(),
});
const vpcs = z.strictObject({ VpcId: z.array(z.string()).default([]), Filter: filters });
const zones = z.strictObject({ ZoneName: z.array(z.string()).default([]), Filter: filters });

export const marketActions = (place: Place): Actions<{ readonly [name: string]: XmlValue }> => ({
  DescribeSpotPriceHistory: action(prices, (asked) => spotPrices(place, asked)),
  DescribeInstanceTypes: action(types, (asked) => instanceTypes(place, asked)),
  DescribeInstanceTypeOfferings: action(offerings, (asked) => offeringsShown(place, asked)),
  DescribeSubnets: action(subnets, (asked) => subnetsShown(place, asked)),
  DescribeVpcs: action(vpcs, (asked) => vpcsShown(place, asked)),
  DescribeAvailabilityZones: action(zones, (asked) => zonesShown(place, asked)),
});

/**
 * Price changes within the range, newest first, and the price in force at its start. Without times: the current price.
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
 */
function spotPrices(place: Place, asked: z.infer<typeof prices>): { readonly [name: string]: XmlValue } {
  const now = nowMs(place);
  const to = Math.min(asked.EndTime?.getTime() ?? now, now);
  const from = asked.StartTime?.getTime() ?? to;
  const wanted = place.pools.filter((pool) => {
    if (pool.option !== 'spot') return false;
    if (asked.AvailabilityZone !== undefined && asked.AvailabilityZone !== pool.zone) return false;
    if (asked.InstanceType.length > 0 && !asked.InstanceType.includes(pool.type.name)) return false;
    return passes(asked.Filter, (name) => priceFilter(pool, name));
  });
  const offered = asked.ProductDescription.length === 0 || asked.ProductDescription.some((d) => LINUX.includes(d));
  const all = offered ? wanted.flatMap((pool) => changesOf(place, pool, { from, to })) : [];
  all.sort((a, b) => b.atMs - a.atMs);
  const { items, nextToken } = page(all, { token: asked.NextToken, size: asked.MaxResults });
  return {
    // Empty token at the end: only this call has one.
    nextToken: nextToken ?? '',
    spotPriceHistorySet: items.map(({ pool, atMs, usd }) => ({
      availabilityZone: pool.zone,
      availabilityZoneId: zoneId(pool.zone),
      instanceType: pool.type.name,
      productDescription: 'Linux/UNIX',
      spotPrice: usd.toFixed(6),
      timestamp: new Date(atMs),
    })),
  };
}

function changesOf(place: Place, pool: Pool, within: { readonly from: number; readonly to: number }) {
  // The market's range is half open, the call's is closed.
  const steps = place.market.history(pool.id, epochMs(within.from), epochMs(within.to + 1));
  return [...steps.atMs].map((atMs, i) => ({ pool, atMs, usd: steps.usdPerHour[i] ?? 0 }));
}

function priceFilter(pool: Pool, name: string): readonly string[] | null {
  switch (name) {
    case 'availability-zone':
      return [pool.zone];
    case 'instance-type':
      return [pool.type.name];
    case 'product-description':
      return LINUX;
    default:
      return null;
  }
}

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html */
function instanceTypes(place: Place, asked: z.infer<typeof types>): { readonly [name: string]: XmlValue } {
  const known = new Map(place.pools.map((pool) => [pool.type.name, pool.type]));
  const missing = asked.InstanceType.filter((name) => !known.has(name));
  if (missing.length > 0) {
    throw new AwsFault(
      'InvalidInstanceType',
      `The following supplied instance types do not exist: [${missing.join(', ')}]`,
    );
  }
  const wanted = [...known.values()].filter(
    (type) =>
      (asked.InstanceType.length === 0 || asked.InstanceType.includes(type.name)) &&
      passes(asked.Filter, (name) => typeFilter(type, name)),
  );
  wanted.sort((a, b) => (a.name < b.name ? -1 : 1));
  const { items, nextToken } = page(wanted, { token: asked.NextToken, size: asked.MaxResults });
  return { instanceTypeSet: items.map(typeShown), nextToken };
}

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html */
function offeringsShown(place: Place, asked: z.infer<typeof offerings>): { readonly [name: string]: XmlValue } {
  const isByZone = asked.LocationType === 'availability-zone';
  const all = place.pools.map((pool) => ({
    instanceType: pool.type.name,
    locationType: asked.LocationType,
    location: isByZone ? pool.zone : place.region,
  }));
  // One offer per type and zone, whatever the purchase option.
  const unique = [...new Map(all.map((o) => [`${o.instanceType} ${o.location}`, o])).values()];
  const wanted = unique.filter((offer) =>
    passes(asked.Filter, (name) => {
      if (name === 'location') return [offer.location];
      return name === 'instance-type' ? [offer.instanceType] : null;
    }),
  );
  const { items, nextToken } = page(wanted, { token: asked.NextToken, size: asked.MaxResults });
  return { instanceTypeOfferingSet: items, nextToken };
}

function typeFilter(type: InstanceType, name: string): readonly string[] | null {
  switch (name) {
    case 'instance-type':
      return [type.name];
    case 'processor-info.supported-architecture':
      return [type.arch];
    case 'supported-usage-class':
      return ['on-demand', 'spot'];
    case 'bare-metal':
      return ['false'];
    default:
      return null;
  }
}

const typeShown = (type: InstanceType): XmlValue => ({
  instanceType: type.name,
  currentGeneration: true,
  supportedUsageClasses: ['on-demand', 'spot'],
  bareMetal: false,
  processorInfo: { supportedArchitectures: [type.arch] },
  vCpuInfo: { defaultVCpus: raw(type.capacity.cpu) / 1000 },
  memoryInfo: { sizeInMiB: Math.round(raw(type.capacity.memory)) },
  gpuInfo: type.capacity.gpus === 0 ? undefined : { gpus: [{ count: type.capacity.gpus }] },
});

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSubnets.html */
function subnetsShown(place: Place, asked: z.infer<typeof subnets>): { readonly [name: string]: XmlValue } {
  const missing = asked.SubnetId.find((id) => !place.subnets.some((s) => s.id === id));
  if (missing !== undefined)
    throw new AwsFault('InvalidSubnetID.NotFound', `The subnet ID '${missing}' does not exist`);
  const wanted = place.subnets.filter(
    (subnet) =>
      (asked.SubnetId.length === 0 || asked.SubnetId.includes(subnet.id)) &&
      passes(asked.Filter, (name) => {
        if (name === 'availability-zone') return [subnet.zone];
        if (name === 'vpc-id') return [place.vpcId];
        if (name === 'default-for-az') return [String(place.knobs.now.defaultVpc)];
        return name === 'subnet-id' ? [subnet.id] : null;
      }),
  );
  const { items, nextToken } = page(wanted, { token: asked.NextToken, size: asked.MaxResults });
  return {
    subnetSet: items.map((subnet, n) => ({
      subnetId: subnet.id,
      vpcId: place.vpcId,
      availabilityZone: subnet.zone,
      availabilityZoneId: zoneId(subnet.zone),
      state: 'available',
      cidrBlock: `10.0.${16 * n}.0/20`,
      defaultForAz: place.knobs.now.defaultVpc,
      ownerId: place.account,
    })),
    nextToken,
  };
}

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcs.html */
function vpcsShown(place: Place, asked: z.infer<typeof vpcs>): { readonly [name: string]: XmlValue } {
  const { vpcId, account } = place;
  const isDefault = place.knobs.now.defaultVpc;
  const missing = asked.VpcId.find((id) => id !== vpcId);
  if (missing !== undefined) throw new AwsFault('InvalidVpcID.NotFound', `The vpc ID '${missing}' does not exist`);
  const isShown = passes(asked.Filter, (name) => {
    if (name === 'is-default') return [String(isDefault)];
    return name === 'vpc-id' ? [vpcId] : null;
  });
  return {
    vpcSet: isShown ? [{ vpcId, isDefault, ownerId: account, state: 'available', cidrBlock: '10.0.0.0/16' }] : [],
  };
}

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeAvailabilityZones.html */
function zonesShown(place: Place, asked: z.infer<typeof zones>): { readonly [name: string]: XmlValue } {
  const known = zonesOf(place);
  const missing = asked.ZoneName.find((name) => !known.includes(name));
  if (missing !== undefined) throw new AwsFault('InvalidParameterValue', `Invalid availability zone: [${missing}]`);
  const wanted = known.filter(
    (zone) =>
      (asked.ZoneName.length === 0 || asked.ZoneName.includes(zone)) &&
      passes(asked.Filter, (name) => {
        if (name === 'zone-name') return [zone];
        if (name === 'region-name') return [place.region];
        if (name === 'zone-type') return ['availability-zone'];
        if (name === 'opt-in-status') return ['opt-in-not-required'];
        return name === 'state' ? ['available'] : null;
      }),
  );
  return {
    availabilityZoneInfo: wanted.map((zone) => ({
      zoneName: zone,
      zoneId: zoneId(zone),
      zoneState: 'available',
      regionName: place.region,
      zoneType: 'availability-zone',
      optInStatus: 'opt-in-not-required',
    })),
  };
}
