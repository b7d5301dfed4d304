/**
 * Data that outlives every change of code: the table and the bucket. They have their own construct, and in this
 * repository's app their own stack. So deploying, rolling back or deleting the rest never touches data.
 */
import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import * as dynamodb from 'aws-cdk-lib/aws-dynamodb';
import * as s3 from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import { ENVIRONMENTS, ORDERS } from '../drivers/aws/fleet/request-names.ts';
import { LIFE_DAYS } from '../drivers/aws/store/expiry.ts';
import {
  ARCHIVE_PREFIX,
  COMMITS_PREFIX,
  KEEP_COMMITS_DAYS,
  KEEP_SUPERSEDED_DAYS,
  SPECS_PREFIX,
  SUPERSEDED_TAG,
  tableDefinition,
} from '../drivers/aws/store/keys.ts';
import { schedulerConfig } from '../domain/config.ts';
import { invariant } from '../kernel/errors.ts';
import { acknowledge } from './acknowledged.ts';

export interface EbbtideDataProps {
  /** True: table and bucket outlive their stack. Default: true. */
  readonly keepData?: boolean;
  /** Stream ARN of a table that was restored from this one and replaces it. Default: the table made here. */
  readonly restoredTable?: string;
  /** Days that specifications are kept after their jobs end. Default: the setting's. */
  readonly historyDays?: number;
}

/** Objects that steps of one cycle pass on; useless a minute later. */
export const CYCLE_PREFIX = 'cycle/';
/** Checkpoints of tasks. */
export const CHECKPOINT_PREFIX = 'checkpoints/';
/** Marks of written checkpoints. Their events go to `observe`. */
export const KEPT_PREFIX = 'kept/';
/** Days in which overwritten and deleted objects can be recovered. */
const OLD_VERSIONS_DAYS = 7;
/** Shortest age for infrequent access, days. */
const ARCHIVE_DAYS = 30;
/** Days that orders and environments of attempts are kept; they are read within minutes. */
const NOTE_DAYS = 7;
/** Days after which an unchanged checkpoint belongs to a finished job. */
const CHECKPOINT_DAYS = 30;

export class EbbtideData extends Construct {
  /** Table in use: the one made here, or the restored one. */
  readonly table: Pick<dynamodb.ITable, 'tableName' | 'tableArn'> & { readonly tableStreamArn?: string | undefined };
  readonly bucket: s3.Bucket;

  constructor(
    scope: Construct,
    id: string,
    { keepData = true, restoredTable, historyDays = schedulerConfig.parse({}).historyDays }: EbbtideDataProps = {},
  ) {
    super(scope, id);
    const removalPolicy = keepData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY;
    const made = tableOf(this, keepData, removalPolicy);
    this.table = restoredTable === undefined ? made : adopted(this, { made, streamArn: restoredTable });
    this.bucket = bucketOf(this, removalPolicy, historyDays);
    acknowledge(this.bucket, {
      'AwsSolutions-S1':
        'Access logs need a second bucket and are billed per request. Only the functions of one deployment read and write here; CloudTrail data events can be switched on for the account.',
    });
  }
}

/** Table of lib/drivers/aws/store/keys.ts; tests create the same one. */
function tableOf(scope: Construct, keepData: boolean, removalPolicy: RemovalPolicy): dynamodb.Table {
  const definition = tableDefinition('described');
  const attribute = (name: string | undefined): dynamodb.Attribute => {
    const found = definition.AttributeDefinitions?.find((a) => a.AttributeName === name);
    const { AttributeName, AttributeType } = invariant(found, 'every key of the table is an attribute of it');
    const type = {
      S: dynamodb.AttributeType.STRING,
      N: dynamodb.AttributeType.NUMBER,
      B: dynamodb.AttributeType.BINARY,
    };
    return { name: AttributeName ?? '', type: type[AttributeType as 'S' | 'N' | 'B'] };
  };
  const keys = (
    schema: typeof definition.KeySchema,
  ): { partitionKey: dynamodb.Attribute; sortKey: dynamodb.Attribute } => {
    const named = (type: string): dynamodb.Attribute =>
      attribute(schema?.find((k) => k.KeyType === type)?.AttributeName);
    return { partitionKey: named('HASH'), sortKey: named('RANGE') };
  };
  const table = new dynamodb.Table(scope, 'Table', {
    ...keys(definition.KeySchema),
    billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    // AWS-owned key, which is free. A key of your own is billed per month and per request.
    encryption: dynamodb.TableEncryption.DEFAULT,
    timeToLiveAttribute: 'ttl',
    stream: dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
    deletionProtection: keepData,
    removalPolicy,
  });
  for (const index of definition.GlobalSecondaryIndexes ?? []) {
    table.addGlobalSecondaryIndex({
      indexName: index.IndexName ?? '',
      ...keys(index.KeySchema),
      projectionType: dynamodb.ProjectionType.KEYS_ONLY,
    });
  }
  return table;
}

