import { constants } from 'node:os';
import type { ContainerDefinition, Tags, TaskDefinition } from './definitions.ts';
import type { ContainerInstance, Take } from './container-instance.ts';

export interface ContainerOverride {
  readonly name: string;
  readonly command?: readonly string[] | undefined;
  readonly environment?: readonly { readonly name: string; readonly value: string }[] | undefined;
  readonly environmentFiles?: readonly { readonly type: 's3'; readonly value: string }[] | undefined;
  readonly cpu?: number | undefined;
  readonly memory?: number | undefined;
  readonly memoryReservation?: number | undefined;
}

/** https://docs.aws.amazon.com/AmazonECS/latest/APIReference/API_Task.html: stopCode */
export type StopCode = 'TaskFailedToStart' | 'EssentialContainerExited' | 'UserInitiated' | 'TerminationNotice';

/** End of a task. */
export interface TaskEnd {
  readonly stopCode: StopCode;
  readonly stoppedReason: string;
  readonly exitCode: number | null;
  /** Reason of the container, if any. */
  readonly reason: string | null;
}

/**
 * Task of one container. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-lifecycle-explanation.html
 */
export interface Task {
  /** 32 hexadecimal digits, which are also the engine's attempt id. */
  readonly id: string;
  readonly arn: string;
  readonly definition: TaskDefinition;
  readonly on: ContainerInstance;
  readonly override: ContainerOverride | null;
  readonly take: Take;
  readonly startedBy: string | undefined;
  readonly group: string;
  readonly createdMs: number;
  readonly tags: Map<string, string>;
  /** Port of the instance that leads to the container's; null: none does. */
  readonly hostPort: HostPort | null;
  /** Null: CloudWatch shows no output. */
  readonly log: { readonly group: string; readonly stream: string } | null;
  lastStatus: 'PENDING' | 'RUNNING' | 'STOPPED';
  desiredStatus: 'RUNNING' | 'STOPPED';
  version: number;
  startedMs: number | null;
  stoppingMs: number | null;
  stoppedMs: number | null;
  /** Reason of a StopTask; null: none. */
  stopAsked: string | null;
  killedForMemory: boolean;
  end: TaskEnd | null;
}

/**
 * Containers have no network of their own here, but the machine's. So a program listens at the host's port, which its
 * variable PORT tells in place of the container's, on loopback alone (HOST).
 */
export interface HostPort {
  readonly containerPort: number;
  readonly hostPort: number;
}

export const takeOf = (definition: TaskDefinition, override: ContainerOverride | null): Take => {
  const { container } = definition;
  const gpus = container.resourceRequirements.find((r) => r.type === 'GPU')?.value ?? '0';
  // Memory that placement counts: the reservation, or the hard limit if there is none.
  const memory =
    override?.memoryReservation ??
    container.memoryReservation ??
    override?.memory ??
    container.memory ??
    Number(definition.memory ?? 0);
  return { cpu: Number(definition.cpu ?? override?.cpu ?? container.cpu ?? 0), memoryMiB: memory, gpus: Number(gpus) };
};

/**
 * Facts about images, since there are none to inspect: ENTRYPOINT, CMD, and a program in place of the AWS CLI, per
 * image or for all (`*`).
 */
export type Images = Readonly<
  Record<
    string,
    { readonly entryPoint?: readonly string[]; readonly command?: readonly string[]; readonly awsCli?: string }
  >
>;

/**
 * Command line of the container:
 * https://docs.docker.com/reference/dockerfile/#understand-how-cmd-and-entrypoint-interact. It gets the container's
 * environment, and from the machine only PATH and the engine's mark, which identifies leftover processes.
 */
