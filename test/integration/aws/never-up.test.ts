import { expect, it } from '@jest/globals';
import { effectKey, instanceId, poolId } from '../../../lib/kernel/ids.ts';
import { raw, usdPerHour } from '../../../lib/kernel/units.ts';
import { instance } from '../../contract/store-samples.ts';
import { AwsWorld } from '../../support/aws-world.ts';
import { until } from '../../support/until.ts';

const ID = instanceId('i-mute');
const PATIENCE_S = 400;
const BID = usdPerHour(0.05);

it('an instance that runs and never takes a task is ended, once its time is up and not before', async () => {
  const world = await AwsWorld.begin({ agents: false }, (event, on) => on.process().observe(event));
  try {
    const process = world.process();
    const { store, fleet } = process;
    const token = await store.takeLease('a cycle');
    await store.commit(token, [{ put: 'instance', value: instance(ID, { state: 'starting' }) }]);
    const pool = poolId('c5.large/calm/spot');
    await fleet.launch([{ key: effectKey('launch'), instance: ID, pool, bid: BID }]);
    const stateOf = async (): Promise<string> => (await world.instances()).get(ID)?.[0]?.state ?? '';
    await until(async () => (await stateOf()) === 'running');
    expect(await process.sweep(100_000)).toMatchObject({ leaked: [], repaired: [] });
    expect(await stateOf()).toBe('running');
    await until(async () => (await process.sweep(PATIENCE_S)).repaired.includes(ID));
    await until(async () => (await stateOf()) === 'terminated');
    await until(async () => (await fleet.observe(new Map())).some((o) => o.kind === 'instance-ended'));
    const all = await fleet.observe(new Map());
    const ended = all.filter((o) => o.kind === 'instance-ended');
    expect(ended).toMatchObject([{ instance: ID, cause: 'released' }]);
    const launched = all.find((o) => o.kind === 'instance-launched');
    expect(Number(ended[0]?.atMs) - Number(launched?.atMs)).toBeGreaterThanOrEqual(PATIENCE_S * 1000);
    expect(all.some((o) => o.kind === 'instance-ready')).toBe(false);
  } finally {
    await world.close();
  }
}, 60_000);

it('one that cannot be ended now keeps no other from being ended', async () => {
  const world = await AwsWorld.begin({ agents: false }, (event, on) => on.process().observe(event));
  try {
    const process = world.process();
    const { store, fleet } = process;
    const ids = ['i-mute-1', 'i-mute-2', 'i-mute-3'].map(instanceId);
    const token = await store.takeLease('a cycle');
    await store.commit(
      token,
      ids.map((id) => ({ put: 'instance', value: instance(id, { state: 'starting' }) })),
    );
    const pool = poolId('c5.large/calm/spot');
    const launch = (id: (typeof ids)[number]) => ({ key: effectKey(`launch ${id}`), instance: id, pool, bid: BID });
    await fleet.launch(ids.map(launch));
    const states = async () => [...(await world.instances()).values()].map(([i]) => i?.state);
    await until(async () => (await states()).every((state) => state === 'running'));
    // As often as one call is tried.
    world.double.knobs.set({ faults: [{ action: 'TerminateInstances', code: 'ServiceUnavailable', times: 3 }] });
    const overMs = raw(world.double.now()) + PATIENCE_S * 1000;
    await until(async () => raw(world.double.now()) > overMs);
    const { failed, repaired } = await process.sweep(PATIENCE_S);
    expect([failed.length, repaired.length]).toEqual([1, 2]);
    await until(async () => {
      await process.sweep(PATIENCE_S);
      return (await states()).every((state) => state === 'terminated');
    });
  } finally {
    await world.close();
  }
}, 60_000);
