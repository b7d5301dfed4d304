/**
 * The scheduling cycle as an Express state machine (why Express: docs/adr/0009):
 *
 *     Look -> Idle? -> Estimate and Forecast at once -> Solve -> Record -> Act, batch by batch -> Confirm -> Again? -> Look
 *
 * What the steps hand on is described in lib/aws/messages.ts; the keys below are those of its schemas. Every step may be repeated:
 * faults that pass are retried with growing, jittered pauses. A cycle that another one has overtaken ends without a fault.
 */
import { ArnFormat, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import * as sfn from 'aws-cdk-lib/aws-stepfunctions';
import { LambdaInvoke } from 'aws-cdk-lib/aws-stepfunctions-tasks';
import { Construct } from 'constructs';
import type { z } from 'zod';
import { actInput, confirmInput, gaveUpInput, solveInput } from '../aws/messages.ts';
import type { ErrorCode } from '../kernel/errors.ts';
import { acknowledge, acknowledgeWildcards } from './acknowledged.ts';
import { factsOf } from './functions.ts';

export const CYCLE_STEPS = ['look', 'estimate', 'forecast', 'solve', 'record', 'act', 'confirm'] as const;
export type CycleStep = (typeof CYCLE_STEPS)[number];

export interface CycleProps {
  readonly name: string;
  /** The steps, and `acquire`, which is told when one has failed for good. */
  readonly functions: Readonly<Record<CycleStep | 'acquire', lambda.IFunction>>;
  readonly logRetention: logs.RetentionDays;
  readonly isTraced: boolean;
}

/** Batches that are acted on at once: EC2 and ECS throttle an account, not a caller. */
const ACT_CONCURRENCY = 10;
/** An Express execution may last five minutes; this one is ended, and said to have been late, just before. */
const TIMEOUT = Duration.seconds(290);
/**
 * Beyond a function's own time-out: it may take ten seconds to come up ("Understanding the Lambda execution environment
 * lifecycle", init phase), and its answer some to arrive. So it is the Lambda service that says that a function was late, which
 * is tried again; this one ends a wait for an answer that never comes, which is not.
 */
const ANSWER_S = 15;

/** Faults that pass, under the names that lib/aws/stack.ts gives them. */
const PASSING: readonly ErrorCode[] = ['aws.unavailable', 'too-many-requests', 'conflict'];
/** Those of the Lambda service itself: "Transient error" in its documentation of Step Functions. */
const LAMBDA_FAULTS = [
  'Lambda.ServiceException',
  'Lambda.AWSLambdaException',
  'Lambda.SdkClientException',
  'Lambda.ClientExecutionTimeoutException',
  'Lambda.TooManyRequestsException',
  'Sandbox.Timedout',
  'Lambda.Unknown',
  // A process that dies, for want of memory or otherwise, is reported as the function's own error.
  'Runtime.ExitError',
];
const FENCED: ErrorCode = 'fenced';

const machineName = (name: string): string => `${name}-cycle`;

/** Known before the machine is made: its own steps name it, to go on in another execution. */
export const cycleArn = (scope: Construct, name: string): string =>
  Stack.of(scope).formatArn({
    service: 'states',
    resource: 'stateMachine',
    resourceName: machineName(name),
    arnFormat: ArnFormat.COLON_RESOURCE_NAME,
  });

export class Cycle extends Construct {
  readonly machine: sfn.StateMachine;
  readonly log: logs.LogGroup;

  constructor(scope: Construct, id: string, props: CycleProps) {
    super(scope, id);
    this.log = new logs.LogGroup(this, 'Log', {
      // Names that begin so need no entry in the account's resource policy for logs, which is limited in size.
      logGroupName: `/aws/vendedlogs/states/${machineName(props.name)}`,
      retention: props.logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.machine = new sfn.StateMachine(this, 'Machine', {
      stateMachineName: machineName(props.name),
      stateMachineType: sfn.StateMachineType.EXPRESS,
      definitionBody: sfn.DefinitionBody.fromChainable(this.#definition(props.functions)),
      timeout: TIMEOUT,
      tracingEnabled: props.isTraced,
      // Data of jobs is in the table, and not in logs.
      logs: { destination: this.log, level: sfn.LogLevel.ERROR, includeExecutionData: false },
    });
    acknowledge(this.machine, {
      'AwsSolutions-SF1':
        'Errors are logged. Every step of every cycle would be billed per gigabyte and says no more than the logs of the functions.',
      ...(props.isTraced ? {} : { 'AwsSolutions-SF2': 'Traces are asked for by the configuration, `traces`.' }),
    });
    acknowledgeWildcards(
      this.machine.role as iam.Role,
      {},
      'A function’s ARN with any version; log deliveries and X-Ray have no resource to name.',
    );
  }

  #definition(functions: CycleProps['functions']): sfn.IChainable {
    const done = new sfn.Succeed(this, 'Done');
    const overtaken = new sfn.Succeed(this, 'Overtaken', { comment: 'A newer cycle acts.' });
    const failed = new sfn.Fail(this, 'Failed', { errorPath: '$.fault.Error', causePath: '$.fault.Cause' });
    const step = (name: CycleStep | 'acquire', id: string, options: StepOptions = {}): LambdaInvoke =>
      withRetry(
        new LambdaInvoke(this, id, {
          lambdaFunction: functions[name],
          payloadResponseOnly: true,
          retryOnServiceExceptions: false,
          taskTimeout: sfn.Timeout.duration(Duration.seconds(factsOf(name).timeoutS + ANSWER_S)),
          ...options,
        }),
      );
    // The place of an execution that fails is freed at once: nothing would be started for five minutes else.
    const giveUp = step('acquire', 'GiveUp', { payload: picked(gaveUpInput), resultPath: sfn.JsonPath.DISCARD })
      .addCatch(failed, { resultPath: sfn.JsonPath.DISCARD })
      .next(failed);
    const caught = <S extends LambdaInvoke | sfn.Parallel | sfn.Map>(state: S): S => {
      state.addCatch(overtaken, { errors: [FENCED] });
      state.addCatch(giveUp, { resultPath: '$.fault' });
      return state;
    };

    const look = caught(step('look', 'Look'));
    const forecasts = caught(
      new sfn.Parallel(this, 'Forecasts', {
        resultSelector: {
          runtime: sfn.JsonPath.stringAt('$[0].runtime'),
          market: sfn.JsonPath.stringAt('$[1].market'),
        },
        resultPath: '$.forecasts',
      }).branch(step('estimate', 'Estimate'), step('forecast', 'Forecast')),
    );
    const solve = caught(
      step('solve', 'Solve', {
        payload: picked(solveInput, { runtime: '$.forecasts.runtime', market: '$.forecasts.market' }),
      }),
    );
    const record = caught(step('record', 'Record'));
    const act = caught(
      new sfn.Map(this, 'Act', {
        itemsPath: '$.batches',
        itemSelector: picked(actInput, { batch: '$$.Map.Item.Value' }).value as Record<string, unknown>,
        maxConcurrency: ACT_CONCURRENCY,
        resultPath: '$.acted',
      }).itemProcessor(step('act', 'ActOnBatch')),
    );
    const times = { began: '$$.Execution.StartTime', entered: '$$.State.EnteredTime' };
    const confirm = caught(step('confirm', 'Confirm', { payload: picked(confirmInput, times) }));
    const again = new sfn.Choice(this, 'Again?')
      .when(sfn.Condition.booleanEquals('$.again', true), look)
      .otherwise(done);
    const work = forecasts.next(solve).next(record).next(act).next(confirm).next(again);
    return look.next(
      new sfn.Choice(this, 'Idle?').when(sfn.Condition.booleanEquals('$.idle', true), done).otherwise(work),
    );
  }
}

interface StepOptions {
  readonly payload?: sfn.TaskInput;
  readonly resultPath?: string;
}

/** The keys of a step's input, each from where it lies in the state. */
function picked(schema: z.ZodObject, places: Readonly<Record<string, string>> = {}): sfn.TaskInput {
  const keys = Object.keys(schema.shape);
  return sfn.TaskInput.fromObject(
    Object.fromEntries(keys.map((key) => [key, sfn.JsonPath.objectAt(places[key] ?? `$.${key}`)])),
  );
}

function withRetry(step: LambdaInvoke): LambdaInvoke {
  step.addRetry({
    errors: [...PASSING, ...LAMBDA_FAULTS],
    interval: Duration.seconds(1),
    backoffRate: 2,
    maxAttempts: 4,
    maxDelay: Duration.seconds(10),
    jitterStrategy: sfn.JitterType.FULL,
  });
  return step;
}
