/**
 * docs/deploy.md, "Restore", on moto with the AWS CLI: the page's own commands restore the table of an engine that is
 * at work, and the engine goes on from the restored one. What the fleet makes of a table that is behind is in
 * restored-behind.test.ts; that a deployment adopts a restored table is shown on its template
 * (test/infra/data.suite.ts).
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import {
  CreateTableCommand,
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  UpdateContinuousBackupsCommand,
} from '@aws-sdk/client-dynamodb';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  ListObjectsV2Command,
  PutBucketVersioningCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { DynamoStore } from '../../../lib/drivers/aws/store/dynamo-store.ts';
import { tableDefinition } from '../../../lib/drivers/aws/store/keys.ts';
import { plus, seconds } from '../../../lib/kernel/units.ts';
import type { Store } from '../../../lib/ports/store.ts';
import { Crash, discrepancies, EngineBench, type Deed } from '../../support/engine-bench.ts';
import { mixedDeeds, mixedJobs, mixedTrace, START_MS } from '../../support/mixed-workload.ts';
import { describeOnMoto, type Moto } from '../../support/moto.ts';

const BUCKET = 'bucket';
const OLD = 'ebbtide-old';
/** As the page names it. */
const RESTORED = 'ebbtide-restored';
/** Engine time of the restore, when tasks run and some are done. */
const RESTORED_S = 1000;

/** The blocks of the page's section: the table, and the objects that it names. */
const [TABLE_COMMANDS = '', OBJECT_COMMANDS = ''] = blocks();
function blocks(): readonly string[] {
  const page = readFileSync('docs/deploy.md', 'utf8');
  const [section = ''] = page.split('### Restore\n')[1]?.split('\n## ') ?? [];
  return [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, block]) => block ?? '');
}

class Place {
  readonly #moto: Moto;
  readonly dynamodb: DynamoDBClient;
  readonly s3: S3Client;

  constructor(moto: Moto) {
    this.#moto = moto;
    this.dynamodb = new DynamoDBClient(moto.config);
    this.s3 = new S3Client({ ...moto.config, forcePathStyle: true });
  }

  async begin(): Promise<void> {
    await this.#moto.reset();
    await this.s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
    await this.dynamodb.send(new CreateTableCommand(tableDefinition(OLD)));
    const PointInTimeRecoverySpecification = { PointInTimeRecoveryEnabled: true };
    await this.dynamodb.send(new UpdateContinuousBackupsCommand({ TableName: OLD, PointInTimeRecoverySpecification }));
  }

  store(table: string): Store {
    return new DynamoStore({ dynamodb: this.dynamodb, s3: this.s3, table, bucket: BUCKET });
  }

  /** What the commands of the page print, with the names of this place. */
  async restore(): Promise<string> {
    expect(TABLE_COMMANDS).toContain(`new=${RESTORED}`);
    return this.run(TABLE_COMMANDS.replace(/^old=.*$/m, `old=${OLD}`));
  }

  async run(script: string): Promise<string> {
    const env = {
      ...process.env,
      PATH: `${this.#moto.aws.replace(/\/aws$/, '')}:${process.env['PATH'] ?? ''}`,
      AWS_ENDPOINT_URL: this.#moto.config.endpoint,
      AWS_DEFAULT_REGION: this.#moto.config.region,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_CONFIG_FILE: '/dev/null',
      AWS_PAGER: '',
    };
    const { stdout } = await promisify(execFile)('bash', ['-euc', script], { env });
    return stdout;
  }

  end(): void {
    this.dynamodb.destroy();
    this.s3.destroy();
  }
}

