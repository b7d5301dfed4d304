import { describe, expect, it } from '@jest/globals';
import { keptApart } from '../../../lib/cycle/replicas/apart.ts';
import { scaleReplicas, servicePlansOf } from '../../../lib/cycle/replicas/footprint.ts';
import { acquiringBy } from '../../../lib/cycle/replicas/in-plans.ts';
import type { MarketForecast } from '../../../lib/domain/forecasts.ts';
import type { Job } from '../../../lib/domain/job.ts';
import { forecastTable, tabledForecast } from '../../../lib/market/forecast/forecast-data.ts';
import { bidsAsked } from '../../../lib/policy/asks.ts';
import { presetNamed } from '../../../lib/stages/registry.ts';
import { FOOTPRINTS } from '../../../lib/stages/services/footprints.ts';
import { SERVICE_LABEL, type ServiceNeed } from '../../../lib/domain/service.ts';
import type { Snapshot } from '../../../lib/domain/snapshot.ts';
import { jobId } from '../../../lib/kernel/ids.ts';
import { plus, raw, seconds } from '../../../lib/kernel/units.ts';
import type { Leftover, ScaleInput, ScalePolicy } from '../../../lib/policy/contracts.ts';
import type { FootprintContext, FootprintPolicy } from '../../../lib/policy/services/contracts.ts';
import { job, spec } from '../../support/builders.ts';
import {
  config,
  exponential,
  group,
  instance,
  market,
  NOW,
  pool,
  resources,
  stage,
  view,
} from '../../support/decision-world.ts';

/** Pools of four and of two vCPUs. */
const LARGE = pool({ type: 'a.large', zone: 'a', vcpus: 4, option: 'spot', onDemand: 0.2 });
const SMALL = pool({ type: 'b.small', zone: 'b', vcpus: 2, option: 'spot' });
const SURE = pool({ type: 'a.large', zone: 'a', vcpus: 4, option: 'on-demand' });

const replicaJob = (id: string, over: Parameters<typeof stage>[0] = {}): Job =>
  job({
    id: jobId(id),
    submittedMs: NOW,
    spec: spec({
      name: id,
      class: 'service',
      labels: { [SERVICE_LABEL]: 'web' },
      stages: [stage({ name: 'replica', resources: resources(1, 1), ...over })],
    }),
  });

const leftover = (of: Job): Leftover => {
  const [main] = of.spec.stages;
  return {
    group: group({ id: `${of.id}/replica`, job: of.id, class: 'service', stage: main, need: main?.resources } as never),
    option: {} as Leftover['option'],
    count: 1,
    runtimeS: 3600 as never,
  };
};

interface World {
  readonly jobs: readonly Job[];
  readonly needed: number;
  readonly running?: number;
  readonly utility?: ServiceNeed['utility'];
  readonly together?: ServiceNeed['together'];
}

/** Replicas that wait, and some that run on an instance of the large pool. */
function inputOf({ jobs, needed, running = 0, utility = null, together = null }: World): ScaleInput {
  const held = Array.from({ length: running }, (_, i) => replicaJob(`r-${i}`));
  const views = running === 0 ? [] : [instance('i-1', LARGE)];
  const attempts = held.map((of) => ({ attempt: { job: of.id } }));
  const need: ServiceNeed = { name: 'web', needed, target: 0.95, utility, together };
  const snapshot = {
    nowMs: NOW,
    jobs: new Map([...jobs, ...held].map((j) => [j.id, j])),
    pools: [view(LARGE, 0.1), view(SMALL, 0.06), view(SURE, 0.4)],
    instances: new Map(views.map((v) => [v.instance.id, { ...v, attempts }])),
    services: new Map([['web', need]]),
    running: [],
  } as unknown as Snapshot;
  return {
    snapshot,
    config: config(),
    forecasts: { runtime: new Map(), market: market([], () => exponential(0.01)) },
    leftovers: jobs.map(leftover),
    later: () => [],
    used: new Set(),
  } as unknown as ScaleInput;
}

const buying =
  (...buy: ReturnType<FootprintPolicy>['buy']): FootprintPolicy =>
  () => ({ buy, release: [] });
const nothing: ScalePolicy = () => ({ purchases: [], releases: [] });
const waiting = (count: number, over: Parameters<typeof stage>[0] = {}): readonly Job[] =>
  Array.from({ length: count }, (_, i) => replicaJob(`w-${i}`, over));

