/**
 * What sets Ebbtide going: the clock, and one queue into which submissions, one-off schedules and the rules on events
 * of EC2, ECS and S3 write. Its consumer takes in some together and wakes the cycle once for them; only warnings go
 * past it. Everything may come twice, late or out of order: the functions see to that. What fails for good waits in a
 * queue, under an alarm.
 */
import { Duration } from 'aws-cdk-lib';
import type * as ecs from 'aws-cdk-lib/aws-ecs';
import * as events from 'aws-cdk-lib/aws-events';
import { LambdaFunction, SqsQueue } from 'aws-cdk-lib/aws-events-targets';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsDestination } from 'aws-cdk-lib/aws-lambda-destinations';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import type * as s3 from 'aws-cdk-lib/aws-s3';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { ARCHIVED } from '../drivers/aws/archive/archive-rows.ts';
import { ENDED_STATES, HOST_READY, TASK_STATES } from '../drivers/aws/fleet/event-notices.ts';
import { KEPT_PREFIX } from './data.ts';

/** Tries before a message is put aside. */
const MAX_RECEIVES = 5;
const KEPT = Duration.days(14);
/** Changes archived at once: with the images before and after some megabytes, of the six that an invocation takes. */
const ARCHIVE_BATCH = 2000;
/** More than the halvings that leave a change of a batch alone. */
const ARCHIVE_RETRIES = 15;

/**
 * Messages are gathered for so long before `observe` takes them in together: what a task's end frees stands idle
 * meanwhile. Tasks that start together are told of within it.
 */
const GATHERED = Duration.seconds(2);
/** Messages of one invocation: what follows from them is done well within the function's time. */
const BATCH = 50;

/** The one queue, and where everything goes that fails for good, so that one alarm sees it. */
export class TriggerQueue extends Construct {
  readonly queue: sqs.Queue;
  /**
   * Messages that failed again and again; events and changes of the table that could not be delivered, or failed for
   * good.
   */
  readonly deadLetters: sqs.Queue;

  constructor(scope: Construct, id: string, { consumerTimeout }: { readonly consumerTimeout: Duration }) {
    super(scope, id);
    this.deadLetters = closedQueue(this, 'DeadLetters', {});
    this.queue = closedQueue(this, 'Queue', {
      // Not six times the function's timeout, as AWS advises for queues that a Lambda reads: what cannot be done now is
      // to be tried again soon, and no invocation still has a message then.
      visibilityTimeout: Duration.seconds(2 * consumerTimeout.toSeconds()),
      deadLetterQueue: { queue: this.deadLetters, maxReceiveCount: MAX_RECEIVES },
    });
  }
}

export interface TriggersProps {
  readonly queue: sqs.IQueue;
  readonly deadLetters: sqs.IQueue;
  readonly streamArn: string;
  readonly cluster: ecs.Cluster;
  readonly bucket: s3.Bucket;
  readonly functions: {
    readonly acquire: lambda.Function;
    readonly observe: lambda.Function;
    readonly prices: lambda.Function;
    readonly sweep: lambda.Function;
    readonly archive: lambda.Function;
  };
}

/** How often prices are asked for, and the world is compared with the table. */
export const EVERY = { clock: Duration.minutes(1), prices: Duration.minutes(10), sweep: Duration.minutes(10) } as const;

/** What the clock asked for so long ago it has asked for again. */
const LATE = Duration.minutes(5);

export class Triggers extends Construct {
  readonly #deadLetters: sqs.IQueue;

