/**
 * Ebbtide as one construct, for an app of your own:
 *
 *     const ebbtide = new Ebbtide(this, 'Ebbtide', { families: ['c6i', 'm6i'], budgetUsdPerDay: 20 });
 *     ebbtide.grantSubmit(role);
 *     ebbtide.metricQueueDepth().createAlarm(this, 'TooMuchWaiting', { threshold: 1000, evaluationPeriods: 3 });
 *
 * All parts are public (`api`, `capacity`, `functions`, `cycle`, ...), and so is each CloudFormation resource through
 * `node.defaultChild`. Change there what the properties do not offer.
 */
import { Duration, Stack, Token } from 'aws-cdk-lib';
import type * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import type { LambdaConfigInput } from '../drivers/aws/compose/environment.ts';
import { METRIC_NAMESPACE, type MetricKey } from '../drivers/aws/metrics/metrics.ts';
import type { PurchaseOption } from '../domain/pool.ts';
import { EbbtideAlarms } from './alarms.ts';
import { HttpApi } from './api.ts';
import { codeDigest } from './bundle.ts';
import { Capacity } from './cluster.ts';
import { historyDaysOf, type DeploymentConfig, type DeploymentConfigInput } from './config.ts';
import { architectureOf, checkedDeployment, mappingOf } from './config-rules.ts';
import { Cycle, CYCLE_STEPS, cycleArn } from './cycle.ts';
import { EbbtideDashboard } from './dashboard.ts';
import { EbbtideData } from './data.ts';
import { Deploying } from './deploying.ts';
import {
  EbbtideFunction,
  factsOf,
  FUNCTION_NAMES,
  mayAsk,
  mayStartServices,
  type AlwaysThere,
  type DeployedEnvironment,
} from './functions.ts';
import { EbbtideMetrics } from './metrics.ts';
import { Network, subnetList, type AnyVpc } from './network.ts';
import { EbbtideOutputs } from './outputs.ts';
import { streamOf } from './rights.ts';
import { Schedules } from './schedules.ts';
import { Services } from './services.ts';
import { TriggerQueue, Triggers } from './triggers.ts';
import { deployedVersion } from './version.ts';

export interface EbbtideProps extends Omit<DeploymentConfigInput, 'account' | 'region' | 'vpc'> {
  /**
   * Table and bucket, for a stack of their own. Default: made here, and kept (`keepData`) when the stack is deleted.
   */
  readonly data?: EbbtideData;
  /** VPC of your app, or a value as in the configuration file. Default: a new VPC. */
  readonly vpc?: AnyVpc | DeploymentConfigInput['vpc'];
}

export class Ebbtide extends Construct {
  readonly config: DeploymentConfig;
  readonly data: EbbtideData;
  readonly network: Network;
  readonly capacity: Capacity;
  /** `serve` only where services are turned on. */
  readonly functions: Readonly<Record<AlwaysThere, EbbtideFunction> & { readonly serve?: EbbtideFunction }>;
  /** Load balancer of services; absent: they are off. */
  readonly services?: Services;
  readonly cycle: Cycle;
  readonly api: HttpApi;
  readonly trigger: TriggerQueue;
  /** One-off schedules. */
  readonly schedules: Schedules;
  readonly triggers: Triggers;
  /** Questions to the region during deployment. */
  readonly deploying: Deploying;
  readonly metrics: EbbtideMetrics;
  readonly alarms: EbbtideAlarms;
  readonly dashboard: EbbtideDashboard;
  /** Address, dashboard, cycle and queues, as outputs of the stack. */
  readonly outputs: EbbtideOutputs;

