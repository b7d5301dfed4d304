import { z } from 'zod';
import { EbbError } from '../../../lib/kernel/errors.ts';
import { attemptId, instanceId } from '../../../lib/kernel/ids.ts';
import { seconds } from '../../../lib/kernel/units.ts';
import { ServiceProxy } from '../../../lib/drivers/local/traffic/service-proxy.ts';
import type { Route, Target } from '../../../lib/ports/traffic.ts';
import { action, type Actions } from '../api.ts';
import type { Instances } from '../ec2/instances.ts';
import { hexOf } from '../events.ts';
import { AwsFault, NotPlayed } from '../fault.ts';
import type { Place } from '../place.ts';
import { form, XmlList, type XmlValue } from '../query.ts';
import { RequestCounts } from './request-counts.ts';

/**
 * Application Load Balancers, as far as Ebbtide calls them: instance targets over HTTP/1.1, one target group per
 * listener. Local mode's reverse proxy plays the data path, on loopback at the listener's port; a target is a port of
 * this machine, whatever instance it is said to be on.
 * https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_Operations.html
 */
interface Group {
  readonly arn: string;
  readonly name: string;
  readonly vpcId: string;
  checks: Checks;
  drainS: number;
  readonly targets: Map<string, Registered>;
  nextTarget: number;
  readonly counts: RequestCounts;
}

interface Registered {
  readonly number: number;
  readonly id: string;
  readonly port: number;
  /** Wall time at which it is forgotten; null: it serves. */
  drainedMs: number | null;
}

interface Listening {
  readonly arn: string;
  readonly balancer: string;
  readonly port: number;
  readonly group: Group;
  readonly proxy: ServiceProxy;
}

const tags = z.array(z.strictObject({ Key: z.string().min(1).max(128), Value: z.string().max(256) })).default([]);
const checks = z.object({
  HealthCheckPath: z.string().startsWith('/').max(1024).default('/'),
  HealthCheckIntervalSeconds: form.number.min(5).max(300).default(30),
  HealthCheckTimeoutSeconds: form.number.min(2).max(120).default(5),
  HealthyThresholdCount: form.number.min(2).max(10).default(5),
  UnhealthyThresholdCount: form.number.min(2).max(10).default(2),
  Matcher: z.strictObject({ HttpCode: z.literal('200-399', 'the double takes 200-399') }),
});
type Checks = z.infer<typeof checks>;

const createBalancer = z.strictObject({
  Name: z.string().regex(/^[a-zA-Z0-9-]{1,32}$/),
  Subnets: z.array(z.string()).min(2, 'At least two subnets in two different Availability Zones must be specified'),
  Scheme: z.enum(['internal', 'internet-facing']).default('internet-facing'),
});
const createGroup = z.strictObject({
  Name: z.string().regex(/^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,30}[a-zA-Z0-9])?$/),
  Protocol: z.literal('HTTP'),
  Port: form.number.min(1).max(65_535),
  VpcId: z.string(),
  TargetType: z.literal('instance'),
  HealthCheckProtocol: z.literal('HTTP'),
  HealthCheckPort: z.literal('traffic-port'),
  ...checks.shape,
  Tags: tags,
});
const modifyGroup = z.strictObject({ TargetGroupArn: z.string(), ...checks.shape });
const attributes = z.strictObject({
  TargetGroupArn: z.string(),
  Attributes: z.array(z.strictObject({ Key: z.string(), Value: z.string() })).min(1),
});
const ofGroup = z.strictObject({ TargetGroupArn: z.string() });
const targets = z.strictObject({
  TargetGroupArn: z.string(),
  Targets: z.array(z.strictObject({ Id: z.string(), Port: form.number.min(1).max(65_535) })).min(1),
});
const paged = { Marker: z.string().optional(), PageSize: form.number.min(1).max(400).optional() };
const describeGroups = z.strictObject(paged);
const describeListeners = z.strictObject({ LoadBalancerArn: z.string(), ...paged });
const createListener = z.strictObject({
  LoadBalancerArn: z.string(),
  Protocol: z.literal('HTTP', 'the double speaks HTTP alone'),
  Port: form.number.min(1).max(65_535),
  DefaultActions: z.tuple([z.strictObject({ Type: z.literal('forward'), TargetGroupArn: z.string() })]),
});
const ofListener = z.strictObject({ ListenerArn: z.string() });

