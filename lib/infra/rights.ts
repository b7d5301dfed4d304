/**
 * All rights that functions can have, each with its purpose. A function names its rights (functions.ts) and gets these
 * statements only. A test compares docs/security.md with the result.
 *
 * Resources and condition keys follow the Service Authorization Reference
 * (https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html).
 */
import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type { Construct } from 'constructs';
import { invariant } from '../kernel/errors.ts';
import type { Capacity } from './cluster.ts';
import { STACK_TAG } from './cluster.ts';
import { ARCHIVE_PREFIX, STORE_PREFIXES } from '../drivers/aws/store/keys.ts';
import { ENVIRONMENTS, ORDERS } from '../drivers/aws/fleet/request-names.ts';
import { CYCLE_PREFIX, KEPT_PREFIX, type EbbtideData } from './data.ts';
import type { Network } from './network.ts';
import { schedulerArn, type Schedules } from './schedules.ts';
import type { Services } from './services.ts';

export interface RightsOver {
  readonly name: string;
  readonly data: Pick<EbbtideData, 'table' | 'bucket'>;
  readonly capacity: Capacity;
  readonly network: Network;
  readonly stateMachineArn: string;
  readonly triggerQueueArn: string;
  readonly schedules: Schedules;
  readonly deadLettersArn: string;
  /** Absent: services are off. */
  readonly services: Services | undefined;
  /** Ids of capacity reservations. */
  readonly reservations: readonly string[];
}

export interface Right {
  readonly sid: string;
  readonly why: string;
  /** Reason for the resource `*`, or for a pattern. */
  readonly wide?: string;
  readonly actions: readonly string[];
  readonly resources: (over: RightsOver, scope: Construct) => readonly string[];
  readonly conditions?: (over: RightsOver, scope: Construct) => Record<string, Record<string, unknown>>;
}

const ofCluster = ({ capacity }: RightsOver): Record<string, Record<string, unknown>> => ({
  ArnEquals: { 'ecs:cluster': capacity.cluster.clusterArn },
});
const ofStack = ({ name }: RightsOver): Record<string, Record<string, unknown>> => ({
  StringEquals: { [`aws:ResourceTag/${STACK_TAG}`]: name },
});
const tableAndIndexes = ({ data }: RightsOver): readonly string[] => [
  data.table.tableArn,
  `${data.table.tableArn}/index/*`,
];
const inCluster =
  (...kinds: readonly string[]) =>
  ({ capacity }: RightsOver, scope: Construct): readonly string[] =>
    kinds.map((kind) => arn(scope, 'ecs', `${kind}/${capacity.cluster.clusterName}/*`));
const everything = (): readonly string[] => ['*'];
const objects = ({ bucket }: RightsOver['data'], prefixes: readonly string[]): readonly string[] =>
  prefixes.map((prefix) => bucket.arnForObjects(`${prefix}*`));
/**
 * Families of task definitions (lib/drivers/aws/fleet/ecs.ts). `_` occurs in no deployment's name, so no family is the
 * prefix of another deployment's.
 */
const definitions = ({ name }: RightsOver, scope: Construct, revision: string): readonly string[] => [
  arn(scope, 'ecs', `task-definition/${name}_*${revision}`),
];
/** Target groups of services (lib/drivers/aws/traffic/load-balancer.ts). */
const targetGroups = ({ name }: RightsOver, scope: Construct): readonly string[] => [
  arn(scope, 'elasticloadbalancing', `targetgroup/${name}-*/*`),
];
/**
 * Conditions on the launch template. AWS documents these keys for RunInstances, but not for the RunInstances of
 * CreateFleet (Service Authorization Reference; "Permissions for EC2 Fleet users"). So they must match if EC2 sets
 * them, and otherwise do not refuse a launch. For fleets AWS documents resources and request tags. Its own policies for
 * fleets use these alone (Karpenter's controller policy, AmazonECSInfrastructureRolePolicyForManagedInstances).
 */
const fromTemplate = ({ capacity }: RightsOver, scope: Construct): Record<string, Record<string, unknown>> => ({
  ArnLikeIfExists: { 'ec2:LaunchTemplate': templateArn(capacity, scope) },
});
/** Parts of a new instance, which have no id before they exist. */
const newParts = (scope: Construct, ...kinds: readonly string[]): readonly string[] =>
  kinds.map((kind) => arn(scope, 'ec2', `${kind}/*`));
