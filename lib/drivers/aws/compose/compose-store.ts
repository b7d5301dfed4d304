/**
 * Common part of the compositions of all Lambdas: store, prices and the cycle's wake-up. Clients of EC2 and ECS are not
 * loaded: they would take most of the start of a function that only accepts jobs.
 */
import { randomInt } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import type { Clock } from '../../../kernel/clock.ts';
import { once } from '../../../kernel/once.ts';
import type { Uniform } from '../../../kernel/random.ts';
import { lambdaClock } from '../lambda/clock.ts';
import { readEnvironment, type Environment } from './environment.ts';
import { tokenOf } from '../fleet/request-names.ts';
import { AwsMarket, historyNeededS } from '../market/aws-market.ts';
import { PriceBook, typesOf } from '../market/price-book.ts';
import { remainingMs } from '../lambda/remaining.ts';
import { Blobs } from '../store/blobs.ts';
import { DynamoStore } from '../store/dynamo-store.ts';
import { Table } from '../store/dynamo-table.ts';
import { startServe } from '../cycle/start-serve.ts';
import { Wake } from '../cycle/wake.ts';
import { SERVICE_WAKE } from '../store/keys.ts';
import { ServiceAddresses } from '../traffic/service-addresses.ts';
import { DEFAULT_RETENTION } from '../../stores/retention.ts';

/** Tries of one call. With the SDK's pauses they take about ten seconds, less than any time-out here. */
const MAX_ATTEMPTS = 6;
export const CLIENT = { maxAttempts: MAX_ATTEMPTS } as const;

export const wallMs = (): number => Date.now();
/** Uniform number from 48 bits of a secure source. */
export const uniform: Uniform = () => randomInt(2 ** 48 - 1) / (2 ** 48 - 1);

export interface StoreParts {
  readonly environment: Environment;
  readonly table: () => Table;
  readonly blobs: () => Blobs;
  readonly s3: () => S3Client;
  readonly store: () => DynamoStore;
  readonly market: () => AwsMarket;
  readonly wake: () => Wake;
  /** Starts of the controller of services. Null: the deployment has no services. */
  readonly serviceWake: () => Wake | null;
  /** Addresses of services; null: the deployment has none. */
  readonly addresses: () => ServiceAddresses | null;
  readonly clock: Clock;
  /** Instance types and zones that may be bought. */
  readonly types: readonly string[];
  readonly zones: readonly string[];
  /** `deployment` changes with the version, families or zones. */
  readonly tokens: { readonly deployment: string };
}

export function storePartsOf(environment: Environment): StoreParts {
  const { EBB_REGION: region, EBB_TABLE, EBB_BUCKET, EBB_CONFIG: config } = environment;
  const at = { ...CLIENT, region };
  const dynamodb = once(() => new DynamoDBClient(at));
  // Path-style addresses: a test server has no names for buckets.
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
    ...servicesOf(environment, table),
    clock,
    types,
    zones,
    tokens: { deployment },
  };
}

/** Longer than a round of the controller of services, ms. */
const SERVICES_STALE_MS = 2 * 60_000;

function servicesOf(environment: Environment, table: () => Table): Pick<StoreParts, 'serviceWake' | 'addresses'> {
  const { EBB_REGION: region, EBB_CONFIG: config, EBB_LOAD_BALANCER_DNS: dns, EBB_CERTIFICATE } = environment;
  const { EBB_SERVE_FUNCTION } = environment;
  if (dns === undefined) return { serviceWake: () => null, addresses: () => null };
  const start = (execution: string): Promise<void> => startServe({ ...CLIENT, region }, EBB_SERVE_FUNCTION, execution);
  const of = { key: SERVICE_WAKE, staleMs: SERVICES_STALE_MS, nowMs: wallMs, random: uniform, start };
  const isSecure = EBB_CERTIFICATE !== undefined;
  return {
    serviceWake: once(() => new Wake({ ...of, table: table() })),
    addresses: once(() => new ServiceAddresses({ table: table(), stack: config.name, dns, isSecure })),
  };
}

let parts: StoreParts | null = null;
/** Parts of this process from its environment. Throws `usage` if the environment is not a deployment's. */
export const processStore = (): StoreParts => (parts ??= storePartsOf(readEnvironment(process.env)));
