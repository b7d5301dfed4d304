/**
 * Schema of a deployment: the file `ebbtide.config.yaml`, CDK context values (`-c ebbtide:families=c6i,m6i`), or the
 * `config` of the `Ebbtide` construct. Its check: config-rules.ts.
 */
import { z } from 'zod';
import { schedulerConfig } from '../domain/config.ts';

/** Retention periods of CloudWatch Logs ("PutRetentionPolicy", RetentionInDays), up to two years. */
const RETENTION_DAYS = [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731] as const;
/**
 * Zones: EC2 names them by the region and a letter. Local and Wavelength zones have longer names and hardly a spot
 * market.
 */
const ZONE = /^[a-z]{2}(?:-[a-z]+)+-\d[a-z]$/;
const REGION = /^[a-z]{2}(?:-[a-z]+)+-\d$/;
const SUBNET_EXAMPLE = '`eu-central-1a: subnet-...`';

/** Bounds: these lists go into the environment of the functions, which is 4 KB in all (Lambda quotas). */
const MAX_RESERVATIONS = 20;
const MAX_ADMINS = 20;
const MAX_ADMIN_LENGTH = 200;
/**
 * Patterns of callers. They include the account, and for a role its name: a shorter prefix would let in unintended
 * callers.
 */
const ADMIN =
  /^(?:arn:aws[\w-]*:iam::\d{12}:(?:user\/[\w+=,.@/-]+|role\/(?:[\w+=,.@-]+\/)*[\w+=,.@-]+)|arn:aws[\w-]*:sts::\d{12}:(?:assumed-role|federated-user)\/[\w+=,.@-]+(?:\/[\w+=,.@-]*)?|cognito(?:-group)?:[^\s*]+)\*?$/;
const ADMIN_RULE =
  'is no caller such as arn:aws:iam::111122223333:role/Ops, arn:aws:iam::111122223333:user/ana, cognito:ana or cognito-group:ops; only the end may be `*`';

const subnets = z
  .record(
    z.string().regex(ZONE, 'is no availability zone such as eu-central-1a'),
    z.string().regex(/^subnet-[\da-f]{8}(?:[\da-f]{9})?$/, 'is no subnet id such as subnet-0a1b2c3d'),
    {
      error: ({ code }) => (code === 'invalid_type' ? `must name a subnet of each zone, ${SUBNET_EXAMPLE}` : undefined),
    },
  )
  .refine((all) => Object.keys(all).length > 0, `names no subnet: give at least one, ${SUBNET_EXAMPLE}`);

const vpc = z
  .union([
    z.literal('new'),
    z.literal('default'),
    z.strictObject({
      id: z.string().regex(/^vpc-[\da-f]{8}(?:[\da-f]{9})?$/, 'is no VPC id such as vpc-0a1b2c3d'),
      subnets: subnets.describe(
        'One subnet per zone to buy in. Instances need a way out to ECS, ECR and CloudWatch Logs.',
      ),
    }),
  ])
  .default('new');

