/**
 * A deployment on the AWS double in the middle of its work, without the hours that led to it: instances are bought
 * through the double, and tasks that run on them are written, as they would stand by now, into the double, the fleet's
 * records, and the store. Time is a clock's; tasks are no processes. Each function of the cycle is a process of its own
 * that has run before, and each call that it makes of AWS is counted.
 */
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { CreateLaunchTemplateCommand, EC2Client } from '@aws-sdk/client-ec2';
import { CreateClusterCommand, ECSClient, RegisterTaskDefinitionCommand } from '@aws-sdk/client-ecs';
import { SchedulerClient } from '@aws-sdk/client-scheduler';
import type { S3Client } from '@aws-sdk/client-s3';
import { Carrier } from '../../lib/drivers/aws/cycle/blobs.ts';
import { observeEvents } from '../../lib/drivers/aws/compose/compose-observing.ts';
import type { Deployment } from '../../lib/drivers/aws/compose/deployment.ts';
import { awsFleet, type AwsFleetOnAws } from '../../lib/drivers/aws/fleet/compose-fleet.ts';
import { fleetEvent } from '../../lib/drivers/aws/fleet/event-notices.ts';
import { CONTAINER, LOG_PREFIX } from '../../lib/drivers/aws/fleet/log-place.ts';
import { sweep, type Swept } from '../../lib/drivers/aws/fleet/sweep.ts';
import { AwsMarket } from '../../lib/drivers/aws/market/aws-market.ts';
import { PriceBook } from '../../lib/drivers/aws/market/price-book.ts';
import { fetchPrices } from '../../lib/drivers/aws/market/prices.ts';
import { Spent } from '../../lib/drivers/aws/metrics/spent.ts';
import { Blobs } from '../../lib/drivers/aws/store/blobs.ts';
import { DynamoStore } from '../../lib/drivers/aws/store/dynamo-store.ts';
import { Table } from '../../lib/drivers/aws/store/dynamo-table.ts';
import { Wake } from '../../lib/drivers/aws/cycle/wake.ts';
import { WindowEnds } from '../../lib/drivers/aws/market/window-ends.ts';
import { ObservationMemory } from '../../lib/cycle/observe/remembered.ts';
import { schedulerConfig } from '../../lib/domain/config.ts';
import type { Job } from '../../lib/domain/job.ts';
import { VirtualClock } from '../../lib/kernel/clock.ts';
import { effectKey, instanceId, jobId, poolId } from '../../lib/kernel/ids.ts';
import { randomStream } from '../../lib/kernel/random.ts';
import { mib, milliCpu, plus, raw, seconds, usd, type EpochMs } from '../../lib/kernel/units.ts';
import { capacityOf } from '../../lib/market/capacity-truth.ts';
import { MemoryFleet } from '../../lib/drivers/sim/memory-fleet.ts';
import { startAwsDouble, type AwsDouble } from '../../scripts/aws-double/double.ts';
import type { AwsEvent } from '../../scripts/aws-double/events.ts';
import { startSchedulerDouble, type SchedulerDouble } from '../../scripts/aws-double/scheduler.ts';
import { ObjectsDouble } from '../doubles/dynamodb/objects.ts';
import { DynamoDouble } from '../doubles/dynamodb/table.ts';
import { FLEET_PLACE, NAMES } from './aws-world.ts';
import { job, spec, stage } from './builders.ts';
import { stepIn } from './cycle-steps.ts';
import { execute } from './state-machine.ts';
import { after, mixedTrace } from './mixed-workload.ts';
import type { Step } from './stepped-engine.ts';
import { writeTasks } from './written-tasks.ts';

const REGION = 'us-east-1';
const AT = { region: REGION, credentials: { accessKeyId: 'test', secretAccessKey: 'test' }, maxAttempts: 1 };
const TYPES = ['c5.xlarge'];
const ZONES = ['a', 'b'];
/** Never taken back, and the market has nothing cheaper that is as safe: nothing is moved. */
const POOL = poolId('c5.xlarge/b/spot');
/** From here on that market takes nothing back. */
const START_MS = after(3600);
/** Of one instance, which they fill. */
const TASKS_PER_INSTANCE = 50;
const NEED = { cpu: milliCpu(80), memory: mib(64), gpus: 0, disk: mib(0) };
/**
 * From the moment the world is made: when the first of those that end do, and when the others. All other tasks go on.
 */
export const ENDING_AFTER_S = [1200, 3000] as const;
const LASTING_S = 40_000;
const ENDED = jobId('j-before');

