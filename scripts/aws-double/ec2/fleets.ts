import { z } from 'zod';
import type { Bid, Pool } from '../../../lib/domain/pool.ts';
import { instanceId, type InstanceId } from '../../../lib/kernel/ids.ts';
import { epochMs, raw, usdPerHour } from '../../../lib/kernel/units.ts';
import { action, Tokens, type Actions } from '../api.ts';
import { hexOf, uuidOf } from '../events.ts';
import { AwsFault } from '../fault.ts';
import { nowMs, type Place, type Subnet } from '../place.ts';
import { form, tagSpecifications, type XmlValue } from '../query.ts';
import type { Ec2Instance, Lifecycle } from './instance.ts';
import { isRefusal, unsupported, type Launches, type Refusal } from './launches.ts';
import type { Reservations } from './reservations.ts';
import { taggedBy, type Templates, type TemplateVersion } from './templates.ts';

/**
 * CreateFleet of type `instant`: one synchronous request. Its answer has the launched instances, and an error per
 * unusable override. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instant-fleet.html
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html
 */
const override = z.strictObject({
  InstanceType: z.string().optional(),
  SubnetId: z.string().optional(),
  AvailabilityZone: z.string().optional(),
  /** Highest price; absent: the current spot price is paid (API_FleetLaunchTemplateOverridesRequest). */
  MaxPrice: z
    .string()
    .regex(/^\d+(\.\d+)?$/)
    .optional(),
  Priority: z.coerce.number().optional(),
});
type Override = z.infer<typeof override>;

const specification = z.strictObject({
  LaunchTemplateId: z.string().optional(),
  LaunchTemplateName: z.string().optional(),
  Version: z.string().min(1),
});

const createFleet = z.strictObject({
  ClientToken: z.string().max(64).optional(),
  Type: z.literal('instant', 'the double makes instant fleets only'),
  LaunchTemplateConfigs: z
    .array(z.strictObject({ LaunchTemplateSpecification: specification, Overrides: z.array(override).default([]) }))
    .min(1)
    .max(50),
  TargetCapacitySpecification: z.strictObject({
    TotalTargetCapacity: form.number.min(1).max(100),
    SpotTargetCapacity: form.number.min(0).optional(),
    OnDemandTargetCapacity: form.number.min(0).optional(),
    DefaultTargetCapacityType: z.enum(['spot', 'on-demand']).default('on-demand'),
  }),
  SpotOptions: z
    .strictObject({
      AllocationStrategy: z
        .enum(['lowest-price', 'capacity-optimized', 'capacity-optimized-prioritized', 'price-capacity-optimized'])
        .default('lowest-price'),
      InstanceInterruptionBehavior: z.literal('terminate').default('terminate'),
    })
    .prefault({}),
  OnDemandOptions: z
    .strictObject({ AllocationStrategy: z.enum(['lowest-price', 'prioritized']).default('lowest-price') })
    .prefault({}),
  TagSpecification: tagSpecifications,
});
type CreateFleet = z.infer<typeof createFleet>;
type Answer = { readonly [name: string]: XmlValue };

/** Candidate for a launch: an override in one zone. */
interface Candidate {
  readonly template: TemplateVersion;
  readonly override: Override;
  readonly type: string;
  readonly subnet: Subnet | null;
  readonly lifecycle: Lifecycle;
}

/** "it must be more than USD $0.001": API_FleetLaunchTemplateOverridesRequest and the spot user guide. */
const LEAST_MAX_PRICE_USD = 0.001;

interface FleetsOf {
  readonly templates: Templates;
  readonly launches: Launches;
  readonly reservations: Reservations;
}

export class Fleets {
  readonly #place: Place;
  readonly #of: FleetsOf;
  readonly #tokens = new Tokens<Answer>();
  #fleets = 0;

  constructor(place: Place, of: FleetsOf) {
    this.#place = place;
    this.#of = of;
  }

