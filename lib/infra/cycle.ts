/**
 * The scheduling cycle as an Express state machine (why Express: docs/adr/0009):
 *
 *     Look -> Idle? -> Estimate and Forecast at once -> Solve -> Record -> Act, batch by batch -> Confirm -> Again? -> Look
 *
 * Where Estimate or Solve throws or runs out of time, Isolate finds the jobs behind it and decides without them.
 *
 * What the steps hand on is described in lib/drivers/aws/cycle/messages.ts; the keys below are those of its schemas.
 * Every step may be repeated: faults that pass are retried with growing, jittered pauses. A cycle that another one has
 * overtaken ends without a fault.
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

export const CYCLE_STEPS = ['look', 'estimate', 'forecast', 'solve', 'isolate', 'record', 'act', 'confirm'] as const;
export type CycleStep = (typeof CYCLE_STEPS)[number];

export interface CycleProps {
  readonly name: string;
  /** The steps, and `acquire`, which is told when one has failed for good. */
  readonly functions: Readonly<Record<CycleStep | 'acquire', lambda.IFunction>>;
  /** Batches that are acted on at once. */
  readonly concurrency: number;
  readonly logRetention: logs.RetentionDays;
  readonly isTraced: boolean;
}

/**
 * No step is begun that could pass it, so an execution that is ended by it has met a fault of Step Functions itself.
 */
const TIMEOUT = Duration.seconds(EXECUTION_S);

/** Faults that pass, under the names that lib/drivers/aws/lambda/stack.ts gives them. */
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
/**
 * Ends of a step that computes, which a job may be behind: it threw, ran out of time or out of memory. Trying again is
 * vain.
 */
const COMPUTING_FAULTS = ['internal' satisfies ErrorCode, 'Sandbox.Timedout', 'Runtime.ExitError'];
/** In place of a reference to an estimate, where none could be made. */
const NOT_ESTIMATED = 'none';

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
      definitionBody: sfn.DefinitionBody.fromChainable(this.#definition(props)),
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
          // So it is the Lambda service that says that a function was late, which is tried again; this one ends a wait
          // for an answer that never comes, which is not.
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
      // Which `States.ALL` does not mean ("Handling errors in Step Functions workflows").
      state.addCatch(giveUp, { errors: ['States.DataLimitExceeded'], resultPath: '$.fault' });
      return state;
    };

    const began = { began: '$$.Execution.StartTime' };
    const look = caught(step('look', 'Look', { payload: picked(cycleStart, began) }));
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
        // EC2 and ECS throttle an account, not a caller.
        maxConcurrency: concurrency,
        resultPath: '$.acted',
      }).itemProcessor(step('act', 'ActOnBatch')),
    );
    const times = { ...began, entered: '$$.State.EnteredTime' };
    const confirm = caught(step('confirm', 'Confirm', { payload: picked(confirmInput, times) }));
    const again = new sfn.Choice(this, 'Again?')
      .when(sfn.Condition.booleanEquals('$.again', true), look)
      .otherwise(done);
    record.next(act).next(confirm).next(again);
    const work = forecasts.next(
      new sfn.Choice(this, 'Estimated?')
        .when(sfn.Condition.stringEquals('$.forecasts.runtime', NOT_ESTIMATED), isolate)
        .otherwise(solve.next(record)),
    );
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
