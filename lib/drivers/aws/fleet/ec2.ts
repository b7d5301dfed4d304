import { poolParts } from '../../../domain/pool.ts';
import {
  CreateFleetCommand,
  DescribeInstancesCommand,
  RunInstancesCommand,
  TerminateInstancesCommand,
  type CreateFleetCommandInput,
  type EC2Client,
  type Instance,
  type RunInstancesCommandInput,
  type TagSpecification,
} from '@aws-sdk/client-ec2';
import type { PoolId } from '../../../kernel/ids.ts';
import {
  classify,
  faultOf,
  faultOfLaunch,
  outcomeOfFault,
  outcomeOfNoLaunch,
  type AwsFault,
  type Unsuccessful,
} from '../errors.ts';
import { tokenOf } from './marks.ts';
import { LAUNCH_RATE, TokenBucket } from './request-rate.ts';

/**
 * Tags by which an instance is known again when our own records of it are lost. One that is bought alone has `instance`
 * and `key`; one of several that are bought together has `launch` in their place, as CreateFleet gives all of them the
 * same tags.
 */
export const TAGS = {
  stack: 'ebb:stack',
  instance: 'ebb:instance',
  key: 'ebb:key',
  launch: 'ebb:launch',
  pool: 'ebb:pool',
  bid: 'ebb:bid',
} as const;

export interface Ec2Options {
  readonly client: EC2Client;
  /** The deployment's name: the tag of all that it makes. */
  readonly stack: string;
  /** Id. */
  readonly launchTemplate: string;
  /**
   * Number of the version that the deployment made. `$Default` stays at 1 however often CloudFormation updates the
   * template.
   */
  readonly launchTemplateVersion: string;
  /** Subnet by zone. */
  readonly subnets: ReadonlyMap<string, string>;
  /** Ids of the capacity reservations of a reserved pool that take instances now; absent: there are none. */
  readonly reservations?: (pool: PoolId) => Promise<readonly string[]>;
  /** Admits requests that launch; absent: LAUNCH_RATE. */
  readonly rate?: Pick<TokenBucket, 'take'>;
  /** Told of a pool whose type its zone does not offer. */
  readonly onUnsupported?: (pool: string) => Promise<void>;
  /** Told of a launch that EC2 refuses as invalid: a defect, or a deployment that does not fit together. */
  readonly onInvalid?: (pool: string, detail: string) => void;
}

/** An instance as EC2 shows it, with what our tags say. */
export interface Seen {
  readonly ec2: string;
  /** Which instance of ours it says to be; null: its tags do not say. Tags can be copied: its record decides. */
  readonly instance: string | null;
  /** The group that it was bought with (launch-groups.ts); null: it was bought alone. */
  readonly launch: string | null;
  readonly key: string;
  readonly pool: string;
  readonly bid: number | 'uncapped';
  readonly launchedMs: number;
  readonly state: string;
  /** Why it ends or has ended: EC2's code and text; empty before. */
  readonly reason: { readonly code: string; readonly text: string };
  /** When its last change was asked for, where EC2 says so. */
  readonly changedMs: number | null;
}

/** One that says which instance of ours it is. */
export type SeenInstance = Seen & { readonly instance: string };

export const namesInstance = (seen: Seen): seen is SeenInstance => seen.instance !== null;

/** What one request is to buy: instances of one pool at one bid. */
export interface Purchase {
  /**
   * Asked again under the same token EC2 answers the same, and buys nothing (EC2 developer guide, "Ensuring
   * idempotency").
   */
  readonly token: string;
  readonly pool: PoolId;
  readonly bid: number | 'uncapped';
  readonly count: number;
  /** Tags of the instances besides those of every launch. One of them is theirs alone. */
  readonly tags: Partial<Record<'instance' | 'key' | 'launch', string>>;
  /** Version of the launch template. */
  readonly template: string;
}

/** What a request bought; `lacking`: why it bought less than it was to, null where it did not. */
export interface Bought {
  readonly ec2: readonly string[];
  readonly lacking: Unsuccessful | null;
}

interface Where {
  readonly type: string;
  readonly subnet: string;
  readonly option: 'spot' | 'on-demand';
}

/** Ids of one DescribeInstances: far below what a request may hold. */
const IDS_AT_ONCE = 100;

/** The calls to EC2. */
export class Ec2 {
  readonly #options: Ec2Options;
  readonly #rate: Pick<TokenBucket, 'take'>;

  constructor(options: Ec2Options) {
    this.#options = options;
    this.#rate = options.rate ?? new TokenBucket(LAUNCH_RATE);
  }

  /** Version of the launch template that this deployment made. */
  get template(): string {
    return this.#options.launchTemplateVersion;
  }

