/**
 * Where one-off schedules live (lib/drivers/aws/market/window-ends.ts) and what they may do: say to the one queue that
 * it is time to look. The group goes with the stack, and takes its schedules along.
 */
import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import { CfnScheduleGroup } from 'aws-cdk-lib/aws-scheduler';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';

export interface SchedulesProps {
  /** The deployment's name. */
  readonly name: string;
  readonly queue: sqs.IQueue;
}

export class Schedules extends Construct {
  readonly group: CfnScheduleGroup;
  readonly groupName: string;
  /** With which EventBridge Scheduler sends. */
  readonly role: iam.Role;

  constructor(scope: Construct, id: string, { name, queue }: SchedulesProps) {
    super(scope, id);
    this.groupName = name;
    this.group = new CfnScheduleGroup(this, 'Group', { name });
    const { account } = Stack.of(this);
    this.role = new iam.Role(this, 'Role', {
      // The confused deputy is refused: only schedules of this group.
      assumedBy: new iam.ServicePrincipal('scheduler.amazonaws.com', {
        conditions: {
          StringEquals: { 'aws:SourceAccount': account },
          ArnEquals: { 'aws:SourceArn': schedulerArn(this, `schedule-group/${name}`) },
        },
      }),
      description: 'One-off schedules of Ebbtide: says that it is time to look.',
    });
    this.role.addToPolicy(
      new iam.PolicyStatement({ sid: 'SayLook', actions: ['sqs:SendMessage'], resources: [queue.queueArn] }),
    );
  }
}

/** ARN of something of EventBridge Scheduler's in this account and region. */
export function schedulerArn(scope: Construct, rest: string): string {
  const { partition, region, account } = Stack.of(scope);
  return `arn:${partition}:scheduler:${region}:${account}:${rest}`;
}
