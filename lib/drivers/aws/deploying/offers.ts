/**
 * Check that a region offers what the deployment wants to buy. `npm run preflight` asks it, and so does the deployment
 * before it makes anything else. Findings name the key of the configuration and the remedy, as docs/deploy.md does.
 */
import {
  DescribeInstanceTypeOfferingsCommand,
  DescribeSubnetsCommand,
  type DescribeSubnetsCommandOutput,
  type EC2Client,
} from '@aws-sdk/client-ec2';
import { z } from 'zod';
import { EbbError, type Issue, messageOf } from '../../../kernel/errors.ts';
import { familyOf } from '../../../domain/pool.ts';
import { classify, faultOf } from '../errors.ts';
import { describeReservations, reservationIssues } from '../market/reservations.ts';

/** Properties of the custom resource (lib/infra/deploying.ts sets them). */
export const askedOf = z.object({
  Families: z.array(z.string().min(1)).min(1),
  Zones: z.array(z.string().min(1)).min(1),
  /** Id of an existing VPC; its subnets are `zone=subnet`. A new VPC has neither. */
  Vpc: z.string().optional(),
  Subnets: z.array(z.string().regex(/^[^=]+=[^=]+$/)).default([]),
  /** Ids of capacity reservations. */
  Reservations: z.array(z.string().min(1)).default([]),
});
export type Asked = z.output<typeof askedOf>;
export type AskedInput = z.input<typeof askedOf>;

/** Pages of a thousand offers each. All types in all zones of a region fill about five. */
const MAX_PAGES = 50;

/** Findings. A question that EC2 cannot answer now gives none: a passing fault must not fail a deployment. */
export interface Checked {
  /** Families that a zone lacks but another zone has, by zone. */
  readonly lacking: ReadonlyMap<string, readonly string[]>;
  /** One offered type per family. */
  readonly types: ReadonlyMap<string, string>;
  /** Remarks on usable capacity reservations. */
  readonly notes: readonly Issue[];
}

/**
 * Throws `usage` with all findings: families that no zone has, zones without any family, misplaced subnets, unusable
 * capacity reservations, a missing right to ask.
 */
export async function checkRegion(client: EC2Client, asked: Asked): Promise<Checked> {
  const { Families: families, Zones: zones } = asked;
  const offered = await allowed('families', () => offersIn(client, asked));
  const has = (family: string, zone: string): boolean => offered.byZone.get(zone)?.has(family) === true;
  const issues: Issue[] = families
    .filter((family) => !zones.some((zone) => has(family, zone)))
    .map((family) => ({
      at: 'families',
      message: `${family} is offered in none of ${zones.join(', ')}; leave it out, or deploy to another region`,
    }));
  if (issues.length === families.length) {
    issues.splice(0, issues.length, {
      at: 'families',
      message: `none of ${families.join(', ')} is offered in ${zones.join(', ')}; choose others, or another region`,
    });
  }
  issues.push(...(await allowed('vpc', () => misplaced(client, asked))));
  const { failures, notes } = await allowed('reservations', () => reserved(client, asked));
  issues.push(...failures);
  if (issues.length > 0) {
    const what = 'this region does not have what the configuration asks for';
    throw new EbbError('usage', { what, issues, next: 'docs/deploy.md lists every key' });
  }
  const lacking = zones.map((zone) => [zone, families.filter((family) => !has(family, zone))] as const);
  return { lacking: new Map(lacking.filter(([, missing]) => missing.length > 0)), types: offered.types, notes };
}

interface Offered {
  /** Families by zone. */
  readonly byZone: Map<string, Set<string>>;
  readonly types: Map<string, string>;
}

async function offersIn(client: EC2Client, { Families, Zones }: Asked): Promise<Offered> {
  const offered: Offered = { byZone: new Map(), types: new Map() };
  let token: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const answer = await client.send(
      new DescribeInstanceTypeOfferingsCommand({
        LocationType: 'availability-zone',
        Filters: [
          { Name: 'location', Values: Zones },
          { Name: 'instance-type', Values: Families.map((family) => `${family}.*`) },
        ],
        ...(token === undefined ? {} : { NextToken: token }),
      }),
    );
    for (const { InstanceType: type = '', Location: zone = '' } of answer.InstanceTypeOfferings ?? []) {
      const family = familyOf(type);
      if (!offered.types.has(family) || type.endsWith('.large')) offered.types.set(family, type);
      offered.byZone.set(zone, (offered.byZone.get(zone) ?? new Set()).add(family));
    }
    token = answer.NextToken;
    if (token === undefined || token === '') break;
  }
  return offered;
}

/** Subnets outside the zone or the VPC of the configuration. */
async function misplaced(client: EC2Client, { Vpc, Subnets }: Asked): Promise<Issue[]> {
  if (Subnets.length === 0) return [];
  const pairs = Subnets.map((pair) => pair.split('=') as [string, string]);
  let answer: DescribeSubnetsCommandOutput;
  try {
    answer = await client.send(new DescribeSubnetsCommand({ SubnetIds: pairs.map(([, subnet]) => subnet) }));
  } catch (error) {
    if ((error as Error).name !== 'InvalidSubnetID.NotFound') throw error;
    return [{ at: 'vpc.subnets', message: `${(error as Error).message}; give subnets of this account and region` }];
  }
  const found = new Map((answer.Subnets ?? []).map((s) => [s.SubnetId, s]));
  return pairs.flatMap(([zone, subnet]) => {
    const { AvailabilityZone: actual = 'nowhere', VpcId } = found.get(subnet) ?? {};
    const at = `vpc.subnets.${zone}`;
    if (actual !== zone) return [{ at, message: `${subnet} is in ${actual}; give a subnet of ${zone}` }];
    if (Vpc !== undefined && VpcId !== Vpc) return [{ at, message: `${subnet} is not in ${Vpc} but in ${VpcId}` }];
    return [];
  });
}

async function reserved(client: EC2Client, { Families: families, Zones: zones, Reservations: named }: Asked) {
  if (named.length === 0) return { failures: [], notes: [] };
  return reservationIssues(await describeReservations(client), named, { families, zones });
}

/** Names the missing right if the question is refused. */
async function allowed<T>(at: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const fault = faultOf(error);
    if (fault !== 'denied' && fault !== 'unsupported') throw classify(error, 'asking what the region offers');
    const said = messageOf(error);
    throw new EbbError('usage', {
      what: 'this account may not use EC2 in this region',
      issues: [
        {
          at: fault === 'denied' ? 'account' : 'region',
          message: `EC2 refuses to list its ${at}: ${said}`,
        },
      ],
      next: 'switch the region on for the account, and have EC2 allowed by whoever limits it (service control policies, permission boundaries)',
      cause: error,
    });
  }
}
