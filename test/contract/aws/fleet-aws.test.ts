import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { CreateLaunchTemplateCommand, EC2Client } from '@aws-sdk/client-ec2';
import { CreateClusterCommand, ECSClient } from '@aws-sdk/client-ecs';
import { lambdaClock } from '../../../lib/drivers/aws/lambda/clock.ts';
import { awsFleet, type AwsFleetOnAws } from '../../../lib/drivers/aws/fleet/compose-fleet.ts';
import { fleetEvent, noticeOf } from '../../../lib/drivers/aws/fleet/event-notices.ts';
import { keptKey } from '../../../lib/drivers/aws/fleet/request-names.ts';
import { Table } from '../../../lib/drivers/aws/store/dynamo-table.ts';
import type { Observation } from '../../../lib/domain/observation.ts';
import { attemptId, type AttemptId } from '../../../lib/kernel/ids.ts';
import { plus, raw, seconds, type EpochMs } from '../../../lib/kernel/units.ts';
import { newestFileMs } from '../../../lib/drivers/local/fleet/kept-work.ts';
import { startAwsDouble, type AwsDouble } from '../../../scripts/aws-double/double.ts';
import type { KnobSettings } from '../../../scripts/aws-double/knobs.ts';
import { programOf, SPEED } from '../../support/local-fleet.ts';
import { DynamoDouble } from '../../doubles/dynamodb/table.ts';
import { describeOnLocalStack } from '../../support/localstack.ts';
import { fleetContract, trace, type FleetDriver, type Program } from '../fleet.ts';

const REGION = 'us-east-1';
const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 'test' };
const USER_DATA = Buffer.from('#!/bin/sh\necho ECS_CLUSTER=ebb >> /etc/ecs/ecs.config\n').toString('base64');
/** Stratus 3.3.1: no instance of the market is up sooner. */
const SOONEST_START_S = 30;

interface BenchOptions {
  readonly startMs: EpochMs;
  readonly slower: number;
  readonly knobs: KnobSettings;
}

/**
 * The fleet on the AWS double, with the part of the observing Lambda: the double's events go into it. S3 and the
 * image's entrypoint are played here: what a task writes into its checkpoint's folder is told as the event of its mark.
 */
class AwsFleetBench implements FleetDriver {
  readonly fleet: AwsFleetOnAws['fleet'];
  readonly #double: AwsDouble;
  readonly #on: AwsFleetOnAws;
  readonly #dir: string;
  readonly #speed: number;
  readonly #clients: readonly { destroy(): void }[];
  readonly #saved = new Map<AttemptId, number>();
  readonly #faults: unknown[] = [];

  private constructor(of: {
    readonly double: AwsDouble;
    readonly on: AwsFleetOnAws;
    readonly dir: string;
    readonly clients: readonly { destroy(): void }[];
    readonly speed: number;
  }) {
    this.#speed = of.speed;
    this.#double = of.double;
    this.#on = of.on;
    this.#dir = of.dir;
    this.#clients = of.clients;
    this.fleet = of.on.fleet;
  }

