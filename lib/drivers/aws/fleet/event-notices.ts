/**
 * EventBridge events as notices about an instance or a task. Pure. Schemas list only used fields, because AWS adds
 * others. Examples with their sources: test/fixtures/aws/.
 */
import { z } from 'zod';
import { endMeaning } from './stop-reasons.ts';
import { markInKey } from './request-names.ts';

const time = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const envelope = { id: z.string(), time };

const instanceState = z.object({
  ...envelope,
  source: z.literal('aws.ec2'),
  'detail-type': z.literal('EC2 Instance State-change Notification'),
  detail: z.object({ 'instance-id': z.string(), state: z.string() }),
});
const warning = z.object({
  ...envelope,
  source: z.literal('aws.ec2'),
  'detail-type': z.literal('EC2 Spot Instance Interruption Warning'),
  detail: z.object({ 'instance-id': z.string() }),
});
const rebalance = z.object({
  ...envelope,
  source: z.literal('aws.ec2'),
  'detail-type': z.literal('EC2 Instance Rebalance Recommendation'),
  detail: z.object({ 'instance-id': z.string() }),
});
const host = z.object({
  ...envelope,
  source: z.literal('aws.ecs'),
  'detail-type': z.literal('ECS Container Instance State Change'),
  detail: z.object({
    containerInstanceArn: z.string(),
    ec2InstanceId: z.string().optional(),
    status: z.string(),
    agentConnected: z.boolean(),
    runningTasksCount: z.int().optional(),
    pendingTasksCount: z.int().optional(),
    registeredAt: time.optional(),
  }),
});
const task = z.object({
  ...envelope,
  source: z.literal('aws.ecs'),
  'detail-type': z.literal('ECS Task State Change'),
  detail: z.object({
    taskArn: z.string(),
    startedBy: z.string().optional(),
    lastStatus: z.string(),
    startedAt: time.optional(),
    stoppedAt: time.optional(),
    executionStoppedAt: time.optional(),
    stopCode: z.string().optional(),
    stoppedReason: z.string().optional(),
    containers: z.array(z.object({ exitCode: z.int().optional(), reason: z.string().optional() })).default([]),
  }),
});
const object = z.object({
  ...envelope,
  source: z.literal('aws.s3'),
  'detail-type': z.literal('Object Created'),
  detail: z.object({ object: z.object({ key: z.string() }) }),
});

/** All events that have a meaning. Other kinds are refused: no rule should have sent them. */
export const fleetEvent = z.discriminatedUnion('detail-type', [instanceState, warning, rebalance, host, task, object]);
export type FleetEvent = z.output<typeof fleetEvent>;

export type Notice =
  /** `isStopped`: the instance still exists, and its volumes cost money. */
  | { readonly is: 'gone'; readonly ec2: string; readonly atMs: number; readonly isStopped: boolean }
  | { readonly is: 'rebalance'; readonly ec2: string; readonly atMs: number }
  | { readonly is: 'warned'; readonly ec2: string; readonly atMs: number; readonly goneMs: number }
  | { readonly is: 'ready'; readonly ec2: string; readonly atMs: number; readonly host: string }
  | TaskNotice
  /** `atMs`: wall time, since S3 has no other. */
  | { readonly is: 'kept'; readonly mark: string; readonly atMs: number };

export interface TaskNotice {
  readonly is: 'task';
  readonly mark: string;
  readonly task: string;
  readonly startedMs: number | null;
  readonly end: {
    readonly atMs: number;
    readonly exitCode: number | null;
    readonly detail: string | null;
    readonly isHostGone: boolean;
    readonly isAsked: boolean;
  } | null;
}

const STOPPING = 'stopping';

/**
 * States and details that mean something. Rules send only these (lib/infra/triggers.ts), and `noticeOf` skips the rest.
 * A new instance is known from its launch, its registration or the sweep. A stopping instance costs nothing more
 * ("Amazon EC2 instance state changes", EC2 User Guide), and its tasks end. ECS reports a host at each start and end of
 * a task; only its registration has no tasks. A task that is not running yet adds nothing.
 */
export const ENDED_STATES: readonly string[] = [STOPPING, 'terminated'];
export const TASK_STATES: readonly string[] = ['RUNNING', 'STOPPED'];
export const HOST_READY = 'ACTIVE';
const isInUse = (host: {
  readonly runningTasksCount?: number | undefined;
  readonly pendingTasksCount?: number | undefined;
}): boolean => (host.runningTasksCount ?? 0) + (host.pendingTasksCount ?? 0) > 0;

/** "two minutes before": EC2 User Guide, "Spot Instance interruption notices". */
const NOTICE_MS = 120_000;

/** Notice of an event; null if it has no use. */
export function noticeOf(event: FleetEvent): Notice | null {
  const atMs = event.time;
  switch (event['detail-type']) {
    case 'EC2 Instance State-change Notification': {
      const { 'instance-id': ec2, state } = event.detail;
      return ENDED_STATES.includes(state) ? { is: 'gone', ec2, atMs, isStopped: state === STOPPING } : null;
    }
    case 'EC2 Spot Instance Interruption Warning':
      return { is: 'warned', ec2: event.detail['instance-id'], atMs, goneMs: atMs + NOTICE_MS };
    case 'EC2 Instance Rebalance Recommendation':
      return { is: 'rebalance', ec2: event.detail['instance-id'], atMs };
    case 'ECS Container Instance State Change': {
      const { status, agentConnected, ec2InstanceId: ec2, containerInstanceArn, registeredAt } = event.detail;
      if (status !== HOST_READY || !agentConnected || ec2 === undefined || isInUse(event.detail)) return null;
      return { is: 'ready', ec2, host: containerInstanceArn, atMs: registeredAt ?? atMs };
    }
    case 'ECS Task State Change':
      return TASK_STATES.includes(event.detail.lastStatus) ? taskNotice(event.detail, atMs) : null;
    case 'Object Created': {
      const mark = markInKey(event.detail.object.key);
      return mark === null ? null : { is: 'kept', mark, atMs };
    }
  }
}

/** Task as in DescribeTasks and in ECS' events, with times as numbers. */
export type TaskFacts = z.output<typeof task>['detail'];

export function taskNotice(seen: TaskFacts, atMs: number): TaskNotice | null {
  const { taskArn, startedBy, lastStatus, startedAt, stopCode, stoppedReason, containers } = seen;
  if (startedBy === undefined) return null;
  const end =
    lastStatus === 'STOPPED'
      ? {
          atMs: seen.executionStoppedAt ?? seen.stoppedAt ?? atMs,
          exitCode: containers[0]?.exitCode ?? null,
          ...endMeaning({ stopCode, stoppedReason, reason: containers[0]?.reason }),
        }
      : null;
  return { is: 'task', mark: startedBy, task: taskArn, startedMs: startedAt ?? null, end };
}