  readonly actions: Actions<Answer> = {
    // Idempotence: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html. A fleet without instances
    // exists too, so its token stays bound to its errors.
    CreateFleet: action(createFleet, (asked) =>
      this.#tokens.once(asked.ClientToken, asked, {
        answer: () => this.#create(asked),
        mismatch: () =>
          new AwsFault(
            'IdempotentParameterMismatch',
            'The client token you have provided is associated with a resource that has different parameters',
          ),
      }),
    ),
  };

  async #create(asked: CreateFleet): Promise<Answer> {
    const fleetId = `fleet-${uuidOf(`fleet/${this.#fleets++}/${asked.ClientToken ?? ''}`)}`;
    const launched: { readonly instance: Ec2Instance; readonly by: Candidate }[] = [];
    const errors: XmlValue[] = [];
    for (const { lifecycle, count } of targets(asked)) {
      let candidates = this.#candidates(asked, lifecycle);
      for (let left = count; left > 0 && candidates.length > 0;) {
        const [by] = candidates as [Candidate];
        const id = instanceId(`i-0${hexOf(`${fleetId}/${launched.length}/${errors.length}`, 16)}`);
        const got = await this.#launch(by, { asked, fleetId, id });
        if (isRefusal(got)) {
          // Next candidate: a pool that refuses one instance refuses the rest of this request.
          candidates = candidates.slice(1);
          errors.push(errorShown(by, got));
        } else {
          launched.push({ instance: got, by });
          left--;
        }
      }
    }
    return { fleetId, errorSet: errors, fleetInstanceSet: grouped(launched) };
  }

  /** Candidates in the order of trial. Strategies by capacity keep the given order, because capacity is not public. */
  #candidates(asked: CreateFleet, lifecycle: Lifecycle): Candidate[] {
    const candidates = asked.LaunchTemplateConfigs.flatMap(({ LaunchTemplateSpecification: named, Overrides }) => {
      const name = { id: named.LaunchTemplateId, name: named.LaunchTemplateName };
      const template = this.#of.templates.find(name, named.Version);
      return (Overrides.length === 0 ? [{}] : Overrides).flatMap((o: Override): Candidate[] => {
        const type = o.InstanceType ?? template.data.InstanceType;
        if (type === undefined)
          throw new AwsFault('MissingParameter', 'No instance type in override or launch template');
        return this.#zonesOf(o).map((subnet) => ({ template, override: o, type, subnet, lifecycle }));
      });
    });
    const strategy =
      lifecycle === 'spot' ? asked.SpotOptions.AllocationStrategy : asked.OnDemandOptions.AllocationStrategy;
    const rank = (c: Candidate): number =>
      strategy === 'lowest-price'
        ? this.#price(c)
        : strategy.endsWith('prioritized')
          ? (c.override.Priority ?? Infinity)
          : 0;
    return candidates
      .map((candidate) => ({ candidate, rank: rank(candidate) }))
      .sort((a, b) => (a.rank === b.rank ? 0 : a.rank - b.rank))
      .map(({ candidate }) => candidate);
  }

  /** Zones of an override; null for an unknown subnet. Without subnet and zone, all zones. */
  #zonesOf({ SubnetId, AvailabilityZone }: Override): readonly (Subnet | null)[] {
    const { subnets } = this.#place;
    if (SubnetId !== undefined) return [subnets.find((s) => s.id === SubnetId) ?? null];
    if (AvailabilityZone === undefined) return subnets;
    return [subnets.find((s) => s.zone === AvailabilityZone) ?? null];
  }

  #pool({ type, subnet, lifecycle }: Candidate): Pool | undefined {
    return this.#place.pools.find((p) => p.type.name === type && p.zone === subnet?.zone && p.option === lifecycle);
  }

  #price(candidate: Candidate): number {
    const pool = this.#pool(candidate);
    const quote = pool === undefined ? null : this.#place.market.quote(pool.id, epochMs(nowMs(this.#place)));
    return quote === null ? Infinity : raw(quote);
  }

  async #launch(
    by: Candidate,
    of: { readonly asked: CreateFleet; readonly fleetId: string; readonly id: InstanceId },
  ): Promise<Ec2Instance | Refusal> {
    const pool = this.#pool(by);
    if (by.subnet === null) return unknownSubnet(by.override);
    if (pool === undefined) return unsupported(by.type, by.subnet.zone);
    const bid = bidOf(by);
    if (isRefusal(bid)) return bid;
    const { template, lifecycle, subnet } = by;
    const { id, fleetId, asked } = of;
    const refusal = this.#place.knobs.takeFleetError();
    if (refusal !== null) return refusal;
    const tags = taggedBy(template, asked.TagSpecification).set('aws:ec2:fleet-id', fleetId);
    const launch = { id, ...bid, lifecycle, subnet, template, clientToken: asked.ClientToken, tags };
    // Open reservation, which EC2 uses first for on-demand instances without a request.
    const open = lifecycle === 'on-demand' ? this.#of.reservations.openFor(pool) : undefined;
    if (open !== undefined) {
      const got = await this.#of.launches.launch({ ...launch, pool: open.pool, reservationId: open.id });
      if (!isRefusal(got)) return got;
    }
    return this.#of.launches.launch({ ...launch, pool, reservationId: null });
  }
}

