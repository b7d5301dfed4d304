/** Instances that somebody stops, and instances that cannot be ended, in EC2's double. */
import { EC2Client, StopInstancesCommand } from '@aws-sdk/client-ec2';
import { expect, it } from '@jest/globals';
import { attemptId, effectKey, instanceId, poolId } from '../../../lib/kernel/ids.ts';
import { plus, raw, seconds } from '../../../lib/kernel/units.ts';
import type { StartRequest } from '../../../lib/ports/fleet.ts';
import { instance } from '../../contract/store-samples.ts';
import { AwsWorld, type Process } from '../../support/aws-world.ts';
import { sleepOrder } from '../../support/sleep-order.ts';
import { until } from '../../support/until.ts';

const ID = instanceId('i-host');
const POOL = poolId('c5.large/calm/on-demand');
const ATTEMPTS = [0, 1].map((n) => attemptId(`j1.main.${n}.1`));

const orderOf = (index: number): StartRequest => sleepOrder({ job: 'j1', index, instance: ID, sleepS: 300 });

/** `told`: whether events come, or only the sweep finds out. */
async function begun(told: { now: boolean }): Promise<{ readonly world: AwsWorld; readonly process: Process }> {
  const world = await AwsWorld.begin({}, async (event, on) => {
    if (told.now) await on.process().observe(event);
  });
  const process = world.process();
  const token = await process.store.takeLease('a cycle');
  await process.store.commit(token, [{ put: 'instance', value: instance(ID, { state: 'starting' }) }]);
  await process.fleet.launch([{ key: effectKey('launch'), instance: ID, pool: POOL, bid: 'uncapped' }]);
  return { world, process };
}

const stateIn = async (world: AwsWorld): Promise<string> => (await world.instances()).get(ID)?.[0]?.state ?? '';

it.each([
  ['events tell of it', true],
  ['no event tells of it', false],
])(
  'one that somebody stops has ended, with its tasks and its bill, and is ended in EC2: %s',
  async (_, isTold) => {
    const told = { now: true };
    const { world, process } = await begun(told);
    const client = new EC2Client({
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      endpoint: world.double.url,
    });
    try {
      const { fleet } = process;
      await fleet.start([0, 1].map(orderOf));
      const seen = (kind: string) => fleet.observe(new Map()).then((all) => all.filter((o) => o.kind === kind));
      await until(async () => (await seen('attempt-started')).length === 2);
      told.now = isTold;
      const ec2 = (await process.inbox.record(ID))?.ec2 ?? '';
      const beforeMs = raw(world.double.now());
      await client.send(new StopInstancesCommand({ InstanceIds: [ec2] }));
      const afterMs = raw(world.double.now());
      await until(async () => {
        if (!isTold) await process.sweep();
        return (await seen('instance-ended')).length === 1 && (await stateIn(world)) === 'terminated';
      });
      const [end] = await seen('instance-ended');
      expect(end).toMatchObject({
        instance: ID,
        cause: 'lost',
        detail: expect.stringMatching(/^stopped in EC2: Client/),
      });
      // EC2 says it to the second.
      expect(Number(end?.atMs)).toBeGreaterThanOrEqual(beforeMs - 1000);
      expect(Number(end?.atMs)).toBeLessThanOrEqual(afterMs);
      const ends = await seen('attempt-ended');
      expect(ends.map((o) => ('attempt' in o ? o.attempt : '')).toSorted()).toEqual(ATTEMPTS);
      for (const o of ends) {
        // It is ended while it is stopping: ECS may tell of either.
        const detail = expect.stringMatching(
          `^(?:Host EC2 .instance ${ec2}. (?:stopped|terminated)|killed as its instance)`,
        );
        expect(o).toMatchObject({ stopped: 'interrupted', detail });
      }
      const later = plus(world.double.now(), seconds(7200));
      const launched = await seen('instance-launched');
      const heldS = (Number(end?.atMs) - Number(launched[0]?.atMs)) / 1000;
      expect(raw((await fleet.bill(ID, later)).totalUsd)).toBeCloseTo((0.1 * Math.max(60, heldS)) / 3600, 4);
      expect(await process.sweep()).toMatchObject({ leaked: [], stuck: [], defect: null });
    } finally {
      client.destroy();
      await world.close();
    }
  },
  60_000,
);

