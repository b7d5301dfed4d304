/** Equal launches of one allocation are one CreateFleet request, with one outcome per instance. */
import { CreateTagsCommand, DescribeInstancesCommand, EC2Client } from '@aws-sdk/client-ec2';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { effectKey, instanceId, poolId } from '../../../lib/kernel/ids.ts';
import { raw, usdPerHour } from '../../../lib/kernel/units.ts';
import type { LaunchRequest } from '../../../lib/ports/fleet.ts';
import { instance } from '../../contract/store-samples.ts';
import type { AwsEvent } from '../../../scripts/aws-double/events.ts';
import { Faults } from '../../support/aws-faults.ts';
import { AwsWorld, type Process } from '../../support/aws-world.ts';
import { until } from '../../support/until.ts';

const POOL = poolId('c5.large/calm/spot');
const EMPTY = poolId('c5.large/empty/spot');
/** Longer than a launch may be unknown. */
const OLD_S = 400;

let world: AwsWorld;
let calls: string[];
let events: AwsEvent[];

beforeEach(async () => {
  calls = [];
  events = [];
  world = await AwsWorld.begin({ agents: false }, async (event) => {
    events.push(event);
  });
});
afterEach(() => world.close());

const process = (faults?: Faults): Process => world.process(faults, ({ operation }) => calls.push(operation));
const fleets = (): number => calls.filter((name) => name === 'CreateFleet').length;

function equal(count: number, allocation = 'p-1/launch/0', pool = POOL): LaunchRequest[] {
  return Array.from({ length: count }, (_, n) => ({
    key: effectKey(`${allocation}/${n}`),
    instance: instanceId(`i-${allocation}-${n}`),
    allocation: effectKey(allocation),
    pool,
    bid: usdPerHour(0.05),
  }));
}

/** Outcomes, each in a word. */
const launched = async (on: Process, requests: readonly LaunchRequest[]): Promise<string[]> =>
  (await on.fleet.launch(requests)).map((o) => (o.status === 'refused' ? o.why : o.status));

/** EC2's ids by our names, as they are recorded. */
async function recorded(requests: readonly LaunchRequest[]): Promise<(string | null)[]> {
  const records = new Map((await process().inbox.records(requests.map((r) => r.instance))).map((r) => [r.instance, r]));
  return requests.map((r) => records.get(r.instance)?.ec2 ?? null);
}

async function shown(): Promise<string[]> {
  const { Reservations = [] } = await client().send(new DescribeInstancesCommand({}));
  return Reservations.flatMap((r) => r.Instances ?? []).flatMap((i) => i.InstanceId ?? []);
}
const client = (): EC2Client =>
  new EC2Client({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    endpoint: world.double.url,
  });

it('twelve equal launches are one request and twelve instances; those of other allocations are requests of their own', async () => {
  const requests = [...equal(12), ...equal(1, 'p-1/launch/1'), ...equal(2, 'p-1/launch/2', EMPTY)];
  const outcomes = await launched(process(), requests);
  const none = 'insufficient-capacity';
  expect(outcomes).toEqual([...Array.from({ length: 13 }, () => 'done'), none, none]);
  expect(fleets()).toBe(3);
  const ids = await recorded(requests.slice(0, 13));
  expect(new Set(ids).size).toBe(13);
  expect(new Set(await shown())).toEqual(new Set(ids));
  const { fleet } = process();
  expect((await fleet.list()).map((i) => i.instance).sort()).toEqual(
    requests
      .slice(0, 13)
      .map((r) => r.instance)
      .sort(),
  );
  // Asked again nothing is asked of EC2.
  expect(await launched(process(), requests)).toEqual(outcomes);
  expect(fleets()).toBe(3);
}, 60_000);

it('more than one request takes are several', async () => {
  expect(new Set(await launched(process(), equal(60)))).toEqual(new Set(['done']));
  expect(fleets()).toBe(3);
  expect(await shown()).toHaveLength(60);
}, 60_000);

it.each([
  ['the pool has room for three', { capacityLeft: { [POOL]: 3 } }, 'insufficient-capacity'],
  ['the quota has room for three', { spotVcpus: 6 }, 'quota'],
])(
  'where %s, the rest are refused, each by itself, and again when asked again',
  async (_, knobs, why) => {
    world.double.knobs.set(knobs);
    const requests = equal(5);
    const outcomes = await launched(process(), requests);
    expect(outcomes.toSorted()).toEqual(['done', 'done', 'done', why, why].toSorted());
    world.double.knobs.set({ capacityLeft: {}, spotVcpus: null });
    expect(await launched(process(), requests)).toEqual(outcomes);
    expect(await shown()).toHaveLength(3);
  },
  60_000,
);

