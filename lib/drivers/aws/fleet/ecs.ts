import {
  DescribeContainerInstancesCommand,
  DescribeTaskDefinitionCommand,
  DescribeTasksCommand,
  ListContainerInstancesCommand,
  RegisterTaskDefinitionCommand,
  RunTaskCommand,
  StopTaskCommand,
  type ECSClient,
  type RegisterTaskDefinitionCommandInput,
  type Task,
} from '@aws-sdk/client-ecs';
import { raw } from '../../../kernel/units.ts';
import { isS3Uri, jobFolder } from '../../../domain/s3-uri.ts';
import { secretPrefix, secretRef } from '../../../domain/secret-ref.ts';
import type { StartRequest } from '../../../ports/fleet.ts';
import { classify, faultNamed, faultOf, isOutcomeUnknown, outcomeOfFault, type Unsuccessful } from '../errors.ts';
import { ENTRY_POINT, quoted } from './entrypoint.ts';
import { CONTAINER, LOG_PREFIX } from './log-place.ts';
import { partedEnvironment } from './environment-file.ts';
import { endMarkOf, environmentKey, keptKey, markOf, orderKey, tokenOf } from './request-names.ts';
import { inputScript, outputScript } from './staging.ts';

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
  /** Checkpoint folder of a task, within its container. */
  readonly checkpointDir: (task: StartRequest['task']) => string;
  /**
   * Writes an object of the bucket: values of `env`, and orders that are too long for ECS. Absent: values become
   * overrides, and long orders are refused.
   */
  readonly put?: (key: string, content: string) => Promise<void>;
}

/**
 * Longest stop time-out of ECS (API_ContainerDefinition, stopTimeout), which is also the length of an interruption
 * notice. The entrypoint ends the program earlier and uploads in the rest.
 */
const STOP_TIMEOUT_S = 120;
/** "A total of 8192 characters are allowed for overrides" (API_RunTask). */
export const MAX_OVERRIDES = 8192;
/** Pause between uploads of a checkpoint, s. An upload is a few requests to S3, 0.00002 USD. */
const CHECKPOINT_PAUSE_S = 60;
/** Docker's smallest memory for a container, MiB (API_ContainerDefinition, memory). */
const MIN_MEMORY_MIB = 6;

/**
 * Page size of ListContainerInstances, and limit of DescribeContainerInstances ("up to 100 container instance IDs").
 */
const HOSTS_AT_ONCE = 100;

export type Started =
  | { readonly status: 'started'; readonly task: string }
  /** No answer: the task may exist. */
  | { readonly status: 'unknown'; readonly detail: string }
  | Unsuccessful;

/** The calls to ECS. */
export class Ecs {
  readonly #options: EcsOptions;
  /** Registered task definitions, as far as this process has asked. */
  readonly #definitions = new Map<string, Promise<void>>();

  constructor(options: EcsOptions) {
    this.#options = options;
  }

  /**
   * Runs an attempt on one instance. RunTask with a constraint that only this instance meets, because StartTask has no
   * client token: a repeated RunTask starts nothing twice. `refusals`: number of earlier refusals, part of the token.
   * Without it ECS would repeat its old answer.
   */
  async start(order: StartRequest, ec2: string, refusals: number): Promise<Started> {
    try {
      const overrides = await this.#overrides(order);
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
      return outcomeOfFault(faultNamed(reason), `ecs RunTask: ${[reason, failure?.detail].filter(Boolean).join(': ')}`);
    } catch (error) {
      if (error instanceof TooLong) return { status: 'refused', why: 'invalid', detail: error.message };
      const detail = classify(error, 'ecs RunTask').message;
      const refused = outcomeOfFault(faultOf(error), detail);
      // Retryable faults repeat under the same token; an earlier try may have succeeded.
      return isOutcomeUnknown(error) || refused.status === 'failed' ? { status: 'unknown', detail } : refused;
    }
  }

