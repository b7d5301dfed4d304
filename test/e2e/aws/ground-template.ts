/** A small deployment with one of each thing that Ebbtide's has: for ground.test.ts. */

type Resource = Readonly<Record<string, unknown>>;

const ref = (Ref: string): Resource => ({ Ref });
const arn = (name: string): Resource => ({ 'Fn::GetAtt': [name, 'Arn'] });

/** Tells the test something, without the SDK: a message into the queue `TOLD`. */
const TELL = `
  const tell = async (message) => {
    const credential = 'Credential=test/20260101/' + process.env.AWS_REGION + '/sqs/aws4_request';
    const answer = await fetch(process.env.AWS_ENDPOINT_URL, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': 'AmazonSQS.SendMessage',
        authorization: 'AWS4-HMAC-SHA256 ' + credential + ', SignedHeaders=host, Signature=0',
      },
      body: JSON.stringify({ QueueUrl: process.env.TOLD, MessageBody: JSON.stringify(message) }),
    });
    if (!answer.ok) throw new Error(await answer.text());
  };`;

const CODE = {
  Api: `
    exports.handler = async (event) => {
      console.log('asked for', event.pathParameters.id);
      const { httpMethod: method, queryStringParameters: query, body } = event;
      const said = { id: event.pathParameters.id, method, query, body };
      return { statusCode: 201, headers: { 'x-made': 'yes' }, body: JSON.stringify(said) };
    };`,
  Worker: `${TELL}
    exports.handler = async ({ Records }) => {
      const failed = [];
      const records = Records.map((r) => ({ ...JSON.parse(r.body), r, delivery: Number(r.attributes.ApproximateReceiveCount) }));
      for (const { id, r, delivery } of records) {
        if (id === 'never' || (id === 'once' && delivery === 1)) failed.push({ itemIdentifier: r.messageId });
        else if (id !== 'dies' || delivery > 1) await tell({ id, delivery });
      }
      if (records.some(({ id, delivery }) => id === 'dies' && delivery === 1)) process.kill(process.pid, 'SIGKILL');
      return { batchItemFailures: failed };
    };`,
  Step: `
    class Named extends Error { constructor(name) { super(name + '!'); this.name = name; } }
    exports.handler = async ({ id, attempt }) => {
      if (id === 'fatal') throw new Named('Fatal');
      if (attempt === 0 && id === 'flaky') throw new Named('Flaky');
      if (attempt === 0 && id === 'killed') process.kill(process.pid, 'SIGKILL');
      if (attempt === 0 && id === 'slow') for (;;);
      return { id, attempt };
    };`,
  Observer: `${TELL}
    exports.handler = async ({ source, detail }) => tell({ id: detail['instance-id'], source });`,
};

/** Longer than a cold start on a busy machine; the function that never ends is waited for so long. */
const TIMEOUT_S = 5;

function functionOf(name: keyof typeof CODE): Resource {
  return {
    Type: 'AWS::Lambda::Function',
    Properties: {
      Runtime: 'nodejs22.x',
      Handler: 'index.handler',
      Role: arn('Role'),
      Timeout: TIMEOUT_S,
      Code: { ZipFile: CODE[name] },
      Environment: { Variables: { TOLD: ref('Told') } },
    },
  };
}

const permission = (FunctionName: string, service: string): Resource => ({
  Type: 'AWS::Lambda::Permission',
  Properties: {
    FunctionName: ref(FunctionName),
    Action: 'lambda:InvokeFunction',
    Principal: `${service}.amazonaws.com`,
  },
});

const queue = (properties: Resource = {}): Resource => ({ Type: 'AWS::SQS::Queue', Properties: properties });

const definition = {
  QueryLanguage: 'JSONata',
  StartAt: 'Each',
  States: {
    Each: {
      Type: 'Map',
      Items: '{% $states.input.items %}',
      MaxConcurrency: 4,
      ItemProcessor: {
        StartAt: 'Step',
        States: {
          Step: {
            Type: 'Task',
            Resource: 'arn:aws:states:::lambda:invoke',
            Arguments: {
              FunctionName: '${StepArn}',
              Payload: { id: '{% $states.input.id %}', attempt: '{% $states.context.State.RetryCount %}' },
            },
            Output: '{% $states.result.Payload %}',
            Retry: [
              { ErrorEquals: ['Flaky'], IntervalSeconds: 1, MaxAttempts: 1 },
              { ErrorEquals: ['Fatal'], MaxAttempts: 0 },
              { ErrorEquals: ['States.ALL'], IntervalSeconds: 1, MaxAttempts: 1 },
            ],
            Catch: [{ ErrorEquals: ['Fatal'], Output: { caught: '{% $states.errorOutput.Error %}' }, Next: 'Caught' }],
            End: true,
          },
          Caught: { Type: 'Pass', End: true },
        },
      },
      End: true,
    },
  },
};

