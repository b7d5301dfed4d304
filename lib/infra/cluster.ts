/**
 * Resources of instances and tasks: the ECS cluster, the launch template of all instances, and the roles of both. No
 * capacity provider and no Auto Scaling group: Ebbtide decides what is bought.
 */
import { RemovalPolicy, Size, Stack, Tags } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as ecs from 'aws-cdk-lib/aws-ecs';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as logs from 'aws-cdk-lib/aws-logs';
import type * as s3 from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { imageParameterOf } from '../drivers/aws/fleet/image.ts';
import { ENVIRONMENTS, ORDERS } from '../drivers/aws/fleet/request-names.ts';
import type { Arch } from '../domain/pool.ts';
import { WORK_PREFIX } from '../domain/s3-uri.ts';
import { secretPrefix } from '../domain/secret-ref.ts';
import { EBS_VOLUME_GIB } from '../market/catalogue.ts';
import { acknowledge, acknowledgeWildcards } from './acknowledged.ts';
import { CHECKPOINT_PREFIX, KEPT_PREFIX } from './data.ts';
import type { Network } from './network.ts';

export interface CapacityProps {
  /** Name of the deployment. */
  readonly name: string;
  readonly arch: Arch;
  readonly network: Network;
  readonly bucket: s3.Bucket;
  readonly logRetention: logs.RetentionDays;
  /** True: output of tasks outlives the stack. */
  readonly keepData: boolean;
}

/** Tag of every instance, with its deployment. The rights to end and tag instances are bound to it. */
export const STACK_TAG = 'ebb:stack';

export class Capacity extends Construct {
  readonly cluster: ecs.Cluster;
  readonly template: ec2.LaunchTemplate;
  readonly instanceRole: iam.Role;
  /** Role of the containers. Grant it what your jobs need. */
  readonly taskRole: iam.Role;
  /** Role that pulls images and writes logs for tasks. */
  readonly executionRole: iam.Role;
  readonly taskLogs: logs.LogGroup;
  /** Public SSM parameter with the current ECS-optimised image of the architecture. */
  readonly imageParameter: string;

