/**
 * Alarms that a person must act on, and their recipients. Each description says what to do. An alarm costs 0.10 USD a
 * month per metric, most of the cost of an idle deployment; hence few, of one metric each.
 */
import { Duration } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import * as sns from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { acknowledge } from './acknowledged.ts';
import type { DeploymentConfig } from './config.ts';
import type { EbbtideMetrics } from './metrics.ts';

export interface AlarmsProps {
  readonly config: Pick<DeploymentConfig, 'name' | 'budgetUsdPerDay' | 'alarmEmail'>;
  readonly metrics: EbbtideMetrics;
  /** Queue of messages and events that failed for good. */
  readonly deadLetters: sqs.IQueue;
}

/**
 * Age of prices from which decisions are guesses, s. Spot prices change a few times a day and are fetched every ten
 * minutes.
 */
const STALE_PRICES_S = 3600;

interface AlarmFacts {
  readonly about: string;
  readonly metric: cloudwatch.IMetric;
  readonly threshold: number;
  readonly periods?: number;
  readonly of?: number;
  /**
   * True: without data the alarm keeps its state. Default: without data it is OK, because nothing is published while
   * nothing is to do.
   */
  readonly stays?: true;
}

export class EbbtideAlarms extends Construct {
  /** Topic for further subscribers. */
  readonly topic: sns.Topic;
  readonly all: readonly cloudwatch.Alarm[];

  constructor(scope: Construct, id: string, props: AlarmsProps) {
    super(scope, id);
    const { name, alarmEmail } = props.config;
    this.topic = new sns.Topic(this, 'Topic', { displayName: `Ebbtide ${name}`, enforceSSL: true });
    acknowledge(this.topic, {
      'AwsSolutions-SNS2':
        'CloudWatch cannot publish to a topic under the AWS-managed key, and a key of its own is billed per month. Messages hold names and values of alarms.',
    });
    if (alarmEmail !== undefined) this.topic.addSubscription(new EmailSubscription(alarmEmail));
    const action = new SnsAction(this.topic);
    this.all = Object.entries(facts(props)).map(([key, alarmed]) => {
      const { about, metric, threshold, periods = 1, of = periods, stays = false } = alarmed;
      const alarm = new cloudwatch.Alarm(this, key, {
        alarmName: `${name}-${key}`,
        alarmDescription: about,
        metric,
        threshold,
        comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluationPeriods: of,
        datapointsToAlarm: periods,
        treatMissingData: stays ? cloudwatch.TreatMissingData.IGNORE : cloudwatch.TreatMissingData.NOT_BREACHING,
      });
      alarm.addAlarmAction(action);
      alarm.addOkAction(action);
      return alarm;
    });
  }
}

function facts({ config, metrics, deadLetters }: AlarmsProps): Readonly<Record<string, AlarmFacts>> {
  const sum = { statistic: cloudwatch.Stats.SUM, period: Duration.minutes(5) };
  const max = { statistic: cloudwatch.Stats.MAXIMUM, period: Duration.minutes(5) };
  return {
    'leaked-instance': {
      about:
        'EC2 has instances with the tag of this deployment that its table does not know. They are ended. Or EC2 refuses to end an instance. The log of the sweep function says which, and why. Find out what made them, lift a termination protection, or restore a right.',
      metric: metrics.metric('leakedInstances', sum),
      threshold: 1,
    },
    denied: {
      about:
        'AWS denies launches or tasks: a right, a credential or a part of the deployment is missing. The log of the act function says which; deploy again if something was deleted.',
      metric: metrics.metric('effectsDenied', sum),
      threshold: 1,
    },
    'invalid-launch': {
      about:
        'EC2 refuses launches as invalid: image and instance type do not fit, or the launch template was changed by hand. The log of the act function has EC2’s words; deploy again, or correct `families`.',
      metric: metrics.metric('launchesInvalid', sum),
      threshold: 1,
    },
    'held-jobs': {
      about:
        'No decision can be made on a job: it is held, and all others go on. `ebb status JOB` and the log of the isolate function have the error. Cancel the job, or release it when the cause is removed.',
      metric: metrics.metric('heldJobs', max),
      threshold: 1,
      // Until a person acts: the last snapshot reports that no job is held any more.
      stays: true,
    },
    'cycle-failing': {
      about:
        'The scheduling cycle fails again and again, or cannot be started: nothing new starts. See the logs of the observe and acquire functions, then that of the state machine.',
      metric: metrics.metric('cycleFaults', sum),
      threshold: 1,
      periods: 2,
      of: 3,
    },
    'dead-letters': {
      about:
        'Messages or events failed for good. docs/deploy.md, "Dead letters": look at them, then send them back or delete them.',
      metric: deadLetters.metricApproximateNumberOfMessagesVisible(max),
      threshold: 1,
    },
    'stale-prices': {
      about: 'Decisions are made on old spot prices. See the log of the prices function.',
      metric: metrics.metric('priceAge', max),
      threshold: STALE_PRICES_S,
    },
    'spend-above-budget': {
      about: `Instances cost more today than budgetUsdPerDay (${config.budgetUsdPerDay}). Cancel jobs, raise the budget, or set draining: true.`,
      metric: metrics.metric('spentToday', max),
      threshold: config.budgetUsdPerDay,
    },
  };
}