export function groundTemplate(): Resource {
  const roleFor = (...services: string[]): Resource => ({
    Type: 'AWS::IAM::Role',
    Properties: {
      AssumeRolePolicyDocument: {
        Version: '2012-10-17',
        Statement: services.map((service) => ({
          Effect: 'Allow',
          Action: 'sts:AssumeRole',
          Principal: { Service: `${service}.amazonaws.com` },
        })),
      },
    },
  });
  return {
    AWSTemplateFormatVersion: '2010-09-09',
    Resources: {
      Role: roleFor('lambda', 'states'),
      // Who reads it does not delete: what was read must not come again.
      Told: queue({ VisibilityTimeout: 3600 }),
      Tick: queue(),
      Dead: queue(),
      Work: queue({
        VisibilityTimeout: TIMEOUT_S,
        RedrivePolicy: { deadLetterTargetArn: arn('Dead'), maxReceiveCount: 3 },
      }),
      Api: functionOf('Api'),
      Worker: functionOf('Worker'),
      Step: functionOf('Step'),
      Observer: functionOf('Observer'),
      FromQueue: {
        Type: 'AWS::Lambda::EventSourceMapping',
        Properties: {
          EventSourceArn: arn('Work'),
          FunctionName: ref('Worker'),
          BatchSize: 10,
          FunctionResponseTypes: ['ReportBatchItemFailures'],
        },
      },
      Machine: {
        Type: 'AWS::StepFunctions::StateMachine',
        Properties: {
          StateMachineType: 'EXPRESS',
          RoleArn: arn('Role'),
          DefinitionString: JSON.stringify(definition),
          DefinitionSubstitutions: { StepArn: arn('Step') },
        },
      },
      Warned: {
        Type: 'AWS::Events::Rule',
        Properties: {
          EventPattern: { source: ['aws.ec2'], detail: { 'instance-action': ['terminate'] } },
          Targets: [{ Id: 'observer', Arn: arn('Observer') }],
        },
      },
      MayObserve: permission('Observer', 'events'),
      Minute: {
        Type: 'AWS::Events::Rule',
        Properties: { ScheduleExpression: 'rate(1 minute)', Targets: [{ Id: 'tick', Arn: arn('Tick') }] },
      },
      ...restApi(),
    },
    Outputs: Object.fromEntries(
      Object.entries({
        ToldUrl: ref('Told'),
        TickUrl: ref('Tick'),
        WorkUrl: ref('Work'),
        DeadUrl: ref('Dead'),
        MachineArn: ref('Machine'),
        ApiId: ref('Rest'),
        ApiLogGroup: { 'Fn::Sub': '/aws/lambda/${Api}' },
      }).map(([name, Value]) => [name, { Value }]),
    ),
  };
}

function restApi(): Readonly<Record<string, Resource>> {
  const resource = (ParentId: Resource, PathPart: string): Resource => ({
    Type: 'AWS::ApiGateway::Resource',
    Properties: { RestApiId: ref('Rest'), ParentId, PathPart },
  });
  const uri = 'arn:aws:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${Api.Arn}/invocations';
  return {
    Rest: { Type: 'AWS::ApiGateway::RestApi', Properties: { Name: 'ground' } },
    Things: resource({ 'Fn::GetAtt': ['Rest', 'RootResourceId'] }, 'things'),
    Thing: resource(ref('Things'), '{id}'),
    Any: {
      Type: 'AWS::ApiGateway::Method',
      Properties: {
        RestApiId: ref('Rest'),
        ResourceId: ref('Thing'),
        HttpMethod: 'ANY',
        AuthorizationType: 'AWS_IAM',
        Integration: { Type: 'AWS_PROXY', IntegrationHttpMethod: 'POST', Uri: { 'Fn::Sub': uri } },
      },
    },
    MayAsk: permission('Api', 'apigateway'),
    Deployment: {
      Type: 'AWS::ApiGateway::Deployment',
      DependsOn: 'Any',
      Properties: { RestApiId: ref('Rest'), StageName: 'v1' },
    },
  };
}