  constructor(scope: Construct, id: string, props: CapacityProps) {
    super(scope, id);
    const { network, logRetention } = props;
    this.cluster = new ecs.Cluster(this, 'Cluster', {
      vpc: network.vpc,
      containerInsightsV2: ecs.ContainerInsights.DISABLED,
      enableFargateCapacityProviders: false,
    });
    acknowledge(this.cluster, {
      'AwsSolutions-ECS4':
        'Container Insights bills some ten metrics per task. Ebbtide publishes what it knows of instances and tasks itself.',
    });
    this.taskLogs = new logs.LogGroup(this, 'TaskLogs', {
      retention: logRetention,
      // Logs for `ebb logs`, the only data in this stack. The name is generated, so a kept log group blocks no new
      // deployment.
      removalPolicy: props.keepData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
    this.instanceRole = this.#instanceRole();
    this.executionRole = this.#executionRole(props.name, props.bucket);
    this.taskRole = this.#taskRole(props.bucket);
    this.imageParameter = imageParameterOf(props.arch);
    this.template = this.#template(props);
  }

  /** Role of the ECS agent on an instance, for this cluster only. AWS's managed policy would reach every cluster. */
  #instanceRole(): iam.Role {
    const role = new iam.Role(this, 'InstanceRole', {
      assumedBy: new iam.ServicePrincipal('ec2.amazonaws.com'),
      description: 'The ECS agent of Ebbtide instances. Tasks cannot reach it.',
    });
    const { clusterArn } = this.cluster;
    const ofCluster = { ArnEquals: { 'ecs:cluster': clusterArn } };
    const instances = arnOf(this, 'ecs', `container-instance/${this.cluster.clusterName}/*`);
    const tasks = arnOf(this, 'ecs', `task/${this.cluster.clusterName}/*`);
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'JoinCluster',
        actions: ['ecs:RegisterContainerInstance', 'ecs:DeregisterContainerInstance'],
        resources: [clusterArn],
      }),
    );
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'TakeOrders',
        actions: ['ecs:Poll', 'ecs:StartTelemetrySession', 'ecs:UpdateContainerInstancesState'],
        resources: [instances],
        conditions: ofCluster,
      }),
    );
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'ReportTasks',
        actions: ['ecs:SubmitTaskStateChange', 'ecs:SubmitContainerStateChange', 'ecs:SubmitAttachmentStateChanges'],
        resources: [clusterArn],
      }),
    );
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'TagItself',
        actions: ['ecs:TagResource'],
        resources: [instances, tasks],
      }),
    );
    role.addToPolicy(
      new iam.PolicyStatement({ sid: 'FindEndpoint', actions: ['ecs:DiscoverPollEndpoint'], resources: ['*'] }),
    );
    acknowledgeWildcards(role, {
      TakeOrders: 'Every instance of the one cluster.',
      TagItself: 'Every instance and task of the one cluster.',
      FindEndpoint: 'AWS has no resource for this action.',
    });
    return role;
  }

  #executionRole(name: string, bucket: s3.Bucket): iam.Role {
    const role = new iam.Role(this, 'ExecutionRole', {
      assumedBy: new iam.ServicePrincipal('ecs-tasks.amazonaws.com', { conditions: onlyThisAccount(this) }),
      description:
        'Pulls the images of Ebbtide tasks, fetches their environment and the secrets that they name, and writes their logs.',
    });
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'WriteLogs',
        actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
        resources: [this.taskLogs.logGroupArn],
      }),
    );
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'PullImages',
        actions: ['ecr:BatchCheckLayerAvailability', 'ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer'],
        resources: [arnOf(this, 'ecr', 'repository/*')],
      }),
    );
    role.addToPolicy(
      new iam.PolicyStatement({ sid: 'LogInToEcr', actions: ['ecr:GetAuthorizationToken'], resources: ['*'] }),
    );
    const prefix = secretPrefix(name);
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'ReadSecrets',
        actions: ['secretsmanager:GetSecretValue'],
        resources: [arnOf(this, 'secretsmanager', `secret:${prefix}*`)],
      }),
    );
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'ReadParameters',
        actions: ['ssm:GetParameters'],
        resources: [arnOf(this, 'ssm', `parameter/${prefix}*`)],
      }),
    );
    // Rights as in "Required IAM permissions for environment files" (ECS Developer Guide, "Task execution IAM role").
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'ReadEnvironment',
        actions: ['s3:GetObject'],
        resources: [bucket.arnForObjects(`${ENVIRONMENTS}*`)],
      }),
    );
    role.addToPolicy(
      new iam.PolicyStatement({ sid: 'FindBucket', actions: ['s3:GetBucketLocation'], resources: [bucket.bucketArn] }),
    );
    acknowledgeWildcards(role, {
      ReadEnvironment: 'The objects under `env/`: the environment of each task.',
      ReadSecrets: 'The secrets of this deployment, by the beginning of their names: jobs name them.',
      ReadParameters: 'The parameters of this deployment, by the beginning of their names: jobs name them.',
      PullImages: 'Jobs name their images: any repository of this account.',
      LogInToEcr: 'AWS has no resource for this action.',
    });
    return role;
  }

  #taskRole(bucket: s3.Bucket): iam.Role {
    const role = new iam.Role(this, 'TaskRole', {
      assumedBy: new iam.ServicePrincipal('ecs-tasks.amazonaws.com', { conditions: onlyThisAccount(this) }),
      description:
        'What containers of Ebbtide jobs may do: read and write checkpoints and files of jobs, read their commands.',
    });
    const objects = (...prefixes: readonly string[]): string[] => prefixes.map((p) => bucket.arnForObjects(`${p}*`));
    const allow = (sid: string, actions: readonly string[], resources: readonly string[]): void => {
      role.addToPolicy(new iam.PolicyStatement({ sid, actions: [...actions], resources: [...resources] }));
    };
    allow('Checkpoints', ['s3:GetObject', 's3:PutObject', 's3:DeleteObject'], objects(CHECKPOINT_PREFIX));
    allow('Files', ['s3:GetObject', 's3:PutObject'], objects(WORK_PREFIX));
    allow('ReadOrder', ['s3:GetObject'], objects(ORDERS));
    allow('Mark', ['s3:PutObject'], objects(KEPT_PREFIX));
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'ListOwn',
        actions: ['s3:ListBucket'],
        resources: [bucket.bucketArn],
        conditions: { StringLike: { 's3:prefix': [CHECKPOINT_PREFIX, WORK_PREFIX].map((p) => `${p}*`) } },
      }),
    );
    acknowledgeWildcards(role, {
      Checkpoints: 'The objects under `checkpoints/`, claims of outputs among them.',
      Files: 'The objects under `work/`: inputs and outputs of jobs that name no folder of their own.',
      ReadOrder: 'The objects under `orders/`: commands that are too long for ECS.',
      Mark: 'The objects under `kept/`: that a checkpoint was saved.',
    });
    return role;
  }

  #template({ name, network }: CapacityProps): ec2.LaunchTemplate {
    const template = new ec2.LaunchTemplate(this, 'Template', {
      // Image resolved at each launch: new instances have current patches without a deployment.
      machineImage: ec2.MachineImage.resolveSsmParameterAtLaunch(this.imageParameter),
      role: this.instanceRole,
      securityGroup: network.securityGroup,
      requireImdsv2: true,
      // Hop limit of one: containers are one hop further away than the agent.
      httpPutResponseHopLimit: 1,
      instanceMetadataTags: true,
      detailedMonitoring: false,
      blockDevices: [
        {
          deviceName: '/dev/xvda',
          volume: ec2.BlockDeviceVolume.ebs(Size.gibibytes(EBS_VOLUME_GIB).toGibibytes(), {
            encrypted: true,
            deleteOnTermination: true,
            volumeType: ec2.EbsDeviceVolumeType.GP3,
          }),
        },
      ],
      userData: ec2.UserData.custom(userData(this.cluster.clusterName)),
    });
    Tags.of(template).add(STACK_TAG, name);
    return template;
  }
}

