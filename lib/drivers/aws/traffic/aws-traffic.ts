/**
 * Requests of services at one Application Load Balancer: a listener with a port of its own and a target group for each
 * service. Replicas are targets by instance and port.
 * Any number of processes use it at once: each call leads to the same state, whoever makes it and however often. What
 * a crash leaves half done, such as a group without a listener, the next round finds and finishes.
 */
import type { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import type { Clock } from '../../../kernel/clock.ts';
import { EbbError } from '../../../kernel/errors.ts';
import { epochMs, raw, type EpochMs } from '../../../kernel/units.ts';
import type { PeriodMeasures } from '../../../domain/service.ts';
import { unrouted } from '../../../ports/traffic.ts';
import type { Located, Measured, Period, Route, TargetState, Traffic } from '../../../ports/traffic.ts';
import { groupName } from './group-names.ts';
import type { Endpoint, EndpointHealth, Listener, LoadBalancer } from './load-balancer.ts';
import { completeUntilMs, MINUTE_MS, requestMetrics } from './request-metrics.ts';
import type { ReplicaPlaces } from './replica-places.ts';
import { rulesOf } from './group-rules.ts';
import type { ServiceAddresses } from './service-addresses.ts';

export interface AwsTrafficParts {
  readonly balancer: LoadBalancer;
  /** ARN of the load balancer. */
  readonly arn: string;
  /** Name of the deployment. */
  readonly stack: string;
  readonly places: ReplicaPlaces;
  readonly addresses: ServiceAddresses;
  readonly cloudWatch: CloudWatchClient;
  readonly clock: Clock;
  /** Engine seconds of a wall second. */
  readonly speed: number;
  /** Wall time. */
  readonly nowMs: () => number;
}

/** Port of every server within its container. */
const CONTAINER_PORT = 8080;
/** Listeners of services that name no port, the first free one. */
const FIRST_PORT = 8000;
const LAST_PORT = 8999;
/** A load balancer does not tell the requests in flight of one target: a draining one counts as busy. */
const BUSY = 1;

export class AwsTraffic implements Traffic {
  readonly #parts: AwsTrafficParts;
  /** ARNs of target groups by name, of the last look. */
  #groups: ReadonlyMap<string, string> | null = null;
  /** Services that could not have their route the last time. */
  #refused = new Map<string, Error>();
  /** Rules that this process has set, by group. */
  readonly #rules = new Map<string, string>();

  constructor(parts: AwsTrafficParts) {
    this.#parts = parts;
  }

  /** O(services + targets) with two calls, and one for each service; more only where something changes. */
  async route(routes: readonly Route[], kept: ReadonlySet<string>): Promise<void> {
    const { balancer } = this.#parts;
    const groups = new Map(await balancer.groups());
    const listeners = [...(await balancer.listeners())];
    const faults: unknown[] = [];
    const attempt = async (work: () => Promise<void>, service?: string): Promise<void> => {
      await work().catch((fault: unknown) => {
        faults.push(fault);
        if (service !== undefined && fault instanceof Error) this.#refused.set(service, fault);
      });
    };
    const wanted = new Set([...routes.map((r) => r.service), ...kept].map((service) => this.#nameOf(service)));
    for (const [name, group] of groups)
      if (!wanted.has(name)) await attempt(() => this.#remove(name, { group, listeners, groups }));
    this.#refused = new Map();
    for (const route of routes) {
      await attempt(() => this.#routeOne(route, { listeners, groups }), route.service);
    }
    this.#groups = groups;
    if (faults.length > 0) throw faults[0];
  }

  async states(service: string, located: readonly Located[]): Promise<ReadonlyMap<number, TargetState>> {
    const { balancer, places } = this.#parts;
    const refused = this.#refused.get(service);
    this.#groups ??= await balancer.groups();
    const group = this.#groups.get(this.#nameOf(service));
    const health = group === undefined ? [] : await balancer.health(group);
    const byEndpoint = new Map(health.map((h) => [textOf(h), h]));
    const found = await places.of(located);
    return new Map(
      located.map(({ replica }) => {
        const endpoint = found.get(replica);
        const seen = endpoint === undefined ? undefined : byEndpoint.get(textOf(endpoint));
        const state = stateOf(replica, seen, endpoint);
        return [replica, refused === undefined || state.health !== 'unknown' ? state : unrouted(replica, refused)];
      }),
    );
  }

  async measures(
    { service, target }: Measured,
    { fromMs, toMs }: Period,
  ): Promise<Omit<PeriodMeasures, 'replicas'> | null> {
    const { balancer, cloudWatch, arn } = this.#parts;
    this.#groups ??= await balancer.groups();
    const group = this.#groups.get(this.#nameOf(service));
    if (group === undefined) return null;
    const [from, to] = [fromMs, toMs].map((ms) => Math.round(this.#wallMs(ms) / MINUTE_MS) * MINUTE_MS);
    if (from === undefined || to === undefined || from >= to) return null;
    const asked = { loadBalancer: arn, group, fromMs: from, toMs: to, latencyS: raw(target.latencyS) };
    const requests = await requestMetrics(cloudWatch, asked);
    return requests === null ? null : { fromMs, toMs, ...requests };
  }

  measuredUntil(nowMs: EpochMs): EpochMs {
    const wallMs = this.#wallMs(nowMs);
    return epochMs(raw(nowMs) - (wallMs - completeUntilMs(wallMs)) * this.#parts.speed);
  }

  address(service: string): Promise<string | null> {
    return this.#parts.addresses.of(service);
  }

  /** Containers share no ports. */
  port(): Promise<number> {
    return Promise.resolve(CONTAINER_PORT);
  }

  #nameOf(service: string): string {
    return groupName(this.#parts.stack, service);
  }

  #wallMs(ms: EpochMs): number {
    const { clock, speed, nowMs } = this.#parts;
    return nowMs() - (raw(clock.now()) - raw(ms)) / speed;
  }

  async #routeOne(route: Route, { listeners, groups }: Known): Promise<void> {
    const { balancer } = this.#parts;
    const { service } = route;
    const name = this.#nameOf(service);
    const rules = rulesOf(route);
    const known = groups.get(name);
    const group = known ?? (await balancer.createGroup(service, rules));
    groups.set(name, group);
    const text = JSON.stringify(rules);
    if (this.#rules.get(group) !== text) {
      await balancer.setRules(group, rules);
      this.#rules.set(group, text);
    }
    await this.#listen(route, { name, group }, listeners);
    await this.#setTargets(route, group);
  }

  /** Listener of the service at the port that it wants, or at any free one. */
  async #listen(
    { service, port: wanted }: Route,
    { name, group }: { readonly name: string; readonly group: string },
    listeners: Listener[],
  ): Promise<void> {
    const { balancer, addresses } = this.#parts;
    const own = listeners.filter((l) => l.group === group);
    const [fitting] = own.filter((l) => wanted === null || l.port === wanted);
    if (fitting === undefined) {
      const port = await this.#open(wanted === null ? freePorts(listeners) : [wanted], group);
      if (port === null) throw wanted === null ? noPortLeft() : portTaken(service, wanted);
      listeners.push({ arn: '', port, group });
      await addresses.set(name, port);
    } else if ((await addresses.of(service)) === null) await addresses.set(name, fitting.port);
    // The earlier ports go once it has this one.
    for (const listener of own) {
      if (listener === fitting) continue;
      await balancer.deleteListener(listener.arn);
      listeners.splice(listeners.indexOf(listener), 1);
    }
  }

  /** First of the ports that nothing else takes at the same time; null if there is none. */
  async #open(ports: Iterable<number>, group: string): Promise<number | null> {
    for (const port of ports) if (await this.#parts.balancer.createListener(port, group)) return port;
    return null;
  }

  async #setTargets({ targets }: Route, group: string): Promise<void> {
    const { balancer, places } = this.#parts;
    const [health, found] = await Promise.all([balancer.health(group), places.of(targets)]);
    const serving = targets.filter((t) => t.mode === 'serve').flatMap((t) => found.get(t.replica) ?? []);
    const wanted = new Set(serving.map(textOf));
    const active = health.filter((h) => h.state !== 'draining');
    const has = new Set(active.map(textOf));
    const missing = serving.filter((e) => !has.has(textOf(e)));
    const leaving = active.filter((h) => !wanted.has(textOf(h)));
    if (missing.length > 0) await balancer.register(group, missing);
    if (leaving.length > 0) await balancer.deregister(group, leaving);
  }

  async #remove(name: string, { group, listeners, groups }: Known & { readonly group: string }): Promise<void> {
    const { balancer, addresses } = this.#parts;
    await addresses.drop(name);
    for (const listener of listeners.filter((l) => l.group === group)) {
      await balancer.deleteListener(listener.arn);
      listeners.splice(listeners.indexOf(listener), 1);
    }
    await balancer.deleteGroup(group);
    groups.delete(name);
  }
}

interface Known {
  readonly listeners: Listener[];
  readonly groups: Map<string, string>;
}

const textOf = ({ ec2, port }: Endpoint): string => `${ec2}:${port}`;

function stateOf(replica: number, seen: EndpointHealth | undefined, endpoint: Endpoint | undefined): TargetState {
  if (seen === undefined) {
    const detail = endpoint === undefined ? 'ECS has not told its port yet' : 'the load balancer does not check it yet';
    return { replica, health: 'unknown', inFlight: 0, detail };
  }
  const { state, detail } = seen;
  const health = state === 'healthy' || state === 'unhealthy' ? state : 'unknown';
  return { replica, health, inFlight: state === 'draining' ? BUSY : 0, detail: health === 'healthy' ? null : detail };
}

function* freePorts(listeners: readonly Listener[]): Generator<number> {
  const taken = new Set(listeners.map((l) => l.port));
  for (let port = FIRST_PORT; port <= LAST_PORT; port++) if (!taken.has(port)) yield port;
}

const noPortLeft = (): EbbError =>
  new EbbError('usage', {
    what: 'no port of the load balancer is left',
    allowed: `${LAST_PORT - FIRST_PORT + 1} services without a \`port\` of their own`,
  });

const portTaken = (service: string, port: number): EbbError =>
  new EbbError('port-in-use', {
    what: `the service ${service} cannot have its port at the load balancer`,
    got: `${port}, which another service has`,
    next: 'choose another `port` in the service file, or leave it out',
  });