describe('instances for replicas', () => {
  it('are bought as the footprint policy says, no more than replicas that wait fill', () => {
    const asked: Leftover[][] = [];
    const rest: ScalePolicy = ({ leftovers }) => {
      asked.push([...leftovers]);
      return { purchases: [], releases: [] };
    };
    const footprint = buying({ pool: LARGE.id, bid: 'uncapped', count: 5, reason: 'cheap' });
    const { purchases } = scaleReplicas(rest, { footprint })(inputOf({ jobs: waiting(6), needed: 6 }));
    // Four fit on one: two instances hold six.
    expect(purchases).toEqual([
      { pool: LARGE.id, bid: 'uncapped', count: 2, reason: 'for replicas of a service: cheap' },
    ]);
    expect(asked).toEqual([[]]);
  });

  it('are bought by the plan where the footprint policy has too little', () => {
    const asked: number[] = [];
    const rest: ScalePolicy = ({ leftovers }) => {
      asked.push(leftovers.reduce((n, l) => n + l.count, 0));
      return { purchases: [], releases: [] };
    };
    const footprint = buying({ pool: SMALL.id, bid: 'uncapped', count: 1, reason: 'all there is' });
    const { purchases } = scaleReplicas(rest, { footprint })(inputOf({ jobs: waiting(5), needed: 5 }));
    expect([purchases.length, asked]).toEqual([1, [3]]);
  });

  it('are in pools that the file and the preset allow alone, and counted in replicas', () => {
    const seen: FootprintContext[] = [];
    const footprint: FootprintPolicy = (context) => {
      seen.push(context);
      return { buy: [], release: [] };
    };
    const constrained = waiting(1, { constraints: { zones: ['a'] }, placement: { maxPerInstance: 3 } });
    scaleReplicas(nothing, { footprint, buys: ({ option }) => option === 'spot' })(
      inputOf({ jobs: constrained, needed: 4, running: 2 }),
    );
    const [context] = seen;
    expect(context?.pools.map(({ pool: { id, type } }) => [id, raw(type.capacity.cpu)])).toEqual([[LARGE.id, 3000]]);
    expect(context?.held.map(({ id, units }) => [id, units])).toEqual([['i-1', 2]]);
    expect([0, 2, 4, 8].map((n) => context?.demand.utility(n))).toEqual([0, 0.5, 1, 1]);
  });

  it('are apart where half of them are to survive a loss', () => {
    const { purchases } = scaleReplicas(nothing, { footprint: FOOTPRINTS.ebbtide.policy })(
      inputOf({ jobs: waiting(4), needed: 4, together: 2 }),
    );
    expect(new Set(purchases.map((p) => p.pool))).toEqual(new Set([LARGE.id, SMALL.id]));
    // Together on the large instance they cost least.
    const all = scaleReplicas(nothing, { footprint: FOOTPRINTS.ebbtide.policy })(
      inputOf({ jobs: waiting(4), needed: 4 }),
    );
    expect(all.purchases.map(({ pool: of, count }) => [of, count])).toEqual([[LARGE.id, 1]]);
  });

  it('follow the utility that the service states', () => {
    const seen: FootprintContext[] = [];
    const footprint: FootprintPolicy = (context) => {
      seen.push(context);
      return { buy: [], release: [] };
    };
    const utility = [
      [0, 0],
      [0.5, 0.9],
      [1, 1],
    ] as const;
    scaleReplicas(nothing, { footprint })(inputOf({ jobs: waiting(1), needed: 4, utility }));
    expect([1, 2, 3, 4].map((n) => seen[0]?.demand.utility(n))).toEqual([0.45, 0.9, 0.95, 1]);
  });

  it('have spare ones as far as the policy wants more than the load needs, and never more than as many again', () => {
    const spare = (count: number): number | undefined => {
      const footprint = buying({ pool: SMALL.id, bid: 'uncapped', count, reason: 'risk' });
      return servicePlansOf(inputOf({ jobs: [], needed: 4, running: 4 }), { footprint })[0]?.spare;
    };
    expect([spare(0), spare(1), spare(2), spare(50)]).toEqual([0, 1, 3, 4]);
  });

  it('have none spare where nothing is at risk', () => {
    const calm = inputOf({ jobs: [], needed: 4, running: 4 });
    expect(servicePlansOf(calm, acquiringBy(calm.config, {}))).toEqual([
      { service: 'web', spare: 0, relocation: null },
    ]);
  });

  it('have an own policy by name alone', () => {
    expect(() => acquiringBy(config({ serviceFootprint: 'none-such' }), {})).toThrow('no footprint policy none-such');
  });
});

describe('replicas that are apart', () => {
  const room = (over: Parameters<typeof inputOf>[0], change: Partial<Snapshot> = {}): number | undefined => {
    const { snapshot } = inputOf(over);
    const groups = over.jobs.map((of) => leftover(of).group);
    const kept = keptApart({ ...snapshot, limits: { vcpus: 1000 }, groups, ...change });
    const [some] = over.jobs;
    return some === undefined ? undefined : kept.jobs.get(some.id)?.spec.stages[0]?.placement?.maxPerInstance;
  };
  const four = { jobs: waiting(2), needed: 4, running: 2, together: 2 };
  const noneOpen = inputOf(four).snapshot.pools.map((v) => ({ ...v, open: false }));

  it('take half of them on one instance, and all where the service asks for one replica at least', () => {
    expect(room(four)).toBe(2);
    expect(room({ ...four, together: null })).toBeUndefined();
  });

  it('take any instance where nothing else is sold and no other has room', () => {
    expect(room(four, { pools: noneOpen })).toBeUndefined();
    const other = instance('i-2', SMALL);
    const instances = new Map([...inputOf(four).snapshot.instances.values(), other].map((v) => [v.instance.id, v]));
    expect(room(four, { pools: noneOpen, instances })).toBe(2);
  });

  it('take any instance where the limit on vCPUs lets nothing be bought', () => {
    expect([room(four, { limits: { vcpus: 6 } }), room(four, { limits: { vcpus: 5 } })]).toEqual([2, undefined]);
  });

  it('take any instance after ten minutes of waiting', () => {
    const waited = (s: number) => ({
      ...four,
      jobs: four.jobs.map((j) => ({ ...j, submittedMs: plus(NOW, seconds(-s)) })),
    });
    expect([room(waited(599)), room(waited(601))]).toEqual([2, undefined]);
  });
});

