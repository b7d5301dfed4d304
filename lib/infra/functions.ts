/**
 * The Lambdas: one row each with resources and rights. Memory also decides the share of a CPU ("1,769 MB has the
 * equivalent of one vCPU", Lambda documentation), so computing functions get more.
 */
import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { LambdaEnvironment } from '../drivers/aws/compose/environment.ts';
import type { Arch } from '../domain/pool.ts';
import { acknowledgeWildcards } from './acknowledged.ts';
import { codeOf } from './code.ts';
import { PLATFORMS, type PackagedName } from './packages.ts';
import { rightNamed, statementOf, type Right, type RightName, type RightsOver } from './rights.ts';

export interface FunctionFacts {
  readonly about: string;
  readonly memoryMiB: number;
  readonly timeoutS: number;
  readonly rights: readonly RightName[];
  /** Further rights if the configuration names capacity reservations. */
  readonly rightsOnReservations?: readonly RightName[];
  readonly packaged?: readonly PackagedName[];
  /** Trained models that it asks, by folder name below models/. */
  readonly models?: readonly string[];
  /**
   * True for functions that a clock or a stream starts: they begin no trace of their own, which would cost more than
   * the function. Requests through a queue keep their trace.
   */
  readonly isUntraced?: boolean;
  /** True: the function is there only where services are turned on. */
  readonly isForServices?: boolean;
  /** True: the function knows nothing of the deployment, so it exists before the rest. */
  readonly isAlone?: boolean;
}

const STORE: readonly RightName[] = ['readTable', 'writeTable', 'readBlobs', 'writeBlobs', 'tellMissingBlobs'];
const STEP: readonly RightName[] = [...STORE, 'passCycleState'];
/** Rights of a step that writes nothing to the store except what it passes on. */
const READING_STEP: readonly RightName[] = ['readTable', 'readBlobs', 'tellMissingBlobs', 'passCycleState'];
/** Rights for duties of instances: tasks start and stop, and instances end. */
const TASKS: readonly RightName[] = [
  'giveOrders',
  'seeInstances',
  'endInstances',
  'defineTasks',
  'seeDefinitions',
  'runTasks',
  'tagTasks',
  'passTaskRoles',
  'stopTasks',
  'describeTasks',
];
/** Time limit of API Gateway, s. */
const API_TIMEOUT_S = 29;

