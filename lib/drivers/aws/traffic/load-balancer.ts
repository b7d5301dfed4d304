import {
  CreateListenerCommand,
  CreateTargetGroupCommand,
  DeleteListenerCommand,
  DeleteTargetGroupCommand,
  DeregisterTargetsCommand,
  DescribeTargetHealthCommand,
  ModifyTargetGroupAttributesCommand,
  ModifyTargetGroupCommand,
  paginateDescribeListeners,
  paginateDescribeTargetGroups,
  RegisterTargetsCommand,
  type ElasticLoadBalancingV2Client,
  type TargetDescription,
} from '@aws-sdk/client-elastic-load-balancing-v2';
import { classify, faultOf } from '../errors.ts';
import { groupName, isGroupOf } from './group-names.ts';

export interface LoadBalancerOptions {
  readonly client: ElasticLoadBalancingV2Client;
  /** ARN of the Application Load Balancer. */
  readonly arn: string;
  readonly vpcId: string;
  /** Name of the deployment. */
  readonly stack: string;
  /** ARN of the certificate of HTTPS listeners. Null: they speak HTTP. */
  readonly certificate: string | null;
}

export interface Listener {
  readonly arn: string;
  readonly port: number;
  /** ARN of the target group that it forwards to; null: it is none of ours. */
  readonly group: string | null;
}

/** Rules of a target group, in whole seconds, within the limits of Elastic Load Balancing. */
export interface GroupRules {
  readonly path: string;
  readonly intervalS: number;
  readonly timeoutS: number;
  /** Failed checks in a row that make a target unhealthy. */
  readonly failures: number;
  /** Longest time for requests in flight at a target that is taken out. */
  readonly drainS: number;
}

/** A port of an EC2 instance. */
export interface Endpoint {
  readonly ec2: string;
  readonly port: number;
}

export interface EndpointHealth extends Endpoint {
  readonly state: 'initial' | 'healthy' | 'unhealthy' | 'draining' | 'unused' | 'unavailable';
  /** Reason in Elastic Load Balancing's words; null: none. */
  readonly detail: string | null;
}

/** Checks in a row that make a target healthy: the least that Elastic Load Balancing takes. */
const HEALTHY_CHECKS = 2;
const HTTPS_POLICY = 'ELBSecurityPolicy-TLS13-1-2-2021-06';

/** The calls to Elastic Load Balancing. Throws `aws.*` errors. */
export class LoadBalancer {
  readonly #options: LoadBalancerOptions;

  constructor(options: LoadBalancerOptions) {
    this.#options = options;
  }

  get isSecure(): boolean {
    return this.#options.certificate !== null;
  }

  async listeners(): Promise<readonly Listener[]> {
    const { client, arn: LoadBalancerArn } = this.#options;
    return named('DescribeListeners', async () => {
      const found: Listener[] = [];
      for await (const page of paginateDescribeListeners({ client }, { LoadBalancerArn })) {
        for (const { ListenerArn, Port, DefaultActions = [] } of page.Listeners ?? []) {
          if (ListenerArn === undefined || Port === undefined) continue;
          found.push({ arn: ListenerArn, port: Port, group: DefaultActions[0]?.TargetGroupArn ?? null });
        }
      }
      return found;
    });
  }

  /** ARNs of the deployment's target groups, by name. */
  async groups(): Promise<ReadonlyMap<string, string>> {
    const { client, stack } = this.#options;
    return named('DescribeTargetGroups', async () => {
      const found = new Map<string, string>();
      for await (const page of paginateDescribeTargetGroups({ client }, {})) {
        for (const { TargetGroupName: name = '', TargetGroupArn: arn } of page.TargetGroups ?? []) {
          if (arn !== undefined && isGroupOf(stack, name)) found.set(name, arn);
        }
      }
      return found;
    });
  }

  /** ARN of the service's new target group; of the one that it has, where it is repeated. */
  async createGroup(service: string, rules: GroupRules): Promise<string> {
    const { client, vpcId: VpcId, stack } = this.#options;
    return named('CreateTargetGroup', async () => {
      const { TargetGroups } = await client.send(
        new CreateTargetGroupCommand({
          Name: groupName(stack, service),
          Protocol: 'HTTP',
          // Each target has a port of its own; this one is never used.
          Port: 80,
          VpcId,
          TargetType: 'instance',
          HealthCheckProtocol: 'HTTP',
          HealthCheckPort: 'traffic-port',
          ...checksOf(rules),
          Tags: [
            { Key: 'ebb:stack', Value: stack },
            { Key: 'ebb:service', Value: service },
          ],
        }),
      );
      const arn = TargetGroups?.[0]?.TargetGroupArn;
      if (arn === undefined) throw new Error('CreateTargetGroup answered without a target group');
      return arn;
    });
  }

