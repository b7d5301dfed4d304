import {
  CreateScheduleGroupCommand,
  GetScheduleCommand,
  ListSchedulesCommand,
  SchedulerClient,
} from '@aws-sdk/client-scheduler';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Table } from '../../../../lib/drivers/aws/store/dynamo-table.ts';
import { WindowEnds } from '../../../../lib/drivers/aws/market/window-ends.ts';
import { startSchedulerDouble, type SchedulerDouble } from '../../../../scripts/aws-double/scheduler.ts';
import { DynamoDouble } from '../../../doubles/dynamodb/table.ts';
import { describeOnLocalStack } from '../../../support/localstack.ts';

const GROUP = 'ebbtide';
const NOON = Date.UTC(2036, 0, 5, 12);
const MINUTE_MS = 60_000;
const at = (minutes: number): number => NOON + minutes * MINUTE_MS;
const QUEUE = 'arn:aws:sqs:eu-central-1:000000000000:trigger';
const ROLE = 'arn:aws:iam::000000000000:role/schedules';

interface Given {
  readonly client: SchedulerClient;
  readonly table: Table;
  readonly nowMs: () => number;
}

function keeper({ client, table, nowMs }: Given, warned: string[] = []): WindowEnds {
  const warn = (what: string): void => void warned.push(what);
  return new WindowEnds({ client, table, group: GROUP, role: ROLE, queue: QUEUE, nowMs, warn });
}

describe('schedules before the ends of windows', () => {
  let double: SchedulerDouble;
  let client: SchedulerClient;
  let table: Table;
  let nowMs: number;
  let warned: string[];
  const another = () => keeper({ client, table, nowMs: () => nowMs }, warned);
  const names = (): string[] => [...double.schedules.values()].map((s) => s.Name).sort();

  beforeEach(async () => {
    nowMs = NOON;
    warned = [];
    table = new Table({ client: new DynamoDouble().client(), name: 'table' });
    double = await startSchedulerDouble([GROUP], () => nowMs);
    client = new SchedulerClient({
      endpoint: double.url,
      region: 'eu-central-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      maxAttempts: 2,
    });
  });
  afterEach(async () => {
    client.destroy();
    await double.close();
  });

  it('are one for each minute in which windows end, two minutes before', async () => {
    await another().keep([at(60), at(60.4), at(60.9), at(75)]);
    expect(names()).toEqual(['window-2036-01-05T12.58', 'window-2036-01-05T13.13']);
    const [first] = double.schedules.values();
    expect(first).toMatchObject({
      GroupName: GROUP,
      ScheduleExpression: 'at(2036-01-05T12:58:00)',
      ActionAfterCompletion: 'DELETE',
      FlexibleTimeWindow: { Mode: 'OFF' },
      Target: { Arn: QUEUE, RoleArn: ROLE },
    });
  });

  it('are made once, however many cycles and processes want them', async () => {
    await another().keep([at(60)]);
    for (let n = 0; n < 3; n++) await another().keep([at(60)]);
    expect(double.calls).toEqual(['CreateSchedule window-2036-01-05T12.58']);
    // A process that died after the call and before its note.
    await table.write({ key: { pk: 'WINDOWS', sk: 'WINDOWS' }, isDeleted: true });
    await another().keep([at(60)]);
    expect(double.calls).toHaveLength(2);
    expect(names()).toHaveLength(1);
    expect(warned).toEqual([]);
  });

  it('go when nothing ends then any more, and are not missed when they have gone by themselves', async () => {
    await another().keep([at(60), at(70), at(80)]);
    await another().keep([at(70)]);
    expect(names()).toEqual(['window-2036-01-05T13.08']);
    nowMs = at(68);
    expect(double.fire(nowMs).map((input) => (JSON.parse(input) as { why: string }).why)).toEqual(['window']);
    expect(names()).toEqual([]);
    const calls = double.calls.length;
    nowMs = at(68.5);
    await another().keep([at(70)]);
    await another().keep([]);
    expect(double.calls).toHaveLength(calls);
    expect(warned).toEqual([]);
  });

  it('are not made in the past, or so near that this cycle decides', async () => {
    await another().keep([at(-5), at(1), at(2.4), at(2)]);
    expect(double.calls).toEqual([]);
  });

  it('are there in time whatever the clocks of the cycles say that keep them, and fire once', async () => {
    const fired: string[] = [];
    for (let minute = 0; minute <= 75; minute++) {
      nowMs = at(minute);
      for (const input of double.fire(nowMs))
        fired.push(`${minute} ${(JSON.parse(input) as { minute: string }).minute}`);
      // Ten minutes behind, then ten ahead, for as long: also when the window is about to end.
      const clock = nowMs + (minute % 20 < 10 ? -10 : 10) * MINUTE_MS;
      // A window that ends later is seen by all, one that has ended by none.
      const ends = [at(60), at(70)].filter((end) => end > nowMs);
      await keeper({ client, table, nowMs: () => clock }, warned).keep(ends);
    }
    expect(fired.filter((f) => f.startsWith('58') || f.startsWith('68'))).toEqual([
      '58 2036-01-05T12:58',
      '68 2036-01-05T13:08',
    ]);
    expect([...double.schedules]).toEqual([]);
  });

  it('that somebody else deleted are as they should be', async () => {
    await another().keep([at(60)]);
    (double.schedules as Map<string, unknown>).clear();
    await another().keep([]);
    expect(warned).toEqual([]);
    await another().keep([]);
    expect(double.calls).toHaveLength(2);
  });

  it('that the service does not make now are made by the next cycle, and the others all the same', async () => {
    double.refuse('ThrottlingException', 429, 2);
    await another().keep([at(60)]);
    expect(warned).toEqual(['CreateSchedule failed']);
    expect(names()).toEqual([]);
    await another().keep([at(60), at(70)]);
    expect(names()).toHaveLength(2);
  });

  it('of a name that is taken by another one are left alone', async () => {
    await another().keep([at(60)]);
    const [key] = double.schedules.keys();
    const other = { ...double.schedules.get(key ?? '')!, ClientToken: 'of another' };
    (double.schedules as Map<string, unknown>).set(key ?? '', other);
    await table.write({ key: { pk: 'WINDOWS', sk: 'WINDOWS' }, isDeleted: true });
    await another().keep([at(60)]);
    expect(warned).toEqual([]);
    expect(double.schedules.get(key ?? '')).toBe(other);
  });
});

