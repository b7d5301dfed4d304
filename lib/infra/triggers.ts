/**
 * Triggers of Ebbtide: the clock, and one queue for submissions, one-off schedules and events of EC2, ECS and S3. The
 * queue's consumer takes several messages together and wakes the cycle once. Only warnings bypass the queue.
 * Messages may come twice, late or out of order; the functions handle that. What fails for good waits in a queue with
 * an alarm.
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

/** Tries before a message is set aside. */
const MAX_RECEIVES = 5;
const KEPT = Duration.days(14);
/**
 * Changes per archive batch. With images before and after they take some megabytes of the six that an invocation
 * accepts.
 */
const ARCHIVE_BATCH = 2000;
/** Tries of an archive batch: more than the halvings that isolate one change. */
const ARCHIVE_RETRIES = 15;

/**
 * Time in which messages are gathered for one invocation of `observe`. Capacity freed by a task's end idles meanwhile.
 * Tasks that start together report within it.
 */
const GATHERED = Duration.seconds(2);
/** Messages per invocation: their duties fit well into the function's time-out. */
const BATCH = 50;

/** The trigger queue, and the queue of everything that failed for good, so that one alarm covers all. */
export class TriggerQueue extends Construct {
  readonly queue: sqs.Queue;
  /** Messages that failed repeatedly; events and changes of the table that were undeliverable or failed for good. */
  readonly deadLetters: sqs.Queue;

  constructor(scope: Construct, id: string, { consumerTimeout }: { readonly consumerTimeout: Duration }) {
    super(scope, id);
    this.deadLetters = closedQueue(this, 'DeadLetters', {});
    this.queue = closedQueue(this, 'Queue', {
      // Twice the time-out, not six times as AWS advises for queues of a Lambda. Failed messages should be retried
      // soon, and no invocation still has them then.
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
    /** Where services are turned on. */
    readonly serve?: lambda.Function;
  };
}

/** Periods of the clock, of price fetches, and of the sweep. */
export const EVERY = { clock: Duration.minutes(1), prices: Duration.minutes(10), sweep: Duration.minutes(10) } as const;

/** Age from which a tick is useless, since a later one has replaced it. */
const LATE = Duration.minutes(5);

export class Triggers extends Construct {
  readonly #deadLetters: sqs.IQueue;

  constructor(scope: Construct, id: string, props: TriggersProps) {
    super(scope, id);
    const { queue, deadLetters, cluster, bucket, functions } = props;
    this.#deadLetters = deadLetters;
    const { acquire, observe, prices, sweep } = functions;
    // Two parallel consumers, so that a slow one does not delay the rest.
    observe.addEventSource(
      new SqsEventSource(queue, {
        batchSize: BATCH,
        maxBatchingWindow: GATHERED,
        maxConcurrency: 2,
        reportBatchItemFailures: true,
      }),
    );
    // One retry for passing faults. Other failures are set aside and raise the alarm.
    for (const each of [acquire, prices, sweep]) this.#putAside(each, { retryAttempts: 1, maxEventAge: LATE });
    this.#putAside(observe, { retryAttempts: 2, maxEventAge: Duration.hours(1) });
    // No retry: the clock starts the next execution within a minute.
    if (functions.serve !== undefined) this.#putAside(functions.serve, { retryAttempts: 0, maxEventAge: LATE });
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

  /**
   * Archive with long batches: five minutes of changes give few, larger objects, and nobody waits. Reading a stream is
   * free.
   */
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
   * Warnings, delivered at once: two minutes are left. EC2's events name only the instance, so those of the whole
   * region come.
   */
  #warnings(target: events.IRuleTarget): void {
    this.#on('SpotWarning', target, { source: ['aws.ec2'], detailType: ['EC2 Spot Instance Interruption Warning'] });
    this.#on('Rebalance', target, { source: ['aws.ec2'], detailType: ['EC2 Instance Rebalance Recommendation'] });
  }

  /**
   * Meaningful changes only (lib/drivers/aws/fleet/event-notices.ts). `observe` drops those of other instances.
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
