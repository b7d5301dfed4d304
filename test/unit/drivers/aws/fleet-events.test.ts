import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { fleetEvent, noticeOf, type Notice } from '../../../../lib/drivers/aws/fleet/event-notices.ts';

const FOLDER = new URL('../../../fixtures/aws/', import.meta.url);
const ms = (text: string): number => Date.parse(`2026-01-05T${text}Z`);
const EC2 = 'i-0a1b2c3d4e5f67890';
const MARK = '5f1b1e6f0c7a4f3b9d2e8a6c4b0d1e2f';
const TASK = 'arn:aws:ecs:us-east-1:123456789012:task/ebbtide/13e5d5a9f4b14c7a8d6b0a1f2c3d4e5f';

interface Fixture {
  readonly page: string;
  readonly event: Record<string, unknown>;
}
const fixture = (name: string): Fixture => JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), 'utf8')) as Fixture;

/** What each of AWS's events says, worked out by hand from its page. */
const SAYS: Readonly<Record<string, Notice | null>> = {
  'ec2-instance-terminated': { is: 'gone', ec2: EC2, atMs: ms('12:08:40'), isStopped: false },
  'ec2-instance-stopping': { is: 'gone', ec2: EC2, atMs: ms('12:08:40'), isStopped: true },
  'ec2-spot-interruption-warning': { is: 'warned', ec2: EC2, atMs: ms('12:06:40'), goneMs: ms('12:08:40') },
  'ec2-rebalance-recommendation': { is: 'rebalance', ec2: EC2, atMs: ms('12:04:10') },
  'ecs-container-instance-active': {
    is: 'ready',
    ec2: EC2,
    atMs: ms('12:01:33.391'),
    host: 'arn:aws:ecs:us-east-1:123456789012:container-instance/ebbtide/b54a2a04046f4331a9d74523d3f81f26',
  },
  'ecs-task-running': { is: 'task', mark: MARK, task: TASK, startedMs: ms('12:02:03.500'), end: null },
  'ecs-task-stopped-out-of-memory': {
    is: 'task',
    mark: MARK,
    task: TASK,
    startedMs: ms('12:02:03.500'),
    end: {
      atMs: ms('12:07:03.250'),
      exitCode: 137,
      detail: 'OutOfMemoryError: Container killed due to memory usage; ask for more in resources.memory',
      isHostGone: false,
      isAsked: false,
    },
  },
  'ecs-task-stopped-host': {
    is: 'task',
    mark: MARK,
    task: TASK,
    startedMs: ms('12:02:03.500'),
    end: {
      atMs: ms('12:07:03.250'),
      exitCode: null,
      detail: 'Host EC2 (instance i-0a1b2c3d4e5f67890) terminated.',
      isHostGone: true,
      isAsked: false,
    },
  },
  'ecs-task-stopped-by-user': {
    is: 'task',
    mark: MARK,
    task: TASK,
    startedMs: ms('12:02:03.500'),
    end: {
      atMs: ms('12:07:03.250'),
      exitCode: 143,
      detail: 'Task stopped by user',
      isHostGone: false,
      isAsked: true,
    },
  },
  'ecs-task-stopped-no-image': {
    is: 'task',
    mark: MARK,
    task: TASK,
    startedMs: null,
    end: {
      atMs: ms('12:02:31'),
      exitCode: null,
      detail:
        'CannotPullContainerError: pull image manifest has been retried 1 time(s): failed to resolve ref nowhere.example/none:latest',
      isHostGone: false,
      isAsked: false,
    },
  },
  's3-checkpoint-mark': { is: 'kept', mark: MARK, atMs: ms('12:04:00') },
};

describe('events of AWS', () => {
  it('are all understood', () => {
    expect(
      readdirSync(FOLDER)
        .map((f) => f.replace('.json', ''))
        .sort(),
    ).toEqual(Object.keys(SAYS).sort());
  });

  it.each(Object.entries(SAYS))('%s', (name, notice) => {
    const { page, event } = fixture(name);
    expect(page).toMatch(/^https:\/\/docs\.aws\.amazon\.com\//);
    expect(noticeOf(fleetEvent.parse(event))).toEqual(notice);
  });

  it('of other objects, drained hosts and states on the way say nothing', () => {
    const of = (name: string, change: Record<string, unknown>): Notice | null => {
      const { event } = fixture(name);
      return noticeOf(fleetEvent.parse({ ...event, detail: { ...(event['detail'] as object), ...change } }));
    };
    expect(of('s3-checkpoint-mark', { object: { key: 'cycle/c-1/0/observation' } })).toBeNull();
    expect(of('ecs-container-instance-active', { status: 'DRAINING' })).toBeNull();
    expect(of('ecs-container-instance-active', { agentConnected: false })).toBeNull();
    expect(of('ecs-container-instance-active', { runningTasksCount: 1 })).toBeNull();
    expect(of('ecs-container-instance-active', { pendingTasksCount: 2 })).toBeNull();
    for (const state of ['pending', 'running', 'shutting-down', 'stopped'])
      expect(of('ec2-instance-terminated', { state })).toBeNull();
    for (const lastStatus of ['PROVISIONING', 'PENDING', 'ACTIVATING', 'DEACTIVATING', 'STOPPING', 'DEPROVISIONING'])
      expect(of('ecs-task-running', { lastStatus })).toBeNull();
    expect(of('ecs-task-running', { startedBy: undefined })).toBeNull();
  });

  it('that are none of these are refused', () => {
    const { event } = fixture('ec2-instance-terminated');
    expect(fleetEvent.safeParse({ ...event, 'detail-type': 'EC2 Fleet Instance Change' }).success).toBe(false);
    expect(fleetEvent.safeParse({ ...event, time: 'yesterday' }).success).toBe(false);
  });
});
