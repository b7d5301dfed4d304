import {
  DescribeContainerInstancesCommand,
  DescribeTaskDefinitionCommand,
  DescribeTasksCommand,
  ListContainerInstancesCommand,
  RegisterTaskDefinitionCommand,
  RunTaskCommand,
  StopTaskCommand,
  type ECSClient,
  type KeyValuePair,
  type RegisterTaskDefinitionCommandInput,
  type Task,
} from '@aws-sdk/client-ecs';
import { raw, seconds } from '../../kernel/units.ts';
import type { EffectOutcome } from '../../domain/plan.ts';
import type { StartRequest } from '../../ports/fleet.ts';
import { classify, faultNamed, faultOf, isOutcomeUnknown, outcomeOfFault } from '../errors.ts';
import { entrypoint } from './entrypoint.ts';
import { keptKey, markOf, tokenOf } from './marks.ts';

export interface EcsOptions {
  readonly client: ECSClient;
  readonly cluster: string;
  readonly stack: string;
  readonly region: string;
  /** Image of stages that name none. */
  readonly image: string;
  readonly logGroup: string;
  readonly executionRole: string;
  readonly taskRole: string;
  readonly bucket: string;
  /** Engine seconds per wall second. */
  readonly speed: number;
  /** Where a task finds its checkpoint, within its container. */
  readonly checkpointDir: (task: StartRequest['task']) => string;
}

/** The one container of our tasks. */
const CONTAINER = 'task';
const LOG_PREFIX = 'ebb';
/** ECS takes no more (API_ContainerDefinition, stopTimeout). */
const MAX_STOP_TIMEOUT_S = 120;
/** From the program's SIGTERM to its SIGKILL, as in local mode. */
const KILL_AFTER_S = 5;
/** "A total of 8192 characters are allowed for overrides" (API_RunTask). */
const MAX_OVERRIDES = 8192;
/** Docker's least memory for a container is 6 MiB (API_ContainerDefinition, memory). */
const MIN_MEMORY_MIB = 6;

/** A page of ListContainerInstances, and what DescribeContainerInstances takes ("up to 100 container instance IDs"). */
const HOSTS_AT_ONCE = 100;

export type Started =
  | { readonly status: 'started'; readonly task: string }
  /** No answer: there may be a task, or not. */
  | { readonly status: 'unknown'; readonly detail: string }
  | Exclude<EffectOutcome, { status: 'done' }>;

/** Name of the log stream of a task, as the awslogs driver makes it. */
export const logStreamOf = (task: string): string => `${LOG_PREFIX}/${CONTAINER}/${task.split('/').at(-1) ?? ''}`;

/** The calls to ECS. */
export class Ecs {
  readonly #options: EcsOptions;
  /** Task definitions that this process knows to be there. */
  readonly #definitions = new Set<string>();

  constructor(options: EcsOptions) {
    this.#options = options;
  }

  /**
   * Runs an attempt on one instance. RunTask with a constraint that only this instance meets, and not StartTask, because
   * RunTask alone takes a client token: repeated when an answer was lost it starts nothing twice. `refusals`, how often ECS
   * has said no before, makes a new request of it: else the old answer would come again.
   */
  async start(order: StartRequest, ec2: string, refusals: number): Promise<Started> {
    const overrides = this.#overrides(order);
    const size = JSON.stringify(overrides).length;
    if (size > MAX_OVERRIDES) {
      const detail = `command and environment take ${size} characters; ECS takes ${MAX_OVERRIDES}: put them into the image or a file`;
      return { status: 'refused', why: 'invalid', detail };
    }
    try {
      const taskDefinition = await this.#definition(order);
      const answer = await this.#options.client.send(
        new RunTaskCommand({
          cluster: this.#options.cluster,
          taskDefinition,
          launchType: 'EC2',
          clientToken: tokenOf('start', order.key, order.attempt, String(refusals)),
          startedBy: markOf(order.attempt),
          placementConstraints: [{ type: 'memberOf', expression: `ec2InstanceId == ${ec2}` }],
          overrides,
          tags: [
            { key: 'ebb:stack', value: this.#options.stack },
            { key: 'ebb:attempt', value: order.attempt.slice(0, 256) },
          ],
        }),
      );
      const task = answer.tasks?.[0]?.taskArn;
      if (task !== undefined) return { status: 'started', task };
      const [failure] = answer.failures ?? [];
      const reason = failure?.reason ?? '';
      return refusal(faultNamed(reason), `ecs RunTask: ${[reason, failure?.detail].filter(Boolean).join(': ')}`);
    } catch (error) {
      const detail = classify(error, 'ecs RunTask').message;
      const refused = refusal(faultOf(error), detail);
      // What may pass is asked again under the same token: of several tries of this call an earlier one may have been heard.
      return isOutcomeUnknown(error) || refused.status === 'failed' ? { status: 'unknown', detail } : refused;
    }
  }

