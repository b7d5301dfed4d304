/**
 * Actions of CloudFormation to make each kind of resource in the templates. Source: "create" handlers in the schemas of
 * CloudFormation's resource types, or the Service Authorization Reference for types whose schema names none. Reads are
 * left out, and so are features that the templates do not use (keys of KMS, imports, ...).
 */
type Needs = Readonly<Record<string, readonly string[]>>;

const ALWAYS: Needs = {
  'AWS::ApiGateway::Account': ['apigateway:PATCH', 'iam:PassRole'],
  'AWS::ApiGateway::Deployment': ['apigateway:POST'],
  'AWS::ApiGateway::GatewayResponse': ['apigateway:PUT'],
  'AWS::ApiGateway::Method': ['apigateway:PUT'],
  'AWS::ApiGateway::Resource': ['apigateway:POST'],
  'AWS::ApiGateway::RestApi': ['apigateway:POST'],
  'AWS::ApiGateway::Stage': ['apigateway:PATCH', 'apigateway:POST'],
  'AWS::CloudWatch::Alarm': ['cloudwatch:PutMetricAlarm'],
  'AWS::CloudWatch::Dashboard': ['cloudwatch:PutDashboard'],
  'AWS::DynamoDB::Table': ['dynamodb:CreateTable', 'dynamodb:UpdateContinuousBackups', 'dynamodb:UpdateTimeToLive'],
  'AWS::EC2::LaunchTemplate': ['ec2:CreateLaunchTemplate'],
  'AWS::EC2::SecurityGroup': ['ec2:AuthorizeSecurityGroupEgress', 'ec2:CreateSecurityGroup'],
  'AWS::ECS::Cluster': ['ecs:CreateCluster'],
  'AWS::Events::Rule': ['events:PutRule', 'events:PutTargets'],
  'AWS::IAM::InstanceProfile': ['iam:AddRoleToInstanceProfile', 'iam:CreateInstanceProfile', 'iam:PassRole'],
  'AWS::IAM::Policy': ['iam:PutRolePolicy'],
  'AWS::IAM::Role': ['iam:AttachRolePolicy', 'iam:CreateRole'],
  'AWS::Lambda::EventInvokeConfig': ['lambda:PutFunctionEventInvokeConfig'],
  'AWS::Lambda::EventSourceMapping': ['lambda:CreateEventSourceMapping'],
  'AWS::Lambda::Function': ['iam:PassRole', 'lambda:CreateFunction', 's3:GetObject'],
  'AWS::Lambda::Permission': ['lambda:AddPermission'],
  'AWS::Logs::LogGroup': ['logs:CreateLogGroup', 'logs:PutRetentionPolicy'],
  'AWS::S3::Bucket': [
    's3:CreateBucket',
    's3:PutBucketNotification',
    's3:PutBucketPublicAccessBlock',
    's3:PutBucketVersioning',
    's3:PutEncryptionConfiguration',
    's3:PutLifecycleConfiguration',
  ],
  'AWS::S3::BucketPolicy': ['s3:PutBucketPolicy'],
  'AWS::SNS::Topic': ['sns:CreateTopic'],
  'AWS::SNS::TopicPolicy': ['sns:SetTopicAttributes'],
  'AWS::SQS::Queue': ['sqs:CreateQueue'],
  'AWS::SQS::QueuePolicy': ['sqs:SetQueueAttributes'],
  'AWS::Scheduler::ScheduleGroup': ['scheduler:CreateScheduleGroup'],
  'AWS::StepFunctions::StateMachine': ['iam:PassRole', 'states:CreateStateMachine'],
  'Custom::EbbtidePrices': ['lambda:InvokeFunction'],
  'Custom::EbbtideRegion': ['lambda:InvokeFunction'],
};

const NEW_VPC: Needs = {
  'AWS::EC2::FlowLog': ['ec2:CreateFlowLogs', 'iam:PassRole'],
  'AWS::EC2::InternetGateway': ['ec2:CreateInternetGateway', 'ec2:CreateTags'],
  'AWS::EC2::Route': ['ec2:CreateRoute'],
  'AWS::EC2::RouteTable': ['ec2:CreateRouteTable', 'ec2:CreateTags'],
  'AWS::EC2::Subnet': ['ec2:CreateSubnet', 'ec2:CreateTags', 'ec2:ModifySubnetAttribute'],
  'AWS::EC2::SubnetRouteTableAssociation': ['ec2:AssociateRouteTable'],
  'AWS::EC2::VPC': ['ec2:CreateTags', 'ec2:CreateVpc', 'ec2:ModifyVpcAttribute'],
  'AWS::EC2::VPCEndpoint': ['ec2:CreateVpcEndpoint'],
  'AWS::EC2::VPCGatewayAttachment': ['ec2:AttachInternetGateway'],
};
const TOKENS: Needs = { 'AWS::ApiGateway::Authorizer': ['apigateway:POST'] };
const MAIL: Needs = { 'AWS::SNS::Subscription': ['sns:Subscribe'] };

const SERVICES: Needs = {
  'AWS::EC2::SecurityGroupEgress': ['ec2:AuthorizeSecurityGroupEgress'],
  'AWS::EC2::SecurityGroupIngress': ['ec2:AuthorizeSecurityGroupIngress'],
  'AWS::ElasticLoadBalancingV2::LoadBalancer': [
    'elasticloadbalancing:CreateLoadBalancer',
    'iam:CreateServiceLinkedRole',
  ],
};

/** Settings that decide which resources are made. */
export interface Made {
  readonly vpc: unknown;
  readonly auth: 'iam' | 'jwt';
  readonly alarmEmail?: string | undefined;
  readonly services: 'off' | 'internal' | 'public';
}

/** Actions by resource type. */
export const neededBy = ({ vpc, auth, alarmEmail, services }: Made): Needs => ({
  ...ALWAYS,
  ...(vpc === 'new' ? NEW_VPC : {}),
  ...(auth === 'jwt' ? TOKENS : {}),
  ...(alarmEmail === undefined ? {} : MAIL),
  ...(services === 'off' ? {} : SERVICES),
});

/** Actions of `cdk bootstrap` with the caller's rights ("Permissions needed to bootstrap", AWS CDK developer guide). */
export const TO_BOOTSTRAP: readonly string[] = [
  'cloudformation:CreateChangeSet',
  'cloudformation:DescribeStacks',
  'cloudformation:ExecuteChangeSet',
  'ecr:CreateRepository',
  'ecr:SetRepositoryPolicy',
  'iam:AttachRolePolicy',
  'iam:CreateRole',
  'iam:GetRole',
  'iam:PutRolePolicy',
  's3:CreateBucket',
  's3:PutBucketPolicy',
  's3:PutBucketPublicAccessBlock',
  's3:PutBucketVersioning',
  's3:PutEncryptionConfiguration',
  's3:PutLifecycleConfiguration',
  'ssm:PutParameter',
];