  /**
   * Buys instances. On spot and on demand by an instant fleet of one override, which answers at once, also where it got
   * but some of them. An override names no capacity reservation (API_FleetLaunchTemplateOverridesRequest): RunInstances
   * launches into those, and never outside of them.
   */
  async buy(purchase: Purchase): Promise<Bought> {
    const { pool } = purchase;
    const { type, zone, option } = poolParts(pool);
    const subnet = this.#options.subnets.get(zone);
    if (subnet !== undefined && option === 'reserved') return this.#buyReserved(purchase, { type, subnet });
    if (subnet === undefined || (option !== 'spot' && option !== 'on-demand')) {
      const detail = `this deployment buys nothing in ${pool}`;
      return { ec2: [], lacking: { status: 'refused', why: 'invalid', detail } };
    }
    return this.#asked(purchase, 'CreateFleet', async () => {
      const request = this.#fleetOf(purchase, { type, subnet, option });
      const answer = await this.#options.client.send(new CreateFleetCommand(request));
      const ec2 = (answer.Instances ?? []).flatMap((launched) => launched.InstanceIds ?? []);
      if (ec2.length >= purchase.count) return { ec2, lacking: null };
      const [error] = answer.Errors ?? [];
      const { ErrorCode: code = '', ErrorMessage: message = 'fewer instances than asked for, and no error' } =
        error ?? {};
      const fault = faultOfLaunch(code, message);
      const detail = `ec2 CreateFleet: ${code}: ${message}`;
      await this.#note(pool, fault, detail);
      return { ec2, lacking: outcomeOfNoLaunch(fault, detail) };
    });
  }

  /** All of them or none, in the first reservation that has room. */
  async #buyReserved(purchase: Purchase, where: Omit<Where, 'option'>): Promise<Bought> {
    const { pool, token, tags, count } = purchase;
    const reservations = (await this.#options.reservations?.(pool)) ?? [];
    // A token is bound to its reservation. Asked again after a crash another one may have room by now.
    const before = reservations.length > 1 ? await this.#tagged(tags) : [];
    if (before.length >= count) return { ec2: before, lacking: null };
    const detail = `no capacity reservation of ${pool} takes instances now`;
    let bought: Bought = { ec2: [], lacking: { status: 'refused', why: 'insufficient-capacity', detail } };
    for (const reservation of reservations) {
      bought = await this.#asked(purchase, 'RunInstances', async () => {
        const request = this.#runOf({ ...purchase, token: tokenOf(token, reservation) }, where, reservation);
        const { Instances = [] } = await this.#options.client.send(new RunInstancesCommand(request));
        return { ec2: Instances.flatMap((launched) => launched.InstanceId ?? []), lacking: null };
      });
      const { lacking } = bought;
      if (lacking?.status !== 'refused' || lacking.why !== 'insufficient-capacity') break;
    }
    return bought;
  }

  /** What a request that launches has bought, or why it threw. */
  async #asked(purchase: Purchase, call: string, send: () => Promise<Bought>): Promise<Bought> {
    await this.#rate.take();
    try {
      return await send();
    } catch (error) {
      if (isOfOtherRequest(error)) return this.#boughtBefore(purchase);
      const fault = faultOf(error);
      const detail = classify(error, `ec2 ${call}`).message;
      await this.#note(purchase.pool, fault, detail);
      const outcome = outcomeOfFault(fault, detail);
      // Turned away at the door it bought nothing. Of the rest that failed it is not known, or the same request may
      // pass.
      const isTurnedAway = outcome.status === 'failed' && outcome.why === 'denied';
      return { ec2: [], lacking: isTurnedAway ? outcomeOfNoLaunch(fault, detail) : outcome };
    }
  }

  /**
   * The token is bound to a request of an earlier deployment, with other subnets or another template: what that one
   * bought.
   */
  async #boughtBefore({ tags, count }: Purchase): Promise<Bought> {
    const ec2 = await this.#tagged(tags);
    const detail = 'asked for before an update of the deployment, and not launched then';
    return { ec2, lacking: ec2.length >= count ? null : { status: 'refused', why: 'no-answer', detail } };
  }

  /** Instances that were launched with the tags of a purchase. */
  async #tagged(tags: Purchase['tags']): Promise<readonly string[]> {
    const [[name, value] = ['key', ''] as const] = Object.entries(tags) as [keyof typeof TAGS, string][];
    return (await this.#describe(`tag:${TAGS[name]}`, [value])).map((seen) => seen.ec2);
  }

  /** What cannot be noted now is met again at the next launch. */
  async #note(pool: string, fault: AwsFault | null, detail: string): Promise<void> {
    if (fault === 'unsupported') await this.#options.onUnsupported?.(pool).catch(() => undefined);
    if (fault === 'invalid') this.#options.onInvalid?.(pool, detail);
  }

  #fleetOf(purchase: Purchase, where: Where): CreateFleetCommandInput {
    const { token, bid, count, template } = purchase;
    const isCapped = where.option === 'spot' && bid !== 'uncapped';
    return {
      Type: 'instant',
      ClientToken: token,
      TargetCapacitySpecification: { TotalTargetCapacity: count, DefaultTargetCapacityType: where.option },
      LaunchTemplateConfigs: [
        {
          LaunchTemplateSpecification: { LaunchTemplateId: this.#options.launchTemplate, Version: template },
          Overrides: [
            {
              InstanceType: where.type as NonNullable<Instance['InstanceType']>,
              SubnetId: where.subnet,
              ...(isCapped ? { MaxPrice: priceText(bid) } : {}),
            },
          ],
        },
      ],
      TagSpecifications: this.#tagsOf(purchase),
    };
  }

  #runOf(purchase: Purchase, where: Omit<Where, 'option'>, reservation: string): RunInstancesCommandInput {
    const { token, count, template } = purchase;
    return {
      ClientToken: token,
      MinCount: count,
      MaxCount: count,
      LaunchTemplate: { LaunchTemplateId: this.#options.launchTemplate, Version: template },
      InstanceType: where.type as NonNullable<Instance['InstanceType']>,
      SubnetId: where.subnet,
      CapacityReservationSpecification: { CapacityReservationTarget: { CapacityReservationId: reservation } },
      TagSpecifications: this.#tagsOf(purchase),
    };
  }

  #tagsOf({ tags, pool, bid }: Purchase): TagSpecification[] {
    const { stack } = this.#options;
    const all: Partial<Record<keyof typeof TAGS, string>> = { stack, ...tags, pool, bid: String(bid) };
    const Tags = (Object.keys(TAGS) as (keyof typeof TAGS)[]).flatMap((name) => {
      const value = all[name];
      return value === undefined ? [] : [{ Key: TAGS[name], Value: value }];
    });
    return [{ ResourceType: 'instance', Tags }];
  }

  /** Those of ours among `ids` that EC2 shows; one that was just made may not be there yet. */
  async seen(ids: readonly string[]): Promise<readonly Seen[]> {
    const found: Seen[] = [];
    for (let i = 0; i < ids.length; i += IDS_AT_ONCE) {
      // A filter leaves out what is not there; asked for by name, one that is not there fails them all.
      found.push(...(await this.#describe('instance-id', ids.slice(i, i + IDS_AT_ONCE))));
    }
    return found;
  }

  /** All of the deployment, those included that ended within about an hour. */
  all(): Promise<readonly Seen[]> {
    return this.#describe(`tag:${TAGS.stack}`, [this.#options.stack]);
  }

  async #describe(filter: string, values: readonly string[]): Promise<readonly Seen[]> {
    const found: Seen[] = [];
    let token: string | undefined;
    try {
      do {
        const answer = await this.#options.client.send(
          new DescribeInstancesCommand({
            Filters: [{ Name: filter, Values: [...values] }],
            ...(token === undefined ? {} : { NextToken: token }),
          }),
        );
        for (const reservation of answer.Reservations ?? []) {
          for (const instance of reservation.Instances ?? []) found.push(...seenOf(instance, this.#options.stack));
        }
        token = answer.NextToken;
      } while (token !== undefined && token !== '');
    } catch (error) {
      throw classify(error, 'ec2 DescribeInstances');
    }
    return found;
  }

  /** Ends an instance. One that has ended already stays so. */
  async end(ec2: string): Promise<void> {
    try {
      await this.#options.client.send(new TerminateInstancesCommand({ InstanceIds: [ec2] }));
    } catch (error) {
      if (faultOf(error) !== 'gone') throw classify(error, 'ec2 TerminateInstances');
    }
  }
}

/** API_CreateFleet, API_RunInstances: a token that was used with other parameters. */
const isOfOtherRequest = (error: unknown): boolean =>
  error instanceof Error && error.name === 'IdempotentParameterMismatch';

/** Dollars without an exponent, as precise as spot prices are. */
const priceText = (usdPerHour: number): string => usdPerHour.toFixed(6).replace(/\.?0+$/, '');

/**
 * Of our own only: nothing else in the account is any business of ours. Whatever bears the stack's tag is, whoever
 * launched it.
 */
function seenOf(instance: Instance, stack: string): Seen[] {
  const tags = new Map((instance.Tags ?? []).map((t) => [t.Key, t.Value ?? '']));
  const { InstanceId: ec2, LaunchTime } = instance;
  if (ec2 === undefined || tags.get(TAGS.stack) !== stack) return [];
  const bid = Number(tags.get(TAGS.bid));
  return [
    {
      ec2,
      instance: tags.get(TAGS.instance) ?? null,
      launch: tags.get(TAGS.launch) ?? null,
      key: tags.get(TAGS.key) ?? '',
      pool: tags.get(TAGS.pool) ?? '',
      bid: Number.isFinite(bid) ? bid : 'uncapped',
      launchedMs: LaunchTime?.getTime() ?? 0,
      state: instance.State?.Name ?? '',
      reason: { code: instance.StateReason?.Code ?? '', text: instance.StateReason?.Message ?? '' },
      changedMs: timeIn(instance.StateTransitionReason ?? ''),
    },
  ];
}

/** `User initiated (2026-01-05 12:08:40 GMT)` (API_Instance, StateTransitionReason). */
function timeIn(reason: string): number | null {
  const [, day, time] = /\((\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}) GMT\)/.exec(reason) ?? [];
  return day === undefined || time === undefined ? null : Date.parse(`${day}T${time}Z`);
}