  #overrides(order: StartRequest): NonNullable<ConstructorParameters<typeof RunTaskCommand>[0]['overrides']> {
    const { cpu, memory, gpus } = order.resources;
    return {
      containerOverrides: [
        {
          name: CONTAINER,
          command: entrypoint(order.command),
          environment: environmentOf(order, this.#options),
          cpu: Math.max(1, Math.floor((raw(cpu) * 1024) / 1000)),
          memory: Math.max(MIN_MEMORY_MIB, Math.floor(raw(memory))),
          ...(gpus > 0 ? { resourceRequirements: [{ type: 'GPU', value: String(gpus) }] } : {}),
        },
      ],
    };
  }

  /** One task definition per image and stop time, made when it is first needed. Made twice at once it has two revisions, which are alike. */
  async #definition(order: StartRequest): Promise<string> {
    const image = order.image ?? this.#options.image;
    const graceS = raw(order.checkpoint?.graceS ?? seconds(0));
    const stopTimeout = Math.min(MAX_STOP_TIMEOUT_S, Math.ceil(graceS) + KILL_AFTER_S);
    const { logGroup, region, executionRole, taskRole, stack } = this.#options;
    const wanted: RegisterTaskDefinitionCommandInput = {
      family: `${stack}-${tokenOf(image, String(stopTimeout), logGroup, executionRole, taskRole).slice(0, 16)}`,
      requiresCompatibilities: ['EC2'],
      networkMode: 'bridge',
      executionRoleArn: executionRole,
      taskRoleArn: taskRole,
      containerDefinitions: [
        {
          name: CONTAINER,
          image,
          essential: true,
          // An image's own ENTRYPOINT would take the shell that we start for its argument.
          entryPoint: ['sh', '-c', 'exec "$@"', 'ebb'],
          command: ['true'],
          memory: 128,
          stopTimeout,
          logConfiguration: {
            logDriver: 'awslogs',
            options: {
              'awslogs-group': logGroup,
              'awslogs-region': region,
              'awslogs-stream-prefix': LOG_PREFIX,
            },
          },
        },
      ],
    };
    const family = wanted.family ?? '';
    if (!this.#definitions.has(family)) {
      if (!(await this.#isThere(family))) await this.#options.client.send(new RegisterTaskDefinitionCommand(wanted));
      this.#definitions.add(family);
    }
    return family;
  }

  async #isThere(family: string): Promise<boolean> {
    try {
      const answer = await this.#options.client.send(new DescribeTaskDefinitionCommand({ taskDefinition: family }));
      return answer.taskDefinition?.status === 'ACTIVE';
    } catch (error) {
      // "Unable to describe task definition": a ClientException says that there is none.
      if (error instanceof Error && error.name === 'ClientException') return false;
      throw error;
    }
  }