it.each([
  ['MaxFleetCountExceeded', 'refused', 'quota'],
  ['UnauthorizedOperation', 'refused', 'denied'],
  ['RequestLimitExceeded', 'failed', undefined],
])(
  '%s is the outcome of all',
  async (code, status, why) => {
    world.double.knobs.set({ faults: [{ action: 'CreateFleet', code, status: 400, times: 3 }] });
    const outcomes = await process().fleet.launch(equal(3));
    for (const outcome of outcomes) expect(outcome).toMatchObject(why === undefined ? { status } : { status, why });
    expect(outcomes).toHaveLength(3);
    expect(await shown()).toEqual([]);
  },
  60_000,
);

/** Dies as soon as CreateFleet has been answered. */
const diesAfterBuying = (): Faults =>
  new Faults(async ({ name, perform, die }) => {
    const answer = await perform();
    return name === 'CreateFleetCommand' ? die() : answer;
  }, 'all');

it.each([
  ['all of them', 5],
  ['one of them alone', 1],
])(
  'a process that dies when it has bought is made up for by another that is asked for %s',
  async (_, asked) => {
    const requests = equal(5);
    await expect(process(diesAfterBuying()).fleet.launch(requests)).rejects.toThrow('died');
    expect(await recorded(requests)).toEqual([null, null, null, null, null]);
    expect(await launched(process(), requests.slice(0, asked))).toEqual(requests.slice(0, asked).map(() => 'done'));
    expect(new Set(await recorded(requests))).toEqual(new Set(await shown()));
    expect(await shown()).toHaveLength(5);
  },
  60_000,
);

it('an event of an instance that nobody has recorded yet finds which one it is', async () => {
  const requests = equal(3);
  await expect(process(diesAfterBuying()).fleet.launch(requests)).rejects.toThrow('died');
  const ids = await shown();
  await until(async () => ids.every((id) => events.some((e) => e.detail['instance-id'] === id)));
  const found = await process().hosts.instancesOf(ids.toReversed());
  expect(new Set(found.values())).toEqual(new Set(requests.map((r) => r.instance)));
  expect(await launched(process(), requests)).toEqual(['done', 'done', 'done']);
  expect(await recorded(requests)).toEqual(requests.map((r) => [...found].find(([, own]) => own === r.instance)?.[0]));
  expect(await shown()).toHaveLength(3);
}, 60_000);

it('an update of the deployment between the request and its repetition buys nothing more', async () => {
  const requests = equal(3);
  await expect(process(diesAfterBuying()).fleet.launch(requests)).rejects.toThrow('died');
  const single = equal(1, 'p-2/launch/0');
  expect(await launched(process(diesAfterBuying()), single).catch(() => ['failed'])).toEqual(['failed']);
  await world.update();
  expect(await launched(process(), requests)).toEqual(['done', 'done', 'done']);
  expect(await launched(process(), single)).toEqual(['done']);
  expect(new Set(await recorded([...requests, ...single]))).toEqual(new Set(await shown()));
  expect(await shown()).toHaveLength(4);
}, 60_000);

it('the sweep ends a copy of one of them, and none of them', async () => {
  const requests = equal(3);
  const on = process();
  const token = await on.store.takeLease('a cycle');
  await on.store.commit(
    token,
    requests.map((r) => ({ put: 'instance', value: instance(r.instance, { state: 'starting' }) })),
  );
  await launched(on, requests);
  const copies = equal(1, 'p-9/launch/0');
  await launched(on, copies);
  const [copy] = await recorded(copies);
  // What was written of it is of no account here: it becomes a copy by its tags.
  const ec2 = client();
  const { Reservations = [] } = await ec2.send(
    new DescribeInstancesCommand({ InstanceIds: [(await recorded(requests))[0] ?? ''] }),
  );
  const tags = (Reservations[0]?.Instances?.[0]?.Tags ?? []).filter((t) => t.Key?.startsWith('ebb:') === true);
  await ec2.send(new CreateTagsCommand({ Resources: [copy ?? ''], Tags: tags }));
  const overMs = raw(world.double.now()) + OLD_S * 1000;
  await until(async () => raw(world.double.now()) > overMs);
  expect((await on.sweep()).leaked.map((l) => l.ec2)).toEqual([copy]);
  expect((await on.sweep()).defect).toBeNull();
  for (const record of await on.inbox.records(requests.map((r) => r.instance))) expect(record.isReleased).toBe(false);
}, 60_000);
