import { describe, expect, it } from '@jest/globals';
import { byClass } from '../../../../lib/stages/plan/by-class.ts';
import { greedyPlan } from '../../../../lib/stages/plan/greedy.ts';
import type { PendingGroup } from '../../../../lib/domain/snapshot.ts';
import type { PlanInput, PlanPolicy } from '../../../../lib/policy/contracts.ts';
import { shortJobsFirst } from '../../../../lib/policy/short-jobs.ts';
import { groupId, jobId } from '../../../../lib/kernel/ids.ts';
import { usd } from '../../../../lib/kernel/units.ts';
import { scenario } from '../../../../bench/load/scenario.ts';
import { job as jobOf, spec } from '../../../../bench/load/values.ts';

/** The first group of a drawn scenario as several jobs that are alike. */
function alike(
  counts: readonly number[],
  change: (group: PendingGroup, i: number) => PendingGroup = (g) => g,
): PlanInput {
  const drawn = scenario({ seed: 3, groups: 1, pools: 12, tasksPerGroup: 2, instances: 0, supply: 10 });
  const [first] = drawn.snapshot.groups;
  if (first === undefined) throw new Error('the scenario has a group');
  const runtime = drawn.forecasts.runtime.get(`${first.job}/main`);
  const worth = drawn.worths.groups.get(first.id);
  const offers = drawn.offers.get(first.id);
  if (runtime === undefined || worth === undefined || offers === undefined) throw new Error('the group is appraised');
  const groups = counts.map((count, i) =>
    change({ ...first, id: groupId(`j${i}/main`), job: jobId(`j${i}`), count }, i),
  );
  const named = (id: PendingGroup['id']) => ({ ...offers, offers: offers.offers.map((o) => ({ ...o, group: id })) });
  return {
    ...drawn,
    snapshot: { ...drawn.snapshot, groups, jobs: new Map(groups.map((g) => [g.job, jobOf(g.job)])) },
    forecasts: { ...drawn.forecasts, runtime: new Map(groups.map((g) => [`${g.job}/main` as const, runtime])) },
    worths: { ...drawn.worths, groups: new Map(groups.map((g) => [g.id, worth])) },
    offers: new Map(groups.map((g) => [g.id, named(g.id)])),
  };
}

const tenOrTwenty = (weight: readonly number[]) => ({
  atS: Float64Array.of(10, 20),
  weight: Float64Array.from(weight),
});

/** Counts of the groups that a plan is asked about. */
async function asked(input: PlanInput): Promise<readonly number[]> {
  let counts: readonly number[] = [];
  const seen: PlanPolicy<unknown> = (of, solver) => {
    counts = of.snapshot.groups.map((g) => g.count);
    return greedyPlan(of, solver);
  };
  await byClass(seen)(input, null);
  return counts;
}

describe('a plan by classes', () => {
  it('is asked once about alike groups of different jobs', async () => {
    expect(await asked(alike([1, 2, 3]))).toEqual([6]);
  });

  it('tells apart what a plan may treat differently', async () => {
    expect(await asked(alike([1, 2], (g, i) => ({ ...g, stage: { ...g.stage, gang: i === 1 } })))).toEqual([1, 2]);
    const zones = (g: PendingGroup, i: number) => ({ ...g, stage: { ...g.stage, constraints: { zones: [`z${i}`] } } });
    expect(await asked(alike([1, 2], zones))).toEqual([1, 2]);
    const input = alike([1, 2]);
    const limited = jobOf('j1', { spec: spec({ maxCostUsd: usd(1) }) });
    const jobs = new Map([...input.snapshot.jobs, [limited.id, limited]]);
    expect(await asked({ ...input, snapshot: { ...input.snapshot, jobs } })).toEqual([1, 2]);
  });

  it('tells running times apart by their content', async () => {
    const input = alike([1, 2]);
    const first = input.forecasts.runtime.get('j0/main');
    if (first === undefined) throw new Error('the group has a forecast');
    const of = (weight: readonly number[]) =>
      asked({
        ...input,
        forecasts: {
          ...input.forecasts,
          runtime: new Map([
            ['j0/main', { ...first, runtime: tenOrTwenty([0.5, 0.5]) }],
            ['j1/main', { ...first, runtime: tenOrTwenty(weight) }],
          ]),
        },
      });
    expect(await of([0.5, 0.5])).toEqual([3]);
    expect(await of([0.4, 0.6])).toEqual([1, 2]);
    // Their weighed sums are equal: 10 x 1.5 + 40 x 1.5 = 10 x 1.9 + 40 x 1.4.
    expect(await of([0.9, 0.4])).toEqual([1, 2]);
  });

  it('starts each task of each group once, and names its own group in each option', async () => {
    const { starts } = await byClass(greedyPlan)(alike([1, 2, 3]), null);
    const counts = Map.groupBy(starts, (s) => s.option.group);
    expect([...counts].map(([id, of]) => [id, of.reduce((n, s) => n + s.count, 0)])).toEqual([
      ['j0/main', 1],
      ['j1/main', 2],
      ['j2/main', 3],
    ]);
    for (const { option } of starts) expect(option.offer.group).toBe(option.group);
  });

  it('counts the work of each job, not that of its class, for short jobs first', async () => {
    const bestEffort = (g: PendingGroup): PendingGroup => ({ ...g, class: 'best-effort' });
    const input = alike([1, 1, 1, 1, 3], bestEffort);
    const order: string[] = [];
    await byClass((of) => {
      const first = shortJobsFirst(of);
      order.push(...of.snapshot.groups.toSorted((a, b) => first(b) - first(a)).map((g) => `${g.id} ${g.count}`));
      return greedyPlan(of, null);
    })({ ...input, config: { ...input.config, shortJobsFirst: true } }, null);
    expect(order).toEqual(['j0/main 4', 'j4/main 3']);
  });

  it('shares out what waits', async () => {
    const input = alike([1, 2, 3]);
    const snapshot = { ...input.snapshot, limits: { vcpus: 0 } };
    const { starts, waits } = await byClass(greedyPlan)({ ...input, snapshot }, null);
    expect(starts).toHaveLength(0);
    expect(waits.map((w) => [w.group, w.count])).toEqual([
      ['j0/main', 1],
      ['j1/main', 2],
      ['j2/main', 3],
    ]);
  });
});