export function commandLine(
  definition: ContainerDefinition,
  override: ContainerOverride | null,
  {
    images,
    fromFiles,
    hostPort,
  }: {
    readonly images: Images;
    readonly fromFiles: readonly (readonly [string, string])[];
    readonly hostPort: HostPort | null;
  },
): readonly string[] {
  const image = images[definition.image] ?? {};
  const entry = definition.entryPoint ?? image.entryPoint ?? [];
  const command =
    override?.command ?? definition.command ?? (definition.entryPoint === undefined ? image.command : undefined) ?? [];
  const environment = new Map([
    ['AWS_EXECUTION_ENV', 'AWS_ECS_EC2'],
    // No AWS CLI unless one is given: the machine's own would speak to AWS. No cgroup either.
    ['EBB_AWS_CLI', image.awsCli ?? images['*']?.awsCli ?? 'no'],
    ['EBB_CGROUP', '/ebb/cgroup'],
    ...fromFiles,
    ...[...definition.environment, ...(override?.environment ?? [])].map(({ name, value }): [string, string] => [
      name,
      value,
    ]),
  ]);
  if (hostPort !== null && environment.has('PORT')) environment.set('PORT', String(hostPort.hostPort));
  if (hostPort !== null && environment.has('HOST')) environment.set('HOST', '127.0.0.1');
  const [own, others] = [true, false].map((is) => [...environment].filter(([, value]) => OWN_PATH.test(value) === is));
  const assignments = (others ?? []).map(([name, value]) => `${name}=${value}`);
  const paths = (own ?? []).map(([name, value]) => `"${name}=$EBB_SCRATCH_DIR/container${value}"`).join(' ');
  const clean = `exec env -i "PATH=$PATH" "EBB_SCRATCH_DIR=$EBB_SCRATCH_DIR" ${paths} "$@"`;
  return ['sh', '-c', clean, 'container', ...assignments, ...entry, ...command];
}

/**
 * Path that Ebbtide's containers write to. Here containers share the machine's file system, so the path is moved into
 * the task's own folder. Tasks then do not collide, and root is not needed.
 */
const OWN_PATH = /^\/ebb\/[\w/-]+$/;

/** Exit code of a container after a signal: 128 + n, as in Docker. */
export const signalCode = (signal: string): number => 128 + constants.signals[signal as NodeJS.Signals];

/** Task as in DescribeTasks. */
export function taskShown(task: Task, withTags: boolean) {
  const { definition, end } = task;
  const { container } = definition;
  return {
    taskArn: task.arn,
    clusterArn: task.on.cluster.arn,
    containerInstanceArn: task.on.arn,
    taskDefinitionArn: definition.arn,
    availabilityZone: task.on.host.pool.zone,
    launchType: 'EC2',
    lastStatus: task.lastStatus,
    desiredStatus: task.desiredStatus,
    version: task.version,
    group: task.group,
    startedBy: task.startedBy,
    cpu: String(task.take.cpu),
    memory: String(task.take.memoryMiB),
    createdAt: new Date(task.createdMs),
    startedAt: dateOf(task.startedMs),
    stoppingAt: dateOf(task.stoppingMs),
    executionStoppedAt: dateOf(task.stoppedMs),
    stoppedAt: dateOf(task.stoppedMs),
    stopCode: end?.stopCode,
    stoppedReason: end?.stoppedReason,
    containers: [
      {
        containerArn: `${task.arn.replace(':task/', ':container/')}/main`,
        taskArn: task.arn,
        name: container.name,
        image: container.image,
        lastStatus: task.lastStatus,
        exitCode: end?.exitCode ?? undefined,
        reason: end?.reason ?? undefined,
        cpu: String(task.take.cpu),
        memory: String(task.take.memoryMiB),
        networkBindings:
          task.hostPort === null || task.lastStatus === 'PENDING'
            ? []
            : [{ bindIP: '0.0.0.0', ...task.hostPort, protocol: 'tcp' }],
        networkInterfaces: [],
      },
    ],
    overrides: { containerOverrides: task.override === null ? [{ name: container.name }] : [task.override] },
    attributes: [],
    attachments: [],
    tags: withTags ? tagsShown(task.tags) : undefined,
  };
}

export const tagsShown = (tags: ReadonlyMap<string, string>): Tags => [...tags].map(([key, value]) => ({ key, value }));

const dateOf = (ms: number | null): Date | undefined => (ms === null ? undefined : new Date(ms));

/**
 * Variables in an environment file, as the agent reads it: literal lines `NAME=VALUE`, without comments and empty names
 * or values. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/use-environment-file.html
 */
export const environmentIn = (file: string): readonly (readonly [string, string])[] =>
  file.split('\n').flatMap((line) => {
    const at = line.indexOf('=');
    return line.startsWith('#') || at < 1 || at === line.length - 1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
  });