describeOnLocalStack('schedules before the ends of windows, kept by EventBridge Scheduler', (on) => {
  let given: Given;
  beforeAll(async () => {
    const client = on.kept(new SchedulerClient(on.config()));
    await client.send(new CreateScheduleGroupCommand({ Name: GROUP }));
    given = { client, table: new Table({ client: on.dynamodb(), name: await on.table() }), nowMs: () => NOON };
  });

  it('are stored, and removed', async () => {
    const warned: string[] = [];
    await keeper(given, warned).keep([at(60), at(70)]);
    await keeper(given, warned).keep([at(60)]);
    const { Schedules = [] } = await given.client.send(new ListSchedulesCommand({ GroupName: GROUP }));
    expect(Schedules.map((s) => s.Name)).toEqual(['window-2036-01-05T12.58']);
    const stored = await given.client.send(
      new GetScheduleCommand({ GroupName: GROUP, Name: Schedules[0]?.Name ?? '' }),
    );
    expect(stored).toMatchObject({ ScheduleExpression: 'at(2036-01-05T12:58:00)', Target: { Arn: QUEUE } });
    await given.table.write({ key: { pk: 'WINDOWS', sk: 'WINDOWS' }, isDeleted: true });
    await keeper(given, warned).keep([at(60)]);
    await keeper(given, warned).keep([]);
    expect(warned).toEqual([]);
    expect((await given.client.send(new ListSchedulesCommand({ GroupName: GROUP }))).Schedules).toEqual([]);
  });
});
