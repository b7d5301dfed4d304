import { bidNumber, type Bid, type Pool } from '../../../lib/domain/pool.ts';
import { effectKey, type InstanceId } from '../../../lib/kernel/ids.ts';
import { rawOrNull } from '../../../lib/kernel/units.ts';
import { agentConfig } from '../ecs/agent-config.ts';
import { nowMs, type Place, type Subnet } from '../place.ts';
import { matchesAny } from '../wildcard.ts';
import type { Ec2Instance, Lifecycle } from './instance.ts';
import { vcpus, type Instances } from './instances.ts';
import type { TemplateVersion } from './templates.ts';

/** One instance to launch, by any call. */
export interface Launch {
  readonly id: InstanceId;
  readonly pool: Pool;
  readonly bid: Bid;
  readonly lifecycle: Lifecycle;
  readonly subnet: Subnet;
  readonly template: TemplateVersion;
  readonly clientToken: string | undefined;
  readonly tags: Map<string, string>;
  /** Its reservation; null: none. */
  readonly reservationId: string | null;
}

export interface Refusal {
  readonly code: string;
  readonly message: string;
}

export const isRefusal = (got: object): got is Refusal => 'code' in got;

/** Launches of instances, for all calls: quotas, knobs, and the capacity engine. */
export class Launches {
  readonly #place: Place;
  readonly #instances: Instances;

  constructor(place: Place, instances: Instances) {
    this.#place = place;
    this.#instances = instances;
  }

  async launch(launch: Launch): Promise<Ec2Instance | Refusal> {
    if (!fitsImage(launch.template, launch.pool)) return otherArchitecture(launch.pool);
    const instance: Ec2Instance = {
      ...launch,
      agent: agentConfig(launch.template.data.UserData),
      privateIp: this.#nextAddress(),
      launchedMs: nowMs(this.#place),
      state: 'pending',
      stateReason: null,
      transition: '',
      terminatedMs: null,
    };
    const refusal = this.#overLimit(instance) ?? (await this.#askEngine(instance));
    if (refusal !== null) return refusal;
    this.#instances.add(instance);
    return instance;
  }

  #nextAddress(): string {
    const n = this.#instances.all.length + 10;
    return `10.0.${(n >> 8) & 255}.${n & 255}`;
  }

  /**
   * Check of the quota. Reservations count towards the on-demand quota, so their instances do not count again:
   * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservation-overview.html
   */
  #overLimit(instance: Ec2Instance): Refusal | null {
    const { spotVcpus, onDemandVcpus, insufficientCapacity } = this.#place.knobs.now;
    const limit = instance.lifecycle === 'spot' ? spotVcpus : instance.reservationId === null ? onDemandVcpus : null;
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
    return isShort ? insufficient(instance) : null;
  }

  /** Answer of the market. */
  async #askEngine(instance: Ec2Instance): Promise<Refusal | null> {
    const { id, pool, bid } = instance;
    const request = { key: effectKey(`launch/${id}`), instance: id, pool: pool.id, bid };
    const [outcome] = await this.#place.fleet.launch([request]);
    if (outcome === undefined || outcome.status === 'done') return null;
    if (outcome.status === 'failed') return { code: 'InternalError', message: outcome.detail };
    switch (outcome.why) {
      case 'bid-below-price':
        return {
          code: 'SpotMaxPriceTooLow',
          message: `Your Spot request price of ${bidNumber(bid)} is lower than the minimum required Spot request fulfillment price of ${rawOrNull(this.#place.market.quote(pool.id, this.#place.clock.now()))}.`,
        };
      case 'insufficient-capacity':
        return insufficient(instance);
      case 'quota':
      case 'limit':
      case 'instance-gone':
      case 'denied':
      case 'no-answer':
      case 'unsupported':
      case 'invalid':
      case 'job-fault':
        return unsupported(pool.type.name, pool.zone);
    }
  }
}

/** Message as in https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html */
const insufficient = ({ pool, reservationId }: Ec2Instance): Refusal =>
  reservationId === null
    ? {
        code: 'InsufficientInstanceCapacity',
        message: `We currently do not have sufficient ${pool.type.name} capacity in the Availability Zone you requested (${pool.zone}).`,
      }
    : RESERVATION_EXCEEDED;

/** Refusal of a reservation that is full, inactive, or of another type or zone. */
export const RESERVATION_EXCEEDED: Refusal = {
  code: 'ReservationCapacityExceeded',
  message: 'The requested reservation does not have sufficient compatible and available capacity for this request.',
};

export const unsupported = (type: string, zone: string): Refusal => ({
  code: 'InvalidFleetConfiguration',
  message: `Your requested instance type (${type}) is not supported in your requested Availability Zone (${zone}).`,
});

/**
 * True if the image's name fits the architecture. AWS's public parameters of ECS images for ARM contain `/arm64/`.
 * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html
 */
function fitsImage({ data }: TemplateVersion, { type }: Pool): boolean {
  const image = data.ImageId ?? '';
  if (!image.startsWith('resolve:ssm:/aws/service/ecs/')) return true;
  return image.includes('/arm64/') === (type.arch === 'arm64');
}
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
const otherArchitecture = ({ type }: Pool): Refusal => ({
  code: 'InvalidParameterValue',
  message: `The architecture '${type.arch}' of the specified instance type does not match the architecture '${type.arch === 'arm64' ? 'x86_64' : 'arm64'}' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again (${type.name}).`,
});
