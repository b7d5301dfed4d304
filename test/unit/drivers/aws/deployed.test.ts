import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateLaunchTemplateCommand, EC2Client } from '@aws-sdk/client-ec2';
import { CreateClusterCommand, ECSClient } from '@aws-sdk/client-ecs';
import { CreateStateMachineCommand, SFNClient } from '@aws-sdk/client-sfn';
import { CreateQueueCommand, DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { textAt } from '../../../../lib/drivers/aws/store/codec.ts';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { poolKey, type PurchaseOption } from '../../../../lib/domain/pool.ts';
import { provideBackend } from '../../../../lib/api/provided-backend.ts';
import { dispatcher, type Dispatch } from '../../../../lib/api/dispatch.ts';
import type { Swept } from '../../../../lib/drivers/aws/fleet/sweep.ts';
import { START_MS, trace } from '../../../contract/fleet.ts';
import { startAwsDouble, type AwsDouble } from '../../../../scripts/aws-double/double.ts';
import { NEEDS, rightsOnPage } from '../../../support/rights.ts';
import { describeOnLocalStack } from '../../../support/localstack.ts';
import { invoke } from './lambda.ts';
import { lambdaEnvironment } from '../../../support/lambda-environment.ts';
import { execute } from '../../../support/state-machine.ts';

/** The page has the rights of a deployment without reservations. */
const WITH_RESERVATIONS: Readonly<Record<string, string>> = { prices: 'ec2:DescribeCapacityReservations' };
const RESERVED = poolKey('c5.large', 'calm', 'reserved');
/** Market seconds per wall second. */
const SPEED = 60;
const REGION = 'eu-central-1';
const USER_DATA = Buffer.from('#!/bin/sh\necho ECS_CLUSTER=ebb >> /etc/ecs/ecs.config\n').toString('base64');
const byClock = (aheadMs = 0) => ({
  source: 'aws.events',
  'detail-type': 'Scheduled Event',
  time: new Date(Date.now() + aheadMs).toISOString(),
});

type Name =
  | 'acquire'
  | 'observe'
  | 'prices'
  | 'sweep'
  | 'snapshot'
  | 'estimate'
  | 'forecast'
  | 'solve'
  | 'isolate'
  | 'record'
  | 'act'
  | 'confirm';

/**
 * Every deployed handler, composed from its environment alone, with LocalStack for DynamoDB, S3, SQS and Step Functions
 * and the double for EC2, ECS and CloudWatch Logs. The test is API Gateway, EventBridge and the state machine: it calls
 * one after another what those would call.
 */
const calling = new AsyncLocalStorage<Name>();

describeOnLocalStack('the deployed handlers', (on) => {
  const handlers = new Map<Name, unknown>();
  let double: AwsDouble;
  let table: Table;
  let sqs: SQSClient;
  let queue: string;
  let dispatch: Dispatch;
  const before = { ...process.env };
  const faults: string[] = [];

  const made = new Map<string, Set<string>>();
  const call = <T>(name: Name, event: unknown): Promise<T> =>
    calling.run(name, () => invoke<T>(handlers.get(name), event));

  beforeAll(async () => {
    jest.spyOn(process.stdout, 'write').mockImplementation(() => true);
    // Every client of the SDK sends by the same method.
    const base = Object.getPrototypeOf(EC2Client.prototype) as { send: (this: unknown, command: object) => unknown };
    const send = base.send;
    jest.spyOn(base, 'send').mockImplementation(function (this: unknown, ...args: [object]) {
      const caller = calling.getStore();
      const command = args[0].constructor.name.replace(/Command$/, '');
      if (caller !== undefined) made.set(caller, (made.get(caller) ?? new Set()).add(command));
      return send.apply(this, args);
    });
    const place = await on.place();
    const client = on.dynamodb();
    double = await startAwsDouble({
      trace,
      from: START_MS,
      speed: SPEED,
      region: REGION,
      limits: { killAfterS: 1 },
      deliver: async (events) => {
        for (const event of events) {
          await call('observe', event).catch((error: unknown) => {
            faults.push(String(error));
            throw error;
          });
        }
      },
    });
    Object.assign(process.env, {
      AWS_ENDPOINT_URL: on.endpoint,
      AWS_ENDPOINT_URL_DYNAMODB: on.dynamodbEndpoint,
      AWS_ENDPOINT_URL_EC2: double.url,
      AWS_ENDPOINT_URL_ECS: double.url,
      AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: double.url,
      AWS_ENDPOINT_URL_PRICING: double.url,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_REGION: REGION,
    });
    table = new Table({ client, name: place.table });
    sqs = new SQSClient({ region: REGION });
    queue = (await sqs.send(new CreateQueueCommand({ QueueName: place.table }))).QueueUrl ?? '';
    const ec2 = new EC2Client({ region: REGION });
    const ecs = new ECSClient({ region: REGION });
    await ecs.send(new CreateClusterCommand({ clusterName: 'ebb' }));
    const { LaunchTemplate } = await ec2.send(
      new CreateLaunchTemplateCommand({
        LaunchTemplateName: 'ebb-hosts',
        LaunchTemplateData: { ImageId: 'ami-0123456789abcdef0', UserData: USER_DATA },
      }),
    );
    const machine = await new SFNClient({ region: REGION, disableHostPrefix: true }).send(
      new CreateStateMachineCommand({
        name: place.table,
        type: 'EXPRESS',
        roleArn: 'arn:aws:iam::000000000000:role/cycle',
        definition: JSON.stringify({ StartAt: 'Done', States: { Done: { Type: 'Succeed' } } }),
      }),
    );
    const environment = lambdaEnvironment({
      EBB_TABLE: place.table,
      EBB_BUCKET: place.bucket,
      EBB_LAUNCH_TEMPLATE: LaunchTemplate?.LaunchTemplateId ?? '',
      EBB_LAUNCH_TEMPLATE_VERSION: '1',
      EBB_SUBNETS: double.subnets.map((s) => `${s.zone}=${s.id}`).join(','),
      EBB_STATE_MACHINE: machine.stateMachineArn ?? '',
      EBB_TRIGGER_QUEUE: queue,
      EBB_REGION: REGION,
      EBB_CLOCK: JSON.stringify(double.anchor),
      config: {
        vcpus: 32,
        settings: { preset: 'greedy', priceHistoryS: 86_400 },
        reservations: [double.reservations.get(RESERVED) ?? ''],
      },
    });
    // Of this machine's own settings (EBB_DATA_DIR, ...) a Lambda has none, and would refuse them.
    for (const key of Object.keys(process.env)) if (key.startsWith('EBB_')) Reflect.deleteProperty(process.env, key);
    Object.assign(process.env, environment);
    const names: readonly Name[] = [
      'acquire',
      'observe',
      'prices',
      'sweep',
      'snapshot',
      'estimate',
      'forecast',
      'solve',
      'isolate',
      'record',
      'act',
      'confirm',
    ];
    for (const name of names) {
      const module = (await import(`../../../../lambdas/${name}/handler.ts`)) as { handler: unknown };
      handlers.set(name, module.handler);
    }
    const { handler: intake } = await import('../../../../lambdas/intake/handler.ts');
    const { handler: api } = await import('../../../../lambdas/api/handler.ts');
    dispatch = dispatcher({ intake, api });
  }, 60_000);

  afterAll(async () => {
    await double.close();
    sqs.destroy();
    provideBackend(null);
    process.env = before;
    jest.restoreAllMocks();
  });

  const request = async (method: string, path: string, body?: unknown) => {
    const answer = await dispatch({
      method,
      path,
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: JSON.parse(answer.body) as Record<string, unknown> };
  };

  /** Messages of the queue go to their Lambda, the clock ticks, executions that were started run. */
  async function round(): Promise<void> {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({ QueueUrl: queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 0 }),
    );
    if (Messages.length > 0) {
      const attributes = { ApproximateReceiveCount: '1' };
      const Records = Messages.map((m) => ({
        eventSource: 'aws:sqs',
        messageId: m.MessageId,
        body: m.Body,
        attributes,
      }));
      expect(await call('observe', { Records })).toEqual({ batchItemFailures: [] });
      for (const { ReceiptHandle } of Messages) {
        await sqs.send(new DeleteMessageCommand({ QueueUrl: queue, ReceiptHandle }));
      }
    }
    await call('acquire', byClock());
    const execution = textAt(await table.get({ pk: 'WAKE', sk: 'WAKE' }), 'running');
    if (execution !== '') await execute(execution, call);
  }

  async function until(what: string, done: () => Promise<boolean>, each: () => Promise<unknown>): Promise<void> {
    for (const end = Date.now() + 40_000; Date.now() < end; await sleep(150)) {
      await each();
      if (await done()) return;
    }
    const { processParts } = await import('../../../../lib/drivers/aws/compose/compose.ts');
    const events = (await processParts().store().events(0, 200)).map((e) => e.text);
    const [job] = (await processParts().store().jobs({}, 1, null)).items;
    const why = job === undefined ? null : await processParts().store().explanation(job.id);
    const told = double.events.map((e) => `${e.time} ${e['detail-type']} ${JSON.stringify(e.detail)}`);
    const wake = await table.get({ pk: 'WAKE', sk: 'WAKE' });
    const clue = { faults, why, job, wake, calls: double.calls.length, events, told };
    throw new Error(`no ${what}: ${JSON.stringify(clue, null, 1)}`);
  }

  const stateOf = async (job: string): Promise<string> =>
    String((await request('GET', `/api/jobs/${job}`)).body['state']);

  const submit = async (name: string, command: string, purchaseOptions: PurchaseOption): Promise<string> => {
    const { status, body } = await request('POST', '/api/jobs', {
      name,
      class: 'best-effort',
      stages: [
        {
          name: 'main',
          command,
          tasks: 2,
          workdir: '/tmp',
          resources: { cpu: 0.5, memory: '128MiB' },
          expectedRuntime: '2m',
          constraints: { purchaseOptions },
        },
      ],
    });
    if (status !== 201) throw new Error(JSON.stringify(body));
    return (body as unknown as { job: { id: string } }).job.id;
  };

  const live = async (): Promise<number> => ((await call<Swept>('sweep', byClock())).isWork ? 1 : 0);

  it('fetch prices, take a job, buy for it, run it and give everything back', async () => {
    const { changes } = await call<{ changes: number }>('prices', byClock());
    // Three zones have a price: the day before's and today's beginning, and what changed.
    expect(changes).toBeGreaterThanOrEqual(3);
    const id = await submit('hello', 'echo hello from $EBB_TASK_INDEX; sleep 1', 'spot');
    await until('end of the job', async () => (await stateOf(id)) === 'succeeded', round);
    const { body } = await request('GET', `/api/jobs/${id}/logs?task=0`);
    expect(JSON.stringify(body)).toContain('hello from 0');
    await until('end of the instances', async () => (await live()) === 0, round);
    const costs = await request('GET', '/api/costs?by=job');
    expect(costs.status).toBe(200);
    expect(JSON.stringify(costs.body)).toContain(id);
    expect(faults).toEqual([]);
    expect((await request('GET', '/api/health')).body).toMatchObject({ status: 'ok', preset: 'greedy' });
  }, 90_000);

  it('repairs what no event has told', async () => {
    double.knobs.set({ events: { lose: 1 } });
    const id = await submit('unheard', 'sleep 1', 'spot');
    let sweeps = 0;
    const repaired = new Set<string>();
    await until(
      'end of the job',
      async () => (await stateOf(id)) === 'succeeded',
      async () => {
        await round();
        if (++sweeps % 4 === 0) for (const i of (await call<Swept>('sweep', byClock())).repaired) repaired.add(i);
      },
    );
    expect(repaired.size).toBeGreaterThan(0);
    double.knobs.set({ events: { lose: 0 } });
    await until('end of the instances', async () => (await live()) === 0, round);
  }, 120_000);

  it('use a capacity reservation, at no cost of its own', async () => {
    const id = await submit('paid-for', 'sleep 1', 'reserved');
    await until('end of the job', async () => (await stateOf(id)) === 'succeeded', round);
    await until('end of the instances', async () => (await live()) === 0, round);
    const pools = (await request('GET', '/api/pools?option=reserved')).body;
    expect(pools).toMatchObject({ items: [{ id: RESERVED, priceUsdPerHour: 0, reservedInstances: 2 }] });
    const { body } = await request('GET', '/api/instances');
    const used = (body['items'] as { pool: string; costUsd: number | null }[]).filter((i) => i.pool === RESERVED);
    expect(used.length).toBeGreaterThan(0);
    expect(used.every((i) => i.costUsd === 0)).toBe(true);
    const { rows } = (await request('GET', '/api/costs?by=job')).body as { rows: { key: string }[] };
    expect(rows.find((row) => row.key === id)).toMatchObject({ totalUsd: 0, workUsd: 0 });
  }, 90_000);

  it('say that EC2 does not tell of reservations, launch into none, and go on', async () => {
    const logged = [process.stdout, process.stderr].map((to) => jest.spyOn(to, 'write').mockImplementation(() => true));
    double.knobs.set({
      faults: [{ action: 'DescribeCapacityReservations', code: 'UnauthorizedOperation', status: 403 }],
    });
    expect(await call('prices', byClock(600_000))).toMatchObject({ reserved: { named: 1, instances: 0 } });
    const said = logged.flatMap((to) => to.mock.calls.map(([line]) => String(line))).join('');
    expect(said).toMatch(/"ReservationsUnusable":1/);
    expect(said).toMatch(/capacity reservations are not used/);
    const { processParts } = await import('../../../../lib/drivers/aws/compose/compose.ts');
    const { market } = await processParts().market().prices();
    expect(market.quote(RESERVED, double.now())).toBeNull();
    const id = await submit('elsewhere', 'sleep 1', 'spot');
    await until('end of the job', async () => (await stateOf(id)) === 'succeeded', round);
    await until('end of the instances', async () => (await live()) === 0, round);
  }, 120_000);

  it('end an instance that nobody knows of', async () => {
    const { processParts } = await import('../../../../lib/drivers/aws/compose/compose.ts');
    const { instanceId, poolId } = await import('../../../../lib/kernel/ids.ts');
    const instance = instanceId('i-forgotten');
    // Launched by a process that died before anything of it was recorded: the store never hears of it.
    const { ec2 } = processParts().fleet();
    const pool = poolId('c5.large/calm/spot');
    const tags = { key: 'k', instance };
    await ec2.buy({ token: 'forgotten', pool, bid: 'uncapped', count: 1, tags, template: ec2.template });
    const leakedAt = async (aheadMs: number): Promise<readonly (string | null)[]> =>
      (await call<Swept>('sweep', byClock(aheadMs))).leaked.map((leak) => leak.instance);
    // How old it is says the time of the tick, whatever this process takes the time to be.
    expect(await leakedAt(-60_000)).toEqual([]);
    expect(await leakedAt(60_000)).toEqual([instance]);
    await until(
      'end of it',
      async () => (await processParts().fleet().fleet.list()).every((i) => !i.live),
      async () => undefined,
    );
  }, 60_000);

  it('make no call that their rights do not allow', () => {
    const rights = rightsOnPage();
    // The state machine and the API were played by hand; these did it all.
    expect([...made.keys()]).toEqual(
      expect.arrayContaining(['snapshot', 'record', 'act', 'confirm', 'observe', 'sweep', 'prices']),
    );
    const lacking = [...made].flatMap(([name, commands]) =>
      [...commands].flatMap((command) => {
        const has = rights.get(name);
        const isAllowed = (action: string): boolean => has?.has(action) === true || WITH_RESERVATIONS[name] === action;
        return (NEEDS[command] ?? [`${command}: not known`]).every(isAllowed) ? [] : [`${name} ${command}`];
      }),
    );
    expect(lacking).toEqual([]);
  });
});
