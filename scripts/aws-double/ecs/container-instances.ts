import { z } from 'zod';
import { raw } from '../../../lib/kernel/units.ts';
import { action, type Actions } from '../api.ts';
import { hexOf } from '../events.ts';
import { AwsFault } from '../fault.ts';
import { isVisible, nowMs, type Place } from '../place.ts';
import type { Ec2Instance } from '../ec2/instance.ts';
import { selects } from './query-language.ts';
import { tagsSchema } from './definitions.ts';
import { pageOf } from './paging.ts';
import type { Cluster, ContainerInstance, Take } from './container-instance.ts';

/** CPU units of a vCPU: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_definition_parameters.html */
const CPU_UNITS = 1024;

const clusterName = z.string().default('default');
const createCluster = z.strictObject({ clusterName, tags: tagsSchema });
const describeClusters = z.strictObject({
  clusters: z.array(z.string()).max(100).default(['default']),
  include: z.array(z.string()).default([]),
});
const list = z.strictObject({
  cluster: clusterName,
  filter: z.string().optional(),
  status: z.enum(['ACTIVE', 'DRAINING']).optional(),
  maxResults: z.int().min(1).max(100).default(100),
  nextToken: z.string().optional(),
});
const describe = z.strictObject({
  cluster: clusterName,
  containerInstances: z.array(z.string()).min(1).max(100),
  include: z.array(z.enum(['TAGS', 'CONTAINER_INSTANCE_HEALTH'])).default([]),
});
const update = z.strictObject({
  cluster: clusterName,
  containerInstances: z.array(z.string()).min(1).max(10),
  status: z.enum(['ACTIVE', 'DRAINING']),
});
const putAttributes = z.strictObject({
  cluster: clusterName,
  attributes: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[\w./-]{1,128}$/),
        value: z.string().max(128).default(''),
        targetType: z.literal('container-instance').default('container-instance'),
        targetId: z.string(),
      }),
    )
    .min(1)
    .max(10),
});

/** Clusters, and the container instances that agents register. */
export class ContainerInstances {
  readonly #place: Place;
  readonly #memoryFraction: number;
  readonly #clusters = new Map<string, Cluster>();
  readonly #byId = new Map<string, ContainerInstance>();

  /** `memoryFraction`: share of an instance's memory that its agent registers; the rest is the system's. */
  constructor(place: Place, memoryFraction: number) {
    this.#place = place;
    this.#memoryFraction = memoryFraction;
  }

