/** Instances with the deployment's tag that its records do not account for, in EC2's double. */
import { CreateFleetCommand, CreateTagsCommand, EC2Client, type Tag } from '@aws-sdk/client-ec2';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { effectKey, instanceId, poolId } from '../../../lib/kernel/ids.ts';
import { raw } from '../../../lib/kernel/units.ts';
import { instance } from '../../contract/store-samples.ts';
import { AwsWorld, type Process } from '../../support/aws-world.ts';
import { until } from '../../support/until.ts';

const KNOWN = instanceId('i-known');
const POOL = poolId('c5.large/calm/spot');
/** Longer than a launch may be unknown. */
const OLD_S = 400;

let world: AwsWorld;
let process: Process;
let client: EC2Client;

beforeEach(async () => {
  world = await AwsWorld.begin({}, (event, on) => on.process().observe(event));
  process = world.process();
  client = new EC2Client({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    endpoint: world.double.url,
  });
});

afterEach(async () => {
  client.destroy();
  await world.close();
});

it('one launched by hand, with the stack’s tag only, is ended', async () => {
  const ec2 = await byHand({ 'ebb:stack': 'world' });
  const foreign = await byHand({ 'ebb:stack': 'another' });
  expect((await process.sweep()).leaked).toEqual([]);
  await age();
  expect((await process.sweep()).leaked).toEqual([{ ec2, instance: null }]);
  await until(async () => (await stateOf(ec2)) === 'terminated');
  expect(await stateOf(foreign)).toBe('running');
}, 60_000);

it('copies of a known one are ended, and it is not: neither while they run nor when they have ended', async () => {
  const own = await launchKnown();
  const [first, second] = [await byHand(await copied(own)), await byHand(await copied(own))];
  await age();
  const { leaked, failed } = await process.sweep();
  expect(leaked.map((l) => l.ec2).toSorted()).toEqual([first, second].toSorted());
  expect(failed).toEqual([]);
  await until(async () => (await stateOf(first)) === 'terminated' && (await stateOf(second)) === 'terminated');
  expect(await process.sweep()).toMatchObject({ leaked: [], failed: [], defect: null });
  expect(await stateOf(own)).toBe('running');
  expect(await process.inbox.record(KNOWN)).toMatchObject({ ec2: own, gone: null, isReleased: false });
}, 60_000);

it('of several with the tags of one that nobody knows, all are ended, whichever has ended before', async () => {
  const tags = { 'ebb:stack': 'world', 'ebb:instance': 'i-lost', 'ebb:key': 'k', 'ebb:pool': POOL, 'ebb:bid': '1' };
  const ids = [await byHand(tags), await byHand(tags), await byHand(tags)];
  await process.ec2.end(ids[2] ?? '');
  await until(async () => (await stateOf(ids[2] ?? '')) === 'terminated');
  await age();
  expect((await process.sweep()).leaked.map((l) => l.ec2).toSorted()).toEqual(ids.slice(0, 2).toSorted());
  await until(async () => (await Promise.all(ids.map(stateOf))).every((state) => state === 'terminated'));
}, 60_000);

it('one that was noted as gone and is not is ended', async () => {
  const own = await launchKnown();
  const atMs = raw(world.double.now());
  await process.inbox.update(KNOWN, (r) => ({ ...r, gone: { atMs, cause: 'lost', detail: 'by mistake' } }));
  await age();
  expect((await process.sweep()).leaked).toEqual([{ ec2: own, instance: KNOWN }]);
  await until(async () => (await stateOf(own)) === 'terminated');
}, 60_000);

it('one that cannot be ended is told each time, and keeps no other from being ended', async () => {
  const ids = [await byHand({ 'ebb:stack': 'world' }), await byHand({ 'ebb:stack': 'world' })];
  await age();
  const protectedFor = (times: number) =>
    ({ action: 'TerminateInstances', code: 'OperationNotPermitted', status: 400, times }) as const;
  world.double.knobs.set({ faults: [protectedFor(1)] });
  const first = await process.sweep();
  expect(first.leaked.map((l) => l.ec2).toSorted()).toEqual(ids.toSorted());
  expect(first.failed).toEqual([expect.stringContaining('OperationNotPermitted')]);
  expect(first.defect).toBeNull();
  const left = ids.find((id) => (first.failed[0] ?? '').startsWith(id)) ?? '';
  await until(async () => (await Promise.all(ids.map(stateOf))).includes('terminated'));
  world.double.knobs.set({ faults: [protectedFor(1)] });
  expect((await process.sweep()).leaked).toEqual([{ ec2: left, instance: null }]);
  expect((await process.sweep()).failed).toEqual([]);
  await until(async () => (await stateOf(left)) === 'terminated');
}, 60_000);

async function byHand(tags: Readonly<Record<string, string>>): Promise<string> {
  const { Instances } = await client.send(
    new CreateFleetCommand({
      Type: 'instant',
      TargetCapacitySpecification: { TotalTargetCapacity: 1, DefaultTargetCapacityType: 'spot' },
      LaunchTemplateConfigs: [
        {
          LaunchTemplateSpecification: { LaunchTemplateName: 'hosts', Version: '$Default' },
          Overrides: [{ InstanceType: 'c5.large', SubnetId: world.double.subnets.find((s) => s.zone === 'calm')?.id }],
        },
      ],
    }),
  );
  const id = Instances?.[0]?.InstanceIds?.[0] ?? '';
  const all: Tag[] = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  await client.send(new CreateTagsCommand({ Resources: [id], Tags: all }));
  return id;
}

async function launchKnown(): Promise<string> {
  const token = await process.store.takeLease('a cycle');
  await process.store.commit(token, [{ put: 'instance', value: instance(KNOWN, { state: 'starting' }) }]);
  await process.fleet.launch([{ key: effectKey('launch'), instance: KNOWN, pool: POOL, bid: 'uncapped' }]);
  return (await process.inbox.record(KNOWN))?.ec2 ?? '';
}

const copied = async (own: string): Promise<Record<string, string>> => {
  const seen = (await process.ec2.seen([own]))[0];
  return {
    'ebb:stack': 'world',
    'ebb:instance': seen?.instance ?? '',
    'ebb:key': seen?.key ?? '',
    'ebb:pool': seen?.pool ?? '',
    'ebb:bid': String(seen?.bid),
  };
};

const stateOf = async (ec2: string): Promise<string> =>
  [...(await world.instances()).values()].flat().find((i) => i.id === ec2)?.state ?? '';

async function age(): Promise<void> {
  const overMs = raw(world.double.now()) + OLD_S * 1000;
  await until(async () => raw(world.double.now()) > overMs);
}