  async setRules(group: string, rules: GroupRules): Promise<void> {
    const { client } = this.#options;
    await named('ModifyTargetGroup', async () => {
      await client.send(new ModifyTargetGroupCommand({ TargetGroupArn: group, ...checksOf(rules) }));
      await client.send(
        new ModifyTargetGroupAttributesCommand({
          TargetGroupArn: group,
          Attributes: [
            { Key: 'deregistration_delay.timeout_seconds', Value: String(rules.drainS) },
            { Key: 'load_balancing.algorithm.type', Value: 'least_outstanding_requests' },
          ],
        }),
      );
    });
  }

  async deleteGroup(group: string): Promise<void> {
    const { client } = this.#options;
    await named('DeleteTargetGroup', () => client.send(new DeleteTargetGroupCommand({ TargetGroupArn: group })));
  }

  /** False: another listener has the port. */
  async createListener(port: number, group: string): Promise<boolean> {
    const { client, arn: LoadBalancerArn, certificate } = this.#options;
    const secure = { SslPolicy: HTTPS_POLICY, Certificates: [{ CertificateArn: certificate ?? '' }] };
    try {
      await client.send(
        new CreateListenerCommand({
          LoadBalancerArn,
          Protocol: certificate === null ? 'HTTP' : 'HTTPS',
          Port: port,
          ...(certificate === null ? {} : secure),
          DefaultActions: [{ Type: 'forward', TargetGroupArn: group }],
        }),
      );
      return true;
    } catch (error) {
      if (error instanceof Error && error.name === 'DuplicateListenerException') return false;
      throw classify(error, 'elb CreateListener');
    }
  }

  async deleteListener(listener: string): Promise<void> {
    const { client } = this.#options;
    try {
      await client.send(new DeleteListenerCommand({ ListenerArn: listener }));
    } catch (error) {
      const isGone = error instanceof Error && error.name === 'ListenerNotFoundException';
      if (!isGone && faultOf(error) !== 'gone') throw classify(error, 'elb DeleteListener');
    }
  }

  async health(group: string): Promise<readonly EndpointHealth[]> {
    const { client } = this.#options;
    return named('DescribeTargetHealth', async () => {
      const answer = await client.send(new DescribeTargetHealthCommand({ TargetGroupArn: group }));
      return (answer.TargetHealthDescriptions ?? []).map(({ Target, TargetHealth }) => ({
        ec2: Target?.Id ?? '',
        port: Target?.Port ?? 0,
        state: stateOf(TargetHealth?.State),
        detail: TargetHealth?.Description ?? TargetHealth?.Reason ?? null,
      }));
    });
  }

  /** An instance that is gone is left out: one refused target makes the whole call fail. */
  async register(group: string, endpoints: readonly Endpoint[]): Promise<void> {
    const { client } = this.#options;
    try {
      await client.send(new RegisterTargetsCommand({ TargetGroupArn: group, Targets: endpoints.map(targetOf) }));
    } catch (error) {
      const isTarget = error instanceof Error && error.name === 'InvalidTargetException';
      if (!isTarget) throw classify(error, 'elb RegisterTargets');
      if (endpoints.length > 1) for (const endpoint of endpoints) await this.register(group, [endpoint]);
    }
  }

  /** They get no new request; those in flight end. */
  async deregister(group: string, endpoints: readonly Endpoint[]): Promise<void> {
    const { client } = this.#options;
    await named('DeregisterTargets', () =>
      client.send(new DeregisterTargetsCommand({ TargetGroupArn: group, Targets: endpoints.map(targetOf) })),
    );
  }
}

async function named<T>(call: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw classify(error, `elb ${call}`);
  }
}

const checksOf = ({ path, intervalS, timeoutS, failures }: GroupRules) => ({
  HealthCheckPath: path,
  HealthCheckIntervalSeconds: intervalS,
  HealthCheckTimeoutSeconds: timeoutS,
  HealthyThresholdCount: HEALTHY_CHECKS,
  UnhealthyThresholdCount: failures,
  Matcher: { HttpCode: '200-399' },
});

const targetOf = ({ ec2, port }: Endpoint): TargetDescription => ({ Id: ec2, Port: port });

const STATES: ReadonlySet<string> = new Set(['initial', 'healthy', 'unhealthy', 'draining', 'unused']);
const stateOf = (state: string | undefined): EndpointHealth['state'] =>
  state !== undefined && STATES.has(state) ? (state as EndpointHealth['state']) : 'unavailable';