  /**
   * Overrides of the attempt. Values of the job's environment are in the bucket, where the agent reads them. If the
   * rest is too long, the entrypoint reads that part from the bucket.
   */
  async #overrides(order: StartRequest): Promise<Overrides> {
    const { put } = this.#options;
    const own = environmentOf(order, this.#options);
    const env = Object.fromEntries(Object.entries(order.env).filter(([name]) => !Object.hasOwn(own, name)));
    const parted = put === undefined ? null : partedEnvironment(env);
    const file = parted === null || parted.content === '' ? null : environmentKey(order.attempt);
    const whole = overridesOf(order, order.command, { ...(parted?.rest ?? env), ...own }, this.#arnOf(file));
    // True also for an environment that is too long for a file: it is too long for overrides as well.
    const isLong = put !== undefined && parted === null;
    if (!isLong && JSON.stringify(whole).length <= MAX_OVERRIDES) {
      if (file !== null) await put?.(file, parted?.content ?? '');
      return whole;
    }
    if (put === undefined) {
      throw new TooLong(`command and environment are longer than the ${MAX_OVERRIDES} characters that ECS takes`);
    }
    const { EBB_INPUTS = '', EBB_OUTPUTS = '', ...short } = own;
    const key = orderKey(order.attempt);
    await put(key, orderText(order, { ...own, EBB_INPUTS, EBB_OUTPUTS }));
    const EBB_ORDER = `s3://${this.#options.bucket}/${key}`;
    return overridesOf(order, ['true'], { ...short, EBB_ORDER }, null);
  }

  /** ARN of an object in the bucket. */
  #arnOf(key: string | null): string | null {
    const [, partition = 'aws'] = this.#options.executionRole.split(':');
    return key === null ? null : `arn:${partition}:s3:::${this.#options.bucket}/${key}`;
  }

