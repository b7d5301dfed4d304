import { readFileSync } from 'node:fs';

/**
 * What a command of the SDK needs, by the Service Authorization Reference. A command that is not here has no right yet.
 */
export const NEEDS: Readonly<Record<string, readonly string[]>> = {
  Invoke: ['lambda:InvokeFunction'],
  BatchGetItem: ['dynamodb:BatchGetItem'],
  GetItem: ['dynamodb:GetItem'],
  Query: ['dynamodb:Query'],
  UpdateItem: ['dynamodb:UpdateItem'],
  PutItem: ['dynamodb:PutItem'],
  DeleteItem: ['dynamodb:DeleteItem'],
  TransactWriteItems: ['dynamodb:PutItem', 'dynamodb:UpdateItem', 'dynamodb:DeleteItem', 'dynamodb:ConditionCheckItem'],
  GetObject: ['s3:GetObject'],
  HeadObject: ['s3:GetObject', 's3:ListBucket'],
  PutObject: ['s3:PutObject'],
  PutObjectTagging: ['s3:PutObjectTagging'],
  DeleteObject: ['s3:DeleteObject'],
  CreateFleet: ['ec2:CreateFleet', 'ec2:RunInstances', 'ec2:CreateTags', 'iam:PassRole', 'ssm:GetParameters'],
  RunInstances: ['ec2:RunInstances', 'ec2:CreateTags', 'iam:PassRole', 'ssm:GetParameters'],
  DescribeCapacityReservations: ['ec2:DescribeCapacityReservations'],
  DescribeInstanceTypeOfferings: ['ec2:DescribeInstanceTypeOfferings'],
  DescribeSubnets: ['ec2:DescribeSubnets'],
  GetProducts: ['pricing:GetProducts'],
  DescribeInstances: ['ec2:DescribeInstances'],
  DescribeSpotPriceHistory: ['ec2:DescribeSpotPriceHistory'],
  TerminateInstances: ['ec2:TerminateInstances'],
  RegisterTaskDefinition: ['ecs:RegisterTaskDefinition', 'iam:PassRole'],
  DescribeTaskDefinition: ['ecs:DescribeTaskDefinition'],
  RunTask: ['ecs:RunTask', 'ecs:TagResource', 'iam:PassRole'],
  StopTask: ['ecs:StopTask'],
  DescribeTasks: ['ecs:DescribeTasks'],
  ListContainerInstances: ['ecs:ListContainerInstances'],
  DescribeContainerInstances: ['ecs:DescribeContainerInstances'],
  GetLogEvents: ['logs:GetLogEvents'],
  SendMessage: ['sqs:SendMessage'],
  CreateSchedule: ['scheduler:CreateSchedule', 'iam:PassRole'],
  DeleteSchedule: ['scheduler:DeleteSchedule'],
  GetMetricData: ['cloudwatch:GetMetricData'],
  CreateTargetGroup: ['elasticloadbalancing:CreateTargetGroup', 'elasticloadbalancing:AddTags'],
  ModifyTargetGroup: ['elasticloadbalancing:ModifyTargetGroup'],
  ModifyTargetGroupAttributes: ['elasticloadbalancing:ModifyTargetGroupAttributes'],
  DeleteTargetGroup: ['elasticloadbalancing:DeleteTargetGroup'],
  DescribeTargetGroups: ['elasticloadbalancing:DescribeTargetGroups'],
  DescribeTargetHealth: ['elasticloadbalancing:DescribeTargetHealth'],
  RegisterTargets: ['elasticloadbalancing:RegisterTargets'],
  DeregisterTargets: ['elasticloadbalancing:DeregisterTargets'],
  CreateListener: ['elasticloadbalancing:CreateListener'],
  DeleteListener: ['elasticloadbalancing:DeleteListener'],
  DescribeListeners: ['elasticloadbalancing:DescribeListeners'],
  StartExecution: ['states:StartExecution'],
};

/** Actions of each function, by the page that a test compares with the template. */
export function rightsOnPage(): ReadonlyMap<string, ReadonlySet<string>> {
  const page = readFileSync(new URL('../../docs/reference/rights.md', import.meta.url), 'utf8');
  return new Map(
    page
      .split(/^### /m)
      .slice(1)
      .map((section) => {
        const rows = section.split('\n').filter((line) => line.startsWith('| `'));
        const actions = rows.flatMap((row) =>
          [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, a]) => a ?? ''),
        );
        return [(section.split('\n', 1)[0] ?? '').toLowerCase(), new Set(actions)] as const;
      }),
  );
}