/** Spot and on-demand shares of the target. The rest has the default type. */
function targets({
  TargetCapacitySpecification: t,
}: CreateFleet): { readonly lifecycle: Lifecycle; readonly count: number }[] {
  const named = (t.SpotTargetCapacity ?? 0) + (t.OnDemandTargetCapacity ?? 0);
  if (named > t.TotalTargetCapacity) {
    throw new AwsFault('InvalidTargetCapacitySpecification', 'The shares of the target capacity exceed its total');
  }
  const rest = (type: Lifecycle): number => (t.DefaultTargetCapacityType === type ? t.TotalTargetCapacity - named : 0);
  return [
    { lifecycle: 'on-demand', count: (t.OnDemandTargetCapacity ?? 0) + rest('on-demand') },
    { lifecycle: 'spot', count: (t.SpotTargetCapacity ?? 0) + rest('spot') },
  ];
}

function bidOf({ lifecycle, override: { MaxPrice } }: Candidate): { readonly bid: Bid } | Refusal {
  if (lifecycle === 'on-demand' || MaxPrice === undefined) return { bid: 'uncapped' };
  if (Number(MaxPrice) <= LEAST_MAX_PRICE_USD) {
    return {
      code: 'InvalidParameterValue',
      message: `The maximum price ${MaxPrice} must be more than ${LEAST_MAX_PRICE_USD}`,
    };
  }
  return { bid: usdPerHour(Number(MaxPrice)) };
}

const unknownSubnet = ({ SubnetId, AvailabilityZone }: Override): Refusal =>
  SubnetId === undefined
    ? { code: 'InvalidParameterValue', message: `Invalid availability zone: [${AvailabilityZone ?? ''}]` }
    : { code: 'InvalidSubnetID.NotFound', message: `The subnet ID '${SubnetId}' does not exist` };

const usedShown = ({ template, override: o, type, subnet }: Candidate): XmlValue => ({
  launchTemplateSpecification: { launchTemplateId: template.templateId, version: String(template.number) },
  overrides: {
    instanceType: type,
    maxPrice: o.MaxPrice,
    subnetId: o.SubnetId,
    availabilityZone: o.AvailabilityZone ?? subnet?.zone,
    priority: o.Priority,
  },
});

const errorShown = (by: Candidate, refusal: Refusal): XmlValue => ({
  launchTemplateAndOverrides: usedShown(by),
  lifecycle: by.lifecycle,
  errorCode: refusal.code,
  errorMessage: refusal.message,
});

/** Entry per candidate with instances. */
function grouped(launched: readonly { readonly instance: Ec2Instance; readonly by: Candidate }[]): XmlValue {
  const byCandidate = new Map<Candidate, Ec2Instance[]>();
  for (const { instance, by } of launched) byCandidate.set(by, [...(byCandidate.get(by) ?? []), instance]);
  return [...byCandidate].map(([by, instances]) => ({
    launchTemplateAndOverrides: usedShown(by),
    lifecycle: by.lifecycle,
    instanceIds: instances.map((i) => i.id),
    instanceType: by.type,
    availabilityZone: by.subnet?.zone,
    subnetId: by.subnet?.id,
  }));
}
