/** Every call to AWS that the functions' sources make is a right of some function: none was forgotten. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { rolesOf } from './policies.ts';
import { synthesis } from './synthesis.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** What a command needs, by the Service Authorization Reference. A command that is not here has no right yet. */
const NEEDS: Readonly<Record<string, readonly string[]>> = {
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
  DeleteObject: ['s3:DeleteObject'],
  CreateFleet: ['ec2:CreateFleet', 'ec2:RunInstances', 'ec2:CreateTags', 'iam:PassRole', 'ssm:GetParameters'],
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
  StartExecution: ['states:StartExecution'],
};

describe('calls to AWS', () => {
  const files = globSync(['lib/aws/**/*.ts', 'lambdas/**/*.ts'], { cwd: ROOT });
  const commands = new Set(
    files.flatMap((file) =>
      [...readFileSync(`${ROOT}${file}`, 'utf8').matchAll(/new (\w+)Command\(/g)].map(([, name]) => name ?? ''),
    ),
  );

  it('are found', () => expect(commands.size).toBeGreaterThan(15));

  it('are all known here', () => {
    expect([...commands].filter((name) => !Object.hasOwn(NEEDS, name))).toEqual([]);
  });

  it('are allowed to one who makes them', () => {
    const granted = rolesOf(synthesis().main)
      .filter((r) => r.id.startsWith('EbbtideFunctions'))
      .map((r) => new Set(r.statements.flatMap((s) => s.actions)));
    const lacking = [...commands].filter(
      (name) => !granted.some((of) => (NEEDS[name] ?? ['?']).every((a) => of.has(a))),
    );
    expect(lacking).toEqual([]);
  });
});
