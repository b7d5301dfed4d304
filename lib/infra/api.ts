/** The HTTP API: a REST API in front of the Lambdas intake and api. */
import { RemovalPolicy } from 'aws-cdk-lib';
import * as apigateway from 'aws-cdk-lib/aws-apigateway';
import * as cognito from 'aws-cdk-lib/aws-cognito';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { EbbError, ERROR_CODES, type ErrorCode } from '../kernel/errors.ts';
import { BATCH_PATH, JOBS_PATH } from '../api/requests.ts';
import { acknowledge } from './acknowledged.ts';
import type { DeploymentConfig } from './config.ts';

export interface HttpApiProps {
  readonly config: Pick<DeploymentConfig, 'name' | 'auth' | 'userPoolArn' | 'requestsPerSecond' | 'traces'>;
  readonly intake: lambda.IFunction;
  readonly api: lambda.IFunction;
  readonly logRetention: logs.RetentionDays;
}

const STAGE = 'v1';
/** Advice if a function gave no answer: the submission may have been accepted. */
const AGAIN =
  'Ask again in some seconds, a submission under the same Idempotency-Key; the log of the function has this time and why.';

export class HttpApi extends Construct {
  readonly rest: apigateway.RestApi;
  readonly #auth: DeploymentConfig['auth'];

  constructor(scope: Construct, id: string, props: HttpApiProps) {
    super(scope, id);
    const { config, logRetention } = props;
    this.#auth = config.auth;
    const accessLog = new logs.LogGroup(this, 'AccessLog', {
      retention: logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.rest = new apigateway.RestApi(this, 'Rest', {
      restApiName: config.name,
      description: 'Ebbtide: submit jobs, ask about them.',
      endpointTypes: [apigateway.EndpointType.REGIONAL],
      cloudWatchRole: true,
      cloudWatchRoleRemovalPolicy: RemovalPolicy.RETAIN,
      defaultMethodOptions: this.#authorization(config),
      deployOptions: {
        stageName: STAGE,
        throttlingRateLimit: config.requestsPerSecond,
        throttlingBurstLimit: config.requestsPerSecond * 2,
        accessLogDestination: new apigateway.LogGroupLogDestination(accessLog),
        accessLogFormat: apigateway.AccessLogFormat.jsonWithStandardFields(),
        // Errors only: the access log has every request, and functions have their own logs.
        loggingLevel: apigateway.MethodLoggingLevel.ERROR,
        dataTraceEnabled: false,
        metricsEnabled: false,
        tracingEnabled: config.traces,
      },
    });
    // The address is a separate output, under a name that the command line knows (outputs.ts).
    this.rest.node.tryRemoveChild('Endpoint');
    this.#routes(props);
    this.#faults();
    this.#acknowledge();
  }

  /** Routes: `POST` of the two submission paths goes to intake, everything else to api. */
  #routes({ intake, api }: HttpApiProps): void {
    const [taking, answering] = [new apigateway.LambdaIntegration(intake), new apigateway.LambdaIntegration(api)];
    for (const path of [JOBS_PATH, BATCH_PATH]) {
      const resource = this.rest.root.resourceForPath(path);
      resource.addMethod('POST', taking);
      resource.addMethod('ANY', answering);
    }
    for (const resource of [this.rest.root, this.rest.root.resourceForPath('/api')])
      resource.addMethod('ANY', answering);
    for (const path of ['/api', JOBS_PATH])
      this.rest.root.resourceForPath(`${path}/{proxy+}`).addMethod('ANY', answering);
  }

  #authorization({ auth, userPoolArn }: HttpApiProps['config']): apigateway.MethodOptions {
    if (auth === 'iam' || userPoolArn === undefined) return { authorizationType: apigateway.AuthorizationType.IAM };
    const pool = cognito.UserPool.fromUserPoolArn(this, 'Users', userPoolArn);
    return {
      authorizationType: apigateway.AuthorizationType.COGNITO,
      authorizer: new apigateway.CognitoUserPoolsAuthorizer(this, 'Tokens', { cognitoUserPools: [pool] }),
    };
  }

