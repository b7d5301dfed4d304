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
import { Balancers } from './elb/balancers.ts';
import { metricActions } from './elb/metrics.ts';
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
 * Double of the used parts of EC2, ECS, Elastic Load Balancing, CloudWatch and EventBridge. Local mode's capacity
 * engine decides about launches, starts, interruptions and tasks; the double translates into AWS's terms.
 * docs/aws-double.md lists what it plays and where it differs.
 *
 * Lifecycle: it starts empty and keeps its state in memory; `close` ends its instances and tasks.
 */
export interface AwsDoubleOptions {
  readonly trace: MarketTrace;
  /** Fate of instances that differs from the trace. */
  readonly truth?: CapacityTruth;
  /** Market time at the start. */
  readonly from: EpochMs;
  /** Market seconds per wall second. */
  readonly speed: number;
  /** Port; 0 or absent: any free one. */
  readonly port?: number;
  /** Folder of instances' files; absent: a temporary folder, removed at the end. */
  readonly dir?: string;
  readonly region?: string;
  readonly account?: string;
  readonly vpcId?: string;
  /** Subnet ids by zone; other zones get generated ones. */
  readonly subnets?: Readonly<Record<string, string>>;
  readonly images?: Images;
  /** Reader of tasks' environment files. Absent: tasks with such files fail. */
  readonly files?: ReadObject;
  /** Share of an instance's memory that registers with ECS. */
  readonly memoryFraction?: number;
  readonly deliver?: Deliver;
  readonly knobs?: KnobSettings;
  readonly limits?: LocalFleetOptions['limits'];
  /**
   * Engine and clock in place of local mode's, for thousands of tasks without processes and a clock that tests move.
   * Such tasks end by themselves or with their instance; StopTask has no effect.
   */
  readonly engine?: { readonly fleet: Fleet; readonly clock: Clock };
}

export interface AwsDouble {
  /** Endpoint of all services. */
  readonly url: string;
  /** Anchor of the clock, with which another process knows market time. */
  readonly anchor: ClockAnchor;
  now(): EpochMs;
  readonly knobs: KnobBoard;
  /** Events in order, the newest 20,000. */
  readonly events: readonly AwsEvent[];
  /** Calls in order, the newest 20,000. */
  readonly calls: readonly Call[];
  /** Number of calls by `service:action`. */
  readonly counts: ReadonlyMap<string, number>;
  /** Hook between a call's effect and its answer, such as the caller's death. Null: none. */
  beforeAnswer(does: BeforeAnswer | null): void;
  /** Call to ECS without the wire, uncounted: for thousands of preparing calls in a test. */
  ask(action: string, input: object): Promise<object>;
  /** Runs `work` without events or records. */
  quietly(work: () => Promise<void>): Promise<void>;
  /** Resolves when all reports of the engine are told and delivered. */
  settled(): Promise<void>;
  readonly subnets: Place['subnets'];
  /** Ids of capacity reservations, by pool. */
  readonly reservations: ReadonlyMap<PoolId, string>;
  readonly dir: string;
  close(): Promise<void>;
}

/** Account of LocalStack. */
const ACCOUNT = '000000000000';
/**
 * Registered share of memory: the kernel's part is missing
 * (https://docs.aws.amazon.com/AmazonECS/latest/developerguide/memory-management.html). The figure is ours.
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

/** The services over one place, and the translation of the engine's reports. */
class World {
  readonly services: Services;
  readonly #place: Place;
  readonly #instances: Instances;
  readonly #containerInstances: ContainerInstances;
  readonly #tasks: Tasks;
  readonly #logs: LogStreams;
  readonly #balancers: Balancers;
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
    this.#balancers = new Balancers(place, this.#instances);
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
      elasticloadbalancing: this.#balancers.actions,
      monitoring: metricActions(this.#balancers),
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
      // First pump at once: an engine with a stopped clock does not call back.
      this.#pumpSoon();
      await this.#pumping;
      await events.delivered();
    }
  }

  /** Handles the engine's reports as they come. Returns how to stop. */
  follow(): () => Promise<void> {
    const unsubscribe = this.#place.fleet.onChange(() => this.#pumpSoon());
    return async () => {
      unsubscribe();
      this.#tasks.close();
      await this.#balancers.close();
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
 * Control interface for people and for tests in other processes:
 *   GET /_double            clock, knobs, counts of calls
 *   PATCH /_double/knobs    changes the knobs named in the body
 *   GET /_double/events     the newest 20,000 events; `?after=N` leaves out the first N of all
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
