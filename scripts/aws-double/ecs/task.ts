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

/** How a task ended. */
export interface TaskEnd {
  readonly stopCode: StopCode;
  readonly stoppedReason: string;
  readonly exitCode: number | null;
  /** Of the container, where it has one. */
  readonly reason: string | null;
}

/**
 * A task of one container. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-lifecycle-explanation.html
 */
export interface Task {
  /** 32 hexadecimal digits; also the capacity engine's attempt. */
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
  /** Null: its output goes nowhere that CloudWatch shows. */
  readonly log: { readonly group: string; readonly stream: string } | null;
  lastStatus: 'PENDING' | 'RUNNING' | 'STOPPED';
  desiredStatus: 'RUNNING' | 'STOPPED';
  version: number;
  startedMs: number | null;
  stoppingMs: number | null;
  stoppedMs: number | null;
  /** StopTask has come; its reason. */
  stopAsked: string | null;
  killedForMemory: boolean;
  end: TaskEnd | null;
}

export const takeOf = (definition: TaskDefinition, override: ContainerOverride | null): Take => {
  const { container } = definition;
  const gpus = container.resourceRequirements.find((r) => r.type === 'GPU')?.value ?? '0';
  // A reservation is what placement counts; a hard limit alone reserves itself.
  const memory =
    override?.memoryReservation ??
    container.memoryReservation ??
    override?.memory ??
    container.memory ??
    Number(definition.memory ?? 0);
  return { cpu: Number(definition.cpu ?? override?.cpu ?? container.cpu ?? 0), memoryMiB: memory, gpus: Number(gpus) };
};

/**
 * What is known of images, for there is no image to look into: their own ENTRYPOINT and CMD, and a program that stands
 * for the AWS CLI in them, or in all images (`*`).
 */
export type Images = Readonly<
  Record<
    string,
    { readonly entryPoint?: readonly string[]; readonly command?: readonly string[]; readonly awsCli?: string }
  >
>;

/**
 * The command line of the container:
 * https://docs.docker.com/reference/dockerfile/#understand-how-cmd-and-entrypoint-interact. It gets the container's
 * environment and nothing of the machine's but PATH; the engine's own mark stays, by which it finds what a task leaves
 * behind.
 */
export function commandLine(
  definition: ContainerDefinition,
  override: ContainerOverride | null,
  { images, fromFiles }: { readonly images: Images; readonly fromFiles: readonly (readonly [string, string])[] },
): readonly string[] {
  const image = images[definition.image] ?? {};
  const entry = definition.entryPoint ?? image.entryPoint ?? [];
  const command =
    override?.command ?? definition.command ?? (definition.entryPoint === undefined ? image.command : undefined) ?? [];
  const environment = new Map([
    ['AWS_EXECUTION_ENV', 'AWS_ECS_EC2'],
    // Images have no AWS CLI unless one is given; this machine's own would speak to AWS. Nor has a process a cgroup
    // here.
    ['EBB_AWS_CLI', image.awsCli ?? images['*']?.awsCli ?? 'no'],
    ['EBB_CGROUP', '/ebb/cgroup'],
    ...fromFiles,
    ...[...definition.environment, ...(override?.environment ?? [])].map(({ name, value }): [string, string] => [
      name,
      value,
    ]),
  ]);
  const [own, others] = [true, false].map((is) => [...environment].filter(([, value]) => OWN_PATH.test(value) === is));
  const assignments = (others ?? []).map(([name, value]) => `${name}=${value}`);
  const paths = (own ?? []).map(([name, value]) => `"${name}=$EBB_SCRATCH_DIR/container${value}"`).join(' ');
  const clean = `exec env -i "PATH=$PATH" "EBB_SCRATCH_DIR=$EBB_SCRATCH_DIR" ${paths} "$@"`;
  return ['sh', '-c', clean, 'container', ...assignments, ...entry, ...command];
}

/**
 * A container has a file system of its own, and here it is the machine's: the one place that Ebbtide's containers write
 * to is taken to be within the task's own folder, so that tasks do not meet there and nobody needs to be root.
 */
const OWN_PATH = /^\/ebb\/[\w/-]+$/;

/** Exit code of a container by the signal that ended it: 128 + n, as Docker reports it. */
export const signalCode = (signal: string): number => 128 + constants.signals[signal as NodeJS.Signals];

/** As DescribeTasks shows it. */
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
 * As the agent reads environment files: lines `NAME=VALUE` as they stand, without comments and without empty names or
 * values. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/use-environment-file.html
 */
export const environmentIn = (file: string): readonly (readonly [string, string])[] =>
  file.split('\n').flatMap((line) => {
    const at = line.indexOf('=');
    return line.startsWith('#') || at < 1 || at === line.length - 1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
  });
