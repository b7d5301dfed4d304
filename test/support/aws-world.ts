/**
 * A deployment's fleet and store without LocalStack: EC2 and ECS in the AWS double, DynamoDB and S3 in theirs.
 * Processes come and go on it as Lambdas do, each with clients of its own, and may be met by faults at any of their
 * calls.
 */
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import {
  CreateLaunchTemplateCommand,
  CreateLaunchTemplateVersionCommand,
  DescribeInstancesCommand,
  EC2Client,
} from '@aws-sdk/client-ec2';
import { CreateClusterCommand, ECSClient } from '@aws-sdk/client-ecs';
import { lambdaClock } from '../../lib/drivers/aws/lambda/clock.ts';
import { observeEvents } from '../../lib/drivers/aws/compose/compose-observing.ts';
import { awsFleet, type AwsFleetOnAws } from '../../lib/drivers/aws/fleet/compose-fleet.ts';
import { fleetEvent } from '../../lib/drivers/aws/fleet/event-notices.ts';
import { markOf } from '../../lib/drivers/aws/fleet/request-names.ts';
import { sweep, type Swept } from '../../lib/drivers/aws/fleet/sweep.ts';
import { DynamoStore } from '../../lib/drivers/aws/store/dynamo-store.ts';
import { Table } from '../../lib/drivers/aws/store/dynamo-table.ts';
import type { AttemptId, EffectKey, PoolId } from '../../lib/kernel/ids.ts';
import { START_MS, trace } from '../contract/fleet.ts';
import { startAwsDouble, type AwsDouble } from '../../scripts/aws-double/double.ts';
import type { AwsEvent } from '../../scripts/aws-double/events.ts';
import type { KnobSettings } from '../../scripts/aws-double/knobs.ts';
import { ObjectsDouble } from '../doubles/dynamodb/objects.ts';
import { DynamoDouble, type Use } from '../doubles/dynamodb/table.ts';
import { perform, type Outcomes } from '../../lib/cycle/steps.ts';
import { brokenConnection, type Faults } from './aws-faults.ts';

const REGION = 'us-east-1';
const AT = { region: REGION, credentials: { accessKeyId: 'test', secretAccessKey: 'test' }, maxAttempts: 3 };
const USER_DATA = Buffer.from('#!/bin/sh\necho ECS_CLUSTER=ebb >> /etc/ecs/ecs.config\n').toString('base64');
/** Market seconds per wall second. */
export const WORLD_SPEED = 200;
export const NAMES = { table: 'table', bucket: 'bucket' };

/** Of a fleet in a world of tests: what is the same whichever instances and tasks there are. */
export const FLEET_PLACE = {
  stack: 'world',
  region: REGION,
  cluster: 'ebb',
  image: 'debian:stable-slim',
  logGroup: 'tasks',
  executionRole: 'arn:aws:iam::000000000000:role/execution',
  taskRole: 'arn:aws:iam::000000000000:role/task',
  bucket: NAMES.bucket,
  checkpointDir: () => '/tmp',
  keptAt: async () => null,
  startDelayS: 60,
  rules: { billing: 'per-second', refundRule: 'first-hour' },
} as const;

/** One process on the world. */
export interface Process extends AwsFleetOnAws {
  readonly store: DynamoStore;
  /** What the step `act` does. */
  act(keys: readonly EffectKey[]): Promise<Outcomes>;
  observe(...events: readonly unknown[]): Promise<boolean>;
  sweep(startPatienceS?: number): Promise<Swept>;
}

export class AwsWorld {
  readonly double: AwsDouble;
  /** Ids of capacity reservations by pool, as processes that act know them. */
  reservations: ReadonlyMap<PoolId, readonly string[]>;
  #dynamodb = new DynamoDouble();
  readonly #s3 = new ObjectsDouble();
  readonly #template: string;
  #looking: Process | null = null;
  #version = 1;
  /** Of all processes: they end with the world. */
  readonly #clients: { destroy(): void }[] = [];

  private constructor(double: AwsDouble, template: string) {
    this.double = double;
    this.reservations = new Map([...double.reservations].map(([pool, id]) => [pool, [id]]));
    this.#template = template;
  }

  /** `deliver` takes events one by one; rejecting, it is given the event again. */
  static async begin(
    options: { readonly knobs?: KnobSettings; readonly agents?: boolean },
    deliver: (event: AwsEvent, world: AwsWorld) => Promise<unknown>,
  ): Promise<AwsWorld> {
    let world: AwsWorld | null = null;
    const double = await startAwsDouble({
      trace,
      from: START_MS,
      speed: WORLD_SPEED,
      region: REGION,
      limits: { killAfterS: 1 },
      deliver: async (events) => {
        if (world !== null) for (const event of events) await deliver(event, world);
      },
    });
    const ec2 = new EC2Client({ ...AT, endpoint: double.url });
    const ecs = new ECSClient({ ...AT, endpoint: double.url });
    await ecs.send(new CreateClusterCommand({ clusterName: 'ebb' }));
    // Without its cluster's name an agent registers with none: the instance runs and takes no tasks.
    const data = options.agents === false ? {} : { UserData: USER_DATA };
    const { LaunchTemplate } = await ec2.send(
      new CreateLaunchTemplateCommand({
        LaunchTemplateName: 'hosts',
        LaunchTemplateData: { ImageId: 'ami-0123456789abcdef0', ...data },
      }),
    );
    for (const client of [ec2, ecs]) client.destroy();
    if (options.knobs !== undefined) double.knobs.set(options.knobs);
    world = new AwsWorld(double, LaunchTemplate?.LaunchTemplateId ?? '');
    return world;
  }

