import { z } from 'zod';
import type { EndCause } from '../../../lib/domain/instance.ts';
import { effectKey } from '../../../lib/kernel/ids.ts';
import { raw } from '../../../lib/kernel/units.ts';
import { action, type Actions } from '../api.ts';
import { AwsFault } from '../fault.ts';
import { isVisible, nowMs, zoneId, type Place } from '../place.ts';
import { filters, form, page, passes, tagList, type XmlValue } from '../query.ts';
import { stateOf, type Ec2Instance, type InstanceStateName } from './instance.ts';

/**
 * Time that terminated instances stay visible, "for a short while":
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html
 */
const SHOWN_AFTER_END_MS = 3_600_000;

/** The form of an id: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html */
const INSTANCE_ID = /^i-[0-9a-f]{8}(?:[0-9a-f]{9})?$/;

const describe = z.strictObject({
  InstanceId: z.array(z.string()).default([]),
  Filter: filters,
  MaxResults: form.number.min(5).max(1000).optional(),
  NextToken: z.string().optional(),
});
const terminate = z.strictObject({ InstanceId: z.array(z.string()).min(1).max(1000) });
const stop = z.strictObject({ InstanceId: z.array(z.string()).min(1).max(1000) });
const createTags = z.strictObject({ ResourceId: z.array(z.string()).min(1).max(1000), Tag: tagList.min(1) });

/** Instances of the account: EC2's view of the capacity engine. */
export class Instances {
  readonly #place: Place;
  readonly #byId = new Map<string, Ec2Instance>();

  constructor(place: Place) {
    this.#place = place;
  }

