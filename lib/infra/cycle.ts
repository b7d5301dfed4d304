/**
 * The scheduling cycle as an Express state machine (why Express: docs/adr/0009):
 *
 *     Snapshot -> Idle? -> Estimate and Forecast at once -> Solve -> Record -> Act, batch by batch -> Confirm -> Again?
 *     Again? -> Snapshot or Done
 *
 * If Estimate or Solve throws or runs out of time, Isolate finds the jobs to blame and decides without them.
 *
 * Messages between the steps: lib/drivers/aws/cycle/messages.ts; the keys below are those of its schemas. Every step
 * may be repeated: passing faults are retried with growing, jittered pauses. A superseded cycle ends without a fault.
 */
import { ArnFormat, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import * as sfn from 'aws-cdk-lib/aws-stepfunctions';
import { LambdaInvoke } from 'aws-cdk-lib/aws-stepfunctions-tasks';
import { Construct } from 'constructs';
import type { z } from 'zod';
import {
  actInput,
  confirmInput,
  cycleStart,
  gaveUpInput,
  isolateInput,
  solveInput,
} from '../drivers/aws/cycle/messages.ts';
import type { ErrorCode } from '../kernel/errors.ts';
import { ANSWER_S, EXECUTION_S } from '../drivers/aws/cycle/late.ts';
import { acknowledge, acknowledgeWildcards } from './acknowledged.ts';
import { factsOf } from './functions.ts';

export const CYCLE_STEPS = [
  'snapshot',
  'estimate',
  'forecast',
  'solve',
  'isolate',
  'record',
  'act',
  'confirm',
] as const;
export type CycleStep = (typeof CYCLE_STEPS)[number];

export interface CycleProps {
  readonly name: string;
  /** The steps, and `acquire`, which receives failures. */
  readonly functions: Readonly<Record<CycleStep | 'acquire', lambda.IFunction>>;
  /** Parallel batches of `act`. */
  readonly concurrency: number;
  readonly logRetention: logs.RetentionDays;
  readonly isTraced: boolean;
}

/**
 * Time-out of an execution. Steps that could exceed it do not begin, so reaching it is a fault of Step Functions
 * itself.
 */
const TIMEOUT = Duration.seconds(EXECUTION_S);

/** Passing faults, under their names in lib/drivers/aws/lambda/stack.ts. */
const PASSING: readonly ErrorCode[] = ['aws.unavailable', 'too-many-requests', 'conflict'];
/** Faults of the Lambda service itself ("Transient error" in its documentation of Step Functions). */
const LAMBDA_FAULTS = [
  'Lambda.ServiceException',
  'Lambda.AWSLambdaException',
  'Lambda.SdkClientException',
  'Lambda.ClientExecutionTimeoutException',
  'Lambda.TooManyRequestsException',
  'Sandbox.Timedout',
  'Lambda.Unknown',
  // Death of the process, for example for lack of memory. Lambda reports it as the function's own error.
  'Runtime.ExitError',
];
const FENCED: ErrorCode = 'fenced';
/** Failures of computing steps that a job may cause: an error, or no time or memory left. A retry would not help. */
const COMPUTING_FAULTS = ['internal' satisfies ErrorCode, 'Sandbox.Timedout', 'Runtime.ExitError'];
/** Placeholder for the reference to a missing estimate. */
const NOT_ESTIMATED = 'none';

const machineName = (name: string): string => `${name}-cycle`;

/** ARN before the machine exists: its own steps use it to continue in another execution. */
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
      // Prefix of log groups that need no entry in the account's resource policy for logs, which is limited in size.
      logGroupName: `/aws/vendedlogs/states/${machineName(props.name)}`,
      retention: props.logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.machine = new sfn.StateMachine(this, 'Machine', {
      stateMachineName: machineName(props.name),
      stateMachineType: sfn.StateMachineType.EXPRESS,
      definitionBody: sfn.DefinitionBody.fromChainable(this.#definition(props)),
      timeout: TIMEOUT,
      tracingEnabled: props.isTraced,
      // No execution data: data of jobs belongs in the table, not in logs.
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

  #definition({ functions, concurrency }: CycleProps): sfn.IChainable {
    const done = new sfn.Succeed(this, 'Done');
    const overtaken = new sfn.Succeed(this, 'Overtaken', { comment: 'A newer cycle acts.' });
    const failed = new sfn.Fail(this, 'Failed', { errorPath: '$.fault.Error', causePath: '$.fault.Cause' });
    const step = (name: CycleStep | 'acquire', id: string, options: StepOptions = {}): LambdaInvoke =>
      withRetry(
        RETRIED[name] ?? ALL_RETRIED,
        new LambdaInvoke(this, id, {
          lambdaFunction: functions[name],
          payloadResponseOnly: true,
          retryOnServiceExceptions: false,
          // Time-out beyond the function's own. So Lambda reports a late function, which is retried; this one only ends
          // a wait without an answer, which is not.
          taskTimeout: sfn.Timeout.duration(Duration.seconds(factsOf(name).timeoutS + ANSWER_S)),
          ...options,
        }),
      );
    // Release of a failed execution's place; otherwise nothing would start for five minutes.
    const giveUp = step('acquire', 'GiveUp', { payload: picked(gaveUpInput), resultPath: sfn.JsonPath.DISCARD })
      .addCatch(failed, { resultPath: sfn.JsonPath.DISCARD })
      .next(failed);
    const caught = <S extends LambdaInvoke | sfn.Parallel | sfn.Map>(state: S): S => {
      state.addCatch(overtaken, { errors: [FENCED] });
      state.addCatch(giveUp, { resultPath: '$.fault' });
      // Error that `States.ALL` does not cover ("Handling errors in Step Functions workflows").
      state.addCatch(giveUp, { errors: ['States.DataLimitExceeded'], resultPath: '$.fault' });
      return state;
    };

    const began = { began: '$$.Execution.StartTime' };
    const snapshot = caught(step('snapshot', 'Snapshot', { payload: picked(cycleStart, began) }));
    const record = caught(step('record', 'Record'));
    const isolate = caught(
      step('isolate', 'Isolate', { payload: picked(isolateInput, { market: '$.forecasts.market' }) }),
    );
    isolate.next(record);
    const estimate = step('estimate', 'Estimate').addCatch(
      new sfn.Pass(this, 'NotEstimated', { result: sfn.Result.fromObject({ runtime: NOT_ESTIMATED }) }),
      { errors: COMPUTING_FAULTS },
    );
    const forecasts = caught(
      new sfn.Parallel(this, 'Forecasts', {
        resultSelector: {
          runtime: sfn.JsonPath.stringAt('$[0].runtime'),
          market: sfn.JsonPath.stringAt('$[1].market'),
        },
        resultPath: '$.forecasts',
      }).branch(estimate, step('forecast', 'Forecast')),
    );
    const solve = step('solve', 'Solve', {
      payload: picked(solveInput, { runtime: '$.forecasts.runtime', market: '$.forecasts.market' }),
    });
    solve.addCatch(isolate, { errors: COMPUTING_FAULTS, resultPath: '$.fault' });
    caught(solve);
    const act = caught(
      new sfn.Map(this, 'Act', {
        itemsPath: '$.batches',
        itemSelector: picked(actInput, { batch: '$$.Map.Item.Value' }).value as Record<string, unknown>,
        // Limit of parallel batches: EC2 and ECS throttle an account, not a caller.
        maxConcurrency: concurrency,
        resultPath: '$.acted',
      }).itemProcessor(step('act', 'ActOnBatch')),
    );
    const times = { ...began, entered: '$$.State.EnteredTime' };
    const confirm = caught(step('confirm', 'Confirm', { payload: picked(confirmInput, times) }));
    const again = new sfn.Choice(this, 'Again?')
      .when(sfn.Condition.booleanEquals('$.again', true), snapshot)
      .otherwise(done);
    record.next(act).next(confirm).next(again);
    const work = forecasts.next(
      new sfn.Choice(this, 'Estimated?')
        .when(sfn.Condition.stringEquals('$.forecasts.runtime', NOT_ESTIMATED), isolate)
        .otherwise(solve.next(record)),
    );
    return snapshot.next(
      new sfn.Choice(this, 'Idle?').when(sfn.Condition.booleanEquals('$.idle', true), done).otherwise(work),
    );
  }
}

interface StepOptions {
  readonly payload?: sfn.TaskInput;
  readonly resultPath?: string;
}

/** Keys of a step's input, each with its place in the state. */
function picked(schema: z.ZodObject, places: Readonly<Record<string, string>> = {}): sfn.TaskInput {
  const keys = Object.keys(schema.shape);
  return sfn.TaskInput.fromObject(
    Object.fromEntries(keys.map((key) => [key, sfn.JsonPath.objectAt(places[key] ?? `$.${key}`)])),
  );
}

const ALL_RETRIED: readonly string[] = [...PASSING, ...LAMBDA_FAULTS];
const WITHOUT_COMPUTING = ALL_RETRIED.filter((fault) => !COMPUTING_FAULTS.includes(fault));
const RETRIED: Partial<Record<CycleStep | 'acquire', readonly string[]>> = {
  estimate: WITHOUT_COMPUTING,
  solve: WITHOUT_COMPUTING,
  isolate: WITHOUT_COMPUTING,
};

function withRetry(errors: readonly string[], step: LambdaInvoke): LambdaInvoke {
  step.addRetry({
    errors: [...errors],
    interval: Duration.seconds(1),
    backoffRate: 2,
    maxAttempts: 4,
    maxDelay: Duration.seconds(10),
    jitterStrategy: sfn.JitterType.FULL,
  });
  return step;
}
