import { CloudWatchLogsClient, GetLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import {
  CreateFleetCommand,
  CreateLaunchTemplateCommand,
  EC2Client,
  type CreateFleetCommandInput,
  type CreateFleetCommandOutput,
} from '@aws-sdk/client-ec2';
import {
  CreateClusterCommand,
  DescribeTasksCommand,
  ECSClient,
  ListContainerInstancesCommand,
  RegisterTaskDefinitionCommand,
  StartTaskCommand,
  type ContainerDefinition,
  type StartTaskCommandInput,
  type Task,
} from '@aws-sdk/client-ecs';
import { START_MS, trace } from '../../contract/fleet.ts';
import { startAwsDouble, type AwsDouble, type AwsDoubleOptions } from '../../../scripts/aws-double/double.ts';
import type { AwsEvent } from '../../../scripts/aws-double/events.ts';
import { signalQuietly } from '../../../lib/drivers/local/fleet/processes.ts';
import { processesOf } from '../../support/local-fleet.ts';

/** Market seconds per wall second. */
export const SPEED = 100;
/** What the tests look for comes within seconds; a busy machine gets more. */
const PATIENCE_MS = 30_000;
const CLUSTER = 'ebb';

/** User data of an instance whose agent joins the cluster. */
export const userData = (config = `ECS_CLUSTER=${CLUSTER}`): string =>
  Buffer.from(`#!/bin/bash\ncat >> /etc/ecs/ecs.config <<EOF\n${config}\nEOF\n`).toString('base64');

/** A double over the market of the fleets' contract, and AWS's own clients for it. */
export class Bench {
  readonly double: AwsDouble;
  readonly ec2: EC2Client;
  readonly ecs: ECSClient;
  readonly logs: CloudWatchLogsClient;
  templateId = '';

  private constructor(double: AwsDouble) {
    this.double = double;
    const config = {
      endpoint: double.url,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      maxAttempts: 1,
    };
    this.ec2 = new EC2Client(config);
    this.ecs = new ECSClient(config);
    this.logs = new CloudWatchLogsClient(config);
  }

  static async start(options: Partial<AwsDoubleOptions> = {}, config?: string): Promise<Bench> {
    const bench = new Bench(await startAwsDouble({ trace, from: START_MS, speed: SPEED, ...options }));
    await bench.ecs.send(new CreateClusterCommand({ clusterName: CLUSTER }));
    const { LaunchTemplate } = await bench.ec2.send(
      new CreateLaunchTemplateCommand({
        LaunchTemplateName: 'workers',
        LaunchTemplateData: {
          ImageId: 'ami-0123456789abcdef0',
          UserData: userData(config),
          TagSpecifications: [{ ResourceType: 'instance', Tags: [{ Key: 'from', Value: 'template' }] }],
        },
      }),
    );
    bench.templateId = LaunchTemplate!.LaunchTemplateId!;
    return bench;
  }

  /** A fleet of instances in the zone of that name; spot unless said otherwise. */
  fleet(
    zone: string,
    more: Partial<CreateFleetCommandInput> & { readonly maxPrice?: string; readonly count?: number } = {},
  ) {
    const { maxPrice, count, ...rest } = more;
    const subnet = this.double.subnets.find((s) => s.zone === zone);
    return new CreateFleetCommand({
      Type: 'instant',
      LaunchTemplateConfigs: [
        {
          LaunchTemplateSpecification: { LaunchTemplateId: this.templateId, Version: '$Latest' },
          Overrides: [
            {
              InstanceType: 'c5.large',
              SubnetId: subnet!.id,
              ...(maxPrice === undefined ? {} : { MaxPrice: maxPrice }),
            },
          ],
        },
      ],
      TargetCapacitySpecification: { TotalTargetCapacity: count ?? 1, DefaultTargetCapacityType: 'spot' },
      ...rest,
    });
  }

  /** Launches one and waits for its agent: instance id and container instance ARN. */
  async host(zone: string, maxPrice?: string): Promise<{ readonly instance: string; readonly arn: string }> {
    const answer = await this.ec2.send(this.fleet(zone, maxPrice === undefined ? {} : { maxPrice }));
    const [instance] = idsOf(answer) as [string];
    const arn = await this.until('container instance', async () => {
      const { containerInstanceArns } = await this.ecs.send(
        new ListContainerInstancesCommand({ cluster: CLUSTER, filter: `ec2InstanceId == ${instance}` }),
      );
      return containerInstanceArns?.[0];
    });
    return { instance, arn };
  }

  async define(container: Partial<ContainerDefinition> = {}, family = 'job'): Promise<string> {
    const { taskDefinition } = await this.ecs.send(
      new RegisterTaskDefinitionCommand({
        family,
        containerDefinitions: [
          {
            name: 'main',
            image: 'example/image:1',
            memory: 128,
            cpu: 256,
            logConfiguration: {
              logDriver: 'awslogs',
              options: { 'awslogs-group': '/ebb', 'awslogs-stream-prefix': 'ebb' },
            },
            ...container,
          },
        ],
      }),
    );
    return taskDefinition!.taskDefinitionArn!;
  }

  /** Starts a shell script as a task. */
  async script(on: string, script: string, more: Partial<StartTaskCommandInput> = {}): Promise<Task> {
    const { tasks, failures } = await this.ecs.send(
      new StartTaskCommand({
        cluster: CLUSTER,
        containerInstances: [on],
        taskDefinition: 'job',
        overrides: { containerOverrides: [{ name: 'main', command: ['sh', '-c', script] }] },
        ...more,
      }),
    );
    const [task] = tasks ?? [];
    if (task === undefined) throw new Error(`not started: ${JSON.stringify(failures)}`);
    return task;
  }

  async task(arn: string | undefined): Promise<Task> {
    const { tasks } = await this.ecs.send(
      new DescribeTasksCommand({ cluster: CLUSTER, tasks: [arn!], include: ['TAGS'] }),
    );
    return tasks![0]!;
  }

  /** The task once it is in that state. */
  async taskIn(status: string, arn: string | undefined): Promise<Task> {
    return this.until(`task in ${status}`, async () => {
      const task = await this.task(arn);
      return task.lastStatus === status ? task : undefined;
    });
  }

  async logOf(task: Task): Promise<string[]> {
    const logStreamName = `ebb/main/${task.taskArn!.split('/').at(-1)!}`;
    const { events } = await this.logs.send(
      new GetLogEventsCommand({ logGroupName: '/ebb', logStreamName, startFromHead: true }),
    );
    return (events ?? []).map((event) => event.message ?? '');
  }

  /** Events of a type, of what `detail` holds. */
  events(type: string, detail: Readonly<Record<string, unknown>> = {}): readonly AwsEvent[] {
    return this.double.events.filter(
      (e) => e['detail-type'] === type && Object.entries(detail).every(([name, value]) => e.detail[name] === value),
    );
  }

  /** Looks until there is something. */
  async until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      if (performance.now() > end)
        throw new Error(`no ${what}; events: ${JSON.stringify(this.double.events.slice(-5))}`);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  async close(): Promise<void> {
    for (const client of [this.ec2, this.ecs, this.logs]) client.destroy();
    const { dir } = this.double;
    await this.double.close();
    const left = processesOf(dir);
    for (const { pid } of left) signalQuietly(pid, 'SIGKILL');
  }
}

export const idsOf = (answer: CreateFleetCommandOutput): string[] =>
  (answer.Instances ?? []).flatMap((i) => i.InstanceIds ?? []);

/** Code and HTTP status of what a call is refused with. */
export async function refusal(
  call: Promise<unknown>,
): Promise<{ readonly name: string; readonly status: number | undefined; readonly message: string }> {
  try {
    await call;
  } catch (error) {
    const { name, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
    return { name, status: $metadata?.httpStatusCode, message };
  }
  throw new Error('the call was not refused');
}
