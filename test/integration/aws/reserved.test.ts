/** Capacity reservations: each instance is launched alone, into its reservation and nowhere else. */
import { DescribeInstancesCommand, EC2Client, type Instance } from '@aws-sdk/client-ec2';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { effectKey, instanceId, poolId } from '../../../lib/kernel/ids.ts';
import type { LaunchRequest } from '../../../lib/ports/fleet.ts';
import { Faults } from '../../support/aws-faults.ts';
import { AwsWorld, type Process } from '../../support/aws-world.ts';
import { instance } from '../../contract/store-samples.ts';
import { until } from '../../support/until.ts';

const POOL = poolId('c5.large/calm/reserved');
/** One instance, in another zone. */
const OTHER = poolId('c5.large/spiky/reserved');
const ON_DEMAND = poolId('c5.large/calm/on-demand');
const LACKING = 'insufficient-capacity';

let world: AwsWorld;
let calls: string[];
beforeEach(async () => {
  calls = [];
  world = await AwsWorld.begin({ agents: false }, (event, on) => on.process().observe(event));
});
afterEach(() => world.close());

const process = (faults?: Faults): Process => world.process(faults, ({ operation }) => calls.push(operation));
const runs = (): number => calls.filter((name) => name === 'RunInstances').length;

const equal = (count: number, pool = POOL): LaunchRequest[] =>
  Array.from({ length: count }, (_, n) => ({
    key: effectKey(`p-1/launch/${pool}/${n}`),
    instance: instanceId(`i-${pool}-${n}`),
    allocation: effectKey(`p-1/launch/${pool}`),
    pool,
    bid: 'uncapped' as const,
  }));

/** Outcomes, each in a word. */
const launched = async (on: Process, requests: readonly LaunchRequest[]): Promise<string[]> =>
  (await on.fleet.launch(requests)).map((o) => (o.status === 'refused' ? o.why : o.status));

/** Launches in a process that dies of it. */
async function deadly(faults: Faults, requests: readonly LaunchRequest[]): Promise<void> {
  await process(faults)
    .fleet.launch(requests)
    .catch(() => undefined);
  expect(faults.isDead).toBe(true);
}

async function shown(): Promise<Instance[]> {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const client = new EC2Client({ region: 'us-east-1', credentials, endpoint: world.double.url });
  const { Reservations = [] } = await client.send(new DescribeInstancesCommand({}));
  client.destroy();
  return Reservations.flatMap((r) => r.Instances ?? []);
}
const reservationOf = (pool: typeof POOL): string => world.double.reservations.get(pool) ?? '';

it('as many are launched as it has room for, each by a request of its own; the rest are not even asked for', async () => {
  const requests = equal(5);
  const outcomes = ['done', 'done', LACKING, LACKING, LACKING];
  expect(await launched(process(), requests)).toEqual(outcomes);
  expect(runs()).toBe(3);
  const found = await shown();
  expect(found.map((i) => i.CapacityReservationId)).toEqual([reservationOf(POOL), reservationOf(POOL)]);
  const tags = found.map((i): unknown => Object.fromEntries((i.Tags ?? []).map((t) => [t.Key, t.Value])));
  expect(tags).toEqual(
    requests
      .slice(0, 2)
      .map(({ key, instance: id }) =>
        expect.objectContaining({ 'ebb:stack': 'world', 'ebb:instance': id, 'ebb:key': key, 'ebb:pool': POOL }),
      ),
  );
  // Asked again nothing is asked of EC2.
  expect(await launched(process(), requests)).toEqual(outcomes);
  expect(runs()).toBe(3);
}, 60_000);

it('where none takes instances now, or it is not there, nothing is launched and on-demand is not touched', async () => {
  world.double.knobs.set({ reservations: { [POOL]: { state: 'expired' } } });
  expect(await launched(process(), equal(1))).toEqual([LACKING]);
  world.reservations = new Map();
  expect(await launched(process(), equal(1, OTHER))).toEqual([LACKING]);
  world.reservations = new Map([[OTHER, ['cr-0123456789abcdef0']]]);
  const [gone] = await process().fleet.launch(equal(2, OTHER).slice(1));
  expect(gone).toMatchObject({ status: 'refused', why: 'denied' });
  expect(gone).toHaveProperty('detail', expect.stringContaining('cr-0123456789abcdef0'));
  expect(await shown()).toEqual([]);
}, 60_000);

it('of several reservations the first with room is used, and none twice by who asks again after a death', async () => {
  // That of another zone never has room for these.
  world.reservations = new Map([[POOL, [reservationOf(OTHER), reservationOf(POOL)]]]);
  let asked = 0;
  const dying = new Faults(async ({ name, perform, die }) => {
    const isSecond = name === 'RunInstancesCommand' && ++asked === 2;
    const answer = await perform();
    return isSecond ? die() : answer;
  }, 'all');
  await deadly(dying, equal(1));
  expect(await shown()).toHaveLength(1);
  calls = [];
  expect(await launched(process(), equal(1))).toEqual(['done']);
  expect(runs()).toBe(0);
  expect(await shown()).toHaveLength(1);
}, 60_000);

it('an open reservation is used by on-demand instances too, and then is full', async () => {
  world.double.knobs.set({ reservations: { [POOL]: { instanceMatchCriteria: 'open' } } });
  expect(await launched(process(), equal(3, ON_DEMAND))).toEqual(['done', 'done', 'done']);
  const own = reservationOf(POOL);
  expect((await shown()).map((i) => i.CapacityReservationId)).toEqual([own, own, undefined]);
  expect(await launched(process(), equal(1))).toEqual([LACKING]);
}, 60_000);

it('the sweep knows them by their tags, and ends one that nobody wants', async () => {
  const faults = new Faults(async ({ name, perform, die }) => {
    const answer = await perform();
    return name === 'RunInstancesCommand' ? die() : answer;
  }, 'all');
  const [wanted, unwanted] = equal(2) as [LaunchRequest, LaunchRequest];
  await deadly(faults, [wanted]);
  const swept = process();
  const token = await swept.store.takeLease('test');
  const value = instance(wanted.instance, { pool: POOL, state: 'requested', launchedMs: null });
  await swept.store.commit(token, [{ put: 'instance', value }]);
  expect(await swept.sweep()).toMatchObject({ leaked: [], stuck: [], defect: null });
  expect((await swept.fleet.list()).map((i) => [i.instance, i.pool, i.bid])).toEqual([
    [wanted.instance, POOL, 'uncapped'],
  ]);
  await swept.fleet.launch([unwanted]);
  await until(async () => {
    const { leaked } = await swept.sweep();
    return leaked.some((l) => l.instance === unwanted.instance);
  });
  const states = await world.instances();
  expect(states.get(wanted.instance)).toMatchObject([{ state: 'running' }]);
  expect(states.get(unwanted.instance)?.[0]?.state).toMatch(/^(?:shutting-down|terminated)$/);
}, 60_000);
