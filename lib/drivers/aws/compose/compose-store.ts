/**
 * The part of a Lambda's composition that all of them have: store, prices and the cycle's wake-up. Loads nothing of EC2
 * and ECS, which would be most of the start of a function that only takes jobs.
 */
import { randomInt } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../../../kernel/clock.ts';
import { once } from '../../../kernel/once.ts';
import type { Uniform } from '../../../kernel/random.ts';
import { lambdaClock } from '../lambda/clock.ts';
import { readEnvironment, type Environment } from './environment.ts';
import { tokenOf } from '../fleet/marks.ts';
import { AwsMarket, historyNeededS } from '../market/aws-market.ts';
import { PriceBook, typesOf } from '../market/price-book.ts';
import { remainingMs } from '../lambda/remaining.ts';
import { Blobs } from '../store/blobs.ts';
import { DynamoStore } from '../store/dynamo-store.ts';
import { Table } from '../store/dynamo-table.ts';
import { Wake } from '../cycle/wake.ts';
import { DEFAULT_RETENTION } from '../../stores/retention.ts';

/** Tries of one call; with the SDK's pauses about ten seconds, less than any Lambda here may last. */
const MAX_ATTEMPTS = 6;
export const CLIENT = { maxAttempts: MAX_ATTEMPTS } as const;

export const wallMs = (): number => Date.now();
/** 48 bits of a secure source. */
export const uniform: Uniform = () => randomInt(2 ** 48 - 1) / (2 ** 48 - 1);

export interface StoreParts {
  readonly environment: Environment;
  readonly table: () => Table;
  readonly blobs: () => Blobs;
  readonly s3: () => S3Client;
  readonly store: () => DynamoStore;
  readonly market: () => AwsMarket;
  readonly wake: () => Wake;
  readonly clock: Clock;
  /** Of instances that may be bought, and where. */
  readonly types: readonly string[];
  readonly zones: readonly string[];
  /** `deployment`: another one when version, families or zones are. */
  readonly tokens: { readonly deployment: string };
}

export function storePartsOf(environment: Environment): StoreParts {
  const { EBB_REGION: region, EBB_TABLE, EBB_BUCKET, EBB_CONFIG: config } = environment;
  const at = { ...CLIENT, region };
  const dynamodb = once(() => new DynamoDBClient(at));
  // A stand-in at an address of its own has no names for buckets.
  const forcePathStyle =
    process.env['AWS_ENDPOINT_URL'] !== undefined || process.env['AWS_ENDPOINT_URL_S3'] !== undefined;
  const s3 = once(() => new S3Client({ ...at, forcePathStyle }));
  const table = once(() => new Table({ client: dynamodb(), name: EBB_TABLE, remainingMs }));
  const clock = lambdaClock(environment.EBB_CLOCK);
  const types = typesOf(config.families);
  const zones = [...environment.EBB_SUBNETS.keys()];
  const deployment = tokenOf('deployment', environment.EBB_VERSION, ...types, ...zones);
  const historyS = historyNeededS(config.settings.priceHistoryS);
  const { reservations } = config;
  const startCycle = async (execution: string): Promise<void> => {
    const { startExecution } = await import('../cycle/executions.ts');
    await startExecution(at, environment.EBB_STATE_MACHINE, execution);
  };
  return {
    environment,
    table,
    blobs: once(() => new Blobs({ client: s3(), bucket: EBB_BUCKET })),
    s3,
    store: once(
      () =>
        new DynamoStore({
          dynamodb: dynamodb(),
          s3: s3(),
          table: EBB_TABLE,
          bucket: EBB_BUCKET,
          retention: { ...DEFAULT_RETENTION, historyDays: config.settings.historyDays },
          remainingMs,
        }),
    ),
    market: once(
      () =>
        new AwsMarket({
          book: new PriceBook(table()),
          historyS,
          zones,
          types,
          reservations,
          deployment,
          now: () => clock.now(),
        }),
    ),
    wake: once(() => new Wake({ table: table(), nowMs: wallMs, random: uniform, start: startCycle })),
    clock,
    types,
    zones,
    tokens: { deployment },
  };
}

let parts: StoreParts | null = null;
/** Those of this process, as its environment says. Throws `usage` for an environment that is not a deployment's. */
export const processStore = (): StoreParts => (parts ??= storePartsOf(readEnvironment(process.env)));