/**
 * Table that was restored beside the one made here. The latter stays, to go back to. Its name and ARNs stay exported,
 * because stacks that still import them could not be updated otherwise.
 */
function adopted(
  scope: Construct,
  { made, streamArn }: { readonly made: dynamodb.Table; readonly streamArn: string },
): EbbtideData['table'] {
  const stack = Stack.of(scope);
  for (const value of [made.tableName, made.tableArn, made.tableStreamArn]) stack.exportValue(value);
  return dynamodb.Table.fromTableAttributes(scope, 'Restored', {
    tableArn: streamArn.replace(/\/stream\/.*$/, ''),
    tableStreamArn: streamArn,
  });
}

function bucketOf(scope: Construct, removalPolicy: RemovalPolicy, historyDays: number): s3.Bucket {
  const bucket = new s3.Bucket(scope, 'Blobs', {
    blockPublicAccess: s3.BlockPublicAccess.BLOCK_ALL,
    encryption: s3.BucketEncryption.S3_MANAGED,
    enforceSSL: true,
    minimumTLSVersion: 1.2,
    objectOwnership: s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
    versioned: true,
    removalPolicy,
    lifecycleRules: [
      {
        id: 'cycle',
        prefix: CYCLE_PREFIX,
        expiration: Duration.days(1),
        noncurrentVersionExpiration: Duration.days(1),
      },
      {
        id: 'superseded',
        tagFilters: { [SUPERSEDED_TAG.Key]: SUPERSEDED_TAG.Value },
        expiration: Duration.days(KEEP_SUPERSEDED_DAYS),
      },
      { id: 'commits', prefix: COMMITS_PREFIX, expiration: Duration.days(KEEP_COMMITS_DAYS) },
      // Expiry by age: S3 does not know when a job ends (docs/aws-store.md, "What ages out").
      { id: 'specs', prefix: SPECS_PREFIX, expiration: Duration.days(historyDays + LIFE_DAYS) },
      { id: 'kept', prefix: KEPT_PREFIX, expiration: Duration.days(CHECKPOINT_DAYS) },
      {
        id: 'checkpoints',
        prefix: CHECKPOINT_PREFIX,
        expiration: Duration.days(CHECKPOINT_DAYS),
        // Old versions of objects that change every minute would cost more than the instances that write them.
        noncurrentVersionExpiration: Duration.days(1),
      },
      { id: 'orders', prefix: ORDERS, expiration: Duration.days(NOTE_DAYS) },
      {
        id: 'environments',
        prefix: ENVIRONMENTS,
        // One day: the agent reads the file when the task starts.
        expiration: Duration.days(1),
        noncurrentVersionExpiration: Duration.days(1),
      },
      {
        id: 'archive',
        prefix: ARCHIVE_PREFIX,
        // Small objects stay: below 128 KiB the other class costs more, and S3 does not move them.
        transitions: [
          { storageClass: s3.StorageClass.INFREQUENT_ACCESS, transitionAfter: Duration.days(ARCHIVE_DAYS) },
        ],
      },
      {
        id: 'old-versions',
        noncurrentVersionExpiration: Duration.days(OLD_VERSIONS_DAYS),
        // Deletion markers without versions.
        expiredObjectDeleteMarker: true,
        abortIncompleteMultipartUploadAfter: Duration.days(1),
      },
    ],
  });
  // No `eventBridgeEnabled`: it would add a function of the CDK with rights over every bucket.
  const resource = bucket.node.defaultChild as s3.CfnBucket;
  resource.notificationConfiguration = { eventBridgeConfiguration: { eventBridgeEnabled: true } };
  return bucket;
}