/** Jobs on the old table; at RESTORED_S the restore, and the engine dies and begins again on the restored table. */
async function restored(place: Place) {
  let current = place.store(OLD);
  let dies = false;
  const switching = new Proxy({} as Store, {
    get: (_, method: keyof Store) => {
      if (dies && method === 'commit') {
        dies = false;
        return async () => {
          throw new Crash('the deployment is updated');
        };
      }
      return current[method]?.bind(current);
    },
  });
  const bench = new EngineBench({ trace: mixedTrace, startMs: START_MS, vcpus: 12, store: switching });
  await bench.submit(mixedJobs());
  let said = '';
  let jobsThen: readonly string[] = [];
  const at = (s: number, act: Deed['act']): Deed => ({ atMs: plus(START_MS, seconds(s)), act });
  await bench.drive({
    deeds: [
      ...mixedDeeds(),
      at(RESTORED_S, async () => {
        said = await place.restore();
        jobsThen = (await current.jobs({}, 100, null)).items.map((j) => j.id);
        current = place.store(RESTORED);
        dies = true;
      }),
    ],
  });
  return { bench, said, jobsThen };
}

describeOnMoto('a table restored as docs/deploy.md says', (moto) => {
  const on = async (work: (place: Place) => Promise<void>): Promise<void> => {
    const place = new Place(moto);
    try {
      await place.begin();
      await work(place);
    } finally {
      place.end();
    }
  };

  it('has jobs and history, and work goes on from it: all is done, and nothing twice', async () => {
    await on(async (place) => {
      const { bench, said, jobsThen } = await restored(place);
      // What `restoredTable` takes.
      expect(said.trim().split('\n').at(-1)).toMatch(
        /^arn:aws:dynamodb:us-east-1:\d{12}:table\/ebbtide-restored\/stream\/\S+$/,
      );
      const { Table } = await place.dynamodb.send(new DescribeTableCommand({ TableName: RESTORED }));
      expect(Table).toMatchObject({
        DeletionProtectionEnabled: true,
        StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
      });
      const { TimeToLiveDescription } = await place.dynamodb.send(
        new DescribeTimeToLiveCommand({ TableName: RESTORED }),
      );
      expect(TimeToLiveDescription).toMatchObject({ AttributeName: 'ttl', TimeToLiveStatus: 'ENABLED' });
      const { ContinuousBackupsDescription: backups } = await place.dynamodb.send(
        new DescribeContinuousBackupsCommand({ TableName: RESTORED }),
      );
      expect(backups?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus).toBe('ENABLED');

      expect(jobsThen.length).toBeGreaterThan(3);
      const jobs = await bench.jobs();
      expect(jobs.map((j) => j.id)).toEqual(expect.arrayContaining([...jobsThen]));
      expect(jobs.filter((j) => j.state !== 'succeeded').map((j) => [j.id, j.state])).toEqual([
        ['j-cancelled', 'cancelled'],
      ]);
      expect([...bench.completions().values()].filter((n) => n > 1)).toEqual([]);
      expect(await discrepancies(bench)).toEqual([]);
      const old = await place.store(OLD).events(0, 10_000);
      expect((await bench.store.events(0, 10_000)).slice(0, old.length)).toEqual(old);
    });
  }, 240_000);

  it('has back the objects that were removed since, and no others', async () => {
    await on(async (place) => {
      const { s3 } = place;
      const Bucket = BUCKET;
      await s3.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Enabled' } }));
      const removed = ['commits/1', 'memory/a', 'plans/p-1', 'specs/j-1', 'specs/j-2', 'logs/1'];
      for (const Key of [...removed, 'specs/j-3']) await s3.send(new PutObjectCommand({ Bucket, Key, Body: Key }));
      for (const Key of removed) await s3.send(new DeleteObjectCommand({ Bucket, Key }));
      await place.run(OBJECT_COMMANDS.replace(/^bucket=.*$/m, `bucket=${BUCKET}`));
      const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket }));
      expect(Contents.map((o) => o.Key)).toEqual([
        'commits/1',
        'memory/a',
        'plans/p-1',
        'specs/j-1',
        'specs/j-2',
        'specs/j-3',
      ]);
    });
  }, 120_000);
});
