import {
  CreateFleetCommand,
  DescribeInstancesCommand,
  TerminateInstancesCommand,
  type CreateFleetCommandInput,
  type EC2Client,
  type Instance,
} from '@aws-sdk/client-ec2';
import { raw } from '../../kernel/units.ts';
import type { LaunchRequest } from '../../ports/fleet.ts';
import {
  classify,
  faultOf,
  faultOfLaunch,
  outcomeOfFault,
  outcomeOfNoLaunch,
  type AwsFault,
  type Unsuccessful,
} from '../errors.ts';
import { rawBid } from './record.ts';
import { tokenOf } from './marks.ts';

/** Tags by which an instance is known again when our own records of it are lost. */
export const TAGS = {
  stack: 'ebb:stack',
  instance: 'ebb:instance',
  key: 'ebb:key',
  pool: 'ebb:pool',
  bid: 'ebb:bid',
} as const;

export interface Ec2Options {
  readonly client: EC2Client;
  /** The deployment's name: the tag of all that it makes. */
  readonly stack: string;
  /** Id; its default version is used. */
  readonly launchTemplate: string;
  /** Subnet by zone. */
  readonly subnets: ReadonlyMap<string, string>;
  /** Told of a pool whose type its zone does not offer. */
  readonly onUnsupported?: (pool: string) => Promise<void>;
}

/** An instance as EC2 shows it, with what our tags say. */
export interface Seen {
  readonly ec2: string;
  /** Which instance of ours it says to be; null: its tags do not say. Tags can be copied: its record decides. */
  readonly instance: string | null;
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

export type Launched = { readonly status: 'launched'; readonly ec2: string } | Unsuccessful;

/** Ids of one DescribeInstances: far below what a request may hold. */
const IDS_AT_ONCE = 100;

/** The calls to EC2. */
export class Ec2 {
  readonly #options: Ec2Options;

  constructor(options: Ec2Options) {
    this.#options = options;
  }

  /**
   * Buys one instance: an instant fleet of one override, which answers at once. Asked again under the same key EC2 answers the
   * same, and buys nothing (EC2 developer guide, "Ensuring idempotency").
   */
  async launch(request: LaunchRequest): Promise<Launched> {
    const [type = '', zone = '', option = ''] = request.pool.split('/');
    const subnet = this.#options.subnets.get(zone);
    if (subnet === undefined || (option !== 'spot' && option !== 'on-demand')) {
      return { status: 'refused', why: 'invalid', detail: `this deployment buys nothing in ${request.pool}` };
    }
    try {
      const answer = await this.#options.client.send(
        new CreateFleetCommand(this.#request(request, { type, subnet, option })),
      );
      const ec2 = answer.Instances?.[0]?.InstanceIds?.[0];
      if (ec2 !== undefined) return { status: 'launched', ec2 };
      const [error] = answer.Errors ?? [];
      const { ErrorCode: code = '', ErrorMessage: message = 'no instance and no error' } = error ?? {};
      const fault = faultOfLaunch(code, message);
      await this.#noteUnsupported(request.pool, fault);
      return outcomeOfNoLaunch(fault, `ec2 CreateFleet: ${code}: ${message}`);
    } catch (error) {
      const fault = faultOf(error);
      await this.#noteUnsupported(request.pool, fault);
      const outcome = outcomeOfFault(fault, classify(error, 'ec2 CreateFleet').message);
      // Turned away at the door it bought nothing. Of the rest that failed it is not known, or the same request may pass.
      return outcome.status === 'failed' && outcome.why === 'denied'
        ? outcomeOfNoLaunch(fault, outcome.detail)
        : outcome;
    }
  }

  /** What cannot be noted now is met again at the next launch. */
  async #noteUnsupported(pool: string, fault: AwsFault | null): Promise<void> {
    if (fault === 'unsupported') await this.#options.onUnsupported?.(pool).catch(() => undefined);
  }

  #request(
    { key, instance, pool, bid }: LaunchRequest,
    where: { readonly type: string; readonly subnet: string; readonly option: 'spot' | 'on-demand' },
  ): CreateFleetCommandInput {
    const { stack, launchTemplate } = this.#options;
    const isCapped = where.option === 'spot' && bid !== 'uncapped';
    const tags = { stack, instance, key, pool, bid: String(rawBid(bid)) } satisfies Record<keyof typeof TAGS, string>;
    return {
      Type: 'instant',
      ClientToken: tokenOf('launch', key, instance),
      TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: where.option },
      LaunchTemplateConfigs: [
        {
          LaunchTemplateSpecification: { LaunchTemplateId: launchTemplate, Version: '$Default' },
          Overrides: [
            {
              InstanceType: where.type as NonNullable<Instance['InstanceType']>,
              SubnetId: where.subnet,
              ...(isCapped ? { MaxPrice: priceText(raw(bid)) } : {}),
            },
          ],
        },
      ],
      TagSpecifications: [
        {
          ResourceType: 'instance',
          Tags: (Object.keys(TAGS) as (keyof typeof TAGS)[]).map((name) => ({ Key: TAGS[name], Value: tags[name] })),
        },
      ],
    };
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

/** Dollars without an exponent, as precise as spot prices are. */
const priceText = (usdPerHour: number): string => usdPerHour.toFixed(6).replace(/\.?0+$/, '');

/** Of our own only: nothing else in the account is any business of ours. Whatever bears the stack's tag is, whoever launched it. */
function seenOf(instance: Instance, stack: string): Seen[] {
  const tags = new Map((instance.Tags ?? []).map((t) => [t.Key, t.Value ?? '']));
  const { InstanceId: ec2, LaunchTime } = instance;
  if (ec2 === undefined || tags.get(TAGS.stack) !== stack) return [];
  const bid = Number(tags.get(TAGS.bid));
  return [
    {
      ec2,
      instance: tags.get(TAGS.instance) ?? null,
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