/**
 * User data. It registers the instance with the cluster, with its Ebbtide id or launch group and its pool (from tags)
 * as attributes. It stops the Systems Manager agent, because nobody logs in. The hop limit keeps containers from the
 * instance's credentials. https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-agent-config.html
 */
const userData = (cluster: string): string => `#!/bin/bash
set -euo pipefail
systemctl disable --now amazon-ssm-agent 2>/dev/null || true
imds=http://169.254.169.254/latest
token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' $imds/api/token)
tag() { curl -sf -H "X-aws-ec2-metadata-token: $token" "$imds/meta-data/tags/instance/$1" || echo unknown; }
cat >> /etc/ecs/ecs.config <<CONFIG
ECS_CLUSTER=${cluster}
ECS_INSTANCE_ATTRIBUTES={"ebb.instance":"$(tag ebb:instance)","ebb.launch":"$(tag ebb:launch)","ebb.pool":"$(tag ebb:pool)"}
ECS_ENABLE_SPOT_INSTANCE_DRAINING=true
ECS_ENABLE_TASK_IAM_ROLE=true
ECS_AWSVPC_BLOCK_IMDS=true
ECS_DISABLE_PRIVILEGED=true
ECS_IMAGE_PULL_BEHAVIOR=prefer-cached
ECS_WARM_POOLS_CHECK=false
CONFIG
`;

/** Condition against the confused deputy: ECS may assume the role only for tasks of this account. */
const onlyThisAccount = (scope: Construct): Record<string, unknown> => ({
  StringEquals: { 'aws:SourceAccount': Stack.of(scope).account },
  ArnLike: { 'aws:SourceArn': arnOf(scope, 'ecs', '*') },
});

function arnOf(scope: Construct, service: string, rest: string): string {
  const { partition, region, account } = Stack.of(scope);
  return `arn:${partition}:${service}:${region}:${account}:${rest}`;
}