  /** Throws `usage` with all findings if the properties are invalid. */
  constructor(scope: Construct, id: string, props: EbbtideProps = {}) {
    super(scope, id);
    const where = `Ebbtide at ${this.node.path}`;
    // Check of the type, which input from a file has by assertion only.
    mappingOf(props, where);
    const { data, vpc, ...given } = props;
    const isOwnVpc = isVpc(vpc);
    this.config = checkedDeployment(
      { ...placeOf(this), ...given, ...(vpc === undefined || isOwnVpc ? {} : { vpc }) },
      where,
    );
    const { config } = this;
    // Values of this enumeration are days.
    const logRetention: logs.RetentionDays = config.retentionDays;
    this.data =
      data ??
      new EbbtideData(this, 'Data', {
        keepData: config.keepData,
        historyDays: historyDaysOf(config),
        ...(config.restoredTable === undefined ? {} : { restoredTable: config.restoredTable }),
      });
    this.network = new Network(this, 'Network', {
      config,
      flowLogRetention: logRetention,
      ...(isOwnVpc ? { vpc } : {}),
    });
    this.capacity = new Capacity(this, 'Capacity', {
      name: config.name,
      arch: architectureOf(config),
      network: this.network,
      bucket: this.data.bucket,
      logRetention,
      keepData: config.keepData,
    });
    this.trigger = new TriggerQueue(this, 'Trigger', {
      consumerTimeout: Duration.seconds(factsOf('observe').timeoutS),
    });
    this.schedules = new Schedules(this, 'Schedules', { name: config.name, queue: this.trigger.queue });
    if (config.services !== 'off') {
      const { services: from, servicesCertificateArn: certificateArn } = config;
      this.services = new Services(this, 'Services', { from, network: this.network, certificateArn });
    }
    this.functions = this.#functions(logRetention);
    this.cycle = new Cycle(this, 'Cycle', {
      name: config.name,
      functions: this.functions,
      concurrency: config.cycleConcurrency,
      logRetention,
      isTraced: config.traces,
    });
    this.triggers = new Triggers(this, 'Triggers', {
      queue: this.trigger.queue,
      deadLetters: this.trigger.deadLetters,
      streamArn: streamOf(this.data),
      cluster: this.capacity.cluster,
      bucket: this.data.bucket,
      functions: this.functions,
    });
    this.deploying = new Deploying(this, 'Deploying', {
      config,
      subnets: this.network.subnets,
      functions: this.functions,
    });
    const { intake, api, forecast, snapshot, acquire, serve } = this.functions;
    mayAsk(api, forecast);
    if (serve !== undefined) for (const each of [api, snapshot, acquire]) mayStartServices(each, serve);
    this.api = new HttpApi(this, 'Http', { config, intake, api, logRetention });
    this.metrics = new EbbtideMetrics(config.name);
    this.alarms = new EbbtideAlarms(this, 'Alarms', {
      config,
      metrics: this.metrics,
      deadLetters: this.trigger.deadLetters,
    });
    const { record, confirm } = this.functions;
    this.dashboard = new EbbtideDashboard(this, 'Dashboard', {
      config,
      metrics: this.metrics,
      alarms: this.alarms,
      deadLetters: this.trigger.deadLetters,
      rest: this.api.rest,
      booking: [snapshot, record, confirm].map((f) => f.logGroup),
    });
    this.outputs = new EbbtideOutputs(this, 'Outputs', {
      name: config.name,
      api: this.api,
      cycle: this.cycle,
      trigger: this.trigger,
    });
  }

  /** Permission to read through the API. Throws `usage` if `auth` is jwt: tokens decide there. */
  grantRead(grantee: iam.IGrantable): iam.Grant {
    return this.api.grantRead(grantee);
  }

  /** Permission to read, submit and cancel through the API. Throws `usage` if `auth` is jwt: tokens decide there. */
  grantSubmit(grantee: iam.IGrantable): iam.Grant {
    return this.api.grantSubmit(grantee);
  }

  /** Any metric of the deployment. `option` is for metrics by purchase option. */
  metric(key: MetricKey, props?: cloudwatch.MetricOptions & { readonly option?: PurchaseOption }): cloudwatch.Metric {
    return this.metrics.metric(key, props);
  }

  /** Waiting tasks. */
  metricQueueDepth(props?: cloudwatch.MetricOptions): cloudwatch.Metric {
    return this.metrics.metric('queueDepth', props);
  }

  /** USD per hour of all instances. */
  metricSpendRate(props?: cloudwatch.MetricOptions): cloudwatch.MathExpression {
    return this.metrics.spendRate(props);
  }

  /** Share of the on-demand price that is saved, percent. */
  metricSavings(props?: cloudwatch.MetricOptions): cloudwatch.MathExpression {
    return this.metrics.savings(props);
  }

  /** Milliseconds of one cycle. */
  metricCycleTime(props?: cloudwatch.MetricOptions): cloudwatch.Metric {
    return this.metrics.metric('cycleTime', props);
  }

