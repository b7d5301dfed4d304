import type { IncomingMessage, ServerResponse } from 'node:http';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Observation } from '../../lib/domain/observation.ts';
import { scaledClock, type Clock, type ClockAnchor } from '../../lib/kernel/clock.ts';
import type { InstanceId, PoolId } from '../../lib/kernel/ids.ts';
import { raw, type EpochMs } from '../../lib/kernel/units.ts';
import { createLocalFleet, type LocalFleetOptions } from '../../lib/drivers/local/fleet/local-fleet.ts';
import { replayMarket } from '../../lib/drivers/local/market/replay.ts';
import { wallTime } from '../../lib/drivers/wall.ts';
import { capacityOf, type CapacityTruth } from '../../lib/market/capacity-truth.ts';
import type { MarketTrace } from '../../lib/market/trace.ts';
import type { Fleet } from '../../lib/ports/fleet.ts';
import { ContainerInstances } from './ecs/container-instances.ts';
import { Definitions } from './ecs/definitions.ts';
import type { Images } from './ecs/task.ts';
import { Tasks, type ReadObject } from './ecs/tasks.ts';
import { Fleets } from './ec2/fleets.ts';
import { Instances } from './ec2/instances.ts';
import { Launches } from './ec2/launches.ts';
import { marketActions } from './ec2/market.ts';
import { reservationIds, Reservations } from './ec2/reservations.ts';
import { Runs } from './ec2/runs.ts';
import { Templates } from './ec2/templates.ts';
import { killFleet } from '../../lib/drivers/local/fleet/kill.ts';
import { EventLog, type AwsEvent, type Deliver } from './events.ts';
import { jsonFaults } from './json.ts';
import { KnobBoard, type KnobSettings } from './knobs.ts';
import { LogStreams } from './logs.ts';
import { priceListActions } from './pricing.ts';
import { nowMs, subnetsFor, type Place } from './place.ts';
import { AwsServer, type BeforeAnswer, type Call, type Services } from './server.ts';

/**
 * A double of the parts of EC2, ECS, CloudWatch Logs and EventBridge that Ebbtide uses, over local mode's capacity
 * engine: what a launch answers, when instances come up and are taken, and how tasks run is the engine's word; this
 * only says it as AWS does. docs/aws-double.md lists what it plays and where it differs.
 *
 * Lifecycle: it begins empty and keeps its state in memory; `close` ends its instances and tasks.
 */
export interface AwsDoubleOptions {
  readonly trace: MarketTrace;
  /** What becomes of instances, where it is not as the trace has it. */
  readonly truth?: CapacityTruth;
  /** Market time of the double's first instant. */
  readonly from: EpochMs;
  /** Market seconds per wall second. */
  readonly speed: number;
  /** 0 or absent: any free one. */
  readonly port?: number;
  /** Where instances keep their files; absent: a temporary folder, removed at the end. */
  readonly dir?: string;
  readonly region?: string;
  readonly account?: string;
  readonly vpcId?: string;
  /** Subnet ids by zone; zones that are not named get one. */
  readonly subnets?: Readonly<Record<string, string>>;
  readonly images?: Images;
  /** Where environment files of tasks are read. Absent: nowhere, and tasks with such fail. */
  readonly files?: ReadObject;
  /** How much of its memory an instance registers with ECS. */
  readonly memoryFraction?: number;
  readonly deliver?: Deliver;
  readonly knobs?: KnobSettings;
  readonly limits?: LocalFleetOptions['limits'];
  /**
   * In place of local mode's engine and scaled time: for thousands of tasks that are no processes, on a clock that a
   * test moves. Tasks there end by themselves or with their instance; StopTask does not reach them.
   */
  readonly engine?: { readonly fleet: Fleet; readonly clock: Clock };
}

export interface AwsDouble {
  /** Endpoint of all its services. */
  readonly url: string;
  /** How its clock stands to the wall: with it another process knows market time. */
  readonly anchor: ClockAnchor;
  now(): EpochMs;
  readonly knobs: KnobBoard;
  /** What happened, in its order: the newest 20,000. */
  readonly events: readonly AwsEvent[];
  /** The newest 20,000. */
  readonly calls: readonly Call[];
  /** How often each action was called, as `service:action`. */
  readonly counts: ReadonlyMap<string, number>;
  /** What is to happen between a call's effect and its answer: the caller's end, for one. Null: nothing. */
  beforeAnswer(does: BeforeAnswer | null): void;
  /** A call to ECS without the wire, uncounted: for thousands of them that only prepare what a test is about. */
  ask(action: string, input: object): Promise<object>;
  /** What happens until it is done is told to nobody: it is taken to be known. */
  quietly(work: () => Promise<void>): Promise<void>;
  /** Resolves when all that the engine has reported is told and delivered. */
  settled(): Promise<void>;
  readonly subnets: Place['subnets'];
  /** Ids of capacity reservations, by their pools. */
  readonly reservations: ReadonlyMap<PoolId, string>;
  readonly dir: string;
  close(): Promise<void>;
}