  static async make(table: Table, of: BenchOptions): Promise<AwsFleetBench> {
    const { startMs, slower, knobs } = of;
    const speed = SPEED / slower;
    const dir = realpathSync(mkdtempSync(join(tmpdir(), 'ebb-aws-fleet-')));
    let bench: AwsFleetBench | null = null;
    const double = await startAwsDouble({
      trace,
      from: startMs,
      speed,
      region: REGION,
      // Two minutes are 1.2 s at this speed: what answers the warning has calls to make, which take no less time than
      // they do.
      limits: { killAfterS: 1, warningFloorS: 5 },
      knobs,
      deliver: async (events) => {
        for (const event of events) await bench?.take(event);
      },
    });
    const at = { endpoint: double.url, region: REGION, credentials: CREDENTIALS, maxAttempts: 5 };
    const ec2 = new EC2Client(at);
    const ecs = new ECSClient(at);
    const logs = new CloudWatchLogsClient(at);
    await ecs.send(new CreateClusterCommand({ clusterName: 'ebb' }));
    const { LaunchTemplate } = await ec2.send(
      new CreateLaunchTemplateCommand({
        LaunchTemplateName: 'ebb-hosts',
        LaunchTemplateData: { ImageId: 'ami-0123456789abcdef0', UserData: USER_DATA },
      }),
    );
    const checkpoints = join(dir, 'checkpoints');
    mkdirSync(checkpoints);
    const on = awsFleet({
      clients: { ec2, ecs, logs },
      table,
      clock: lambdaClock(double.anchor),
      nowMs: () => Date.now(),
      anchor: double.anchor,
      stack: 'contract',
      region: REGION,
      launchTemplate: LaunchTemplate?.LaunchTemplateId ?? '',
      launchTemplateVersion: '1',
      subnets: new Map(double.subnets.map((s) => [s.zone, s.id])),
      reservations: async (pool) => [double.reservations.get(pool)].filter((id) => id !== undefined),
      cluster: 'ebb',
      image: 'debian:stable-slim',
      logGroup: 'tasks',
      executionRole: 'arn:aws:iam::000000000000:role/execution',
      taskRole: 'arn:aws:iam::000000000000:role/task',
      bucket: 'bucket',
      checkpointDir: (task) => join(checkpoints, `${task.index}.${task.number}`),
      keptAt: async (attempt) => newestFileMs(join(checkpoints, attempt)),
      startDelayS: SOONEST_START_S,
      prices: async () => trace,
      rules: { billing: 'per-second', refundRule: 'first-hour' },
    });
    bench = new AwsFleetBench({ double, on, dir, speed, clients: [ec2, ecs, logs] });
    return bench;
  }

  async take(event: unknown): Promise<void> {
    const parsed = fleetEvent.parse(event);
    const notice = noticeOf(parsed);
    if (notice === null) return;
    try {
      await this.#on.watch.notice(notice);
    } catch (error) {
      this.#faults.push(error);
      throw error;
    }
  }

  now(): EpochMs {
    return this.#double.now();
  }

  program(p: Program) {
    return programOf(p, this.#dir, this.#speed);
  }

  async until(
    what: string,
    done: (seen: readonly Observation[]) => boolean,
    withinS = 1000,
  ): Promise<readonly Observation[]> {
    const end = plus(this.now(), seconds(withinS + 20 * this.#speed));
    for (;;) {
      await this.#tellCheckpoints();
      const seen = await this.fleet.observe(new Map());
      if (done(seen)) return seen;
      if (raw(this.now()) > raw(end)) {
        const events = this.#double.events.map((e) => `${e.time} ${e['detail-type']} ${JSON.stringify(e.detail)}`);
        throw new Error(
          `no ${what} in: ${JSON.stringify(seen)}\nfaults: ${this.#faults.map(String).join('\n')}\n${events.join('\n')}`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, 120));
    }
  }

  async #tellCheckpoints(): Promise<void> {
    const folder = join(this.#dir, 'checkpoints');
    for (const name of readdirSync(folder)) {
      const attempt = attemptId(name);
      const newest = newestFileMs(join(folder, name));
      if (newest === null || newest === this.#saved.get(attempt)) continue;
      this.#saved.set(attempt, newest);
      await this.take({
        id: `kept-${name}-${newest}`,
        source: 'aws.s3',
        'detail-type': 'Object Created',
        time: new Date(newest).toISOString(),
        detail: { object: { key: keptKey(attempt) } },
      });
    }
  }

  async close(): Promise<void> {
    await this.#double.close();
    for (const client of this.#clients) client.destroy();
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

fleetContract('EC2 and ECS, events doubled and out of order, on doubles alone', {
  toleranceS: Infinity,
  hasReserved: true,
  make: (startMs, slower) =>
    AwsFleetBench.make(new Table({ client: new DynamoDouble().client(), name: 'table' }), {
      startMs,
      slower,
      knobs: { events: { duplicate: 0.3, reorderWindow: 3 } },
    }),
});

describeOnLocalStack('the fleet on AWS', (on) => {
  fleetContract('EC2 and ECS on the double, DynamoDB on LocalStack', {
    toleranceS: Infinity,
    hasReserved: true,
    make: async (startMs, slower) => {
      const table = new Table({ client: on.dynamodb(), name: await on.table() });
      return AwsFleetBench.make(table, { startMs, slower, knobs: {} });
    },
  });
});
