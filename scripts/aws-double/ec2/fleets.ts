import { z } from 'zod';
import type { Bid, Pool } from '../../../lib/domain/pool.ts';
import { effectKey, instanceId, type InstanceId } from '../../../lib/kernel/ids.ts';
import { epochMs, raw, usdPerHour } from '../../../lib/kernel/units.ts';
import type { LaunchRequest } from '../../../lib/ports/fleet.ts';
import { action, Tokens, type Actions } from '../api.ts';
import { agentConfig } from '../ecs/agent-config.ts';
import { hexOf, uuidOf } from '../events.ts';
import { AwsFault } from '../fault.ts';
import { nowMs, type Place, type Subnet } from '../place.ts';
import { form, tagSpecifications, type XmlValue } from '../query.ts';
import { matchesAny } from '../wildcard.ts';
import type { Ec2Instance, Lifecycle } from './instance.ts';
import { vcpus, type Instances } from './instances.ts';
import type { Templates, TemplateVersion } from './templates.ts';

/**
 * CreateFleet of type `instant`: one synchronous request whose answer has the instances launched and an error for each
 * override that could not be used.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instant-fleet.html
 * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html
 */
const override = z.strictObject({
  InstanceType: z.string().optional(),
  SubnetId: z.string().optional(),
  AvailabilityZone: z.string().optional(),
  /** API_FleetLaunchTemplateOverridesRequest: without it the current spot price is paid, whatever it is. */
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

/** One way to launch: an override in one zone. */
interface Candidate {
  readonly template: TemplateVersion;
  readonly override: Override;
  readonly type: string;
  readonly subnet: Subnet | null;
  readonly lifecycle: Lifecycle;
}
interface Refusal {
  readonly code: string;
  readonly message: string;
}

/** "it must be more than USD $0.001": API_FleetLaunchTemplateOverridesRequest and the spot user guide. */
const LEAST_MAX_PRICE_USD = 0.001;

export class Fleets {
  readonly #place: Place;
  readonly #templates: Templates;
  readonly #instances: Instances;
  readonly #tokens = new Tokens<Answer>();
  #fleets = 0;

  constructor(place: Place, of: { readonly templates: Templates; readonly instances: Instances }) {
    this.#place = place;
    this.#templates = of.templates;
    this.#instances = of.instances;
  }

  readonly actions: Actions<Answer> = {
    // https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html. A fleet that got no instance is made
    // all the same, so its token stays bound to its errors.
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
        if ('code' in got) {
          // A pool that says no to one says no to all of this request.
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

  /** In the order in which they are tried. Strategies by capacity keep the order given: capacity is not public. */
  #candidates(asked: CreateFleet, lifecycle: Lifecycle): Candidate[] {
    const candidates = asked.LaunchTemplateConfigs.flatMap(({ LaunchTemplateSpecification: named, Overrides }) => {
      const name = { id: named.LaunchTemplateId, name: named.LaunchTemplateName };
      const template = this.#templates.find(name, named.Version);
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

  /** Null for a subnet that is not there. Without subnet and zone every zone will do. */
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
    if (!fitsImage(by.template, pool)) return otherArchitecture(by.type, pool);
    const bid = bidOf(by);
    if ('code' in bid) return bid;
    const { id, fleetId, asked } = of;
    const instance: Ec2Instance = {
      id,
      pool,
      bid: bid.bid,
      lifecycle: by.lifecycle,
      subnet: by.subnet,
      template: by.template,
      agent: agentConfig(by.template.data.UserData),
      fleetId,
      clientToken: asked.ClientToken,
      privateIp: this.#nextAddress(),
      launchedMs: nowMs(this.#place),
      tags: tagsOf(by.template, asked, fleetId),
      state: 'pending',
      stateReason: null,
      transition: '',
      terminatedMs: null,
    };
    const refusal =
      this.#place.knobs.takeFleetError() ??
      this.#overLimit(instance) ??
      (await this.#askEngine({ key: effectKey(`launch/${id}`), instance: id, pool: pool.id, bid: bid.bid }, by));
    if (refusal !== null) return refusal;
    this.#instances.add(instance);
    return instance;
  }

  #nextAddress(): string {
    const n = this.#instances.all.length + 10;
    return `10.0.${(n >> 8) & 255}.${n & 255}`;
  }

  #overLimit(instance: Ec2Instance): Refusal | null {
    const { spotVcpus, onDemandVcpus, insufficientCapacity } = this.#place.knobs.now;
    const limit = instance.lifecycle === 'spot' ? spotVcpus : onDemandVcpus;
    if (limit !== null && this.#instances.vcpusOf(instance.lifecycle) + vcpus(instance) > limit) {
      // https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
      return instance.lifecycle === 'spot'
        ? { code: 'MaxSpotInstanceCountExceeded', message: 'Max spot instance count exceeded' }
        : {
            code: 'VcpuLimitExceeded',
            message: `You have requested more vCPU capacity than your current vCPU limit of ${limit} allows for the instance bucket that the specified instance type belongs to.`,
          };
    }
    const isShort =
      matchesAny(insufficientCapacity, instance.pool.id) || !this.#place.knobs.takeCapacity(instance.pool.id);
    return isShort ? insufficient(instance.pool) : null;
  }

  /** The market's word on it. */
  async #askEngine(request: LaunchRequest, by: Candidate): Promise<Refusal | null> {
    const [outcome] = await this.#place.fleet.launch([request]);
    if (outcome === undefined || outcome.status === 'done') return null;
    if (outcome.status === 'failed') return { code: 'InternalError', message: outcome.detail };
    const { type, subnet } = by;
    switch (outcome.why) {
      case 'bid-below-price':
        return {
          code: 'SpotMaxPriceTooLow',
          message: `Your Spot request price of ${by.override.MaxPrice ?? ''} is lower than the minimum required Spot request fulfillment price of ${this.#price(by)}.`,
        };
      case 'insufficient-capacity':
        return { code: 'InsufficientInstanceCapacity', message: capacityMessage(type, subnet?.zone ?? '') };
      case 'quota':
      case 'limit':
      case 'instance-gone':
      case 'denied':
      case 'no-answer':
      case 'unsupported':
      case 'invalid':
      case 'job-fault':
        return unsupported(type, subnet?.zone ?? '');
    }
  }
}

/** Spot and on-demand shares of the target; what neither names is of the default type. */
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

/**
 * Tags of the template's instances, then those of the request, which win.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-tags.html
 */
function tagsOf(template: TemplateVersion, asked: CreateFleet, fleetId: string): Map<string, string> {
  const specified = [...template.data.TagSpecification, ...asked.TagSpecification].filter(
    (s) => s.ResourceType === 'instance',
  );
  return new Map([
    ...specified.flatMap((s) => s.Tag.map(({ Key, Value }): [string, string] => [Key, Value])),
    ['aws:ec2:fleet-id', fleetId],
    ['aws:ec2launchtemplate:id', template.templateId],
    ['aws:ec2launchtemplate:version', String(template.number)],
  ]);
}

// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
const capacityMessage = (type: string, zone: string): string =>
  `We currently do not have sufficient ${type} capacity in the Availability Zone you requested (${zone}).`;
const insufficient = (pool: Pool): Refusal => ({
  code: 'InsufficientInstanceCapacity',
  message: capacityMessage(pool.type.name, pool.zone),
});
const unsupported = (type: string, zone: string): Refusal => ({
  code: 'InvalidFleetConfiguration',
  message: `Your requested instance type (${type}) is not supported in your requested Availability Zone (${zone}).`,
});
/**
 * Architecture of the image, where its name tells it: AWS's public parameters of ECS images for ARM have `/arm64/` in
 * them. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html
 */
function fitsImage({ data }: TemplateVersion, { type }: Pool): boolean {
  const image = data.ImageId ?? '';
  if (!image.startsWith('resolve:ssm:/aws/service/ecs/')) return true;
  return image.includes('/arm64/') === (type.arch === 'arm64');
}
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
const otherArchitecture = (name: string, { type }: Pool): Refusal => ({
  code: 'InvalidParameterValue',
  message: `The architecture '${type.arch}' of the specified instance type does not match the architecture '${type.arch === 'arm64' ? 'x86_64' : 'arm64'}' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again (${name}).`,
});
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

/** One entry per candidate that got any. */
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