/** LocalStack's account. */
const ACCOUNT = '000000000000';
/**
 * The agent registers what the kernel leaves of an instance's memory, some percent less than the type's, as
 * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/memory-management.html explains. The figure is ours.
 */
const MEMORY_FRACTION = 0.95;

export async function startAwsDouble(options: AwsDoubleOptions): Promise<AwsDouble> {
  const dir = folderOf(options.dir);
  const anchor = { wallMs: wallTime.epochMs(), engineMs: raw(options.from), speed: options.speed };
  const clock = options.engine?.clock ?? scaledClock(wallTime, anchor);
  const truth = options.truth ?? capacityOf(options.trace, { billing: 'per-second', refundRule: 'first-hour' });
  const fleetDir = join(dir, 'fleet');
  const { speed, limits, engine } = options;
  const fleet =
    engine?.fleet ??
    createLocalFleet({ dir: fleetDir, truth, clock, speed, ...(limits === undefined ? {} : { limits }) });
  const knobs = new KnobBoard(options.knobs);
  const at = { account: options.account ?? ACCOUNT, region: options.region ?? 'us-east-1' };
  const place: Place = {
    ...at,
    clock,
    speed,
    pools: options.trace.pools,
    market: replayMarket(options.trace, () => clock.now()),
    fleet,
    fleetDir,
    knobs,
    events: new EventLog(at, knobs, options.deliver ?? null),
    vpcId: options.vpcId ?? 'vpc-0d0b1e00000000000',
    subnets: subnetsFor(options.trace, options.subnets ?? {}),
  };
  const world = new World(place, options);
  const server: AwsServer = new AwsServer(
    world.services,
    knobs,
    control(place, () => ({ counts: server.counts, anchor })),
  );
  const stop = world.follow();
  const url = await server.listen(options.port ?? 0);
  return {
    url,
    anchor,
    now: () => clock.now(),
    knobs,
    events: place.events.happened.items,
    calls: server.calls.items,
    counts: server.counts,
    beforeAnswer: (does) => {
      server.beforeAnswer = does;
    },
    ask: (action, input) => world.ask(action, input),
    quietly: (work) => world.quietly(work),
    settled: () => world.settled(),
    subnets: place.subnets,
    reservations: reservationIds(place.pools),
    dir,
    close: async () => {
      await server.close();
      await stop();
      await place.events.close();
      await fleet.close();
      if (engine === undefined) killFleet(fleetDir);
      if (options.dir === undefined) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function folderOf(given: string | undefined): string {
  if (given === undefined) return realpathSync(mkdtempSync(join(tmpdir(), 'ebb-aws-double-')));
  mkdirSync(given, { recursive: true });
  return realpathSync(given);
}

/** The services over one place, and what the engine reports put into their terms. */
class World {
  readonly services: Services;
  readonly #place: Place;
  readonly #instances: Instances;
  readonly #containerInstances: ContainerInstances;
  readonly #tasks: Tasks;
  readonly #logs: LogStreams;
  readonly #seen = new Map<InstanceId, number>();
  #pumping: Promise<void> = Promise.resolve();

  constructor(place: Place, options: AwsDoubleOptions) {
    this.#place = place;
    const templates = new Templates(place);
    this.#instances = new Instances(place);
    const launches = new Launches(place, this.#instances);
    const reservations = new Reservations(place, this.#instances);
    const fleets = new Fleets(place, { templates, launches, reservations });
    const runs = new Runs(place, { templates, launches, reservations });
    const definitions = new Definitions(place);
    this.#containerInstances = new ContainerInstances(place, options.memoryFraction ?? MEMORY_FRACTION);
    this.#logs = new LogStreams(place);
    this.#tasks = new Tasks(place, {
      instances: this.#containerInstances,
      definitions,
      logs: this.#logs,
      images: options.images ?? {},
      files: options.files ?? (async () => Promise.reject(new Error('the double was given no objects'))),
    });
    this.services = {
      ec2: {
        ...templates.actions,
        ...this.#instances.actions,
        ...fleets.actions,
        ...runs.actions,
        ...reservations.actions,
        ...marketActions(place),
      },
      ecs: { ...definitions.actions, ...this.#containerInstances.actions, ...this.#tasks.actions },
      logs: this.#logs.actions,
      pricing: priceListActions(place),
    };
  }

  async ask(action: string, input: object): Promise<object> {
    const known = this.services.ecs[action];
    if (known === undefined) throw new Error(`the double does not play ecs ${action}`);
    return known.run(input, jsonFaults);
  }

  async quietly(work: () => Promise<void>): Promise<void> {
    const { events } = this.#place;
    events.isQuiet = true;
    try {
      await work();
      this.#pumpSoon();
      await this.#pumping;
    } finally {
      events.isQuiet = false;
    }
  }

  async settled(): Promise<void> {
    const { events } = this.#place;
    for (let count = -1; count !== events.happened.count;) {
      count = events.happened.count;
      // An engine on a clock that stands still calls nobody for what it does at once.
      this.#pumpSoon();
      await this.#pumping;
      await events.delivered();
    }
  }

  /** Takes in what the engine reports, as it comes. Returns how to stop. */
  follow(): () => Promise<void> {
    const unsubscribe = this.#place.fleet.onChange(() => this.#pumpSoon());
    return async () => {
      unsubscribe();
      this.#tasks.close();
      await this.#pumping;
    };
  }

  #pumpSoon(): void {
    this.#pumping = this.#pumping
      .then(() => this.#pump())
      .catch((error: unknown) => {
        process.stderr.write(`aws-double: ${error instanceof Error ? (error.stack ?? '') : String(error)}\n`);
      });
  }

  async #pump(): Promise<void> {
    for (const observation of await this.#place.fleet.observe(this.#seen)) {
      this.#seen.set(observation.instance, observation.sequence);
      await this.#apply(observation);
    }
  }

  async #apply(o: Observation): Promise<void> {
    const host = this.#instances.get(o.instance);
    if (host === undefined) return;
    const atMs = raw(o.atMs);
    switch (o.kind) {
      case 'instance-launched':
      case 'attempt-checkpointed':
        return;
      case 'instance-ready':
        if (host.state !== 'pending') return;
        this.#instances.running(host, atMs);
        this.#containerInstances.register(host, atMs);
        return;
      case 'instance-rebalance':
        this.#instances.rebalance(host, atMs);
        return;
      case 'instance-warned':
        this.#instances.warned(host, atMs);
        this.#containerInstances.warned(host, atMs);
        return;
      case 'instance-ended':
        if (host.state === 'stopping') {
          this.#tasks.hostGone(host, 'stopped', atMs);
          this.#instances.stopped(host, atMs);
          return;
        }
        this.#instances.shuttingDown(host, o.cause, atMs);
        this.#tasks.hostGone(host, 'terminated', atMs);
        this.#instances.terminated(host, atMs);
        return;
      case 'attempt-started':
        this.#tasks.started(o.attempt, atMs);
        return;
      case 'attempt-ended':
        await this.#logs.flush(o.attempt);
        this.#tasks.ended(o.attempt, { ...o, atMs });
        return;
    }
  }
}

/**
 * What a person or a test in another process may ask of the double itself:
 *   GET /_double            clock, knobs, counts of calls
 *   PATCH /_double/knobs    changes the knobs named in the body
 *   GET /_double/events     what happened, the newest 20,000; `?after=N` leaves out the first N of all
 */
function control(
  place: Place,
  state: () => { readonly counts: ReadonlyMap<string, number>; readonly anchor: ClockAnchor },
): (request: IncomingMessage, body: string, response: ServerResponse) => boolean {
  return (request, body, response) => {
    const url = new URL(request.url ?? '/', 'http://double');
    if (!url.pathname.startsWith('/_double')) return false;
    const send = (status: number, content: unknown): true => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content));
      return true;
    };
    switch (`${request.method ?? ''} ${url.pathname}`) {
      case 'GET /_double': {
        const { counts, anchor } = state();
        const time = new Date(nowMs(place)).toISOString();
        return send(200, {
          time,
          anchor,
          region: place.region,
          subnets: place.subnets,
          knobs: place.knobs.now,
          calls: Object.fromEntries(counts),
        });
      }
      case 'PATCH /_double/knobs':
        try {
          place.knobs.set(JSON.parse(body) as KnobSettings);
        } catch (error) {
          return send(400, { message: error instanceof Error ? error.message : String(error) });
        }
        return send(200, place.knobs.now);
      case 'GET /_double/events':
        return send(200, place.events.happened.after(Number(url.searchParams.get('after') ?? 0)));
      default:
        return send(404, { message: `the double has no ${request.method ?? ''} ${url.pathname}` });
    }
  };
}