  /** Asks a task to stop. One that has stopped, or is not known any more, stays so. */
  async stop(task: string, why: string): Promise<void> {
    try {
      await this.#options.client.send(
        new StopTaskCommand({ cluster: this.#options.cluster, task, reason: `ebb: ${why}` }),
      );
    } catch (error) {
      const isUnknown = error instanceof Error && error.name === 'InvalidParameterException';
      if (!isUnknown && faultOf(error) !== 'gone') throw classify(error, 'ecs StopTask');
    }
  }

  /** Registrations of EC2 instances that take tasks now. */
  async hosts(
    ec2: readonly string[],
  ): Promise<readonly { readonly ec2: string; readonly host: string; readonly atMs: number }[]> {
    const { client, cluster } = this.#options;
    const found: { ec2: string; host: string; atMs: number }[] = [];
    try {
      for (let i = 0; i < ec2.length; i += HOSTS_AT_ONCE) {
        const filter = `ec2InstanceId in [${ec2.slice(i, i + HOSTS_AT_ONCE).join(', ')}]`;
        const { containerInstanceArns: containerInstances = [] } = await client.send(
          new ListContainerInstancesCommand({ cluster, filter, status: 'ACTIVE' }),
        );
        if (containerInstances.length === 0) continue;
        const answer = await client.send(new DescribeContainerInstancesCommand({ cluster, containerInstances }));
        for (const { containerInstanceArn, ec2InstanceId, agentConnected, registeredAt } of answer.containerInstances ??
          []) {
          if (containerInstanceArn === undefined || ec2InstanceId === undefined || agentConnected !== true) continue;
          found.push({ ec2: ec2InstanceId, host: containerInstanceArn, atMs: registeredAt?.getTime() ?? 0 });
        }
      }
    } catch (error) {
      throw classify(error, 'ecs DescribeContainerInstances');
    }
    return found;
  }

  /** Those that ECS still knows: it forgets tasks about an hour after they have stopped. */
  async describe(tasks: readonly string[]): Promise<readonly Task[]> {
    const found: Task[] = [];
    try {
      // "Up to 100 task IDs" (API_DescribeTasks).
      for (let i = 0; i < tasks.length; i += 100) {
        const answer = await this.#options.client.send(
          new DescribeTasksCommand({ cluster: this.#options.cluster, tasks: tasks.slice(i, i + 100) }),
        );
        found.push(...(answer.tasks ?? []));
      }
    } catch (error) {
      throw classify(error, 'ecs DescribeTasks');
    }
    return found;
  }
}

function refusal(fault: Parameters<typeof outcomeOfFault>[0], detail: string): Started {
  const outcome = outcomeOfFault(fault, detail);
  return outcome.status === 'done' ? { status: 'failed', detail } : outcome;
}

/** The same names as in local mode, and where in the bucket a checkpoint has its place. */
function environmentOf(order: StartRequest, options: EcsOptions): KeyValuePair[] {
  const { task, attempt, checkpoint, timeoutS } = order;
  const where = [task.job, task.stage, String(task.index)].map(encodeURIComponent).join('/');
  const own = {
    EBB_JOB: task.job,
    EBB_STAGE: task.stage,
    EBB_TASK_INDEX: String(task.index),
    EBB_TASK_ATTEMPT: String(task.number),
    EBB_ATTEMPT: attempt,
    EBB_CHECKPOINT_DIR: options.checkpointDir(task),
    EBB_CHECKPOINT_URI: `s3://${options.bucket}/checkpoints/${where}/`,
    EBB_CHECKPOINT_MARK: `s3://${options.bucket}/${keptKey(attempt)}`,
    EBB_CHECKPOINT_SIGNAL: checkpoint === null ? '' : checkpoint.signal.slice(3),
    EBB_CHECKPOINT_GRACE_S: checkpoint === null ? '' : String(raw(checkpoint.graceS)),
    EBB_TIMEOUT_S: timeoutS === null ? '' : String(raw(timeoutS) / options.speed),
  };
  return Object.entries({ ...order.env, ...own }).map(([name, value]) => ({ name, value }));
}