  /**
   * Answers of the gateway itself, in the handlers' form (RFC 9457), also if a function died. Types:
   * https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
   */
  #faults(): void {
    const say = (
      type: apigateway.ResponseType,
      code: ErrorCode,
      what = '$context.error.messageString',
      next?: string,
    ): void => {
      const { http, about, retryable } = ERROR_CODES[code];
      const text = what.startsWith('$') ? what : JSON.stringify(what);
      this.rest.addGatewayResponse(`Fault${type.responseType}`, {
        type,
        statusCode: String(http),
        responseHeaders: {
          'content-type': "'application/problem+json'",
          'x-request-id': 'context.requestId',
          ...(retryable ? { 'retry-after': "'1'" } : {}),
        },
        templates: {
          'application/json': `{"type":"urn:ebbtide:error:${code}","title":${JSON.stringify(about)},"status":${http},"detail":${text},"what":${text},"code":"${code}",${next === undefined ? '' : `"next":${JSON.stringify(next)},`}"retryable":${retryable},"requestId":"$context.requestId"}`,
        },
      });
    };
    const { ResponseType } = apigateway;
    say(ResponseType.THROTTLED, 'too-many-requests');
    say(ResponseType.QUOTA_EXCEEDED, 'too-many-requests');
    say(ResponseType.REQUEST_TOO_LARGE, 'body-too-large');
    say(
      ResponseType.MISSING_AUTHENTICATION_TOKEN,
      'unauthorized',
      'the request is not signed, or there is no such route',
    );
    say(ResponseType.UNAUTHORIZED, 'unauthorized');
    say(ResponseType.EXPIRED_TOKEN, 'unauthorized');
    say(ResponseType.INVALID_SIGNATURE, 'unauthorized');
    // Text of the gateway, which names the missing right.
    say(ResponseType.ACCESS_DENIED, 'forbidden');
    say(ResponseType.WAF_FILTERED, 'forbidden');
    say(ResponseType.RESOURCE_NOT_FOUND, 'not-found');
    say(ResponseType.UNSUPPORTED_MEDIA_TYPE, 'media-type');
    say(ResponseType.INTEGRATION_TIMEOUT, 'aws.unavailable', 'the function did not answer within 29 seconds', AGAIN);
    say(ResponseType.INTEGRATION_FAILURE, 'aws.unavailable', 'the function could not be invoked', AGAIN);
    say(ResponseType.DEFAULT_5XX, 'aws.unavailable', 'the function ended without an answer', AGAIN);
    say(ResponseType.DEFAULT_4XX, 'usage');
  }

  #acknowledge(): void {
    acknowledge(this.rest, {
      'AwsSolutions-APIG2':
        'The handlers check path, query and body against the schemas of the OpenAPI document and report every finding; the gateway would report one, in its own words.',
      'AwsSolutions-APIG3':
        'A web ACL costs more per month than an idle deployment. Requests are authenticated and throttled; associate an ACL with `api.rest.deploymentStage` if yours must have one.',
      'AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]':
        'API Gateway writes its logs with one role per region, for which AWS requires this managed policy.',
      // Same policy under a known partition.
      'AwsSolutions-IAM4[Policy::arn:aws:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs]':
        'API Gateway writes its logs with one role per region, for which AWS requires this managed policy.',
      ...(this.#auth === 'iam'
        ? { 'AwsSolutions-COG4': 'Requests are signed with AWS credentials (IAM authorisation).' }
        : {}),
    });
  }

  /** Permission to read. Throws `usage` if `auth` is jwt. */
  grantRead(grantee: iam.IGrantable): iam.Grant {
    return this.#grant(grantee, [['GET', '/*']]);
  }

  /** Permission to read, submit and cancel. Throws `usage` if `auth` is jwt. */
  grantSubmit(grantee: iam.IGrantable): iam.Grant {
    return this.#grant(grantee, [
      ['GET', '/*'],
      ['POST', JOBS_PATH],
      ['POST', BATCH_PATH],
      ['POST', `${JOBS_PATH}/*/cancel`],
      ['POST', `${JOBS_PATH}/*/release`],
      ['DELETE', `${JOBS_PATH}/*`],
    ]);
  }

  #grant(grantee: iam.IGrantable, calls: readonly (readonly [method: string, path: string])[]): iam.Grant {
    if (this.#auth === 'jwt') {
      throw new EbbError('usage', {
        what: 'with auth: jwt a grant lets nobody in',
        got: 'a right to invoke the API, which a user pool’s authoriser ignores',
        allowed: 'whoever has a token of the user pool in `userPoolArn`; grants are for auth: iam',
        next: 'leave out the grant and give that caller a user of the pool, or set auth to iam',
      });
    }
    return iam.Grant.addToPrincipal({
      grantee,
      actions: ['execute-api:Invoke'],
      resourceArns: calls.map(([method, path]) => this.rest.arnForExecuteApi(method, path, STAGE)),
    });
  }
}