it('one that somebody stops and EC2 refuses to end is told of by the sweep alone, and once in each', async () => {
  const handedBack: unknown[] = [];
  const world = await AwsWorld.begin({}, (event, on) =>
    on
      .process()
      .observe(event)
      .catch((error: unknown) => {
        handedBack.push(error);
        throw error;
      }),
  );
  const client = new EC2Client({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    endpoint: world.double.url,
  });
  try {
    const process = world.process();
    const token = await process.store.takeLease('a cycle');
    await process.store.commit(token, [{ put: 'instance', value: instance(ID, { state: 'starting' }) }]);
    await process.fleet.launch([{ key: effectKey('launch'), instance: ID, pool: POOL, bid: 'uncapped' }]);
    await until(async () => (await stateIn(world)) === 'running');
    world.double.knobs.set({
      faults: [{ action: 'TerminateInstances', code: 'OperationNotPermitted', status: 400, times: 1000 }],
    });
    const ec2 = (await process.inbox.record(ID))?.ec2 ?? '';
    await client.send(new StopInstancesCommand({ InstanceIds: [ec2] }));
    await until(async () => (await process.fleet.observe(new Map())).some((o) => o.kind === 'instance-ended'));
    await until(async () => ((await process.inbox.record(ID))?.endRefused ?? null) !== null);
    const told: string[][] = [];
    await until(async () => {
      const { leaked, stuck } = await process.sweep();
      told.push([...leaked, ...stuck].map((each) => each.ec2));
      return told.filter((names) => names.length > 0).length === 2;
    });
    expect(told.filter((names) => names.length > 0)).toEqual([[ec2], [ec2]]);
    expect(handedBack).toEqual([]);
    world.double.knobs.set({ faults: [] });
    await until(async () => {
      await process.sweep();
      return (await stateIn(world)) === 'terminated';
    });
  } finally {
    client.destroy();
    await world.close();
  }
}, 60_000);

it('one that EC2 refuses to end is told again and again, until it can be ended', async () => {
  const { world, process } = await begun({ now: true });
  try {
    await until(async () => (await stateIn(world)) === 'running');
    world.double.knobs.set({
      faults: [{ action: 'TerminateInstances', code: 'OperationNotPermitted', status: 400, times: 1000 }],
    });
    const release = () => process.fleet.release([{ key: effectKey('release'), instance: ID }]);
    expect(await release()).toMatchObject([{ status: 'failed' }]);
    expect(await process.sweep()).toMatchObject({ stuck: [], leaked: [] });
    await release();
    const { stuck, defect } = await process.sweep();
    const ec2 = (await process.inbox.record(ID))?.ec2;
    expect(stuck).toMatchObject([{ instance: ID, ec2, detail: expect.stringContaining('OperationNotPermitted') }]);
    expect(stuck[0]?.tries).toBeGreaterThanOrEqual(3);
    expect(defect).toBeNull();
    expect((await process.sweep()).stuck).toHaveLength(1);
    expect(await stateIn(world)).toBe('running');
    world.double.knobs.set({ faults: [] });
    await until(async () => {
      await process.sweep();
      return (await stateIn(world)) === 'terminated';
    });
    expect((await process.sweep()).stuck).toEqual([]);
    await until(async () => (await process.fleet.observe(new Map())).some((o) => o.kind === 'instance-ended'));
    expect((await process.inbox.record(ID))?.gone).toMatchObject({ cause: 'released' });
  } finally {
    await world.close();
  }
}, 60_000);