describe('replicas that are dear where they are', () => {
  /** Replicas on demand, with spot beside it at this price. */
  const onDemand = (spotUsd: number | null, over: { readonly ageS?: number; readonly beside?: boolean } = {}) => {
    const { ageS = 3000, beside = false } = over;
    const held = [0, 1].map((i) => replicaJob(`r-${i}`));
    const other = job({ id: jobId('batch'), spec: spec({ name: 'batch', class: 'best-effort' }) });
    const on = instance('i-1', SURE, { launchedMs: plus(NOW, seconds(-ageS)) });
    const attempts = [...held, ...(beside ? [other] : [])].map((of) => ({ attempt: { job: of.id } }));
    const snapshot = {
      nowMs: NOW,
      jobs: new Map([...held, other].map((j) => [j.id, j])),
      pools: [view(SMALL, spotUsd), view(SURE, 0.4)],
      instances: new Map([[on.instance.id, { ...on, attempts }]]),
      running: [],
      services: new Map([['web', { name: 'web', needed: 2, target: 0.95, utility: null }]]),
    } as unknown as Snapshot;
    const known = { snapshot, config: config(), forecasts: { market: market([], () => exponential(0.01)) } };
    return servicePlansOf(known, acquiringBy(config(), {}))[0]?.relocation;
  };

  it('go to the pools that the footprint policy would buy in their place', () => {
    expect(onDemand(0.06)).toEqual({
      instance: 'i-1',
      within: { instanceTypes: ['b.small'], zones: ['b'], purchaseOptions: ['spot'] },
      reason: 'its replicas cost 0.1 USD/h on a.large/a/on-demand, and 0.06 elsewhere',
    });
  });

  it.each<[string, Parameters<typeof onDemand>]>([
    ['is not clearly cheaper', [0.09]],
    ['sells nothing', [null]],
    ['is cheaper, but they have just begun', [0.06, { ageS: 300 }]],
    ['is cheaper, but a job keeps their instance', [0.06, { beside: true }]],
  ])('stay where another pool %s', (_, of) => {
    expect(onDemand(...of)).toBeNull();
  });

  it('have no spare ones where best-effort tasks would give way', () => {
    const { snapshot, config: of, forecasts } = inputOf({ jobs: [], needed: 4, running: 4 });
    const footprint = buying({ pool: LARGE.id, bid: 'uncapped', count: 2, reason: 'some' });
    const spare = (tasks: number): number | undefined => {
      const task = { class: 'best-effort', attempt: { state: 'running', instance: 'i-1' }, stage: stage() };
      const running = Array.from({ length: tasks }, () => ({
        ...task,
        stage: stage({ resources: resources(1, 1) }),
      }));
      const known = { snapshot: { ...snapshot, running } as unknown as Snapshot, config: of, forecasts };
      return servicePlansOf(known, { footprint })[0]?.spare;
    };
    expect([spare(0), spare(1), spare(3), spare(9)]).toEqual([4, 3, 1, 0]);
  });
});

describe('in a cycle of separate processes, replicas', () => {
  const { asks } = presetNamed('ebbtide', {});
  const table = (of: Snapshot) => {
    const whole = { ...market(of.pools, () => exponential(0.01)), outlook: () => null };
    return tabledForecast(forecastTable(whole, NOW, bidsAsked({ ...of, instances: new Map() }, asks, config())));
  };

  it.each([...Object.keys(FOOTPRINTS), 'autoscale-lowest+0.5'])('are planned by %s', (serviceFootprint) => {
    const { snapshot, forecasts } = inputOf({ jobs: waiting(6), needed: 6 });
    const acquiring = acquiringBy(config({ serviceFootprint }), {});
    const spares = (of: MarketForecast) =>
      servicePlansOf({ snapshot, config: config(), forecasts: { market: of } }, acquiring);
    expect(spares(table(snapshot))).toEqual(spares(forecasts.market));
  });

  it('cost a deployment without services no forecast', () => {
    const { snapshot } = inputOf({ jobs: [], needed: 1 });
    const count = (of: Snapshot): number => bidsAsked({ ...of, instances: new Map() }, asks, config()).length;
    expect(count({ ...snapshot, services: new Map() })).toBeLessThan(count(snapshot));
  });
});
