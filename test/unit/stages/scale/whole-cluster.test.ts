import { describe, expect, it } from '@jest/globals';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { epochMs, raw } from '../../../../lib/kernel/units.ts';
import type { Purchase } from '../../../../lib/domain/plan.ts';
import type { PoolView } from '../../../../lib/domain/pool.ts';
import { withinReservations } from '../../../../lib/cycle/decide/within-reservations.ts';
import { scaling } from '../../../../lib/stages/scale/acquire.ts';
import { releaseIdle } from '../../../../lib/stages/scale/release.ts';
import { stratusScaler } from '../../../../lib/stages/scale/stratus.ts';
import { keptWithWork, onWholeCluster } from '../../../../lib/stages/scale/whole-cluster.ts';
import { config, group, instance, NOW, pool, resources, view, world } from '../../../support/decision-world.ts';
import { acquireInput, type Wanted } from '../../../support/leftovers.ts';

const ownPool = (type: string, vcpus: number) => ({
  ...pool({ type, zone: 'rack-1', option: 'reserved', vcpus, gib: 4 * vcpus, onDemand: 0.1 }),
  isOwn: true as const,
});
const own = (reservedLeft: number, usdPerHour = 0, of = ownPool('node', 4)): PoolView => ({
  ...view(of, usdPerHour),
  reservedLeft,
});
const spot = view(pool({ type: 'm5.large', vcpus: 2, gib: 8, onDemand: 0.1 }), 0.04);
const want = (count: number, vcpus = 2): Wanted => ({
  group: group({ id: 'a', need: resources(vcpus, 1), count }),
  runtimeS: 3000,
  pools: [spot],
});

const acquire = onWholeCluster(stratusScaler({ mostTasks: Infinity }));
/** Instances by pool. */
const counted = (purchases: readonly Purchase[]): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { pool: id, count } of purchases) counts[id] = (counts[id] ?? 0) + count;
  return counts;
};
const bought = (wanted: readonly Wanted[], pools: readonly PoolView[], vcpus = 1e9): Readonly<Record<string, number>> =>
  counted(acquire(acquireInput(wanted, { pools, vcpus })));

describe('the whole cluster', () => {
  const node = ownPool('node', 4).id;

  it('is taken for a single task', () => {
    expect(bought([want(1)], [own(10), spot])).toEqual({ [node]: 10 });
  });

  it('is left alone where no task may use it, or where its machines cost something', () => {
    expect(bought([want(1)], [own(10, 0, ownPool('tiny', 1)), spot])).toEqual({ [spot.pool.id]: 1 });
    expect(bought([want(1)], [own(10, 0.5), spot])).toEqual({ [spot.pool.id]: 1 });
  });

  it('is taken as far as the limit on vCPUs allows', () => {
    expect(bought([want(1)], [own(10)], 11)).toEqual({ [node]: 2 });
    expect(bought([want(1)], [own(10)], 3)).toEqual({});
  });

  it('is not all there is: what it does not hold is bought in the same decision', () => {
    const scale = withinReservations(scaling(acquire, () => []));
    // Six tasks of two vCPUs: four on two machines, and two on two instances.
    const input = {
      ...acquireInput([{ ...want(6), pools: [own(2), spot] }], { pools: [own(2), spot] }),
      later: () => [],
      used: new Set<never>(),
    };
    expect(counted(scale(input).purchases)).toEqual({ [node]: 2, [spot.pool.id]: 2 });
  });

  it('is taken by and by where it is large', () => {
    expect(bought([want(5)], [own(100_000)])).toEqual({ [node]: 1003 });
  });

  it('is kept while any work waits or runs, and given back then', () => {
    const launched = { launchedMs: epochMs(raw(NOW) - 1e6) };
    const instances = [instance('own', ownPool('node', 4), launched), instance('sold', spot.pool, launched)];
    const released = (groups: readonly Wanted['group'][]) => {
      const { snapshot } = world({ pools: [own(9), spot], instances, groups });
      const given = { snapshot, used: new Set<never>(), config: config() };
      return keptWithWork(releaseIdle)(given).map((r) => r.instance);
    };
    expect(released([want(1).group])).toEqual([instanceId('sold')]);
    expect(released([])).toEqual([instanceId('own'), instanceId('sold')]);
  });
});
