import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from '@jest/globals';
import { CreateTableCommand, DeleteTableCommand, DynamoDBClient, waitUntilTableExists } from '@aws-sdk/client-dynamodb';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { DynamoStore, type DynamoStoreOptions } from '../../lib/drivers/aws/store/dynamo-store.ts';
import { tableDefinition } from '../../lib/drivers/aws/store/keys.ts';
import { awaitedLock } from '../../scripts/installation.ts';
import { wayToRun, type Need } from '../../scripts/localstack/install.ts';
import { folderOf, running, start, type LocalStack } from '../../scripts/localstack/server.ts';
import { describeMissing, isSet } from './required.ts';

/** The first start on a machine installs LocalStack. */
const START_WITHIN_MS = 600_000;
const REGION = 'eu-central-1';

/**
 * One LocalStack for all test files of a run, two where there is Docker: jest's main process owns it, it is ended by
 * localstack-end.mjs, or, when jest is killed, with that process.
 */
const OWNER = /jest-worker/.test(process.argv[1] ?? '') ? process.ppid : process.pid;

type Endpoints = Pick<LocalStack, 'endpoint' | 'dynamodb'>;

async function endpointsOfRun(need: Need): Promise<Endpoints> {
  const given = process.env['EBB_LOCALSTACK_ENDPOINT'];
  if (given !== undefined && given !== '') return { endpoint: given, dynamodb: given };
  const folder = folderOf(OWNER, wayToRun(need).mode);
  mkdirSync(folder, { recursive: true });
  const lock = await awaitedLock(join(folder, 'lock'));
  try {
    return running(folder) ?? (await start(folder, OWNER, need));
  } finally {
    lock.release();
  }
}

/** What tests do with LocalStack. Valid while tests run, not before. */
export class OnLocalStack {
  readonly #need: Need;
  #endpoints: Endpoints = { endpoint: '', dynamodb: '' };
  readonly #clients: { destroy(): void }[] = [];
  readonly #tables: string[] = [];

  constructor(need: Need) {
    this.#need = need;
  }

  async begin(): Promise<void> {
    this.#endpoints = await endpointsOfRun(this.#need);
  }

  get endpoint(): string {
    return this.#endpoints.endpoint;
  }

  /** Where the tables of `place` are. */
  get dynamodbEndpoint(): string {
    return this.#endpoints.dynamodb;
  }

  async end(): Promise<void> {
    const client = this.dynamodb();
    for (const TableName of this.#tables) await client.send(new DeleteTableCommand({ TableName }));
    for (const c of this.#clients) c.destroy();
  }

  dynamodb(): DynamoDBClient {
    return this.kept(new DynamoDBClient({ ...this.config(), endpoint: this.dynamodbEndpoint }));
  }

  s3(): S3Client {
    return this.kept(new S3Client({ ...this.config(), forcePathStyle: true }));
  }

  /** For clients of the SDK. */
  config(): {
    endpoint: string;
    region: string;
    credentials: { accessKeyId: string; secretAccessKey: string };
    maxAttempts: number;
  } {
    const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
    return { endpoint: this.endpoint, region: REGION, credentials, maxAttempts: 6 };
  }

  /** Ends with the tests. */
  kept<T extends { destroy(): void }>(client: T): T {
    this.#clients.push(client);
    return client;
  }

  /** A new, empty table. */
  async table(): Promise<string> {
    const name = `ebb-${randomUUID()}`;
    const client = this.dynamodb();
    await client.send(new CreateTableCommand(tableDefinition(name)));
    this.#tables.push(name);
    await waitUntilTableExists({ client, maxWaitTime: 30, minDelay: 0.1, maxDelay: 0.5 }, { TableName: name });
    return name;
  }

  /** A new, empty table, and a bucket of the same name. */
  async place(): Promise<{ readonly table: string; readonly bucket: string }> {
    const name = await this.table();
    await this.s3().send(
      new CreateBucketCommand({ Bucket: name, CreateBucketConfiguration: { LocationConstraint: REGION } }),
    );
    return { table: name, bucket: name };
  }

  store(options: Pick<DynamoStoreOptions, 'table' | 'bucket'> & Partial<DynamoStoreOptions>): DynamoStore {
    return new DynamoStore({ dynamodb: this.dynamodb(), s3: this.s3(), ...options });
  }
}

/** Describes tests on LocalStack. Where it cannot run, they are skipped with a message, or fail where they must run. */
export function describeOnLocalStack(name: string, tests: (on: OnLocalStack) => void, need: Need = 'stores'): void {
  const isGiven = isSet('EBB_LOCALSTACK_ENDPOINT');
  const way = isGiven ? null : wayToRun(need);
  const missing = way !== null && way.mode === null ? way.missing : null;
  if (missing !== null) {
    describeMissing(name, `LocalStack cannot run here: ${missing}`, () => tests(new OnLocalStack(need)));
  } else {
    describe(name, () => {
      const on = new OnLocalStack(need);
      beforeAll(() => on.begin(), START_WITHIN_MS);
      afterAll(() => on.end());
      tests(on);
    });
  }
}