  #functions(logRetention: logs.RetentionDays): Ebbtide['functions'] {
    const { config, data, capacity, network, trigger } = this;
    const stateMachineArn = cycleArn(this, config.name);
    const scope = new Construct(this, 'Functions');
    const environment = this.#environment(stateMachineArn);
    const over = {
      name: config.name,
      data,
      capacity,
      network,
      stateMachineArn,
      triggerQueueArn: trigger.queue.queueArn,
      schedules: this.schedules,
      deadLettersArn: trigger.deadLetters.queueArn,
      reservations: config.reservations,
      services: this.services,
    };
    return Object.fromEntries(
      FUNCTION_NAMES.filter((name) => factsOf(name).isForServices !== true || over.services !== undefined).map(
        (name) => {
          const id = `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
          return [
            name,
            new EbbtideFunction(scope, id, {
              name,
              environment,
              over,
              arch: config.lambdaArch,
              logRetention,
              isTraced: config.traces,
            }),
          ];
        },
      ),
    ) as unknown as Ebbtide['functions'];
  }

  #ofServices(): Partial<DeployedEnvironment> {
    const { services, network } = this;
    if (services === undefined) return {};
    return {
      EBB_LOAD_BALANCER: services.balancer.ref,
      EBB_LOAD_BALANCER_DNS: services.balancer.attrDnsName,
      EBB_VPC: network.vpc.vpcId,
      ...(services.certificateArn === undefined ? {} : { EBB_CERTIFICATE: services.certificateArn }),
    };
  }

  /** Environment of the Lambdas, for the schema in lib/drivers/aws/compose/environment.ts. It holds no secret. */
  #environment(stateMachineArn: string): DeployedEnvironment {
    const { config, data, capacity, network, trigger } = this;
    const subset: LambdaConfigInput = {
      name: config.name,
      families: [...config.families],
      vcpus: config.maxVcpus,
      image: config.defaultImage,
      settings: { ...config.settings, preset: config.preset },
      draining: config.draining,
      ...(config.reservations.length === 0 ? {} : { reservations: [...config.reservations] }),
      ...(config.ownerIsCaller ? { ownerIsCaller: true, admins: [...config.admins] } : {}),
    };
    return {
      EBB_TABLE: data.table.tableName,
      EBB_BUCKET: data.bucket.bucketName,
      EBB_CLUSTER: capacity.cluster.clusterName,
      EBB_LAUNCH_TEMPLATE: capacity.template.launchTemplateId ?? '',
      EBB_LAUNCH_TEMPLATE_VERSION: capacity.template.latestVersionNumber,
      EBB_SUBNETS: subnetList(network.subnets),
      EBB_STATE_MACHINE: stateMachineArn,
      EBB_TRIGGER_QUEUE: trigger.queue.queueUrl,
      EBB_TRIGGER_QUEUE_ARN: trigger.queue.queueArn,
      EBB_SCHEDULE_GROUP: this.schedules.groupName,
      EBB_SCHEDULE_ROLE: this.schedules.role.roleArn,
      EBB_REGION: Stack.of(this).region,
      EBB_CONFIG: JSON.stringify(subset),
      EBB_LOG_GROUP: capacity.taskLogs.logGroupName,
      EBB_EXECUTION_ROLE: capacity.executionRole.roleArn,
      EBB_TASK_ROLE: capacity.taskRole.roleArn,
      ...this.#ofServices(),
      EBB_VERSION: deployedVersion(),
      // Placeholder without code: no values are passed between steps then.
      EBB_CODE: Stack.of(this).bundlingRequired ? codeDigest(CYCLE_STEPS) : 'none',
      POWERTOOLS_SERVICE_NAME: config.name,
      POWERTOOLS_METRICS_NAMESPACE: METRIC_NAMESPACE,
      POWERTOOLS_LOG_LEVEL: 'INFO',
      POWERTOOLS_TRACE_ENABLED: config.traces ? 'true' : 'false',
    };
  }
}

/** Account and region of the stack, if known. */
function placeOf(scope: Construct): { account?: string; region?: string } {
  const { account, region } = Stack.of(scope);
  return Object.fromEntries(Object.entries({ account, region }).filter(([, value]) => !Token.isUnresolved(value)));
}

const isVpc = (vpc: EbbtideProps['vpc']): vpc is AnyVpc => typeof vpc === 'object' && 'vpcId' in vpc;