/** All keys, with default and meaning. docs/reference/deployment.md is generated from it. */
export const deploymentConfig = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z][a-z\d-]{1,23}$/, 'must be 2 to 24 of a-z, 0-9 and -, beginning with a letter')
      .default('ebbtide')
      .describe(
        'Names the stacks, what they make, and the tag `ebb:stack` of every instance. One per region and account.',
      ),
    account: z
      .string()
      .regex(/^\d{12}$/, 'must be the 12 digits of an AWS account, in quotes')
      .optional()
      .describe('Refuses to deploy anywhere else. Default: the account of your credentials.'),
    region: z
      .string()
      .regex(REGION, 'is no region such as eu-central-1')
      .optional()
      .describe('Default: the region of your AWS profile.'),
    vpc: vpc.describe(
      '`new`: a VPC with public subnets and no NAT gateway. `default`: the region’s default VPC, looked up with your credentials. Or `id` and `subnets` of one that you have.',
    ),
    zones: z
      .number()
      .int()
      .min(1)
      .max(6)
      .default(3)
      .describe(
        'Zones of a new VPC, or all of them where the region has fewer. Each has spot prices and capacity of its own.',
      ),
    families: z
      .array(z.string())
      .min(1, 'names no family: nothing could be bought')
      .default(['c6i', 'c7i', 'm6i', 'm7i', 'r6i', 'r7i'])
      .describe('Instance families that may be bought, all of one architecture.'),
    reservations: z
      .array(z.string().regex(/^cr-[\da-f]{17}$/, 'is no id of a capacity reservation such as cr-0a1b2c3d4e5f60718'))
      .max(MAX_RESERVATIONS)
      .refine((ids) => new Set(ids).size === ids.length, 'names a reservation twice')
      .default([])
      .describe(
        'On-Demand Capacity Reservations whose instances are used before others are bought, at no cost of their own ([more](../deploy.md#capacity-reservations)).',
      ),
    maxVcpus: z
      .number()
      .int()
      .min(2)
      .max(100_000)
      .default(256)
      .describe(
        'Most vCPUs held at once, within what one ECS cluster and the subnets hold. Your account’s EC2 quotas may be lower.',
      ),
    budgetUsdPerDay: z
      .number()
      .positive()
      .default(50)
      .describe(
        'Raises an alarm when the instances of a day (UTC) cost more. It stops nothing: `maxCost` of a job and the setting `maxUsdPerDay` do.',
      ),
    services: z
      .enum(['off', 'internal', 'public'])
      .default('off')
      .describe(
        'Services ([more](../services.md)) behind a load balancer, which costs about 16 USD a month and a little per request. `internal`: reached from the VPC and networks connected with it; `public`: from the internet.',
      ),
    servicesCertificateArn: z
      .string()
      .regex(/^arn:aws[\w-]*:acm:[a-z\d-]+:\d{12}:certificate\/[\w-]+$/, 'is no ARN of a certificate of ACM')
      .optional()
      .describe('Certificate of the region, in ACM, for services over HTTPS. Without, they speak HTTP.'),
    auth: z
      .enum(['iam', 'jwt'])
      .default('iam')
      .describe(
        '`iam`: requests signed with AWS credentials. `jwt`: tokens of the Cognito user pool in `userPoolArn`.',
      ),
    userPoolArn: z
      .string()
      .regex(/^arn:aws[\w-]*:cognito-idp:[\w-]+:\d{12}:userpool\/[\w-]+$/, 'is no ARN of a Cognito user pool')
      .optional()
      .describe('Whose tokens are taken; with `auth: jwt` only.'),
    ownerIsCaller: z
      .boolean()
      .default(false)
      .describe(
        '`true`: a job belongs to who submits it, its file may name no other `owner`, and only they and `admins` may cancel it.',
      ),
    admins: z
      .array(z.string().max(MAX_ADMIN_LENGTH).regex(ADMIN, ADMIN_RULE))
      .max(MAX_ADMINS)
      .default([])
      .describe(
        'Who may cancel any job, with `ownerIsCaller`: ARNs of users or roles, or `cognito:USER` and `cognito-group:GROUP`; a `*` at the end stands for anything.',
      ),
    requestsPerSecond: z
      .number()
      .int()
      .min(1)
      .max(1000)
      .default(50)
      .describe('Requests that the API takes per second; twice as many for a moment.'),
    retentionDays: z
      .literal(RETENTION_DAYS, `must be one of ${RETENTION_DAYS.join(', ')}: CloudWatch takes no other`)
      .default(30)
      .describe(
        'How long logs are kept: of tasks, functions and requests. Jobs and instances: the setting `historyDays`.',
      ),
    traces: z
      .boolean()
      .default(false)
      .describe('X-Ray traces of requests and cycles. One costs 25 times what the call of a function does.'),
    defaultImage: z
      .string()
      .regex(/^[\w][\w.:/@-]*$/, 'is no container image')
      .default('public.ecr.aws/docker/library/debian:stable-slim')
      .describe('Container image of stages that name none.'),
    lambdaArch: z
      .enum(['arm64', 'x86_64'])
      .default('arm64')
      .describe(
        'Architecture of the functions, not of instances. `x86_64` where a region has no other, for more money.',
      ),
    preset: z.string().default('ebbtide').describe('Which policies decide: `ebb config --presets` lists them.'),
    settings: z
      .record(z.string(), z.unknown())
      .default({})
      .describe('Settings of the scheduler: `ebb config` lists them.'),
    alarmEmail: z
      .email('is no e-mail address')
      .optional()
      .describe('Who is told of alarms; AWS asks for a confirmation first. Without, alarms are only shown.'),
    cycleConcurrency: z
      .number()
      .int()
      .min(1)
      .max(40)
      .default(4)
      .describe(
        'Parts of a cycle’s launches and starts that are done at once. A new account runs ten functions at once in all.',
      ),
    draining: z
      .boolean()
      .default(false)
      .describe('`true`: nothing starts any more, running tasks save and stop, instances are given back.'),
    keepData: z
      .boolean()
      .default(true)
      .describe(
        'Table, bucket and the output of tasks outlive their stacks. `false` for a trial that leaves nothing behind.',
      ),
    restoredTable: z
      .string()
      .regex(
        /^arn:aws[\w-]*:dynamodb:[a-z\d-]+:\d{12}:table\/[\w.-]{3,255}\/stream\/[\w:.-]+$/,
        'is no ARN of the stream of a DynamoDB table, such as arn:aws:dynamodb:eu-central-1:123456789012:table/ebbtide-restored/stream/2026-01-05T12:00:00.000',
      )
      .optional()
      .describe(
        'Stream ARN of a table that was restored from a backup: the deployment works on that table (docs/deploy.md, "Restore").',
      ),
  })
  .describe('A deployment of Ebbtide.');

export type DeploymentConfig = z.output<typeof deploymentConfig>;
export type DeploymentConfigInput = z.input<typeof deploymentConfig>;

/** Days that finished work is kept. */
export const historyDaysOf = ({ settings }: Pick<DeploymentConfig, 'settings'>): number =>
  schedulerConfig.parse(settings).historyDays;