  readonly actions: Actions<{ readonly [name: string]: XmlValue }> = {
    DescribeInstances: action(describe, (asked) => this.#describe(asked)),
    TerminateInstances: action(terminate, (asked) => this.#terminate(asked.InstanceId)),
    StopInstances: action(stop, (asked) => this.#stop(asked.InstanceId)),
    CreateTags: action(createTags, ({ ResourceId, Tag }) => {
      for (const instance of this.#named(ResourceId)) for (const { Key, Value } of Tag) instance.tags.set(Key, Value);
      return { return: true };
    }),
  };

  get all(): readonly Ec2Instance[] {
    return [...this.#byId.values()];
  }

  get(id: string): Ec2Instance | undefined {
    return this.#byId.get(id);
  }

  /** Used places of a reservation. A stopped instance frees its place. */
  inReservation(id: string): number {
    const isOver = ({ state }: Ec2Instance): boolean => state === 'terminated' || state === 'stopped';
    return this.all.filter((i) => i.reservationId === id && !isOver(i)).length;
  }

  /**
   * vCPUs of the instances that count against a quota:
   * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html
   */
  vcpusOf(lifecycle: Ec2Instance['lifecycle']): number {
    const counted = this.all.filter(
      (i) => i.lifecycle === lifecycle && i.reservationId === null && (i.state === 'pending' || i.state === 'running'),
    );
    return counted.reduce((sum, i) => sum + vcpus(i), 0);
  }

  add(instance: Ec2Instance): void {
    this.#byId.set(instance.id, instance);
    this.#changed(instance, 'pending', instance.launchedMs);
  }

  running(instance: Ec2Instance, atMs: number): void {
    if (instance.state === 'pending') this.#changed(instance, 'running', atMs);
  }

  /** https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html */
  warned(instance: Ec2Instance, atMs: number): void {
    this.#place.events.add({
      source: 'aws.ec2',
      type: 'EC2 Spot Instance Interruption Warning',
      atMs,
      resources: [spotArn(instance)],
      detail: { 'instance-id': instance.id, 'instance-action': 'terminate' },
    });
  }

  /** https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html */
  rebalance(instance: Ec2Instance, atMs: number): void {
    this.#place.events.add({
      source: 'aws.ec2',
      type: 'EC2 Instance Rebalance Recommendation',
      atMs,
      resources: [spotArn(instance)],
      detail: { 'instance-id': instance.id },
    });
  }

  /** Start of an engine's end. The second step follows after the ends of its tasks. */
  shuttingDown(instance: Ec2Instance, cause: EndCause, atMs: number): void {
    if (instance.state === 'shutting-down') return;
    instance.stateReason = REASONS[cause];
    instance.transition = `${REASONS[cause].code} (${gmt(atMs)})`;
    this.#changed(instance, 'shutting-down', atMs);
  }

  /** Stopped by hand: it still exists, and nothing runs on it. */
  stopped(instance: Ec2Instance, atMs: number): void {
    if (instance.state === 'stopping') this.#changed(instance, 'stopped', atMs);
  }

  terminated(instance: Ec2Instance, atMs: number): void {
    instance.terminatedMs = atMs;
    this.#changed(instance, 'terminated', atMs);
  }

  /** https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instance-state-changes.html */
  #changed(instance: Ec2Instance, state: InstanceStateName, atMs: number): void {
    instance.state = state;
    this.#place.events.add({
      source: 'aws.ec2',
      type: 'EC2 Instance State-change Notification',
      atMs,
      resources: [`arn:aws:ec2:${this.#place.region}:${this.#place.account}:instance/${instance.id}`],
      detail: { 'instance-id': instance.id, state },
    });
  }

  #describe(asked: z.infer<typeof describe>): { readonly [name: string]: XmlValue } {
    if (asked.InstanceId.length > 0 && asked.MaxResults !== undefined) {
      throw new AwsFault(
        'InvalidParameterCombination',
        'The parameter instancesSet cannot be used with the parameter maxResults',
      );
    }
    const candidates =
      asked.InstanceId.length > 0 ? this.#named(asked.InstanceId) : this.all.filter((i) => this.#isShown(i));
    const found = candidates.filter((i) => passes(asked.Filter, (name) => filterValues(i, name)));
    const { items, nextToken } = page(found, { token: asked.NextToken, size: asked.MaxResults ?? 1000 });
    return {
      reservationSet: items.map((i) => ({
        reservationId: `r-${i.id.slice(2)}`,
        ownerId: this.#place.account,
        instancesSet: [shown(i, this.#place)],
      })),
      nextToken,
    };
  }

  /**
   * Idempotent termination. One unknown id fails the whole request:
   * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TerminateInstances.html
   */
  async #terminate(ids: readonly string[]): Promise<{ readonly [name: string]: XmlValue }> {
    const found = this.#named(ids);
    const before = found.map((i) => i.state);
    for (const instance of found) {
      const { state } = instance;
      if (state === 'shutting-down' || state === 'terminated') continue;
      const atMs = this.#userInitiated(instance);
      this.#changed(instance, 'shutting-down', atMs);
      // Stopped or ending instances: the engine has ended them or is about to.
      if (state === 'stopped') this.terminated(instance, atMs);
      if (state === 'stopping' || state === 'stopped') continue;
      await this.#place.fleet.release([{ key: effectKey(`release/${instance.id}`), instance: instance.id }]);
    }
    return changesShown(found, before);
  }

  /**
   * Manual stop, which Ebbtide itself never does:
   * https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StopInstances.html. "You can't stop a Spot Instance that
   * is part of a one-time request": only persistent requests allow it
   * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-instances-request.html#stopping-a-spot-instance).
   */
  async #stop(ids: readonly string[]): Promise<{ readonly [name: string]: XmlValue }> {
    const found = this.#named(ids);
    const spot = found.find((i) => i.lifecycle === 'spot');
    if (spot !== undefined) {
      throw new AwsFault(
        'UnsupportedOperation',
        `You can't stop the Spot Instance '${spot.id}' of a one-time request.`,
      );
    }
    const ended = found.find((i) => i.state === 'shutting-down' || i.state === 'terminated');
    if (ended !== undefined) {
      throw new AwsFault(
        'IncorrectInstanceState',
        `The instance '${ended.id}' is not in a state from which it can be stopped.`,
      );
    }
    const before = found.map((i) => i.state);
    for (const instance of found) {
      if (instance.state === 'stopping' || instance.state === 'stopped') continue;
      this.#changed(instance, 'stopping', this.#userInitiated(instance));
      await this.#place.fleet.release([{ key: effectKey(`release/${instance.id}`), instance: instance.id }]);
    }
    return changesShown(found, before);
  }

  #userInitiated(instance: Ec2Instance): number {
    const atMs = nowMs(this.#place);
    instance.stateReason = REASONS.released;
    instance.transition = `User initiated (${gmt(atMs)})`;
    return atMs;
  }

  #isShown(instance: Ec2Instance): boolean {
    if (!isVisible(this.#place, instance.launchedMs)) return false;
    return instance.terminatedMs === null || nowMs(this.#place) - instance.terminatedMs < SHOWN_AFTER_END_MS;
  }

  /** Throws InvalidInstanceID.*: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html */
  #named(ids: readonly string[]): readonly Ec2Instance[] {
    for (const id of ids) {
      if (!INSTANCE_ID.test(id)) throw new AwsFault('InvalidInstanceID.Malformed', `Invalid id: "${id}"`);
    }
    const found = ids.map((id) => this.#byId.get(id));
    const missing = ids.filter((_, n) => found[n] === undefined || !this.#isShown(found[n]));
    if (missing.length > 0) {
      const many = missing.length > 1;
      throw new AwsFault(
        'InvalidInstanceID.NotFound',
        `The instance ID${many ? 's' : ''} '${missing.join(', ')}' ${many ? 'do' : 'does'} not exist`,
      );
    }
    return found.filter((instance) => instance !== undefined);
  }
}

/** API_InstanceStateChange. */
const changesShown = (
  changed: readonly Ec2Instance[],
  before: readonly InstanceStateName[],
): { readonly [name: string]: XmlValue } => ({
  instancesSet: changed.map((instance, n) => ({
    instanceId: instance.id,
    currentState: stateOf(instance.state),
    previousState: stateOf(before[n] ?? instance.state),
  })),
});

/** https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html */
const REASONS: Readonly<Record<EndCause, { readonly code: string; readonly message: string }>> = {
  interrupted: {
    code: 'Server.SpotInstanceTermination',
    message: 'Server.SpotInstanceTermination: Spot instance termination',
  },
  released: { code: 'Client.UserInitiatedShutdown', message: 'Client.UserInitiatedShutdown: User initiated shutdown' },
  lost: { code: 'Server.InternalError', message: 'Server.InternalError: Internal error on launch' },
  failed: { code: 'Server.InternalError', message: 'Server.InternalError: Internal error on launch' },
};

/** ARN in spot notices, which has the zone in place of region and account, as the pages above show. */
const spotArn = (instance: Ec2Instance): string => `arn:aws:ec2:${instance.pool.zone}:instance/${instance.id}`;

/** `2026-01-05 12:00:00 GMT` */
const gmt = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} GMT`;

export const vcpus = (instance: Ec2Instance): number => raw(instance.pool.type.capacity.cpu) / 1000;

/**
 * Values of a filter, as far as used: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
 */
function filterValues(i: Ec2Instance, name: string): readonly string[] | null {
  if (name.startsWith('tag:')) return [i.tags.get(name.slice(4))].filter((value) => value !== undefined);
  switch (name) {
    case 'tag-key':
      return [...i.tags.keys()];
    case 'instance-id':
      return [i.id];
    case 'instance-state-name':
      return [i.state];
    case 'instance-type':
      return [i.pool.type.name];
    case 'instance-lifecycle':
      return i.lifecycle === 'spot' ? ['spot'] : [];
    case 'availability-zone':
      return [i.pool.zone];
    case 'subnet-id':
      return [i.subnet.id];
    case 'client-token':
      return [i.clientToken ?? ''];
    default:
      return null;
  }
}

export function shown(i: Ec2Instance, place: Place): XmlValue {
  const live = i.state === 'pending' || i.state === 'running';
  return {
    instanceId: i.id,
    imageId: i.template.data.ImageId,
    instanceState: stateOf(i.state),
    reason: i.transition,
    stateReason: i.stateReason ?? undefined,
    amiLaunchIndex: 0,
    instanceType: i.pool.type.name,
    architecture: i.pool.type.arch,
    launchTime: new Date(i.launchedMs),
    placement: { availabilityZone: i.pool.zone, availabilityZoneId: zoneId(i.pool.zone), tenancy: 'default' },
    privateIpAddress: live ? i.privateIp : undefined,
    subnetId: live ? i.subnet.id : undefined,
    vpcId: live ? place.vpcId : undefined,
    clientToken: i.clientToken,
    instanceLifecycle: i.lifecycle === 'spot' ? 'spot' : undefined,
    spotInstanceRequestId: i.lifecycle === 'spot' ? `sir-${i.id.slice(2, 10)}` : undefined,
    tagSet: [...i.tags].map(([key, value]) => ({ key, value })),
    platformDetails: 'Linux/UNIX',
    capacityReservationId: i.reservationId,
  };
}