const places = ({ network }: RightsOver, scope: Construct): readonly string[] => [
  arn(scope, 'ec2', `security-group/${network.securityGroup.securityGroupId}`),
  ...network.subnets.map(({ subnetId }) => arn(scope, 'ec2', `subnet/${subnetId}`)),
];
/** Images and snapshots, whose ARNs have no account. */
const publicOf = (scope: Construct, kind: 'image' | 'snapshot'): string => {
  const { partition, region } = Stack.of(scope);
  return `arn:${partition}:ec2:${region}::${kind}/*`;
};

export const RIGHTS = {
  readTable: {
    sid: 'ReadTable',
    why: 'Jobs, tasks, instances, prices and histories.',
    wide: 'The indexes of the one table.',
    actions: ['dynamodb:GetItem', 'dynamodb:BatchGetItem', 'dynamodb:Query'],
    resources: tableAndIndexes,
  },
  writeTable: {
    sid: 'WriteTable',
    why: 'Every change of state, conditional and in transactions.',
    actions: ['dynamodb:PutItem', 'dynamodb:UpdateItem', 'dynamodb:DeleteItem', 'dynamodb:ConditionCheckItem'],
    resources: ({ data }) => [data.table.tableArn],
  },
  readBlobs: {
    sid: 'ReadBlobs',
    why: 'Values too large for an item of the table.',
    wide: 'The store’s objects of the one bucket: none of tasks, steps or the archive.',
    actions: ['s3:GetObject'],
    resources: ({ data }) => objects(data, STORE_PREFIXES),
  },
  writeBlobs: {
    sid: 'WriteBlobs',
    why: 'Values too large for an item of the table, and the tag by which superseded objects expire. Nothing is deleted.',
    wide: 'The store’s objects of the one bucket: none of tasks, steps or the archive.',
    actions: ['s3:PutObject', 's3:PutObjectTagging'],
    resources: ({ data }) => objects(data, STORE_PREFIXES),
  },
  readTaskNotes: {
    sid: 'ReadTaskNotes',
    why: 'Marks of tasks that a checkpoint was saved.',
    wide: 'The objects under `kept/`.',
    actions: ['s3:GetObject'],
    resources: ({ data }) => objects(data, [KEPT_PREFIX]),
  },
  giveOrders: {
    sid: 'GiveOrders',
    why: 'Environments, and commands that are too long for ECS.',
    wide: 'The objects under `orders/` and `env/`.',
    actions: ['s3:PutObject'],
    resources: ({ data }) => objects(data, [ORDERS, ENVIRONMENTS]),
  },
  tellMissingBlobs: {
    sid: 'TellMissingBlobs',
    why: 'Without it S3 answers "access denied" for a missing object.',
    actions: ['s3:ListBucket'],
    resources: ({ data }) => [data.bucket.bucketArn],
  },
  passCycleState: {
    sid: 'PassCycleState',
    why: 'Values that steps of a cycle pass on.',
    wide: 'The objects under `cycle/`.',
    actions: ['s3:GetObject', 's3:PutObject'],
    resources: ({ data }) => objects(data, [CYCLE_PREFIX]),
  },
  writeArchive: {
    sid: 'WriteArchive',
    why: 'Rows of finished records.',
    wide: 'The objects under `archive/`.',
    actions: ['s3:PutObject'],
    resources: ({ data }) => objects(data, [ARCHIVE_PREFIX]),
  },
  readStream: {
    sid: 'ReadStream',
    why: 'Changes of the table, read by the Lambda service with the function’s rights.',
    actions: ['dynamodb:DescribeStream', 'dynamodb:GetRecords', 'dynamodb:GetShardIterator'],
    resources: ({ data }) => [streamOf(data)],
  },
  listStreams: {
    sid: 'ListStreams',
    why: 'Without it the Lambda service refuses to read a stream.',
    wide: 'AWS has no resource for this action.',
    actions: ['dynamodb:ListStreams'],
    resources: everything,
  },
  putAside: {
    sid: 'PutAside',
    why: 'Changes that failed for good.',
    actions: ['sqs:SendMessage'],
    resources: ({ deadLettersArn }) => [deadLettersArn],
  },
  startCycle: {
    sid: 'StartCycle',
    why: 'Starts the scheduling cycle.',
    actions: ['states:StartExecution'],
    resources: ({ stateMachineArn }) => [stateMachineArn],
  },
  trigger: {
    sid: 'Trigger',
    why: 'Wakes the cycle through the queue.',
    actions: ['sqs:SendMessage'],
    resources: ({ triggerQueueArn }) => [triggerQueueArn],
  },
  keepSchedules: {
    sid: 'KeepSchedules',
    why: 'One-off schedules that wake the cycle before windows of allocations end.',
    wide: 'The schedules of the one group: a schedule has no id before it exists.',
    actions: ['scheduler:CreateSchedule', 'scheduler:DeleteSchedule'],
    resources: ({ schedules }, scope) => [schedulerArn(scope, `schedule/${schedules.groupName}/window-*`)],
  },
  passScheduleRole: {
    sid: 'PassScheduleRole',
    why: 'Schedules get the role that may send to the queue, and no other.',
    actions: ['iam:PassRole'],
    resources: ({ schedules }) => [schedules.role.roleArn],
    conditions: () => ({ StringEquals: { 'iam:PassedToService': 'scheduler.amazonaws.com' } }),
  },
  readTaskLogs: {
    sid: 'ReadTaskLogs',
    why: '`ebb logs`, and the last line, which says what a task used and why it failed.',
    wide: 'The streams of the one log group of tasks.',
    actions: ['logs:GetLogEvents'],
    resources: ({ capacity }) => [`${capacity.taskLogs.logGroupArn}`],
  },
  readSpotPrices: {
    sid: 'ReadSpotPrices',
    why: 'Spot prices of the pools that may be bought.',
    wide: 'AWS has no resource for this action.',
    actions: ['ec2:DescribeSpotPriceHistory'],
    resources: everything,
  },
  readListPrices: {
    sid: 'ReadListPrices',
    why: 'On-demand prices of the region, once a day.',
    wide: 'AWS has no resource for this action.',
    actions: ['pricing:GetProducts'],
    resources: everything,
  },
  seeOffers: {
    sid: 'SeeOffers',
    why: 'Whether the region has what the configuration wants to buy, before anything is made.',
    wide: 'AWS has no resource for these actions.',
    actions: ['ec2:DescribeInstanceTypeOfferings', 'ec2:DescribeSubnets'],
    resources: everything,
  },
  seeInstances: {
    sid: 'SeeInstances',
    why: 'Finds the deployment’s instances by their tag.',
    wide: 'AWS has no resource for this action.',
    actions: ['ec2:DescribeInstances'],
    resources: everything,
  },
  buyInstances: {
    sid: 'BuyInstances',
    why: 'Asks for an instance, from the one launch template. What is launched, and where, the rights to launch decide.',
    wide: 'What a fleet is made of has no id before it exists, or is bound at its launch.',
    actions: ['ec2:CreateFleet'],
    resources: ({ capacity }, scope) => [
      templateArn(capacity, scope),
      ...newParts(scope, 'fleet', 'instance', 'volume', 'network-interface', 'spot-instances-request'),
      ...newParts(scope, 'subnet', 'security-group'),
      publicOf(scope, 'image'),
      publicOf(scope, 'snapshot'),
    ],
  },
  useTemplate: {
    sid: 'UseTemplate',
    why: 'CreateFleet launches with the caller’s rights. These alone launch nothing: a launch needs its image, its parts and its instance too.',
    wide: 'Spot requests have no id before they exist; EC2 does not say of them, nor of snapshots, which template they are of.',
    actions: ['ec2:RunInstances'],
    resources: ({ capacity }, scope) => [
      templateArn(capacity, scope),
      ...newParts(scope, 'spot-instances-request'),
      publicOf(scope, 'snapshot'),
    ],
  },
  // No condition on `ec2:IsLaunchTemplateResource`, which AWS documents for RunInstances by users. Whether a fleet
  // passes the image as the template's own, if the template names a parameter, is not documented.
  launchParts: {
    sid: 'LaunchParts',
    why: 'Of images only Amazon’s, into the deployment’s subnets and security group. From which template, the right to the instance says.',
    wide: 'Volume and interface have no id before they exist; the template names the current image by a public parameter: its id changes.',
    actions: ['ec2:RunInstances'],
    resources: (over, scope) => [
      ...places(over, scope),
      publicOf(scope, 'image'),
      ...newParts(scope, 'volume', 'network-interface'),
    ],
    // Condition on the image; other parts have no such key.
    conditions: () => ({ StringEqualsIfExists: { 'ec2:Owner': 'amazon' } }),
  },
  launchInstances: {
    sid: 'LaunchInstances',
    why: 'Instances that bear the deployment’s tag from the start, with their credentials behind tokens (IMDSv2), from the one template.',
    wide: 'An instance has no id before it exists.',
    actions: ['ec2:RunInstances'],
    resources: (_, scope) => newParts(scope, 'instance'),
    conditions: (over, scope) => ({
      ...fromTemplate(over, scope),
      StringEquals: { [`aws:RequestTag/${STACK_TAG}`]: over.name },
      StringEqualsIfExists: { 'ec2:MetadataHttpTokens': 'required' },
    }),
  },
  seeReservations: {
    sid: 'SeeReservations',
    why: 'Which capacity reservations there are, of which type, where, and how large.',
    wide: 'AWS has no resource for this action.',
    actions: ['ec2:DescribeCapacityReservations'],
    resources: everything,
  },
  useReservations: {
    sid: 'UseReservations',
    why: 'Launches into the capacity reservations that the configuration names, and no others.',
    wide: 'A reservation that another account shares bears that account; its id is of one reservation.',
    actions: ['ec2:RunInstances'],
    resources: ({ reservations }, scope) => {
      const { partition, region } = Stack.of(scope);
      return reservations.map((id) => `arn:${partition}:ec2:${region}:*:capacity-reservation/${id}`);
    },
  },
  tagAtLaunch: {
    sid: 'TagAtLaunch',
    why: 'Tags an instance as the deployment’s when it is launched, and then only.',
    wide: 'What is tagged has no id before it exists.',
    actions: ['ec2:CreateTags'],
    resources: (_, scope) => ['instance', 'volume'].map((kind) => arn(scope, 'ec2', `${kind}/*`)),
    conditions: () => ({ StringEquals: { 'ec2:CreateAction': ['CreateFleet', 'RunInstances'] } }),
  },
  resolveImage: {
    sid: 'ResolveImage',
    why: 'The launch template names its image by a public parameter of AWS.',
    actions: ['ssm:GetParameters'],
    resources: ({ capacity }, scope) => {
      const { partition, region } = Stack.of(scope);
      return [`arn:${partition}:ssm:${region}::parameter${capacity.imageParameter}`];
    },
  },
  passInstanceRole: {
    sid: 'PassInstanceRole',
    why: 'Instances get their role, and no other.',
    actions: ['iam:PassRole'],
    resources: ({ capacity }) => [capacity.instanceRole.roleArn],
    conditions: () => ({ StringEquals: { 'iam:PassedToService': 'ec2.amazonaws.com' } }),
  },
  createSpotRole: {
    sid: 'CreateSpotRole',
    why: 'The first spot instance of an account needs a role that AWS makes and AWS uses; this is that one role.',
    actions: ['iam:CreateServiceLinkedRole'],
    resources: (_, scope) => {
      const { partition, account } = Stack.of(scope);
      return [`arn:${partition}:iam::${account}:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot`];
    },
    conditions: () => ({ StringEquals: { 'iam:AWSServiceName': 'spot.amazonaws.com' } }),
  },
  endInstances: {
    sid: 'EndInstances',
    why: 'Gives instances back: those with the deployment’s tag.',
    wide: 'Instances have no id before they exist: bound by the tag.',
    actions: ['ec2:TerminateInstances'],
    resources: (_, scope) => [arn(scope, 'ec2', 'instance/*')],
    conditions: ofStack,
  },
  describeTasks: {
    sid: 'DescribeTasks',
    why: 'What became of tasks whose events were lost.',
    wide: 'Every task of the one cluster.',
    actions: ['ecs:DescribeTasks'],
    resources: inCluster('task'),
    conditions: ofCluster,
  },
  listContainerInstances: {
    sid: 'ListContainerInstances',
    why: 'Finds instances that joined the cluster and whose event was lost.',
    actions: ['ecs:ListContainerInstances'],
    resources: ({ capacity }) => [capacity.cluster.clusterArn],
  },
  describeContainerInstances: {
    sid: 'DescribeContainerInstances',
    why: 'Which EC2 instances those are.',
    wide: 'Every container instance of the one cluster.',
    actions: ['ecs:DescribeContainerInstances'],
    resources: inCluster('container-instance'),
    conditions: ofCluster,
  },
  defineTasks: {
    sid: 'DefineTasks',
    why: 'A task definition per container image that jobs ask for.',
    wide: 'The deployment’s task definitions: one has no number before it exists.',
    actions: ['ecs:RegisterTaskDefinition'],
    resources: (over, scope) => definitions(over, scope, ''),
  },
  seeDefinitions: {
    sid: 'SeeDefinitions',
    why: 'Whether an image has its task definition.',
    wide: 'AWS has no resource for this action.',
    actions: ['ecs:DescribeTaskDefinition'],
    resources: everything,
  },
  runTasks: {
    sid: 'RunTasks',
    why: 'Starts an attempt on the instance that was chosen.',
    wide: 'The deployment’s task definitions.',
    actions: ['ecs:RunTask'],
    resources: (over, scope) => definitions(over, scope, ':*'),
    conditions: ofCluster,
  },
  tagTasks: {
    sid: 'TagTasks',
    why: 'Tags a task with its attempt when it is started, and then only.',
    wide: 'A task has no id before it exists.',
    actions: ['ecs:TagResource'],
    resources: inCluster('task'),
    conditions: () => ({ StringEquals: { 'ecs:CreateAction': 'RunTask' } }),
  },
  stopTasks: {
    sid: 'StopTasks',
    why: 'Stops an attempt.',
    wide: 'Every task of the one cluster.',
    actions: ['ecs:StopTask'],
    resources: inCluster('task'),
    conditions: ofCluster,
  },
  seeBalancers: {
    sid: 'SeeBalancers',
    why: 'Listeners and target groups of services, and the health of replicas.',
    wide: 'AWS has no resource for these actions.',
    actions: [
      'elasticloadbalancing:DescribeListeners',
      'elasticloadbalancing:DescribeTargetGroups',
      'elasticloadbalancing:DescribeTargetHealth',
    ],
    resources: everything,
  },
  seeRequests: {
    sid: 'SeeRequests',
    why: 'Requests of services, as the load balancer counted them.',
    wide: 'AWS has no resource for this action.',
    actions: ['cloudwatch:GetMetricData'],
    resources: everything,
  },
  makeGroups: {
    sid: 'MakeGroups',
    why: 'A target group per service, with the deployment’s tag from the start.',
    wide: 'A target group has no id before it exists.',
    actions: ['elasticloadbalancing:CreateTargetGroup'],
    resources: targetGroups,
    conditions: ({ name }) => ({ StringEquals: { [`aws:RequestTag/${STACK_TAG}`]: name } }),
  },
  keepGroups: {
    sid: 'KeepGroups',
    why: 'Replicas come and go, rules of checks change, a deleted service leaves nothing behind.',
    wide: 'The deployment’s target groups, which are made with the services: bound by the tag.',
    actions: [
      'elasticloadbalancing:ModifyTargetGroup',
      'elasticloadbalancing:ModifyTargetGroupAttributes',
      'elasticloadbalancing:DeleteTargetGroup',
      'elasticloadbalancing:RegisterTargets',
      'elasticloadbalancing:DeregisterTargets',
    ],
    resources: targetGroups,
    conditions: ofStack,
  },
  tagGroups: {
    sid: 'TagGroups',
    why: 'Tags a target group when it is made, and then only.',
    wide: 'A target group has no id before it exists.',
    actions: ['elasticloadbalancing:AddTags'],
    resources: targetGroups,
    conditions: () => ({ StringEquals: { 'elasticloadbalancing:CreateAction': 'CreateTargetGroup' } }),
  },
  makeListeners: {
    sid: 'MakeListeners',
    why: 'A port of the one load balancer for each service.',
    actions: ['elasticloadbalancing:CreateListener'],
    resources: ({ services }) => (services === undefined ? [] : [services.balancer.ref]),
  },
  dropListeners: {
    sid: 'DropListeners',
    why: 'Frees the port of a deleted service.',
    wide: 'The listeners of the one load balancer, which are made with the services.',
    actions: ['elasticloadbalancing:DeleteListener'],
    resources: ({ services }, scope) =>
      services === undefined
        ? []
        : [arn(scope, 'elasticloadbalancing', `listener/${services.balancer.attrLoadBalancerFullName}/*`)],
  },
  passTaskRoles: {
    sid: 'PassTaskRoles',
    why: 'Tasks get their two roles, and no others.',
    actions: ['iam:PassRole'],
    resources: ({ capacity }) => [capacity.taskRole.roleArn, capacity.executionRole.roleArn],
    conditions: () => ({ StringEquals: { 'iam:PassedToService': 'ecs-tasks.amazonaws.com' } }),
  },
} as const satisfies Record<string, Right>;

export type RightName = keyof typeof RIGHTS;

export const rightNamed = (name: RightName): Right => RIGHTS[name];

export function statementOf(right: Right, over: RightsOver, scope: Construct): iam.PolicyStatement {
  const conditions = right.conditions?.(over, scope);
  return new iam.PolicyStatement({
    sid: right.sid,
    actions: [...right.actions],
    resources: [...right.resources(over, scope)],
    ...(conditions === undefined ? {} : { conditions }),
  });
}

/** ARN of the table's stream. */
export const streamOf = ({ table }: RightsOver['data']): string =>
  invariant(table.tableStreamArn, 'the table has a stream: lib/infra/data.ts');

const templateArn = ({ template }: Capacity, scope: Construct): string =>
  arn(scope, 'ec2', `launch-template/${template.launchTemplateId ?? ''}`);

function arn(scope: Construct, service: string, rest: string): string {
  const { partition, region, account } = Stack.of(scope);
  return `arn:${partition}:${service}:${region}:${account}:${rest}`;
}
