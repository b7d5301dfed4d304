/**
 * Group and role of one-off schedules (lib/drivers/aws/market/window-ends.ts). They may only send a message to the
 * trigger queue. The group is deleted with the stack, together with its schedules.
 */
import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import { CfnScheduleGroup } from 'aws-cdk-lib/aws-scheduler';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';

export interface SchedulesProps {
  /** Name of the deployment. */
  readonly name: string;
  readonly queue: sqs.IQueue;
}

export class Schedules extends Construct {
  readonly group: CfnScheduleGroup;
  readonly groupName: string;
  /** Role with which EventBridge Scheduler sends. */
  readonly role: iam.Role;

  constructor(scope: Construct, id: string, { name, queue }: SchedulesProps) {
    super(scope, id);
    this.groupName = name;
    this.group = new CfnScheduleGroup(this, 'Group', { name });
    const { account } = Stack.of(this);
    this.role = new iam.Role(this, 'Role', {
      // Condition against the confused deputy: only schedules of this group.
      assumedBy: new iam.ServicePrincipal('scheduler.amazonaws.com', {
        conditions: {
          StringEquals: { 'aws:SourceAccount': account },
          ArnEquals: { 'aws:SourceArn': schedulerArn(this, `schedule-group/${name}`) },
        },
      }),
      description: 'One-off schedules of Ebbtide: wakes the cycle.',
    });
    this.role.addToPolicy(
      new iam.PolicyStatement({ sid: 'WakeCycle', actions: ['sqs:SendMessage'], resources: [queue.queueArn] }),
    );
  }
}

/** ARN of a resource of EventBridge Scheduler in this account and region. */
export function schedulerArn(scope: Construct, rest: string): string {
  const { partition, region, account } = Stack.of(scope);
  return `arn:${partition}:scheduler:${region}:${account}:${rest}`;
}
