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
import { tokenOf } from './request-names.ts';
import { LAUNCH_RATE, TokenBucket } from './request-rate.ts';

/**
 * Tags that identify an instance if our records are lost. An instance that is bought alone has `instance` and `key`.
 * Instances of one request have `launch` instead, because CreateFleet gives all of them the same tags.
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
  /** Name of the deployment, and tag of everything that it makes. */
  readonly stack: string;
  /** Id of the launch template. */
  readonly launchTemplate: string;
  /** Version that the deployment made. `$Default` stays at 1 when CloudFormation updates the template. */
  readonly launchTemplateVersion: string;
  /** Subnet by zone. */
  readonly subnets: ReadonlyMap<string, string>;
  /** Ids of a reserved pool's capacity reservations that accept instances now; absent: none. */
  readonly reservations?: (pool: PoolId) => Promise<readonly string[]>;
  /** Limits the rate of launch requests; absent: LAUNCH_RATE. */
  readonly rate?: Pick<TokenBucket, 'take'>;
  /** Called for a pool whose type its zone does not offer. */
  readonly onUnsupported?: (pool: string) => Promise<void>;
  /** Called for a launch that EC2 refuses as invalid: a defect, or a deployment whose parts do not match. */
  readonly onInvalid?: (pool: string, detail: string) => void;
}

/** An instance as EC2 shows it, with our tags. */
export interface Seen {
  readonly ec2: string;
  /** Instance id in our tags; null: none. Tags can be copied, so the record decides. */
  readonly instance: string | null;
  /** Group of the purchase (launch-groups.ts); null: bought alone. */
  readonly launch: string | null;
  readonly key: string;
  readonly pool: string;
  readonly bid: number | 'uncapped';
  readonly launchedMs: number;
  readonly state: string;
  /** EC2's code and text for the end of the instance; empty before. */
  readonly reason: { readonly code: string; readonly text: string };
  /** Time at which its last change was requested, if EC2 shows it. */
  readonly changedMs: number | null;
}

/** Instance whose tags hold our id. */
export type SeenInstance = Seen & { readonly instance: string };

export const namesInstance = (seen: Seen): seen is SeenInstance => seen.instance !== null;

/** One purchase request: instances of one pool at one bid. */
export interface Purchase {
  /**
   * Client token: EC2 answers a repeated request the same and buys nothing (EC2 developer guide, "Ensuring
   * idempotency").
   */
  readonly token: string;
  readonly pool: PoolId;
  readonly bid: number | 'uncapped';
  readonly count: number;
  /** Tags besides those of every launch. One of them is unique to the request. */
  readonly tags: Partial<Record<'instance' | 'key' | 'launch', string>>;
  /** Version of the launch template. */
  readonly template: string;
}

/** Bought instances. `lacking`: reason of a shortfall, or null. */
export interface Bought {
  readonly ec2: readonly string[];
  readonly lacking: Unsuccessful | null;
}

interface Where {
  readonly type: string;
  readonly subnet: string;
  readonly option: 'spot' | 'on-demand';
}

/** Ids per DescribeInstances, far below the limit of a request. */
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
   * Buys instances. Spot and on-demand: an instant fleet with one override, which answers at once, also for a partial
   * purchase. Reserved: RunInstances, which launches only into the reservation. An override cannot name one
   * (API_FleetLaunchTemplateOverridesRequest).
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

  /** All instances or none, in the first reservation with room. */
  async #buyReserved(purchase: Purchase, where: Omit<Where, 'option'>): Promise<Bought> {
    const { pool, token, tags, count } = purchase;
    const reservations = (await this.#options.reservations?.(pool)) ?? [];
    // The token is bound to one reservation. After a crash another one may have room, so earlier purchases are looked
    // up by tag.
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

  /** Purchase, or the reason of its failure. */
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
      // Denied requests bought nothing. Other failed requests may have bought, or may pass when repeated.
      const isTurnedAway = outcome.status === 'failed' && outcome.why === 'denied';
      return { ec2: [], lacking: isTurnedAway ? outcomeOfNoLaunch(fault, detail) : outcome };
    }
  }

  /** Purchase of an earlier deployment: its request, with other subnets or another template, holds the token. */
  async #boughtBefore({ tags, count }: Purchase): Promise<Bought> {
    const ec2 = await this.#tagged(tags);
    const detail = 'requested before an update of the deployment, and not launched';
    return { ec2, lacking: ec2.length >= count ? null : { status: 'refused', why: 'no-answer', detail } };
  }

  /** Instances with the tags of a purchase. */
  async #tagged(tags: Purchase['tags']): Promise<readonly string[]> {
    const [[name, value] = ['key', ''] as const] = Object.entries(tags) as [keyof typeof TAGS, string][];
    return (await this.#describe(`tag:${TAGS[name]}`, [value])).map((seen) => seen.ec2);
  }

  /** Reports a fault. An unreported one comes up again at the next launch. */
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

  /** Our instances among `ids` that EC2 shows. A new one may be missing. */
  async seen(ids: readonly string[]): Promise<readonly Seen[]> {
    const found: Seen[] = [];
    for (let i = 0; i < ids.length; i += IDS_AT_ONCE) {
      // A filter skips missing ids. Naming them directly would fail the whole request.
      found.push(...(await this.#describe('instance-id', ids.slice(i, i + IDS_AT_ONCE))));
    }
    return found;
  }

  /** All instances of the deployment, including those that ended within about an hour. */
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

  /** Ends an instance; no effect if it has ended. */
  async end(ec2: string): Promise<void> {
    try {
      await this.#options.client.send(new TerminateInstancesCommand({ InstanceIds: [ec2] }));
    } catch (error) {
      if (faultOf(error) !== 'gone') throw classify(error, 'ec2 TerminateInstances');
    }
  }
}

/** Errors of a token that was used with other parameters (API_CreateFleet, API_RunInstances). */
const isOfOtherRequest = (error: unknown): boolean =>
  error instanceof Error && error.name === 'IdempotentParameterMismatch';

/** Dollars without an exponent, at the precision of spot prices. */
const priceText = (usdPerHour: number): string => usdPerHour.toFixed(6).replace(/\.?0+$/, '');

/**
 * Our instance, or none. The stack's tag decides, whoever launched the instance; all others in the account are ignored.
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

/** Time in `User initiated (2026-01-05 12:08:40 GMT)` (API_Instance, StateTransitionReason). */
function timeIn(reason: string): number | null {
  const [, day, time] = /\((\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2}) GMT\)/.exec(reason) ?? [];
  return day === undefined || time === undefined ? null : Date.parse(`${day}T${time}Z`);
}
