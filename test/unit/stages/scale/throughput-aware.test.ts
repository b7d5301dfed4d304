import { describe, expect, it } from '@jest/globals';
import { jobId } from '../../../../lib/kernel/ids.ts';
import type { NeighbourBelief } from '../../../../lib/policy/colocation/neighbour-belief.ts';
import { poolParts } from '../../../../lib/domain/pool.ts';
import { throughputAware as acquire } from '../../../../lib/stages/scale/throughput-aware.ts';
import { throughputAware as place } from '../../../../lib/stages/place/throughput-aware.ts';
import type { DecisionContext, Host, TaskToPlace } from '../../../../lib/policy/contracts.ts';
import { job } from '../../../support/builders.ts';
import { group, instance, pool, resources, view } from '../../../support/decision-world.ts';
import { acquireInput } from '../../../support/leftovers.ts';
import { seconds } from '../../../../lib/kernel/units.ts';

const SMALL = view(pool({ type: 'c5.large', vcpus: 2, gib: 4, option: 'on-demand', onDemand: 0.1 }), 0.1);
/** A little cheaper for each vCPU. */
const LARGE = view(pool({ type: 'c5.2xlarge', vcpus: 8, gib: 16, option: 'on-demand', onDemand: 0.36 }), 0.36);

/** Each further neighbour takes this part of the throughput. */
const losing = (of: Readonly<Record<string, number>>): NeighbourBelief =>
  ({
    groupOf: (template: string) => template,
    pair: () => ({ mean: 0, variance: 1 }),
    slowdown: (template: string, beside: readonly { readonly tasks?: number }[]) => {
      const neighbours = beside.reduce((sum, { tasks = 1 }) => sum + tasks, 0);
      return { factor: 1 / (1 - (of[template] ?? 0)) ** neighbours, sd: 0 };
    },
  }) as unknown as NeighbourBelief;
const unknown = { ...losing({}), pair: () => null } as NeighbourBelief;

const jobs = new Map(['noisy', 'quiet'].map((name) => [jobId(name), job({ id: jobId(name), template: `t/${name}` })]));

function bought(name: string, count: number, belief: NeighbourBelief): Readonly<Record<string, number>> {
  const of = group({ id: name, count, need: resources(2, 4), stage: { name: 'main' } });
  const input = acquireInput([{ group: of, runtimeS: 3600, pools: [SMALL, LARGE] }], { pools: [SMALL, LARGE] });
  const purchases = acquire({
    ...input,
    snapshot: { ...input.snapshot, jobs },
    beliefs: { of: () => belief } as unknown as DecisionContext['beliefs'],
  });
  return Object.fromEntries(purchases.map((p) => [poolParts(p.pool).type, p.count]));
}

describe('throughput-aware purchases', () => {
  it('are large instances for tasks that lose nothing beside one another', () => {
    expect(bought('quiet', 8, losing({}))).toEqual({ 'c5.2xlarge': 2 });
    expect(bought('quiet', 9, losing({}))).toEqual({ 'c5.2xlarge': 2, 'c5.large': 1 });
  });

  it('are small ones where together they are not worth the large one', () => {
    // Four on the large one are worth 4 x 0.1 x 0.9^3 = 0.29 of 0.36 USD.
    expect(bought('noisy', 8, losing({ 't/noisy/main': 0.1 }))).toEqual({ 'c5.large': 8 });
    // 4 x 0.1 x 0.97^3 = 0.365.
    expect(bought('noisy', 8, losing({ 't/noisy/main': 0.03 }))).toEqual({ 'c5.2xlarge': 2 });
  });

  it('take unknown neighbours for ones that cost 5 %', () => {
    // 4 x 0.1 x 0.95^3 = 0.343.
    expect(bought('quiet', 8, unknown)).toEqual({ 'c5.large': 8 });
  });
});

describe('throughput-aware placement', () => {
  const placed = (belief: NeighbourBelief, running: string, gang: string | null = null, tasks = 1): number => {
    const of = group({ id: 'noisy', count: tasks, need: resources(2, 4), stage: { name: 'main' } });
    const { snapshot, ...rest } = acquireInput([{ group: of, runtimeS: 3600, pools: [SMALL, LARGE] }], {
      pools: [SMALL, LARGE],
    });
    const there = instance('i', LARGE.pool);
    const attempt = { job: jobId(running), resources: resources(2, 4), state: 'running' };
    const attempts = [{ attempt, stage: of.stage }] as unknown as typeof there.attempts;
    const context = {
      ...rest,
      snapshot: { ...snapshot, jobs, instances: new Map([[there.instance.id, { ...there, attempts }]]) },
      beliefs: { of: () => belief },
    } as unknown as DecisionContext;
    const task = (index: number): TaskToPlace => ({
      task: { job: of.job, stage: 'main', index },
      group: of.id,
      need: of.need,
      runtimeS: seconds(60),
      gang,
      allowed: () => true,
    });
    const free = resources(6, 12);
    const host: Host = { on: there.instance.id, pool: LARGE.pool, capacity: there.free, free, remainingS: seconds(9) };
    return place(
      Array.from({ length: tasks }, (_, n) => task(n)),
      [host],
      context,
    ).length;
  };

  it('puts a task where it adds more than its neighbours lose', () => {
    expect(placed(losing({ 't/noisy/main': 0.3 }), 'quiet')).toBe(1);
    // Both lose 60 %: together they are worth less than the one that runs.
    expect(placed(losing({ 't/noisy/main': 0.6, 't/quiet/main': 0.6 }), 'quiet')).toBe(0);
  });

  it('places a gang whole or not at all', () => {
    expect(placed(losing({}), 'quiet', 'g', 3)).toBe(3);
    expect(placed(losing({}), 'quiet', 'g', 4)).toBe(0);
    expect(placed(losing({}), 'quiet', null, 4)).toBe(3);
  });
});
