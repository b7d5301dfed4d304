/**
 * A table that was restored to an earlier instant, in front of EC2 and ECS, which have gone on: docs/deploy.md,
 * "Restore".
 */
import { expect, it } from '@jest/globals';
import { attemptId, effectKey, instanceId, poolId, type InstanceId } from '../../../lib/kernel/ids.ts';
import { instance } from '../../contract/store-samples.ts';
import { AwsWorld, type Process } from '../../support/aws-world.ts';
import { sleepOrder } from '../../support/sleep-order.ts';
import { until } from '../../support/until.ts';

const KNOWN = instanceId('i-known');
const LATER = instanceId('i-later');
const POOL = poolId('c5.large/calm/on-demand');
/** Longer than a launch may be unknown, engine seconds. */
const OLD_S = 400;
const attempt = (index: number) => attemptId(`j1.main.${index}.1`);

async function launch({ store, fleet }: Process, token: number, id: InstanceId): Promise<void> {
  await store.commit(token, [{ put: 'instance', value: instance(id, { state: 'starting' }) }]);
  await fleet.launch([{ key: effectKey(`launch ${id}`), instance: id, pool: POOL, bid: 'uncapped' }]);
}

it('finds what ran and has ended since, begins nothing twice, and ends what it does not know', async () => {
  const world = await AwsWorld.begin({}, (event, on) => on.process().observe(event));
  try {
    const before = world.process();
    const token = await before.store.takeLease('a cycle');
    await launch(before, token, KNOWN);
    const endsOf = async ({ fleet }: Process, index: number) =>
      (await fleet.observe(new Map())).filter((o) => o.kind === 'attempt-ended' && o.attempt === attempt(index));
    const begun = async ({ fleet }: Process): Promise<number> =>
      (await fleet.observe(new Map())).filter((o) => o.kind === 'attempt-started').length;
    const order = (index: number, sleepS: number) => sleepOrder({ job: 'j1', index, instance: KNOWN, sleepS });
    await before.fleet.start([order(0, 2), order(1, 300)]);
    await until(async () => (await begun(before)) === 2);

    const restore = world.restorable();
    // Since then: one ends, one begins and ends, and an instance is bought.
    await before.fleet.start([order(2, 1)]);
    await launch(before, token, LATER);
    await until(async () => (await endsOf(before, 0)).length + (await endsOf(before, 2)).length === 2);
    const launchedMs = Number(world.double.now());
    await until(async () => Number(world.double.now()) > launchedMs + OLD_S * 1000);
    restore();

    const after = world.process();
    expect((await after.store.loadActive()).instances.map((i) => i.id)).toEqual([KNOWN]);
    expect(await endsOf(after, 0)).toEqual([]);
    const { leaked } = await after.sweep();
    expect(leaked.map((l) => l.instance)).toEqual([LATER]);
    // No event tells of it any more.
    await until(async () => (await endsOf(after, 0)).length === 1);
    // The next cycle wants it started, for all that it knows: it is found as it ended.
    expect(await after.fleet.start([order(2, 1)])).toEqual([{ status: 'done' }]);
    await until(async () => {
      await after.sweep();
      return (await endsOf(after, 2)).length === 1;
    });
    expect(await endsOf(after, 0)).toMatchObject([{ exitCode: 0, stopped: null }]);
    expect(await endsOf(after, 2)).toMatchObject([{ exitCode: 0, stopped: null }]);
    expect(await endsOf(after, 1)).toEqual([]);
    for (const index of [0, 1, 2]) expect(world.tasks(attempt(index))).toHaveLength(1);
    await until(async () => (await world.instances()).get(LATER)?.[0]?.state === 'terminated');
    expect((await world.instances()).get(KNOWN)?.map((i) => i.state)).toEqual(['running']);
  } finally {
    await world.close();
  }
}, 60_000);