  /** A new process; its calls pass through `faults`, and are told to `used`: those of EC2 and ECS consume no units. */
  process(faults?: Faults, used?: (use: Use) => void): Process {
    const through = <C extends { destroy(): void }>(client: C): C => {
      this.#clients.push(client);
      const ours = inThisRealm(client, used);
      return faults === undefined ? ours : faults.around(ours);
    };
    const at = { ...AT, endpoint: this.double.url };
    const dynamodb = through(this.#dynamodb.client(used));
    const store = new DynamoStore({ dynamodb, s3: through(this.#s3.client()), ...NAMES });
    const clock = lambdaClock(this.double.anchor);
    const on = awsFleet({
      clients: {
        ec2: through(new EC2Client(at)),
        ecs: through(new ECSClient(at)),
        logs: through(new CloudWatchLogsClient(at)),
      },
      table: new Table({ client: dynamodb, name: NAMES.table }),
      clock,
      nowMs: () => Date.now(),
      anchor: this.double.anchor,
      ...FLEET_PLACE,
      launchTemplate: this.#template,
      launchTemplateVersion: String(this.#version),
      // A world of tests has no account to share.
      rate: { take: async () => undefined },
      subnets: new Map(this.double.subnets.map((s) => [s.zone, s.id])),
      reservations: async (pool) => this.reservations.get(pool) ?? [],
      prices: async () => trace,
    });
    return {
      ...on,
      store,
      act: (keys) => perform({ store, fleet: on.fleet }, keys),
      observe: async (...events) => {
        const { isNews, failed } = await observeEvents(
          on,
          events.map((event) => fleetEvent.parse(event)),
        );
        for (const error of failed.values()) throw error;
        return isNews;
      },
      sweep: (startPatienceS = 100_000) => sweep({ ...on, store, now: clock.now(), startPatienceS }),
    };
  }

  /** What an update of the stack does: processes that begin from now on launch with another version of the template. */
  async update(): Promise<void> {
    const client = new EC2Client({ ...AT, endpoint: this.double.url });
    const LaunchTemplateData = { ImageId: 'ami-00000000000000002' };
    await client.send(new CreateLaunchTemplateVersionCommand({ LaunchTemplateId: this.#template, LaunchTemplateData }));
    client.destroy();
    this.#version++;
  }

  /** A restore to this instant: once it is called, processes that begin work on a table as it was now. */
  restorable(): () => void {
    const backup = this.#dynamodb.copy();
    return () => {
      this.#dynamodb = backup;
      this.#looking = null;
    };
  }

  /** EC2's instances by our name for them, those that have ended included. */
  async instances(): Promise<ReadonlyMap<string, readonly { readonly id: string; readonly state: string }[]>> {
    // This reader only looks: refusals that a test orders for the scheduler must not end it.
    const client = new EC2Client({ ...AT, endpoint: this.double.url, maxAttempts: 20 });
    const { Reservations = [] } = await client.send(new DescribeInstancesCommand({}));
    client.destroy();
    const shown = Reservations.flatMap((r) => r.Instances ?? []);
    // Those that were bought together have no name of their own in EC2.
    const { inbox } = (this.#looking ??= this.process());
    const recorded = await inbox.instancesOf(shown.map((i) => i.InstanceId ?? ''));
    const all = shown.map((i) => ({
      ours: i.Tags?.find((t) => t.Key === 'ebb:instance')?.Value ?? recorded.get(i.InstanceId ?? '') ?? '',
      id: i.InstanceId ?? '',
      state: i.State?.Name ?? '',
    }));
    return Map.groupBy(all, (i) => i.ours);
  }

  /** ARNs of all tasks that ever were of an attempt. */
  tasks(attempt: AttemptId): readonly string[] {
    const mark = markOf(attempt);
    const own = this.double.events.filter(
      (e) => e['detail-type'] === 'ECS Task State Change' && e.detail['startedBy'] === mark,
    );
    return [...new Set(own.map((e) => String(e.detail['taskArn'])))];
  }

  async close(): Promise<void> {
    await this.double.close();
    for (const client of this.#clients) client.destroy();
  }
}

/**
 * In jest's realm the SDK does not know errors of Node's own for errors, and wraps them so that nothing of them is left
 * but their text. Nowhere else: so it is undone here.
 */
function inThisRealm<C extends object>(client: C, used?: (use: Use) => void): C {
  const send = async (...args: unknown[]): Promise<unknown> => {
    if (client instanceof EC2Client || client instanceof ECSClient) {
      used?.({ operation: (args[0] as object).constructor.name.replace('Command', ''), units: 0 });
    }
    try {
      return await (client as unknown as { send(...a: unknown[]): Promise<unknown> }).send(...args);
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('AWS SDK error wrapper')) throw brokenConnection();
      throw error;
    }
  };
  return new Proxy(client, { get: (target, name): unknown => (name === 'send' ? send : Reflect.get(target, name)) });
}
