import { describe, expect, it } from '@jest/globals';
import type { Job, StageSpec } from '../../../lib/domain/job.ts';
import type { Allotment, Plan, Purchase } from '../../../lib/domain/plan.ts';
import type { Pool } from '../../../lib/domain/pool.ts';
import { groupId, poolId } from '../../../lib/kernel/ids.ts';
import { raw, seconds } from '../../../lib/kernel/units.ts';
import type { LaterDemand, ScaleInput, ScalePolicy } from '../../../lib/policy/contracts.ts';
import { scale } from '../../../lib/policy/own/answers.ts';
import { job, resources, spec, stage } from '../../support/builders.ts';
import { at, decided, jobOf, NOW_S, onDemand, spot, type Scene } from '../../support/decision-scene.ts';

/** A job of which nothing has run yet. */
const fresh = (id: string, tasks: number, cpus: number, over: Partial<StageSpec> = {}): Job => {
  const made = stage({ tasks, resources: resources(cpus), expectedRuntimeS: seconds(600), ...over });
  return job({ name: id, submittedMs: at(0), spec: spec({ name: id, stages: [made] }) });
};
const postponed = (of: Job, untilS: number): Job => ({
  ...of,
  stages: of.stages.map((s) => ({ ...s, notBeforeMs: at(untilS) })),
});
/** Buys so many instances ahead, for all that waits for later or for those named. */
const ahead =
  (count: number, where: Pool = spot, seen: LaterDemand[] = [], named?: readonly string[]): ScalePolicy =>
  ({ later }) => {
    seen.splice(0, seen.length, ...later());
    const serves = named?.map(groupId) ?? seen.map((l) => l.group.id);
    return { purchases: [{ pool: where.id, bid: 'uncapped', count, reason: 'ahead', serves }], releases: [] };
  };
const launchesOf = (plan: Plan) =>
  plan.effects.flatMap((e) => (e.kind === 'launch' ? [[e.pool, (e.boughtFor ?? []).map((b) => b.job)]] : []));