  readonly actions: Actions<object> = {
    // Idempotent by name. https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_CreateCluster.html
    CreateCluster: action(createCluster, (asked) => {
      const arn = `arn:aws:ecs:${this.#place.region}:${this.#place.account}:cluster/${asked.clusterName}`;
      const cluster = this.#clusters.get(asked.clusterName) ?? { name: asked.clusterName, arn, tags: asked.tags };
      this.#clusters.set(cluster.name, cluster);
      return { cluster: this.#clusterShown(cluster) };
    }),
    DescribeClusters: action(describeClusters, (asked) => {
      const found = asked.clusters.map((name) => this.#clusters.get(shortName(name)));
      return {
        clusters: found.filter((c) => c !== undefined).map((c) => this.#clusterShown(c)),
        failures: asked.clusters.filter((_, n) => found[n] === undefined).map((arn) => ({ arn, reason: 'MISSING' })),
      };
    }),
    ListContainerInstances: action(list, (asked) => {
      // "By default, all states other than INACTIVE": API_ListContainerInstances.
      const wanted = this.in(this.cluster(asked.cluster)).filter(
        (i) =>
          i.status !== 'INACTIVE' &&
          (asked.status === undefined || i.status === asked.status) &&
          isVisible(this.#place, i.registeredMs) &&
          (asked.filter === undefined || selects(asked.filter, i)),
      );
      const { items, nextToken } = pageOf(wanted, asked);
      return { containerInstanceArns: items.map((i) => i.arn), nextToken };
    }),
    DescribeContainerInstances: action(describe, (asked) => {
      const { found, failures } = this.#lookUp(asked.cluster, asked.containerInstances);
      return { containerInstances: found.map((i) => this.#shown(i, asked.include.includes('TAGS'))), failures };
    }),
    // https://docs.aws.amazon.com/AmazonECS/latest/developerguide/container-instance-draining.html
    UpdateContainerInstancesState: action(update, (asked) => {
      const { found, failures } = this.#lookUp(asked.cluster, asked.containerInstances);
      const inactive = found.filter((i) => i.status === 'INACTIVE').map((i) => ({ arn: i.arn, reason: 'INACTIVE' }));
      const changed = found.filter((i) => i.status !== 'INACTIVE');
      for (const instance of changed) this.#change(instance, { status: asked.status }, nowMs(this.#place));
      return { containerInstances: changed.map((i) => this.#shown(i, false)), failures: [...failures, ...inactive] };
    }),
    PutAttributes: action(putAttributes, (asked) => {
      const cluster = this.cluster(asked.cluster);
      for (const { name, value, targetId } of asked.attributes) {
        const target = this.find(cluster, targetId);
        if (target === undefined || target.status === 'INACTIVE') {
          throw new AwsFault('TargetNotFoundException', `The specified target wasn't found: ${targetId}`);
        }
        target.attributes.set(name, value);
      }
      return { attributes: asked.attributes };
    }),
  };

  /** Cluster by name or ARN. Throws ClusterNotFoundException. */
  cluster(name: string): Cluster {
    const cluster = this.#clusters.get(shortName(name));
    if (cluster === undefined) throw new AwsFault('ClusterNotFoundException', 'Cluster not found.');
    return cluster;
  }

  in(cluster: Cluster): readonly ContainerInstance[] {
    return [...this.#byId.values()].filter((i) => i.cluster === cluster);
  }

  /** Container instance by id or ARN; undefined while it cannot be described. */
  find(cluster: Cluster, name: string): ContainerInstance | undefined {
    const found = this.#byId.get(name.split('/').at(-1) ?? '');
    return found?.cluster === cluster && isVisible(this.#place, found.registeredMs) ? found : undefined;
  }

  ofHost(host: Ec2Instance): ContainerInstance | undefined {
    return [...this.#byId.values()].find((i) => i.host === host);
  }

  /**
   * Registers a host whose agent is up. Without its cluster it never registers, and says so in its log (here: stderr).
   * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-agent-config.html: ECS_CLUSTER
   */
  register(host: Ec2Instance, atMs: number): void {
    const cluster = this.#clusters.get(shortName(host.agent.cluster));
    if (cluster === undefined) {
      process.stderr.write(
        `aws-double: the agent of ${host.id} finds no cluster ${host.agent.cluster} and does not register\n`,
      );
      return;
    }
    const id = hexOf(`container-instance/${host.id}`, 32);
    const { capacity } = host.pool.type;
    const instance: ContainerInstance = {
      id,
      arn: `arn:aws:ecs:${this.#place.region}:${this.#place.account}:container-instance/${cluster.name}/${id}`,
      cluster,
      host,
      registered: {
        cpu: (raw(capacity.cpu) / 1000) * CPU_UNITS,
        memoryMiB: Math.floor(raw(capacity.memory) * this.#memoryFraction),
        gpus: capacity.gpus,
      },
      registeredMs: atMs,
      attributes: new Map([...builtInAttributes(host, this.#place), ...Object.entries(host.agent.attributes)]),
      status: 'ACTIVE',
      agentConnected: true,
      version: 0,
      taken: new Map(),
      running: 0,
    };
    this.#byId.set(id, instance);
    this.#change(instance, {}, atMs);
  }

  /**
   * Interruption notice:
   * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/spot-instance-draining-linux-container.html
   */
  warned(host: Ec2Instance, atMs: number): void {
    const instance = this.ofHost(host);
    if (instance?.status === 'ACTIVE' && host.agent.drainsOnNotice)
      this.#change(instance, { status: 'DRAINING' }, atMs);
  }

  disconnected(instance: ContainerInstance, atMs: number): void {
    this.#change(instance, { agentConnected: false }, atMs);
  }

  /** Deregistration by the agent of a terminating instance: API_DeregisterContainerInstance. */
  deregistered(instance: ContainerInstance, atMs: number): void {
    this.#change(instance, { status: 'INACTIVE' }, atMs);
  }

  /** Resource that is too small for `take`: CPU, MEMORY, GPU; null if it fits. */
  lacks(instance: ContainerInstance, take: Take): 'CPU' | 'MEMORY' | 'GPU' | null {
    const left = leftOf(instance);
    if (take.cpu > left.cpu) return 'CPU';
    if (take.memoryMiB > left.memoryMiB) return 'MEMORY';
    return take.gpus > left.gpus ? 'GPU' : null;
  }

  /** Start of a task (`take`), or its end (`null`). Its resources change, which is an event as well. */
  occupy(
    instance: ContainerInstance,
    of: { readonly task: string; readonly take: Take | null; readonly running: number },
  ): void {
    if (of.take === null) instance.taken.delete(of.task);
    else instance.taken.set(of.task, of.take);
    this.#change(instance, { running: instance.running + of.running }, nowMs(this.#place));
  }

  #lookUp(clusterNamed: string, names: readonly string[]) {
    const cluster = this.cluster(clusterNamed);
    const found = names.map((name) => this.find(cluster, name));
    return {
      found: found.filter((i) => i !== undefined),
      failures: names
        .filter((_, n) => found[n] === undefined)
        .map((name) => ({ arn: this.missingArn(cluster, name), reason: 'MISSING' })),
    };
  }

  missingArn(cluster: Cluster, name: string): string {
    const prefix = `arn:aws:ecs:${this.#place.region}:${this.#place.account}:container-instance`;
    return name.startsWith('arn:') ? name : `${prefix}/${cluster.name}/${name}`;
  }

  /** https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs_container_instance_events.html */
  #change(
    instance: ContainerInstance,
    change: Partial<Pick<ContainerInstance, 'status' | 'agentConnected' | 'running'>>,
    atMs: number,
  ): void {
    Object.assign(instance, change);
    instance.version++;
    this.#place.events.add({
      source: 'aws.ecs',
      type: 'ECS Container Instance State Change',
      atMs,
      resources: [instance.arn],
      detail: { ...this.#shown(instance, false), clusterArn: instance.cluster.arn, updatedAt: new Date(atMs) },
    });
  }

  #shown(instance: ContainerInstance, withTags: boolean) {
    return {
      containerInstanceArn: instance.arn,
      ec2InstanceId: instance.host.id,
      version: instance.version,
      versionInfo: { agentVersion: '1.0.0', agentHash: 'double', dockerVersion: 'none' },
      status: instance.status,
      agentConnected: instance.agentConnected,
      registeredResources: resourcesShown(instance.registered),
      remainingResources: resourcesShown(leftOf(instance)),
      runningTasksCount: instance.running,
      pendingTasksCount: instance.taken.size - instance.running,
      attributes: [...instance.attributes].map(([name, value]) => (value === '' ? { name } : { name, value })),
      registeredAt: new Date(instance.registeredMs),
      tags: withTags ? [] : undefined,
    };
  }

  #clusterShown(cluster: Cluster) {
    const instances = this.in(cluster);
    return {
      clusterArn: cluster.arn,
      clusterName: cluster.name,
      status: 'ACTIVE',
      registeredContainerInstancesCount: instances.filter((i) => i.status !== 'INACTIVE').length,
      runningTasksCount: instances.reduce((sum, i) => sum + i.running, 0),
      pendingTasksCount: instances.reduce((sum, i) => sum + i.taken.size - i.running, 0),
      activeServicesCount: 0,
      tags: cluster.tags,
    };
  }
}

const shortName = (cluster: string): string => cluster.split('/').at(-1) ?? cluster;

function leftOf({ registered, taken }: ContainerInstance): Take {
  const all = [...taken.values()];
  const left = (of: keyof Take): number => registered[of] - all.reduce((sum, take) => sum + take[of], 0);
  return { cpu: left('cpu'), memoryMiB: left('memoryMiB'), gpus: left('gpus') };
}

const resourcesShown = ({ cpu, memoryMiB, gpus }: Take) => [
  { name: 'CPU', type: 'INTEGER', doubleValue: 0, longValue: 0, integerValue: cpu },
  { name: 'MEMORY', type: 'INTEGER', doubleValue: 0, longValue: 0, integerValue: memoryMiB },
  ...(gpus > 0
    ? [
        {
          name: 'GPU',
          type: 'STRINGSET',
          doubleValue: 0,
          longValue: 0,
          integerValue: 0,
          stringSetValue: Array.from({ length: gpus }, (_, n) => `gpu-${n}`),
        },
      ]
    : []),
];

/**
 * https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-placement-constraints.html#ecs-automatic-attributes
 */
function builtInAttributes(host: Ec2Instance, place: Place): [string, string][] {
  const { type, zone } = host.pool;
  return [
    ['ecs.instance-type', type.name],
    ['ecs.availability-zone', zone],
    ['ecs.ami-id', host.template.data.ImageId ?? ''],
    ['ecs.os-type', 'linux'],
    ['ecs.os-family', 'LINUX'],
    ['ecs.cpu-architecture', type.arch],
    ['ecs.subnet-id', host.subnet.id],
    ['ecs.vpc-id', place.vpcId],
    ['ecs.capability.logging-driver.awslogs', ''],
  ];
}