export const FUNCTIONS = {
  intake: {
    about: 'Takes jobs.',
    memoryMiB: 512,
    timeoutS: API_TIMEOUT_S,
    rights: [...STORE, 'trigger'],
  },
  api: {
    about: 'Answers questions, takes cancellations.',
    memoryMiB: 1024,
    timeoutS: API_TIMEOUT_S,
    rights: [...STORE, 'trigger', 'readTaskLogs'],
  },
  snapshot: {
    about: 'Takes the lease and one snapshot of everything.',
    memoryMiB: 1024,
    timeoutS: 60,
    rights: [...STEP, 'keepSchedules', 'passScheduleRole'],
  },
  estimate: { about: 'Estimates running times.', memoryMiB: 1769, timeoutS: 60, rights: READING_STEP },
  forecast: {
    about: 'Forecasts interruptions of each pool.',
    memoryMiB: 1769,
    timeoutS: 60,
    rights: READING_STEP,
    models: ['preemption', 'capacity'],
  },
  solve: {
    about: 'The plan: a mixed-integer program on HiGHS.',
    // One full vCPU: the solver has one thread.
    memoryMiB: 1769,
    timeoutS: 60,
    rights: ['passCycleState', 'tellMissingBlobs'],
    packaged: ['highs'],
  },
  isolate: {
    about: 'Finds the jobs for which no decision can be made, and decides on the others.',
    memoryMiB: 1769,
    timeoutS: 105,
    rights: READING_STEP,
  },
  record: { about: 'Records the intents of the decision.', memoryMiB: 768, timeoutS: 30, rights: STEP },
  act: {
    about: 'Buys, starts, stops and gives back.',
    memoryMiB: 256,
    timeoutS: 60,
    // Right to write records of instances, which are single items; it commits nothing.
    rights: [
      ...READING_STEP,
      'writeTable',
      'buyInstances',
      'useTemplate',
      'launchParts',
      'launchInstances',
      'tagAtLaunch',
      'resolveImage',
      'passInstanceRole',
      'createSpotRole',
      ...TASKS,
    ],
    rightsOnReservations: ['useReservations'],
  },
  confirm: { about: 'Records the outcomes.', memoryMiB: 768, timeoutS: 30, rights: [...STEP, 'startCycle'] },
  acquire: {
    about: 'Starts a cycle when one is due by the clock; frees the place of one that failed.',
    memoryMiB: 256,
    timeoutS: 30,
    rights: ['readTable', 'writeTable', 'startCycle'],
    isUntraced: true,
  },
  observe: {
    about: 'Reads the queue: records what happened in EC2 and ECS, and wakes the cycle.',
    memoryMiB: 256,
    // Time for a batch of events that starts some tens of tasks, one call each.
    timeoutS: 60,
    rights: [...STORE, ...TASKS, 'readTaskNotes', 'readTaskLogs', 'startCycle'],
  },
  prices: {
    about: 'Keeps spot prices, and on-demand prices of the region.',
    memoryMiB: 512,
    timeoutS: 120,
    rights: ['readTable', 'writeTable', 'readSpotPrices', 'readListPrices'],
    rightsOnReservations: ['seeReservations'],
    isUntraced: true,
  },
  archive: {
    about: 'Archives finished records, as lines in the bucket.',
    memoryMiB: 512,
    timeoutS: 120,
    rights: ['readStream', 'listStreams', 'readBlobs', 'tellMissingBlobs', 'writeArchive', 'putAside'],
    isUntraced: true,
  },
  serve: {
    about: 'Runs services: begins, updates and drains replicas, and sends requests to them.',
    memoryMiB: 512,
    // The longest: it makes rounds while something changes (lambdas/serve).
    timeoutS: 900,
    rights: [
      ...STORE,
      'startCycle',
      'describeTasks',
      'seeBalancers',
      'seeRequests',
      'makeGroups',
      'keepGroups',
      'tagGroups',
      'makeListeners',
      'dropListeners',
    ],
    isUntraced: true,
    isForServices: true,
  },
  check: {
    about: 'Checks before a deployment that the region offers what it is to buy.',
    memoryMiB: 256,
    timeoutS: 60,
    rights: ['seeOffers'],
    rightsOnReservations: ['seeReservations'],
    isAlone: true,
  },
  sweep: {
    about: 'Compares EC2, ECS and the table, and repairs differences.',
    memoryMiB: 512,
    timeoutS: 120,
    rights: [
      ...STORE,
      ...TASKS,
      'readTaskNotes',
      'readTaskLogs',
      'listContainerInstances',
      'describeContainerInstances',
      'startCycle',
    ],
    isUntraced: true,
  },
} as const satisfies Record<string, FunctionFacts>;

export type FunctionName = keyof typeof FUNCTIONS;

export const FUNCTION_NAMES = Object.keys(FUNCTIONS) as FunctionName[];
/** Functions of every deployment. */
export type AlwaysThere = Exclude<FunctionName, 'serve'>;

export const factsOf = (name: FunctionName): FunctionFacts => FUNCTIONS[name];

/**
 * Variables of a deployed function, without a rehearsal's clock, which tests add, and without those of a single
 * function.
 */
export type DeployedEnvironment = {
  readonly [K in Exclude<keyof LambdaEnvironment, OfSome>]-?: string;
} & { readonly [K in OfServices]?: string };

/** Where services are turned on. */
type OfServices = 'EBB_LOAD_BALANCER' | 'EBB_LOAD_BALANCER_DNS' | 'EBB_VPC' | 'EBB_CERTIFICATE';
type OfSome = OfServices | 'EBB_CLOCK' | 'EBB_FORECAST_FUNCTION' | 'EBB_SERVE_FUNCTION';

export interface EbbtideFunctionProps {
  readonly name: FunctionName;
  readonly environment: DeployedEnvironment;
  readonly over: RightsOver;
  readonly arch: Arch;
  readonly logRetention: logs.RetentionDays;
  readonly isTraced: boolean;
}