describe('purchases ahead of demand', () => {
  const late = postponed(fresh('j-late', 3, 2), NOW_S + 1800);

  it('are made for work with an earliest start, as many as it fills', async () => {
    const seen: LaterDemand[] = [];
    const { plan } = await decided({ jobs: [late], scale: ahead(5, spot, seen) });
    expect(seen.map((l) => [l.group.id, l.count, raw(l.fromMs)])).toEqual([
      ['j-late/main/fresh', 3, raw(at(NOW_S + 1800))],
    ]);
    // Two tasks of 2 vCPUs fit on each of 4.
    expect(launchesOf(plan)).toEqual([
      [spot.id, ['j-late']],
      [spot.id, ['j-late']],
    ]);
    expect(plan.explanations).toHaveLength(1);
  });

  it('are made for what the plan defers, by slot', async () => {
    const one = fresh('j-one', 2, 2);
    const { deliberation } = await decided({ jobs: [one] });
    const offer = deliberation.offers.get(groupId('j-one/main/fresh'))?.offers[0];
    if (offer === undefined) throw new Error('an offer');
    const option = { group: offer.group, offer, slot: 2, startMs: at(NOW_S + 1200), worthUsd: 1, costUsd: 0.1 };
    const allotment: Partial<Allotment> = { deferred: [{ option, count: 2, reason: 'later' }] };
    const seen: LaterDemand[] = [];
    const { plan } = await decided({ jobs: [one, late], allotment, scale: ahead(1, spot, seen, ['j-one/main/fresh']) });
    expect(seen.map((l) => [l.group.job, raw(l.fromMs)])).toEqual([
      ['j-one', raw(at(NOW_S + 1200))],
      ['j-late', raw(at(NOW_S + 1800))],
    ]);
    expect(launchesOf(plan)).toEqual([[spot.id, ['j-one']]]);
  });

  it('are made for a task that waits for its time alone, and not for one of a job that is being stopped', async () => {
    const tried = jobOf('j-tried', { waiting: 1 });
    const task = { job: tried.id, stage: 'main', index: 0, state: 'waiting', attempts: 1 } as const;
    const tasks: Scene['tasks'] = [{ ...task, failures: 0, keptS: seconds(0), notBeforeMs: at(NOW_S + 60) }];
    const seen: LaterDemand[] = [];
    const { plan } = await decided({ jobs: [tried], tasks, scale: ahead(1, spot, seen) });
    expect(seen.map((l) => l.group.members)).toEqual([{ indices: [0] }]);
    expect(launchesOf(plan)).toHaveLength(1);
    const looks: ScalePolicy = ({ later }) => (
      seen.splice(0, seen.length, ...later()),
      { purchases: [], releases: [] }
    );
    await decided({ jobs: [{ ...tried, cancelRequested: true }], tasks, scale: looks });
    expect(seen).toEqual([]);
  });

  it('are made for no other: of such a group there is no later demand, or none that may run there', async () => {
    const unknown = decided({ jobs: [late], scale: ahead(1, spot, [], ['j-none/main/fresh']) });
    await expect(unknown).rejects.toThrow('for what does not wait for later');
    const kept = postponed(fresh('j-kept', 1, 2, { constraints: { purchaseOptions: ['on-demand'] } }), NOW_S + 1800);
    await expect(decided({ jobs: [kept], scale: ahead(1) })).rejects.toThrow('that no task may use');
    expect(launchesOf((await decided({ jobs: [kept], scale: ahead(1, onDemand) })).plan)).toHaveLength(1);
  });

  it('without a name are for work that waits now: there is none', async () => {
    const scale: ScalePolicy = () => ({
      purchases: [{ pool: spot.id, bid: 'uncapped', count: 1, reason: 'for none' }],
      releases: [],
    });
    expect(launchesOf((await decided({ jobs: [late], scale })).plan)).toEqual([]);
  });

  it('keep within the vCPU limit, and within the money of the jobs that they serve, the time before included', async () => {
    expect(launchesOf((await decided({ jobs: [late], vcpus: 4, scale: ahead(2) })).plan)).toHaveLength(1);
    const budget = (limitUsd: number): Scene['budgets'] & {} =>
      new Map([[late.id, { limitUsd, spentUsd: 0, reservedUsd: 0, heldUsd: 0 }]]);
    const bought = async (limitUsd: number, of: Job = late) =>
      launchesOf((await decided({ jobs: [of], budgets: budget(limitUsd), scale: ahead(2) })).plan).length;
    expect([await bought(0.001), await bought(10)]).toEqual([0, 2]);
    // What is enough for soon is not for an instance that waits for hours.
    expect([await bought(0.2), await bought(0.2, postponed(fresh('j-late', 3, 2), NOW_S + 20 * 3600))]).toEqual([2, 0]);
  });
});

describe('purchases ahead by a policy of the user’s own', () => {
  it('are refused where they name no later demand, or none that may run there', async () => {
    const late = postponed(fresh('j-late', 1, 2, { constraints: { zones: ['a'] } }), NOW_S + 1800);
    let input: ScaleInput | null = null;
    await decided({ jobs: [late], scale: (given) => ((input = given), { purchases: [], releases: [] }) });
    const buying = (over: Partial<Purchase>) => {
      const purchase: Purchase = { pool: spot.id, bid: 'uncapped', count: 1, reason: 'ahead', ...over };
      return scale({ purchases: [purchase], releases: [] }, input as unknown as ScaleInput);
    };
    const serves = [groupId('j-late/main/fresh')];
    expect(buying({ serves }).purchases).toEqual([
      { pool: spot.id, bid: 'uncapped', count: 1, reason: 'ahead', serves },
    ]);
    const nowhere = 'where no task';
    expect(() => buying({})).toThrow(nowhere);
    expect(() => buying({ serves: [groupId('j-none')] })).toThrow('for j-none, which does not wait for later');
    expect(() => buying({ serves: [] })).toThrow(nowhere);
    expect(() => buying({ serves, pool: poolId(spot.id.replace('/a/', '/b/')) })).toThrow(nowhere);
  });
});