  constructor(scope: Construct, id: string, props: TriggersProps) {
    super(scope, id);
    const { queue, deadLetters, cluster, bucket, functions } = props;
    this.#deadLetters = deadLetters;
    const { acquire, observe, prices, sweep } = functions;
    // Two at once, so that one slow one does not hold up the rest.
    observe.addEventSource(
      new SqsEventSource(queue, {
        batchSize: BATCH,
        maxBatchingWindow: GATHERED,
        maxConcurrency: 2,
        reportBatchItemFailures: true,
      }),
    );
    // What passes is over at the second try. What does not is put aside, under the alarm: else nobody would see that it
    // fails.
    for (const each of [acquire, prices, sweep]) this.#putAside(each, { retryAttempts: 1, maxEventAge: LATE });
    this.#putAside(observe, { retryAttempts: 2, maxEventAge: Duration.hours(1) });
    this.#archive(props);
    this.#every(EVERY.clock, 'Clock', acquire);
    this.#every(EVERY.prices, 'Prices', prices);
    this.#every(EVERY.sweep, 'Sweep', sweep);
    this.#warnings(this.#now(observe));
    const later = new SqsQueue(queue, { deadLetterQueue: deadLetters });
    this.#changes(cluster, later);
    this.#on('CheckpointKept', later, {
      source: ['aws.s3'],
      detailType: ['Object Created'],
      detail: { bucket: { name: [bucket.bucketName] }, object: { key: [{ prefix: KEPT_PREFIX }] } },
    });
  }

  #putAside(from: lambda.Function, how: { readonly retryAttempts: number; readonly maxEventAge: Duration }): void {
    from.configureAsyncInvoke({ ...how, onFailure: new SqsDestination(this.#deadLetters) });
  }

  /** Nobody waits for the archive: five minutes of changes make few, larger objects. Reading a stream costs nothing. */
  #archive({ streamArn, functions, deadLetters }: TriggersProps): void {
    new lambda.EventSourceMapping(this, 'Archive', {
      target: functions.archive,
      eventSourceArn: streamArn,
      startingPosition: lambda.StartingPosition.TRIM_HORIZON,
      batchSize: ARCHIVE_BATCH,
      maxBatchingWindow: Duration.minutes(5),
      filters: ARCHIVED.map((filter) => lambda.FilterCriteria.filter({ ...filter })),
      reportBatchItemFailures: true,
      bisectBatchOnError: true,
      retryAttempts: ARCHIVE_RETRIES,
      onFailure: { bind: () => ({ destination: deadLetters.queueArn }) },
    });
  }

  #every(period: Duration, id: string, target: lambda.Function): void {
    const deadLetterQueue = this.#deadLetters;
    new events.Rule(this, id, {
      description: `Ebbtide: ${id.toLowerCase()}, every ${period.toHumanString()}`,
      schedule: events.Schedule.rate(period),
      targets: [new LambdaFunction(target, { retryAttempts: 0, deadLetterQueue })],
    });
  }

  /**
   * Two minutes are left: warnings wait for no others. EC2's events name the instance only, so all of the region come.
   */
  #warnings(target: events.IRuleTarget): void {
    this.#on('SpotWarning', target, { source: ['aws.ec2'], detailType: ['EC2 Spot Instance Interruption Warning'] });
    this.#on('Rebalance', target, { source: ['aws.ec2'], detailType: ['EC2 Instance Rebalance Recommendation'] });
  }

  /**
   * Only those changes that say anything (lib/drivers/aws/fleet/event-notices.ts). `observe` drops what is not ours.
   * Patterns: EC2 User Guide, "Automate Amazon EC2 with EventBridge"; ECS Developer Guide, "Amazon ECS events".
   */
  #changes(cluster: ecs.Cluster, target: events.IRuleTarget): void {
    const clusterArn = [cluster.clusterArn];
    this.#on('InstanceState', target, {
      source: ['aws.ec2'],
      detailType: ['EC2 Instance State-change Notification'],
      detail: { state: [...ENDED_STATES] },
    });
    this.#on('TaskState', target, {
      source: ['aws.ecs'],
      detailType: ['ECS Task State Change'],
      detail: { clusterArn, lastStatus: [...TASK_STATES] },
    });
    this.#on('ContainerInstanceState', target, {
      source: ['aws.ecs'],
      detailType: ['ECS Container Instance State Change'],
      detail: {
        clusterArn,
        status: [HOST_READY],
        agentConnected: [true],
        runningTasksCount: [0],
        pendingTasksCount: [0],
      },
    });
  }

  #now(target: lambda.Function): events.IRuleTarget {
    return new LambdaFunction(target, {
      retryAttempts: 20,
      maxEventAge: Duration.hours(1),
      deadLetterQueue: this.#deadLetters,
    });
  }

  #on(id: string, target: events.IRuleTarget, eventPattern: events.EventPattern): void {
    new events.Rule(this, id, {
      description: `Ebbtide: ${eventPattern.detailType?.join() ?? ''}`,
      eventPattern,
      targets: [target],
    });
  }
}

const closedQueue = (scope: Construct, id: string, props: sqs.QueueProps): sqs.Queue =>
  new sqs.Queue(scope, id, {
    encryption: sqs.QueueEncryption.SQS_MANAGED,
    enforceSSL: true,
    retentionPeriod: KEPT,
    ...props,
  });