/** Latency for which answers in time are counted, until somebody asks for another one. */
const LATENCY_S = 1;

export class Balancers {
  readonly #place: Place;
  readonly #instances: Instances;
  /** Names by ARN. */
  readonly #balancers = new Map<string, string>();
  readonly #groups = new Map<string, Group>();
  readonly #listeners = new Map<string, Listening>();
  #made = 0;

  constructor(place: Place, instances: Instances) {
    this.#place = place;
    this.#instances = instances;
  }

  readonly actions: Actions<{ readonly [name: string]: XmlValue }> = {
    CreateLoadBalancer: action(createBalancer, ({ Name, Scheme }) => {
      const LoadBalancerArn = this.#arn(`loadbalancer/app/${Name}`);
      this.#balancers.set(LoadBalancerArn, Name);
      return { LoadBalancers: members([{ LoadBalancerArn, LoadBalancerName: Name, Scheme, DNSName: '127.0.0.1' }]) };
    }),
    CreateTargetGroup: action(createGroup, (asked) => ({ TargetGroups: members([this.#createGroup(asked)]) })),
    DescribeTargetGroups: action(describeGroups, () => ({
      TargetGroups: members([...this.#groups.values()].map(shownGroup)),
    })),
    ModifyTargetGroup: action(modifyGroup, ({ TargetGroupArn, ...rules }) => {
      const group = this.#group(TargetGroupArn);
      group.checks = rules;
      this.#routeAll(group);
      return { TargetGroups: members([shownGroup(group)]) };
    }),
    ModifyTargetGroupAttributes: action(attributes, ({ TargetGroupArn, Attributes }) => {
      const group = this.#group(TargetGroupArn);
      for (const { Key, Value } of Attributes) setAttribute(group, Key, Value);
      return { Attributes: members(Attributes) };
    }),
    DeleteTargetGroup: action(ofGroup, ({ TargetGroupArn }) => {
      const group = this.#groups.get(TargetGroupArn);
      if (group !== undefined && this.#listenerOf(group) !== undefined) {
        const message = `Target group '${TargetGroupArn}' is currently in use by a listener or a rule`;
        throw new AwsFault('ResourceInUse', message);
      }
      group?.counts.close();
      this.#groups.delete(TargetGroupArn);
      return {};
    }),
    RegisterTargets: action(targets, ({ TargetGroupArn, Targets }) => this.#register(TargetGroupArn, Targets)),
    DeregisterTargets: action(targets, ({ TargetGroupArn, Targets }) => this.#deregister(TargetGroupArn, Targets)),
    DescribeTargetHealth: action(ofGroup, ({ TargetGroupArn }) => ({
      TargetHealthDescriptions: members(this.#health(this.#group(TargetGroupArn))),
    })),
    DescribeListeners: action(describeListeners, ({ LoadBalancerArn }) => {
      this.#balancer(LoadBalancerArn);
      const own = [...this.#listeners.values()].filter((l) => l.balancer === LoadBalancerArn);
      return { Listeners: members(own.map(shownListener)) };
    }),
    CreateListener: action(createListener, async (asked) => ({
      Listeners: members([shownListener(await this.#listen(asked))]),
    })),
    DeleteListener: action(ofListener, async ({ ListenerArn }) => {
      const listener = this.#listeners.get(ListenerArn);
      if (listener === undefined) throw new AwsFault('ListenerNotFound', `Listener '${ListenerArn}' not found`);
      this.#listeners.delete(ListenerArn);
      await listener.proxy.close();
      return {};
    }),
  };

  /** Requests of a target group, by the value of its metrics' dimension. */
  counts(dimension: string, latencyS: number | null): RequestCounts | undefined {
    const group = [...this.#groups.values()].find((g) => g.arn.endsWith(`:${dimension}`));
    if (group !== undefined && latencyS !== null && latencyS !== group.counts.latencyS) {
      group.counts.latencyS = latencyS;
      this.#routeAll(group);
    }
    return group?.counts;
  }

  async close(): Promise<void> {
    for (const group of this.#groups.values()) group.counts.close();
    for (const { proxy } of this.#listeners.values()) await proxy.close();
    this.#listeners.clear();
  }

  #arn(rest: string): string {
    const { region, account } = this.#place;
    const id = hexOf(`elb/${rest}/${this.#made++}`, 16);
    return `arn:aws:elasticloadbalancing:${region}:${account}:${rest}/${id}`;
  }

  #balancer(arn: string): void {
    if (!this.#balancers.has(arn)) throw new AwsFault('LoadBalancerNotFound', `Load balancer '${arn}' not found`);
  }

  #group(arn: string): Group {
    const group = this.#groups.get(arn);
    if (group === undefined) throw new AwsFault('TargetGroupNotFound', `Target groups '${arn}' not found`);
    return group;
  }

  #listenerOf(group: Group): Listening | undefined {
    return [...this.#listeners.values()].find((l) => l.group === group);
  }

  #createGroup({ Name, VpcId, ...rest }: z.infer<typeof createGroup>): XmlValue {
    const rules = checks.parse(rest);
    const known = [...this.#groups.values()].find((g) => g.name === Name);
    if (known !== undefined) {
      if (JSON.stringify(known.checks) === JSON.stringify(rules)) return shownGroup(known);
      const message = `A target group with the same name '${Name}' exists, but with different settings`;
      throw new AwsFault('DuplicateTargetGroupName', message);
    }
    const group: Group = {
      arn: this.#arn(`targetgroup/${Name}`),
      name: Name,
      vpcId: VpcId,
      checks: rules,
      drainS: 300,
      targets: new Map(),
      nextTarget: 1,
      counts: new RequestCounts(LATENCY_S, () => this.#listenerOf(group)?.proxy),
    };
    this.#groups.set(group.arn, group);
    return shownGroup(group);
  }

  #register(arn: string, asked: z.infer<typeof targets>['Targets']): Record<string, never> {
    const group = this.#group(arn);
    for (const { Id } of asked) {
      const state = this.#instances.get(Id)?.state;
      if (state === 'running') continue;
      const message =
        state === undefined
          ? `The instance ID '${Id}' is not valid`
          : `The following targets are not in a running state and cannot be registered: '${Id}'`;
      throw new AwsFault('InvalidTarget', message);
    }
    for (const { Id, Port } of asked) {
      const key = `${Id}:${Port}`;
      const known = group.targets.get(key);
      if (known?.drainedMs === null) continue;
      group.targets.set(key, { number: group.nextTarget++, id: Id, port: Port, drainedMs: null });
    }
    this.#routeAll(group);
    return {};
  }

  #deregister(arn: string, asked: z.infer<typeof targets>['Targets']): Record<string, never> {
    const group = this.#group(arn);
    const drainedMs = Date.now() + group.drainS * 1000;
    for (const { Id, Port } of asked) {
      const known = group.targets.get(`${Id}:${Port}`);
      if (known !== undefined) known.drainedMs ??= drainedMs;
    }
    this.#routeAll(group);
    return {};
  }

  async #listen({ LoadBalancerArn, Port, DefaultActions }: z.infer<typeof createListener>): Promise<Listening> {
    this.#balancer(LoadBalancerArn);
    const group = this.#group(DefaultActions[0].TargetGroupArn);
    const duplicate = () =>
      new AwsFault('DuplicateListener', `A listener already exists on this port for '${LoadBalancerArn}'`);
    if ([...this.#listeners.values()].some((l) => l.balancer === LoadBalancerArn && l.port === Port)) throw duplicate();
    // All load balancers share loopback: a port of another program counts as a listener that this caller has not seen.
    const proxy = await ServiceProxy.open(routeOf(group, Port)).catch((error: unknown) => {
      throw error instanceof EbbError && error.code === 'port-in-use' ? duplicate() : error;
    });
    const arn = this.#arn(`listener/app/${this.#balancers.get(LoadBalancerArn) ?? ''}`);
    const listener = { arn, balancer: LoadBalancerArn, port: Port, group, proxy };
    this.#listeners.set(arn, listener);
    return listener;
  }

  /** https://docs.aws.amazon.com/elasticloadbalancing/latest/application/target-group-health-checks.html */
  #health(group: Group): readonly XmlValue[] {
    this.#routeAll(group);
    const listener = this.#listenerOf(group);
    const states = new Map((listener?.proxy.states ?? []).map((s) => [s.replica, s]));
    return [...group.targets.values()].map((target) => {
      const seen = states.get(target.number);
      const shown = (State: string, Reason?: string, Description?: string | null) => ({
        Target: { Id: target.id, Port: target.port },
        TargetHealth: { State, Reason, Description },
      });
      if (target.drainedMs !== null) {
        return shown('draining', 'Target.DeregistrationInProgress', 'Target deregistration is in progress');
      }
      if (listener === undefined) {
        return shown('unused', 'Target.NotInUse', 'Target group is not configured to receive traffic');
      }
      if (seen === undefined || seen.health === 'unknown') {
        return shown('initial', 'Elb.InitialHealthChecking', 'Initial health checks in progress');
      }
      if (seen.health === 'healthy') return shown('healthy');
      return shown('unhealthy', 'Target.FailedHealthChecks', `Health checks failed: ${seen.detail ?? ''}`);
    });
  }

  /** Forgets what has drained, and makes the proxy follow. */
  #routeAll(group: Group): void {
    for (const [key, { drainedMs }] of group.targets) {
      if (drainedMs !== null && drainedMs <= Date.now()) group.targets.delete(key);
    }
    const listener = this.#listenerOf(group);
    listener?.proxy.route(routeOf(group, listener.port));
  }
}

function setAttribute(group: Group, name: string, value: string): void {
  switch (name) {
    case 'deregistration_delay.timeout_seconds':
      group.drainS = z.coerce.number().int().min(0).max(3600).parse(value);
      return;
    case 'load_balancing.algorithm.type':
      // The proxy knows no other.
      if (value === 'least_outstanding_requests') return;
      throw new NotPlayed('InvalidConfigurationRequest', `the double does not play ${value}`);
    default:
      throw new NotPlayed('InvalidConfigurationRequest', `the double has no attribute ${name}`);
  }
}

function routeOf({ name, checks: rules, drainS, targets: all, counts }: Group, port: number): Route {
  return {
    service: name,
    target: { latencyS: seconds(counts.latencyS), percent: 95 },
    health: {
      path: rules.HealthCheckPath,
      intervalS: seconds(rules.HealthCheckIntervalSeconds),
      timeoutS: seconds(rules.HealthCheckTimeoutSeconds),
      graceS: seconds(0),
      failures: rules.UnhealthyThresholdCount,
    },
    concurrency: null,
    drainS: seconds(drainS),
    port,
    targets: [...all.values()].map(({ number, id, port: to, drainedMs }): Target => {
      const where = { instance: instanceId(id), attempt: attemptId(`${id}:${to}`) };
      return { replica: number, ...where, port: to, mode: drainedMs === null ? 'serve' : 'drain' };
    }),
  };
}

const members = (values: readonly XmlValue[]): XmlList => new XmlList('member', values);

const shownGroup = ({ arn, name, vpcId, checks: rules }: Group) => ({
  TargetGroupArn: arn,
  TargetGroupName: name,
  Protocol: 'HTTP',
  VpcId: vpcId,
  TargetType: 'instance',
  HealthCheckPath: rules.HealthCheckPath,
  HealthCheckIntervalSeconds: rules.HealthCheckIntervalSeconds,
  HealthCheckTimeoutSeconds: rules.HealthCheckTimeoutSeconds,
  HealthyThresholdCount: rules.HealthyThresholdCount,
  UnhealthyThresholdCount: rules.UnhealthyThresholdCount,
  Matcher: rules.Matcher,
});

const shownListener = ({ arn, balancer, port, group }: Listening) => ({
  ListenerArn: arn,
  LoadBalancerArn: balancer,
  Port: port,
  Protocol: 'HTTP',
  DefaultActions: members([{ Type: 'forward', TargetGroupArn: group.arn }]),
});
