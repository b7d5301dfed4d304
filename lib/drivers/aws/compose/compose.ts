/**
 * Composition of a Lambda: clients and adapters from its environment. Each is made once per process, when first used,
 * so that a step without EC2 makes no client of it. Parts that need the store alone: compose-store.ts.
 */
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { EC2Client } from '@aws-sdk/client-ec2';
import { ECSClient } from '@aws-sdk/client-ecs';
import { PricingClient } from '@aws-sdk/client-pricing';
import { HeadObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { SchedulerClient } from '@aws-sdk/client-scheduler';
import { ObservationMemory } from '../../../cycle/observe/remembered.ts';
import type { AttemptId } from '../../../kernel/ids.ts';
import { once } from '../../../kernel/once.ts';
import { Carrier } from '../cycle/blobs.ts';
import { lambdaClock } from '../lambda/clock.ts';
import { CLIENT, processStore, storePartsOf, uniform, wallMs, type StoreParts } from './compose-store.ts';
import type { Deployment } from './deployment.ts';
import { limitsOf, type Environment } from './environment.ts';
import { classify, faultOf } from '../errors.ts';
import { awsFleet, type AwsFleetOnAws } from '../fleet/compose-fleet.ts';
import { keptKey } from '../fleet/request-names.ts';
import { historyNeededS } from '../market/aws-market.ts';
import { openReservations } from '../market/known-reservations.ts';
import { PriceBook } from '../market/price-book.ts';
import { priceListRegion, type PriceListParts } from '../market/fetch-on-demand-prices.ts';
import type { PriceFeedParts } from '../market/prices.ts';
import type { ReservationParts } from '../market/reservations.ts';
import { Spent } from '../metrics/spent.ts';
import { logger, measure } from '../lambda/stack.ts';
import type { Table } from '../store/dynamo-table.ts';
import { WindowEnds } from '../market/window-ends.ts';

/** Parts of a deployment. */
export interface Parts extends StoreParts {
  readonly fleet: () => AwsFleetOnAws;
  /** Null: the deployment has no one-off schedules. */
  readonly windowEnds: () => WindowEnds | null;
  readonly feed: () => PriceFeedParts;
  readonly priceList: () => PriceListParts;
  readonly reservations: () => ReservationParts;
}

export const partsOf = (environment: Environment): Parts => partsOver(storePartsOf(environment));

function partsOver(of: StoreParts): Parts {
  const { environment, table, blobs, s3, market, clock, types, zones, tokens } = of;
  const { EBB_REGION: region, EBB_BUCKET, EBB_CONFIG: config, EBB_SUBNETS: subnets } = environment;
  const at = { ...CLIENT, region };
  const ec2 = once(() => new EC2Client(at));
  const pricing = once(() => new PricingClient({ ...CLIENT, region: priceListRegion(region) }));
  const historyS = historyNeededS(config.settings.priceHistoryS);
  const fleet = once(() =>
    awsFleet({
      clients: { ec2: ec2(), ecs: new ECSClient(at), logs: new CloudWatchLogsClient(at) },
      table: table(),
      clock,
      nowMs: wallMs,
      anchor: environment.EBB_CLOCK,
      stack: config.name,
      onInvalid: (pool, detail) => {
        measure('launchesInvalid', 1);
        logger.error('a launch is invalid', { pool, detail });
      },
      onUnsupported: (pool) => new PriceBook(table()).close(pool, tokens.deployment),
      region,
      launchTemplate: environment.EBB_LAUNCH_TEMPLATE,
      launchTemplateVersion: environment.EBB_LAUNCH_TEMPLATE_VERSION,
      subnets,
      reservations: (pool) => openReservations(table(), pool, config.reservations),
      cluster: environment.EBB_CLUSTER,
      image: config.image,
      logGroup: environment.EBB_LOG_GROUP,
      executionRole: environment.EBB_EXECUTION_ROLE,
      taskRole: environment.EBB_TASK_ROLE,
      bucket: EBB_BUCKET,
      checkpointDir: () => '/ebb/checkpoint',
      keptAt: (attempt) => writtenAt(s3(), EBB_BUCKET, attempt),
      onUnreadLog: (attempt, error) => logger.warn('the end of a log cannot be read', { attempt, error }),
      logOf: async (attempt) => (await of.store().attempt(attempt))?.log ?? null,
      put: (key, content) => blobs().put(key, Buffer.from(content)),
      startDelayS: config.settings.startDelayMeanS,
      prices: async () => (await market().prices()).trace,
      rules: config.settings,
    }),
  );
  return {
    ...of,
    fleet,
    windowEnds: once(() => windowEndsOf(environment, table())),
    feed: () => ({ client: ec2(), table: table(), types, zones, historyS }),
    priceList: () => ({ client: pricing(), table: table(), region, types }),
    reservations: () => ({
      client: ec2(),
      table: table(),
      named: config.reservations,
      families: config.families,
      zones,
    }),
  };
}

function windowEndsOf(environment: Environment, table: Table): WindowEnds | null {
  const { EBB_REGION: region, EBB_SCHEDULE_GROUP: group, EBB_SCHEDULE_ROLE: role } = environment;
  const queue = environment.EBB_TRIGGER_QUEUE_ARN;
  if (group === undefined || role === undefined || queue === undefined) return null;
  // Few attempts, since nobody waits: the clock makes up for a missing schedule.
  const scheduler = new SchedulerClient({ region, maxAttempts: 2 });
  const warn = (what: string, context: object): void => logger.warn(what, { ...context });
  return new WindowEnds({ client: scheduler, table, group, role, queue, nowMs: wallMs, warn });
}

/** Time of the latest checkpoint mark of an attempt, by S3's clock; null if there is none. */
async function writtenAt(s3: S3Client, bucket: string, attempt: AttemptId): Promise<number | null> {
  try {
    const { LastModified } = await s3.send(new HeadObjectCommand({ Bucket: bucket, Key: keptKey(attempt) }));
    return LastModified?.getTime() ?? null;
  } catch (error) {
    if (faultOf(error) === 'gone') return null;
    throw classify(error, 's3 HeadObject');
  }
}

let parts: Parts | null = null;
/** Parts of this process from its environment. Throws `usage` if the environment is not a deployment's. */
export const processParts = (): Parts => (parts ??= partsOver(processStore()));

/** Deployment of this process. */
export function composeDeployment(): Deployment {
  const of = processParts();
  const { EBB_CONFIG: config, EBB_CLOCK: anchor } = of.environment;
  const windowEnds = of.windowEnds();
  const serviceWake = of.serviceWake();
  return {
    ...(windowEnds === null ? {} : { windowEnds }),
    ...(serviceWake === null ? {} : { serviceWake }),
    get store() {
      return of.store();
    },
    get fleet() {
      return of.fleet().fleet;
    },
    get wake() {
      return of.wake();
    },
    get carrier() {
      return new Carrier(of.blobs(), `${of.environment.EBB_VERSION} ${of.environment.EBB_CODE}`);
    },
    get spent() {
      return new Spent(of.table());
    },
    memory: new ObservationMemory(),
    clock: lambdaClock(anchor),
    speed: anchor?.speed ?? 1,
    nowMs: wallMs,
    random: uniform,
    config: config.settings,
    limits: limitsOf(config),
    draining: config.draining,
    market: () => of.market().prices(),
  };
}