  /**
   * Task definition per image, entrypoint, set of secrets and port, since overrides hold none of them. Registered when
   * first needed. Two parallel registrations give two equal revisions.
   */
  async #definition(order: StartRequest): Promise<string> {
    const image = order.image ?? this.#options.image;
    const { logGroup, region, executionRole, taskRole, stack } = this.#options;
    const secrets = secretsOf(order.secrets ?? {}, this.#options);
    const parts = [
      ...(secrets.length === 0 ? [] : [JSON.stringify(secrets)]),
      ...(order.port === undefined ? [] : [`port ${order.port}`]),
    ];
    const wanted: RegisterTaskDefinitionCommandInput = {
      // `_` occurs in no deployment's name, so no deployment has rights over another's definitions.
      family: `${stack}_${tokenOf(image, ...ENTRY_POINT, logGroup, executionRole, taskRole, ...parts).slice(0, 16)}`,
      requiresCompatibilities: ['EC2'],
      networkMode: 'bridge',
      executionRoleArn: executionRole,
      taskRoleArn: taskRole,
      containerDefinitions: [
        {
          name: CONTAINER,
          image,
          essential: true,
          entryPoint: [...ENTRY_POINT],
          command: ['true'],
          memory: 128,
          ...(secrets.length === 0 ? {} : { secrets }),
          // Host port 0: ECS chooses a free one of the instance ("dynamic port mapping").
          ...(order.port === undefined ? {} : { portMappings: [{ containerPort: order.port, hostPort: 0 }] }),
          stopTimeout: STOP_TIMEOUT_S,
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
    const known = this.#definitions.get(family) ?? this.#defined(family, wanted);
    this.#definitions.set(family, known);
    try {
      await known;
    } catch (error) {
      this.#definitions.delete(family);
      throw error;
    }
    return family;
  }

  async #defined(family: string, wanted: RegisterTaskDefinitionCommandInput): Promise<void> {
    if (!(await this.#isThere(family))) await this.#options.client.send(new RegisterTaskDefinitionCommand(wanted));
  }

  async #isThere(family: string): Promise<boolean> {
    try {
      const answer = await this.#options.client.send(new DescribeTaskDefinitionCommand({ taskDefinition: family }));
      return answer.taskDefinition?.status === 'ACTIVE';
    } catch (error) {
      // "Unable to describe task definition": ECS reports a missing definition as ClientException.
      if (error instanceof Error && error.name === 'ClientException') return false;
      throw error;
    }
  }

  /** Stops a task; no effect if it has stopped or is unknown. */
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

  /** Registrations of EC2 instances that accept tasks now. */
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

  /** Tasks that ECS still shows. It deletes tasks about an hour after they stopped. */
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

/**
 * Secrets of a task definition, by ARN. The agent reads them with the execution role, which no container has. ARNs of
 * Secrets Manager omit its random suffix of six characters ("partial ARN"), which is unknown beforehand.
 */
function secretsOf(
  refs: Readonly<Record<string, string>>,
  { executionRole, region, stack }: EcsOptions,
): { readonly name: string; readonly valueFrom: string }[] {
  const [, partition = 'aws', , , account = ''] = executionRole.split(':');
  return Object.keys(refs)
    .sort()
    .map((name) => {
      const ref = secretRef(refs[name] ?? '');
      const full = `${secretPrefix(stack)}${ref.name}`;
      const resource = ref.store === 'ssm' ? `parameter/${full}` : `secret:${full}`;
      return { name, valueFrom: `arn:${partition}:${ref.store}:${region}:${account}:${resource}` };
    });
}

class TooLong extends Error {}

type Overrides = NonNullable<ConstructorParameters<typeof RunTaskCommand>[0]['overrides']>;
type Environment = Readonly<Record<string, string>>;

function overridesOf(
  order: StartRequest,
  command: readonly string[],
  environment: Environment,
  file: string | null,
): Overrides {
  const { cpu, memory, gpus } = order.resources;
  return {
    containerOverrides: [
      {
        name: CONTAINER,
        command: [...command],
        environment: Object.entries(environment).map(([name, value]) => ({ name, value })),
        ...(file === null ? {} : { environmentFiles: [{ type: 's3', value: file }] }),
        cpu: Math.max(1, Math.floor((raw(cpu) * 1024) / 1000)),
        memory: Math.max(MIN_MEMORY_MIB, Math.floor(raw(memory))),
        ...(gpus > 0 ? { resourceRequirements: [{ type: 'GPU', value: String(gpus) }] } : {}),
      },
    ],
  };
}

/** Shell text of the order: the user's part, and variables of the entrypoint that did not fit. */
function orderText(
  { env, command }: StartRequest,
  own: { readonly EBB_INPUTS: string; readonly EBB_OUTPUTS: string },
): string {
  const lines = [
    // The user's variables come last: the entrypoint's own must not change.
    ...Object.entries(env)
      .filter(([name]) => !Object.hasOwn(own, name))
      .map(([name, value]) => `export ${name}=${quoted(value)}`),
    `ebb_inputs=${quoted(own.EBB_INPUTS)}`,
    `ebb_outputs=${quoted(own.EBB_OUTPUTS)}`,
    `set -- ${command.map(quoted).join(' ')}`,
  ];
  return `${lines.join('\n')}\n`;
}

/** Where a server is to listen: shown in ECS, so that a person can compare it with the port mapping. */
const placeOf = ({ port, env }: StartRequest): Record<string, string> =>
  port === undefined ? {} : { PORT: String(port), ...(env['HOST'] === undefined ? {} : { HOST: env['HOST'] }) };

/** Variables of local mode, and places in the bucket. */
function environmentOf(order: StartRequest, options: EcsOptions): Environment {
  const { task, attempt, role, checkpoint, timeoutS, inputs, outputs } = order;
  const where = [task.job, task.stage, String(task.index)].map(encodeURIComponent).join('/');
  const bucket = `s3://${options.bucket}/`;
  const workdir = isS3Uri(order.workdir) ? order.workdir : jobFolder(options.bucket, task.job);
  const own = {
    // Region for the AWS CLI: ECS sets it on Fargate only.
    AWS_REGION: order.env['AWS_REGION'] ?? options.region,
    ...placeOf(order),
    EBB_JOB: task.job,
    EBB_STAGE: task.stage,
    EBB_TASK_INDEX: String(task.index),
    EBB_TASK_ATTEMPT: String(task.number),
    EBB_ATTEMPT: attempt,
    EBB_WORKDIR: workdir,
    EBB_INPUTS: inputScript(workdir, inputs),
    EBB_OUTPUTS: outputScript(workdir, outputs),
    // Claims lie beside checkpoints, where tasks may write and objects expire.
    EBB_CLAIM: outputs.length === 0 ? '' : `${bucket}checkpoints/${where}.publisher-${task.round ?? task.number}`,
    EBB_COPY: role === 'copy' ? '1' : '',
    EBB_REPORT: endMarkOf(attempt),
    EBB_CHECKPOINT_DIR: options.checkpointDir(task),
    EBB_CHECKPOINT_URI: `${bucket}checkpoints/${where}${role === 'copy' ? `.copy-${task.number}` : ''}/`,
    EBB_CHECKPOINT_MARK: `${bucket}${keptKey(attempt)}`,
    ...(checkpoint === null
      ? {}
      : {
          EBB_DONE: `${bucket}checkpoints/${where}.done`,
          ...(role === 'copy' ? { EBB_ORIGINAL_URI: `${bucket}checkpoints/${where}/` } : {}),
          EBB_CHECKPOINT_SIGNAL: checkpoint.signal.slice(3),
          EBB_CHECKPOINT_GRACE_S: String(raw(checkpoint.graceS)),
          EBB_CHECKPOINT_PAUSE_S: String(Math.max(1, Math.round(CHECKPOINT_PAUSE_S / options.speed))),
        }),
    EBB_TIMEOUT_S: timeoutS === null ? '' : String(raw(timeoutS) / options.speed),
  };
  return Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ''));
}