/** A call, and how often it was made, with what units it took of DynamoDB, or bytes of S3. */
export interface Tally {
  calls: number;
  units: number;
}

export class RunningWorld {
  readonly clock: VirtualClock;
  /** By `function service call`. */
  readonly tallies = new Map<string, Tally>();
  executions = 0;
  readonly #dynamodb = new DynamoDouble();
  readonly #objects = new ObjectsDouble();
  readonly #config = schedulerConfig.parse({
    hazardPriorPerHour: 0.01,
    preset: 'calm',
    presets: { calm: { extends: 'greedy', speculate: 'none' } },
  });
  readonly #started: string[] = [];
  readonly #deployments = new Map<Step, Deployment>();
  readonly #open: { destroy(): void }[] = [];
  readonly #double: AwsDouble;
  readonly #schedules: SchedulerDouble;
  #template = '';
  #madeMs = 0;
  #observer: { readonly on: AwsFleetOnAws; readonly wake: Wake } | null = null;

  private constructor(clock: VirtualClock, double: AwsDouble, schedules: SchedulerDouble) {
    this.clock = clock;
    this.#double = double;
    this.#schedules = schedules;
  }

  /**
   * With so many tasks running, of which `ending` end at each of ENDING_AFTER_S, half of them on each of the first two
   * instances.
   */
  static async of({ running, ending }: { readonly running: number; readonly ending: number }): Promise<RunningWorld> {
    let world: RunningWorld | null = null;
    const clock = new VirtualClock(START_MS);
    const fleet = new MemoryFleet({
      truth: capacityOf(mixedTrace, schedulerConfig.parse({})),
      clock,
      script: ({ command }) => ({
        runtimeS: seconds(ENDING_AFTER_S.find((s) => command.includes(`ends-${s}`)) ?? LASTING_S),
        exitCode: 0,
        checkpointEveryS: null,
        stopsInS: seconds(2),
      }),
    });
    const double = await startAwsDouble({
      trace: mixedTrace,
      from: START_MS,
      speed: 1,
      region: REGION,
      engine: { fleet, clock },
      deliver: async (events) => world?.observe(events),
    });
    const schedules = await startSchedulerDouble(['windows'], () => raw(clock.now()));
    world = new RunningWorld(clock, double, schedules);
    await world.#prepare();
    await world.#run(running, ending);
    world.#madeMs = raw(clock.now());
    world.tallies.clear();
    return world;
  }

  /** Since it was made, s. */
  get ageS(): number {
    return (raw(this.clock.now()) - this.#madeMs) / 1000;
  }

  get #nowMs(): () => number {
    return () => raw(this.clock.now());
  }

  #count(call: string, units: number): void {
    const tally = this.tallies.get(call) ?? { calls: 0, units: 0 };
    this.tallies.set(call, { calls: tally.calls + 1, units: tally.units + units });
  }

  /** The same client; each call is counted as made by `who`. */
  #counted<C extends { destroy(): void }>(client: C, who: string): C {
    this.#open.push(client);
    const send = (command: { readonly input: object }): Promise<unknown> => {
      const { Body } = command.input as { readonly Body?: Uint8Array };
      this.#count(`${who} ${command.constructor.name.replace('Command', '')}`, Body?.length ?? 0);
      return (client as unknown as { send(c: unknown): Promise<unknown> }).send(command);
    };
    return new Proxy(client, { get: (of, name): unknown => (name === 'send' ? send : Reflect.get(of, name)) });
  }

  #table(who: string): Table {
    return new Table({ client: this.#dynamo(who), name: NAMES.table, nowMs: this.#nowMs });
  }

  #dynamo(who: string): ReturnType<DynamoDouble['client']> {
    return this.#dynamodb.client(({ operation, units }) => this.#count(`${who} dynamodb ${operation}`, units));
  }

  #s3(who: string): S3Client {
    return this.#counted(this.#objects.client(), `${who} s3`);
  }

  #store(who: string): DynamoStore {
    return new DynamoStore({ dynamodb: this.#dynamo(who), s3: this.#s3(who), ...NAMES, nowMs: this.#nowMs });
  }

  #fleet(who: string): AwsFleetOnAws {
    const at = { ...AT, endpoint: this.#double.url };
    return awsFleet({
      clients: {
        ec2: this.#counted(new EC2Client(at), `${who} ec2`),
        ecs: this.#counted(new ECSClient(at), `${who} ecs`),
        logs: this.#counted(new CloudWatchLogsClient(at), `${who} logs`),
      },
      table: this.#table(who),
      clock: this.clock,
      nowMs: this.#nowMs,
      anchor: undefined,
      ...FLEET_PLACE,
      launchTemplate: this.#template,
      launchTemplateVersion: '1',
      subnets: new Map(this.#double.subnets.map((s) => [s.zone, s.id])),
      prices: async () => mixedTrace,
    });
  }

  #wake(who: string): Wake {
    return new Wake({
      table: this.#table(who),
      nowMs: this.#nowMs,
      random: randomStream(1, `executions of ${who}`),
      start: async (execution) => {
        this.#count(`${who} states StartExecution`, 0);
        this.#started.push(execution);
      },
    });
  }

  #windowEnds(who: string): WindowEnds {
    return new WindowEnds({
      client: this.#counted(new SchedulerClient({ ...AT, endpoint: this.#schedules.url }), `${who} scheduler`),
      table: this.#table(who),
      group: 'windows',
      role: 'arn:aws:iam::000000000000:role/schedule',
      queue: 'arn:aws:sqs:us-east-1:000000000000:trigger',
      nowMs: this.#nowMs,
      warn: (what, context) => {
        throw new Error(`${what}: ${JSON.stringify(context)}`);
      },
    });
  }

  /** The process of a step, made at its first use. */
  #deployment(step: Step): Deployment {
    const known = this.#deployments.get(step);
    if (known !== undefined) return known;
    const table = this.#table(step);
    const market = new AwsMarket({
      book: new PriceBook(table),
      historyS: 7 * 86_400,
      zones: ZONES,
      types: TYPES,
      now: () => this.clock.now(),
    });
    const made: Deployment = {
      store: this.#store(step),
      fleet: this.#fleet(step).fleet,
      clock: this.clock,
      speed: 1,
      nowMs: this.#nowMs,
      random: randomStream(1, step),
      config: this.#config,
      limits: { vcpus: 2000 },
      draining: false,
      wake: this.#wake(step),
      memory: new ObservationMemory(),
      windowEnds: this.#windowEnds(step),
      carrier: new Carrier(new Blobs({ client: this.#s3(step), bucket: NAMES.bucket }), 'test'),
      spent: new Spent(table),
      market: () => market.prices(),
    };
    this.#deployments.set(step, made);
    return made;
  }

  /** What the function `observe` does. */
  async observe(events: readonly AwsEvent[]): Promise<void> {
    this.#observer ??= { on: this.#fleet('observe'), wake: this.#wake('observe') };
    const { on, wake } = this.#observer;
    const { isDue, failed } = await observeEvents(
      on,
      events.map((event) => fleetEvent.parse(event)),
    );
    for (const error of failed.values()) throw error;
    if (isDue) await wake.wake();
  }

  /** Time passes, and what happens meanwhile is told. */
  async pass(s: number): Promise<void> {
    await this.clock.advanceTo(plus(this.clock.now(), seconds(s)));
    await this.#double.settled();
  }

  /** The clock ticks: executions run until none is wanted. */
  async cycle(): Promise<void> {
    await this.#wake('clock').wake();
    for (let next = this.#started.shift(); next !== undefined; next = this.#started.shift()) {
      this.executions += 1;
      await execute(next, (step, event) => stepIn(this.#deployment(step), step, event));
      await this.#double.settled();
    }
  }

  sweep(): Promise<Swept> {
    const on = this.#fleet('sweep');
    return sweep({ ...on, store: this.#store('sweep'), now: this.clock.now(), startPatienceS: 100_000 });
  }

  /** So many commits of nothing that what the log has is compacted into items. */
  async compact(): Promise<void> {
    const store = this.#store('outside');
    const token = await store.takeLease('outside');
    for (let n = 0; n < 110; n++) await store.commit(token, []);
  }

  async submit(name: string, tasks: number): Promise<void> {
    const stages = [stage({ tasks, resources: NEED, command: ['lasting'] })];
    const made = job({ name, submittedMs: this.clock.now(), spec: spec({ name, stages }) });
    await this.#store('outside').submit([{ job: made, idempotency: null }]);
  }

  /** Tasks that run by what the store says, and by what ECS says. */
  async running(): Promise<readonly [number, number]> {
    const { attempts } = await this.#store('outside').loadActive();
    return [attempts.filter((a) => a.state === 'running').length, await this.#tasksInEcs()];
  }

  async #tasksInEcs(): Promise<number> {
    let count = 0;
    let nextToken: string | undefined;
    do {
      const page = (await this.#double.ask('ListTasks', { cluster: 'ebb', nextToken })) as {
        readonly taskArns: readonly string[];
        readonly nextToken?: string;
      };
      count += page.taskArns.length;
      ({ nextToken } = page);
    } while (nextToken !== undefined);
    return count;
  }

  /** Cluster, template, task definition, and prices. */
  async #prepare(): Promise<void> {
    const at = { ...AT, endpoint: this.#double.url };
    const [ec2, ecs] = [new EC2Client(at), new ECSClient(at)];
    this.#open.push(ec2, ecs);
    await ecs.send(new CreateClusterCommand({ clusterName: 'ebb' }));
    const { LaunchTemplate } = await ec2.send(
      new CreateLaunchTemplateCommand({
        LaunchTemplateName: 'hosts',
        LaunchTemplateData: {
          ImageId: 'ami-0123456789abcdef0',
          UserData: Buffer.from('#!/bin/sh\necho ECS_CLUSTER=ebb >> /etc/ecs/ecs.config\n').toString('base64'),
        },
      }),
    );
    this.#template = LaunchTemplate?.LaunchTemplateId ?? '';
    const logConfiguration = {
      logDriver: 'awslogs' as const,
      options: { 'awslogs-group': FLEET_PLACE.logGroup, 'awslogs-region': REGION, 'awslogs-stream-prefix': LOG_PREFIX },
    };
    await ecs.send(
      new RegisterTaskDefinitionCommand({
        family: 'written',
        requiresCompatibilities: ['EC2'],
        networkMode: 'bridge',
        containerDefinitions: [
          {
            name: CONTAINER,
            image: FLEET_PLACE.image,
            essential: true,
            command: ['true'],
            memory: 128,
            logConfiguration,
          },
        ],
      }),
    );
    const feed = { client: ec2, table: this.#table('prices'), types: TYPES, zones: ZONES, historyS: 7 * 86_400 };
    await fetchPrices(feed, this.clock.now());
  }

  /** Buys the instances, and writes what runs on them. */
  async #run(running: number, ending: number): Promise<void> {
    const ids = Array.from({ length: running / TASKS_PER_INSTANCE }, (_, i) => instanceId(`i-${i}`));
    const { fleet, inbox } = this.#fleet('outside');
    const bought = await fleet.launch(
      ids.map((id) => ({ key: effectKey(`launch/${id}`), instance: id, pool: POOL, bid: 'uncapped' as const })),
    );
    if (bought.some((outcome) => outcome.status !== 'done')) throw new Error(JSON.stringify(bought));
    await this.pass(300);
    const store = this.#store('outside');
    await endedJob(store, this.clock.now());
    const jobs = ids.map((_, i) => waitedJob(`j-${i}`, this.clock.now()));
    await store.submit(jobs.map((of) => ({ job: of, idempotency: null })));
    await store.loadActive();
    const token = await store.takeLease('outside');
    await this.#double.quietly(async () => {
      for (const [i, of] of jobs.entries()) {
        const on = await inbox.record(instanceId(`i-${i}`));
        if (on?.host === null || on === null) throw new Error(`i-${i} is not ready`);
        const commandOf = (index: number): string => {
          const endS = i < 2 ? ENDING_AFTER_S[Math.floor(index / (ending / 2))] : undefined;
          return endS === undefined ? 'lasting' : `ends-${endS}`;
        };
        const parts = { double: this.#double, inbox, job: of, on, nowMs: this.clock.now(), commandOf };
        await store.commit(token, await writeTasks(parts));
      }
    });
  }

  async close(): Promise<void> {
    for (const client of this.#open) client.destroy();
    await this.#double.close();
    await this.#schedules.close();
  }
}

/** One that others wait for, and that is over. */
async function endedJob(store: DynamoStore, at: EpochMs): Promise<void> {
  const over = job({ name: ENDED, submittedMs: at });
  await store.submit([{ job: over, idempotency: null }]);
  await store.loadActive();
  const token = await store.takeLease('outside');
  await store.commit(token, [{ put: 'job', value: { ...over, state: 'succeeded', finishedMs: at } }]);
}

/** With a budget, and one that it waited for: what a cycle must know of jobs beside what runs. */
const waitedJob = (name: string, submittedMs: EpochMs): Job =>
  job({
    name,
    submittedMs,
    after: [ENDED],
    spec: spec({
      name,
      after: [ENDED],
      maxCostUsd: usd(1000),
      stages: [stage({ tasks: TASKS_PER_INSTANCE, resources: NEED, command: ['lasting'] })],
    }),
  });