/**
 * Log level of the Lambda service. Its three lines per successful invocation cost as much as the invocation and repeat
 * metrics. Faults, time-outs and failed starts have level WARN ("Log level filtering for Node.js", system log level
 * event mapping).
 */
export const SERVICE_LOG_LEVEL: `${lambda.SystemLogLevel}` = lambda.SystemLogLevel.WARN;

/** Lambda with a role and a log group of its own. */
export class EbbtideFunction extends lambda.Function {
  constructor(scope: Construct, id: string, props: EbbtideFunctionProps) {
    const { name, environment, over, arch, logRetention, isTraced } = props;
    const {
      about,
      memoryMiB,
      timeoutS,
      rights,
      rightsOnReservations = [],
      packaged = [],
      models = [],
      isAlone = false,
      isUntraced = false,
    } = factsOf(name);
    const group = new logs.LogGroup(scope, `${id}Log`, {
      retention: logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const role = new iam.Role(scope, `${id}Role`, {
      assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com'),
      description: `Ebbtide ${name}: ${about}`,
    });
    role.addToPolicy(
      new iam.PolicyStatement({
        sid: 'WriteLog',
        actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
        resources: [group.logGroupArn],
      }),
    );
    const granted = [...rights, ...(over.reservations.length === 0 ? [] : rightsOnReservations)].map(rightNamed);
    for (const right of granted) role.addToPolicy(statementOf(right, over, scope));
    acknowledgeWildcards(role, reasonsOf(granted), 'X-Ray has no resource to name.');
    super(scope, id, {
      description: `Ebbtide: ${about}`,
      runtime: lambda.Runtime.NODEJS_24_X,
      architecture: arch === 'arm64' ? lambda.Architecture.ARM_64 : lambda.Architecture.X86_64,
      handler: 'index.handler',
      code: codeOf(name, { packaged, models, platform: PLATFORMS[arch] }),
      role,
      logGroup: group,
      memorySize: memoryMiB,
      timeout: Duration.seconds(timeoutS),
      environment: isAlone ? powertoolsOf(environment) : { ...environment },
      loggingFormat: lambda.LoggingFormat.JSON,
      systemLogLevelV2: lambda.SystemLogLevel[SERVICE_LOG_LEVEL],
      // Values other than `DISABLED` give the role the two rights of X-Ray.
      tracing: tracingOf(isTraced, isUntraced),
      // No reserved concurrency: a new account has ten executions in all and can reserve none.
    });
  }
}

function tracingOf(isTraced: boolean, isUntraced: boolean): lambda.Tracing {
  if (!isTraced) return lambda.Tracing.DISABLED;
  return isUntraced ? lambda.Tracing.PASS_THROUGH : lambda.Tracing.ACTIVE;
}

/** Permission for `asker` to invoke `asked`, whose name it receives. */
function mayInvoke(
  asker: EbbtideFunction,
  asked: EbbtideFunction,
  { variable, sid }: { readonly variable: keyof LambdaEnvironment; readonly sid: string },
): void {
  asker.addEnvironment(variable, asked.functionName);
  asker.addToRolePolicy(
    new iam.PolicyStatement({ sid, actions: ['lambda:InvokeFunction'], resources: [asked.functionArn] }),
  );
}

export const mayAsk = (asker: EbbtideFunction, asked: EbbtideFunction): void =>
  mayInvoke(asker, asked, { variable: 'EBB_FORECAST_FUNCTION', sid: 'AskTheModel' });

/** Permission to start the controller of services. */
export const mayStartServices = (asker: EbbtideFunction, asked: EbbtideFunction): void =>
  mayInvoke(asker, asked, { variable: 'EBB_SERVE_FUNCTION', sid: 'StartServices' });

const powertoolsOf = (environment: DeployedEnvironment): Record<string, string> =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith('POWERTOOLS_')));

const reasonsOf = (granted: readonly Pick<Right, 'sid' | 'wide'>[]): Record<string, string> =>
  Object.fromEntries(granted.flatMap(({ sid, wide }) => (wide === undefined ? [] : [[sid, wide]])));
