import { describe, expect, it } from '@jest/globals';
import type { Deliberation } from '../../../lib/cycle/decide/deliberation.ts';
import type { Offer } from '../../../lib/domain/forecast.ts';
import type { Instance } from '../../../lib/domain/instance.ts';
import type { Attempt, Job, StageSpec, Task } from '../../../lib/domain/job.ts';
import type { Allotment, Plan } from '../../../lib/domain/plan.ts';
import type { Pool } from '../../../lib/domain/pool.ts';
import { invariant } from '../../../lib/kernel/errors.ts';
import { attemptId, groupId, instanceId, jobId } from '../../../lib/kernel/ids.ts';
import { raw, seconds, ZERO_S } from '../../../lib/kernel/units.ts';
import { eachItsPlace } from '../../../lib/stages/queue/queue.ts';
import { job, pool, resources, spec, stage } from '../../support/builders.ts';
import {
  START_MS,
  at,
  NOW_S,
  spot,
  onDemand,
  host,
  runs,
  jobOf,
  decided,
  keysOf,
  priceOf,
  type Scene,
} from '../../support/decision-scene.ts';

describe('an attempt that must move and has nowhere to go under the vCPU limit', () => {
  const move = (...ids: readonly string[]): Pick<Scene, 'moves'> => ({
    moves: ids.map((attempt) => ({ attempt, reason: 'its deadline' })),
  });
  const two = jobOf('j-two', { running: 2 });
  const together = (over: Partial<Attempt> = {}): Scene => ({
    jobs: [two],
    attempts: [
      runs('a0', two, { resources: resources(2) }),
      runs('a1', two, { index: 1, resources: resources(2), ...over }),
    ],
    instances: [host('i-test', spot)],
    vcpus: 4,
  });

  it('stops first when that empties its instance, and so makes room', async () => {
    const { plan } = await decided({ ...together(), ...move('a0', 'a1') });
    expect(keysOf(plan, 'stop')).toEqual(['a0', 'a1']);
    const leaving = await decided({ ...together({ state: 'stopping' }), ...move('a0') });
    expect(keysOf(leaving.plan, 'stop')).toEqual(['a0']);
  });

  it('stays when something else keeps its instance: stopping would make no room', async () => {
    const { plan } = await decided({ ...together(), ...move('a0') });
    expect(keysOf(plan, 'stop')).toEqual([]);
    expect(keysOf(plan, 'launch')).toEqual([]);
  });

  it('stays until what can be bought for it is there', async () => {
    const { plan } = await decided({ ...together(), vcpus: 64, ...move('a0') });
    expect(keysOf(plan, 'stop')).toEqual([]);
    expect(keysOf(plan, 'launch')).toHaveLength(1);
  });
});

describe('the instance for an attempt that is stopping to go on elsewhere', () => {
  const one = jobOf('j-one', { running: 1 });
  const scene = (over: Partial<Attempt>, of: Job = one): Scene => ({
    jobs: [of],
    attempts: [runs('a0', of, { state: 'stopping', ...over })],
    instances: [host('i-test', spot), host('i-next', onDemand), host('i-idle', spot)],
  });

  it('is kept while it waits there, and other idle ones are given back', async () => {
    expect(keysOf((await decided(scene({}))).plan, 'release')).toEqual(['i-idle']);
  });

  it('is not kept for one that does not leave, nor for a job that ends', async () => {
    expect(keysOf((await decided(scene({ state: 'running' }))).plan, 'release')).toEqual(['i-idle', 'i-next']);
    const cancelled = { ...one, cancelRequested: true };
    expect(keysOf((await decided(scene({}, cancelled))).plan, 'release')).toEqual(['i-idle', 'i-next']);
  });

  it('is not one that its constraints forbid', async () => {
    const elsewhere = jobOf('j-one', { running: 1 }, { constraints: { zones: ['b'] } });
    expect(keysOf((await decided(scene({}, elsewhere))).plan, 'release')).toEqual(['i-idle', 'i-next']);
  });
});

/** A job of which nothing has run yet. */
const fresh = (id: string, tasks: number, cpus: number, over: Partial<StageSpec> = {}): Job => {
  const made = stage({ tasks, resources: resources(cpus), expectedRuntimeS: seconds(600), ...over });
  return job({ name: id, submittedMs: at(0), spec: spec({ name: id, stages: [made] }) });
};
const start = (of: Job, kind: 'fresh' | 'gang', count: number, where: Pool = spot): Allotment['starts'][number] => {
  const offer: Offer = {
    group: groupId(`${of.id}/main/${kind}`),
    pool: where.id,
    bid: 'uncapped',
    priceUsdPerHour: priceOf(where),
    share: 0.25,
    roomShare: 0.25,
    newShare: 0.25,
    startDelayS: seconds(90),
    pInterrupted: 0,
    pLate: 0,
    expectedLostS: ZERO_S,
    expectedDurationS: seconds(600),
    expectedCostUsd: 0.1,
  };
  const option = {
    group: offer.group,
    offer,
    slot: 0,
    startMs: at(NOW_S),
    worthUsd: 1,
    costUsd: 0.1,
  };
  return { option, count, reason: 'it pays' };
};
const startsOf = (plan: Plan) => plan.effects.flatMap((e) => (e.kind === 'start' ? [e.task.job] : []));

describe('work on on-demand that the plan sends back to spot', () => {
  const scene = (over: Partial<StageSpec>): Scene => {
    const one = { ...jobOf('j-one', { running: 1 }, over), deadlineMs: at(12 * 3600) };
    return {
      jobs: [{ ...one, spec: { ...one.spec, class: 'deadline' as const } }],
      attempts: [runs('a0', one)],
      instances: [host('i-test', onDemand), host('i-spot', spot)],
      moves: [{ attempt: 'a0', reason: 'it pays', to: 'spot' }],
    };
  };

  it('stops where spot is ready to take it', async () => {
    expect(keysOf((await decided(scene({ expectedRuntimeS: seconds(7200) }))).plan, 'stop')).toEqual(['a0']);
  });

  it('stays where it would not be started on spot: it saves nothing, has a deadline, and nothing is known of its running time', async () => {
    const { plan } = await decided(scene({ expectedRuntimeS: null, checkpoint: null }));
    expect(keysOf(plan, 'stop')).toEqual([]);
    expect(keysOf(plan, 'launch')).toEqual([]);
  });

  it('stays where spot is forbidden to it', async () => {
    const { plan } = await decided(
      scene({ expectedRuntimeS: seconds(7200), constraints: { purchaseOptions: ['on-demand'] } }),
    );
    expect(keysOf(plan, 'stop')).toEqual([]);
  });
});

describe('a task that would be late if it waited for an instance to start', () => {
  const urgent = (id: string, deadlineS: number, runtimeS = 30): Job => {
    const made = fresh(id, 1, 3, { expectedRuntimeS: seconds(runtimeS) });
    return { ...made, deadlineMs: at(deadlineS), spec: { ...made.spec, class: 'deadline' as const } };
  };
  /**
   * The instance that is up has the first name and the other job is the longer one: that is what the packer would put
   * together.
   */
  const scene = (first: Job, other: Job): Scene => ({
    jobs: [first, other],
    instances: [host('i-a', onDemand), host('i-z', onDemand, { state: 'starting', readyMs: null })],
    allotment: { starts: [first, other].map((j) => start(j, 'fresh', 1, onDemand)) },
  });

  it('begins before one with a later deadline that is as urgent', async () => {
    const [first, other] = [urgent('j-first', NOW_S + 100), urgent('j-other', NOW_S + 150, 60)];
    expect(startsOf((await decided(scene(first, other))).plan)).toEqual(['j-first']);
    expect(startsOf((await decided(scene(other, first))).plan)).toEqual(['j-first']);
  });

  it('begins before one that has the time, or no deadline', async () => {
    const first = urgent('j-first', NOW_S + 100);
    for (const other of [urgent('j-other', NOW_S + 50_000, 60), fresh('j-other', 1, 3)])
      expect(startsOf((await decided(scene(first, other))).plan)).toEqual(['j-first']);
  });

  it('lets others begin where it is late however soon it does', async () => {
    const [late, other] = [urgent('j-late', NOW_S + 1, 3000), urgent('j-other', NOW_S + 150)];
    expect(startsOf((await decided(scene(late, other))).plan)).toEqual(['j-other']);
  });
});

describe('a start that is meant for spot and finds no room there', () => {
  const quick = fresh('j-quick', 1, 1);
  const beside = (runtimeS: number, over: Partial<Scene> = {}): Scene => {
    const other = jobOf('j-other', { running: 1 }, { expectedRuntimeS: seconds(runtimeS) });
    return {
      jobs: [quick, other],
      attempts: [runs('a0', other)],
      instances: [host('i-test', onDemand)],
      ...over,
      allotment: { starts: [start(quick, 'fresh', 1)], ...over.allotment },
    };
  };

  it('rides along with work on on-demand that stays longer, and with no other', async () => {
    expect(startsOf((await decided(beside(7200))).plan)).toEqual(['j-quick']);
    const short = await decided(beside(600));
    expect(startsOf(short.plan)).toEqual([]);
    expect(keysOf(short.plan, 'launch')).toHaveLength(1);
  });

  it('does not ride along with work that stops or leaves for spot', async () => {
    const leaves = { moves: [{ attempt: 'a0', reason: 'it pays', to: 'spot' as const }] };
    expect(startsOf((await decided(beside(7200, leaves))).plan)).toEqual([]);
    const stopping = beside(7200).attempts?.map((a) => ({ ...a, state: 'stopping' as const })) ?? [];
    expect(startsOf((await decided(beside(7200, { attempts: stopping }))).plan)).toEqual([]);
  });

  it('takes an idle on-demand instance only within an hour that is paid', async () => {
    const idle = (billing: 'per-second' | 'per-hour', nowS: number): Scene => ({
      jobs: [quick],
      instances: [host('i-test', onDemand)],
      billing,
      nowS,
      allotment: { starts: [start(quick, 'fresh', 1)] },
    });
    expect(startsOf((await decided(idle('per-hour', 1000))).plan)).toEqual(['j-quick']);
    expect(startsOf((await decided(idle('per-hour', 3300))).plan)).toEqual([]);
    expect(startsOf((await decided(idle('per-second', 1000))).plan)).toEqual([]);
  });

  it('takes any room on spot', async () => {
    const other = { ...beside(600), instances: [host('i-test', onDemand), host('i-spot', pool({ zone: 'b' }))] };
    expect(startsOf((await decided(other)).plan)).toEqual(['j-quick']);
  });
});

describe('a start that is meant for capacity that stays and finds no room there', () => {
  const scene = (runtimeS: number, there: Instance, over: Partial<StageSpec> = {}): Scene => {
    const one = fresh('j-one', 1, 1, { expectedRuntimeS: seconds(runtimeS), ...over });
    return { jobs: [one], instances: [there], allotment: { starts: [start(one, 'fresh', 1, onDemand)] } };
  };

  it('takes room on spot that is up where it is done within the notice that the market gives', async () => {
    const { plan } = await decided(scene(20, host('i-spot', spot)));
    expect([startsOf(plan), keysOf(plan, 'launch')]).toEqual([['j-one'], []]);
  });

  it('does not where it takes longer, where spot is still to start, or where spot is forbidden to it', async () => {
    const constraints = { purchaseOptions: ['on-demand' as const] };
    for (const of of [
      scene(200, host('i-spot', spot)),
      scene(20, host('i-spot', spot, { state: 'starting', readyMs: null })),
      scene(20, host('i-spot', spot), { constraints }),
    ]) {
      const { plan } = await decided(of);
      expect([startsOf(plan), keysOf(plan, 'launch').length]).toEqual([[], 1]);
    }
  });
});

describe('short tasks that wait for a place that others have', () => {
  it('are not bought for, and their job says so', async () => {
    const busy = jobOf('j-busy', { running: 1 }, { expectedRuntimeS: seconds(20) });
    const short = fresh('j-short', 3, 2, { expectedRuntimeS: seconds(20) });
    const scene: Scene = {
      jobs: [busy, short],
      attempts: [runs('a0', busy, { resources: resources(4), startedMs: at(NOW_S - 5) })],
      instances: [host('i-test', spot)],
      allotment: { starts: [start(short, 'fresh', 3)] },
    };
    const { plan } = await decided(scene);
    expect([keysOf(plan, 'launch'), startsOf(plan)]).toEqual([[], []]);
    const [explained] = plan.explanations.filter((e) => e.job === 'j-short');
    expect(explained?.waiting.map((w) => [w.tasks, w.why, w.detail, w.wouldChange])).toEqual([
      [
        3,
        'capacity',
        'it waits to reuse a slot of other short tasks, which run, start or are bought',
        'nothing: it starts when one of these slots comes free',
      ],
    ]);
    const fleet = await decided({ ...scene, queue: eachItsPlace });
    expect(keysOf(fleet.plan, 'launch').length).toBeGreaterThan(0);
  });
});

describe('work that the plan stops for something else', () => {
  const low = jobOf('j-low', { running: 1 });
  const stops = { preemptions: [{ attempt: attemptId('a0'), reason: 'for something better' }] };
  const here = (jobs: readonly Job[], starts: Allotment['starts'], others: readonly Attempt[] = []): Scene => ({
    jobs: [low, ...jobs],
    attempts: [runs('a0', low, { resources: resources(2) }), ...others],
    instances: [host('i-test', spot)],
    vcpus: 4,
    allotment: { ...stops, starts },
  });

  it('stops for what needs its room, and nobody else gets that room meanwhile', async () => {
    const gang = fresh('j-gang', 2, 2, { gang: true });
    const small = fresh('j-small', 1, 2);
    const { plan } = await decided(here([gang, small], [start(gang, 'gang', 2), start(small, 'fresh', 1, onDemand)]));
    expect(keysOf(plan, 'stop')).toEqual(['a0']);
    expect(startsOf(plan)).toEqual([]);
    const [explained] = plan.explanations.filter((e) => e.job === 'j-gang');
    expect(explained?.waiting.map((w) => [w.tasks, w.detail])).toEqual([
      [2, 'room is being made for it on i-test, where other work stops first'],
    ]);
    // Once it has stopped, the room is the gang's.
    const leaving = here([gang, small], [start(gang, 'gang', 2), start(small, 'fresh', 1, onDemand)]);
    const stopping = { ...leaving, attempts: [runs('a0', low, { resources: resources(2), state: 'stopping' })] };
    expect(startsOf((await decided(stopping)).plan)).toEqual([]);
  });

  it('runs on when what it was to stop for has room without it', async () => {
    const small = fresh('j-small', 1, 2);
    const { plan } = await decided(here([small], [start(small, 'fresh', 1)]));
    expect(keysOf(plan, 'stop')).toEqual([]);
    expect(startsOf(plan)).toEqual(['j-small']);
  });

  it('runs on when what it was to stop for fits nowhere, and something else keeps its instance', async () => {
    const big = fresh('j-big', 1, 4);
    const stays = jobOf('j-stays', { running: 1 });
    const { plan } = await decided(
      here([big, stays], [start(big, 'fresh', 1, onDemand)], [runs('a1', stays, { resources: resources(1) })]),
    );
    expect(keysOf(plan, 'stop')).toEqual([]);
  });

  it('stops for the quota of its instance, which nothing then moves into', async () => {
    const big = fresh('j-big', 1, 4, {
      constraints: { ...low.spec.stages[0]?.constraints, zones: ['b'] },
    });
    const small = fresh('j-small', 1, 2);
    const { plan } = await decided(
      here([big, small], [start(big, 'fresh', 1, onDemand), start(small, 'fresh', 1, onDemand)]),
    );
    expect(keysOf(plan, 'stop')).toEqual(['a0']);
    expect(startsOf(plan)).toEqual([]);
  });
});

describe('a plan that stops tasks of a stage and starts as many of it in the same pool', () => {
  it('does neither, and what else it starts finds the room', async () => {
    const both = jobOf('j-both', { running: 1, waiting: 1 });
    const other = fresh('j-other', 1, 2);
    const waiting: Task = {
      ...{ job: both.id, stage: 'main', index: 1, state: 'waiting', attempts: 1, failures: 0 },
      keptS: ZERO_S,
      notBeforeMs: null,
    };
    const again = start(both, 'fresh', 1);
    const { plan } = await decided({
      jobs: [both, other],
      attempts: [runs('a0', both, { resources: resources(2) })],
      tasks: [waiting],
      instances: [host('i-test', spot)],
      vcpus: 4,
      allotment: {
        preemptions: [{ attempt: attemptId('a0'), reason: 'for something better' }],
        starts: [
          { ...again, option: { ...again.option, group: groupId('j-both/main/kept-0') } },
          start(other, 'fresh', 1),
        ],
      },
    });
    expect(keysOf(plan, 'stop')).toEqual([]);
    expect(startsOf(plan)).toEqual(['j-other']);
    const [explained] = plan.explanations.filter((e) => e.job === 'j-both');
    expect(explained?.waiting.map((w) => w.detail)).toEqual([
      `other tasks of its stage run in ${spot.id}, and there is no room for more`,
    ]);
  });
});

describe('what else there is for a job that only runs', () => {
  const one = jobOf('j-one', { running: 1 }, { expectedRuntimeS: seconds(3600) });
  const running = (nowS: number, startedS: number, before?: Deliberation): Scene => ({
    jobs: [one],
    attempts: [runs(`a-${startedS}`, one, { startedMs: at(startedS) })],
    instances: [host('i-test', spot)],
    nowS,
    ...(before === undefined ? {} : { before }),
  });
  const onDemandUsd = ({ plan }: { plan: Plan }): number => {
    const [explanation] = plan.explanations;
    const offer = explanation?.considered.find((c) => c.pool === onDemand.id);
    return invariant(offer, 'on-demand is among what was considered').expectedCostUsd;
  };

  it('is appraised for what is left of it', async () => {
    const fresh = await decided(running(0, 0));
    const halfway = await decided(running(1800, 0));
    expect(fresh.plan.explanations[0]?.considered.map((c) => c.pool)).toContain(spot.id);
    // A machine for itself alone at 0.17 USD an hour, for an hour and a little more for what is uncertain.
    expect(onDemandUsd(fresh)).toBeGreaterThan(0.17);
    expect(onDemandUsd(fresh)).toBeLessThan(0.2);
    expect(onDemandUsd(halfway)).toBeLessThan(0.7 * onDemandUsd(fresh));
  });

  it('is shown as it was for five periods, and then appraised again', async () => {
    const first = await decided(running(600, 0));
    const soon = await decided(running(600 + 4 * 60, 0, first.deliberation));
    expect(onDemandUsd(soon)).toBe(onDemandUsd(first));
    const due = await decided(running(600 + 5 * 60, 0, soon.deliberation));
    expect(onDemandUsd(due)).toBeLessThan(onDemandUsd(first));
  });

  it('is not appraised where nobody reads it, and the decision is the same', async () => {
    const scene = running(600, 0);
    const told = await decided(scene);
    const untold = await decided({ ...scene, explains: false });
    expect(told.plan.explanations).not.toEqual([]);
    expect(untold.plan).toEqual({ ...told.plan, explanations: [] });
    expect(untold.deliberation.runningOffers.size).toBe(0);
    expect([...untold.deliberation.offers]).toEqual([]);
  });

  it('is appraised at once for another attempt', async () => {
    const first = await decided(running(600, 0));
    const again = await decided(running(660, 650, first.deliberation));
    expect(onDemandUsd(again)).not.toBe(onDemandUsd(first));
  });

  it('is appraised for sixteen jobs in a cycle, those longest without first', async () => {
    const jobs = Array.from({ length: 20 }, (_, n) => jobOf(`j-${n}`, { running: 1 }));
    const scene = (nowS: number, before?: Deliberation): Scene => ({
      jobs,
      attempts: jobs.map((j, n) => runs(`a-${n}`, j, { startedMs: at(0), instance: instanceId(`i-${n}`) })),
      instances: jobs.map((_, n) => host(`i-${n}`, spot)),
      nowS,
      vcpus: 1000,
      ...(before === undefined ? {} : { before }),
    });
    const madeS = ({ deliberation }: { deliberation: Deliberation }) =>
      jobs.map((j) => deliberation.runningOffers.get(j.id)?.atMs).map((ms) => (ms === undefined ? null : raw(ms)));
    const first = await decided(scene(60));
    expect(madeS(first).filter((ms) => ms !== null)).toHaveLength(16);
    const second = await decided(scene(120, first.deliberation));
    expect(madeS(second).filter((ms) => ms === raw(at(120)))).toHaveLength(4);
    const third = await decided(scene(1000, second.deliberation));
    const left = madeS(third).filter((ms) => ms !== raw(at(1000)));
    expect(left).toEqual(Array.from({ length: 4 }, () => raw(at(120))));
    const fourth = await decided(scene(2000, third.deliberation));
    expect(madeS(fourth).slice(16)).toEqual(Array.from({ length: 4 }, () => raw(at(2000))));
  });

  it('is forgotten with the job', async () => {
    const first = await decided(running(600, 0));
    const over = await decided({ jobs: [], nowS: 660, before: first.deliberation });
    expect(over.deliberation.runningOffers.size).toBe(0);
  });
});

describe('tasks that wait for the same thing', () => {
  const kept = (index: number, keptS: number): Task => ({
    job: jobId('j-waits'),
    stage: 'main',
    index,
    state: 'waiting',
    attempts: 1,
    failures: 0,
    keptS: seconds(keptS),
    notBeforeMs: null,
  });
  const waits = jobOf('j-waits', { waiting: 3 });
  const scene = (details: readonly string[]): Scene => ({
    jobs: [waits],
    tasks: [kept(0, 0), kept(1, 100), kept(2, 400)],
    allotment: {
      waits: ['kept-0', 'kept-1', 'kept-6'].map((name, n) => ({
        group: groupId(`j-waits/main/${name}`),
        count: 1,
        why: 'capacity' as const,
        detail: details[n] ?? 'no room',
      })),
    },
  });
  const lines = async (details: readonly string[]) =>
    (await decided(scene(details))).plan.explanations[0]?.waiting.map((w) => [w.tasks, w.detail]);

  it('are one line, whatever work they have kept', async () => {
    expect(await lines([])).toEqual([[3, 'no room']]);
  });

  it('are apart from those that wait for something else', async () => {
    expect(await lines(['no room', 'a rest', 'no room'])).toEqual([
      [2, 'no room'],
      [1, 'a rest'],
    ]);
  });
});

describe('tasks of a group that start at several later times', () => {
  it('are all told of, and so are those that have no time yet', async () => {
    const waits = jobOf('j-later', { waiting: 6 }, { expectedRuntimeS: seconds(600) });
    const group = groupId('j-later/main/kept-0');
    const task = (index: number): Task => ({
      ...{ job: waits.id, stage: 'main', index, state: 'waiting', attempts: 1, failures: 0 },
      keptS: ZERO_S,
      notBeforeMs: null,
    });
    const later = (slot: number, count: number): Allotment['deferred'][number] => {
      const offer = { pool: spot.id, bid: 'uncapped', startDelayS: seconds(90) } as Offer;
      const option = { group, offer, slot, startMs: at(NOW_S + slot * 600), worthUsd: 1, costUsd: 0.1 };
      return { option, count, reason: 'cheaper then' };
    };
    const { plan } = await decided({
      jobs: [waits],
      tasks: Array.from({ length: 6 }, (_, i) => task(i)),
      allotment: {
        deferred: [later(1, 2), later(3, 3)],
        waits: [{ group, count: 6, why: 'capacity', detail: 'no room' }],
      },
    });
    const [explained] = plan.explanations;
    expect(
      explained?.waiting.map((w) => [w.tasks, w.expectedStartMs === null ? null : raw(w.expectedStartMs)]),
    ).toEqual([
      [2, raw(at(NOW_S + 600))],
      [3, raw(at(NOW_S + 1800))],
      [1, null],
    ]);
    expect(explained?.headline).toContain('6 waiting');
  });
});

describe('when what waits is expected to start', () => {
  const quick = jobOf('j-quick', { running: 1 }, { expectedRuntimeS: seconds(700) });
  const slow = jobOf('j-slow', { running: 1 }, { expectedRuntimeS: seconds(2000) });
  const cheap = jobOf('j-cheap', { waiting: 1 });
  const dear: Job = { ...jobOf('j-dear', { waiting: 1 }), deadlineMs: at(9000) };
  const waiting = (of: Job): Task => ({
    ...{ job: of.id, stage: 'main', index: 0, state: 'waiting', attempts: 1, failures: 0 },
    keptS: ZERO_S,
    notBeforeMs: null,
  });

  it('goes by what runs, and by who brings more', async () => {
    const { plan } = await decided({
      jobs: [quick, slow, cheap, dear],
      attempts: [runs('a0', quick), runs('a1', slow)].map((a) => ({ ...a, resources: resources(2) })),
      tasks: [waiting(cheap), waiting(dear)],
      instances: [host('i-test', spot)],
      vcpus: 4,
      allotment: {
        waits: [cheap, dear].map((j) => ({
          group: groupId(`${j.id}/main/kept-0`),
          count: 1,
          why: 'capacity' as const,
          detail: 'no room',
        })),
      },
    });
    const startS = (id: string): number => {
      const of = plan.explanations.find((e) => e.job === id)?.waiting[0]?.expectedStartMs;
      return (raw(invariant(of, `an expected start of ${id}`)) - raw(START_MS)) / 1000;
    };
    // Both ran 300 s: some 400 s are left of the one, some 1700 s of the other; a hint's median is near the hint.
    expect(startS('j-dear')).toBeGreaterThan(NOW_S + 300);
    expect(startS('j-dear')).toBeLessThan(NOW_S + 500);
    // After `dear` has run its 600 s: before `slow` ends.
    expect(startS('j-cheap')).toBeGreaterThan(startS('j-dear') + 500);
    expect(startS('j-cheap')).toBeLessThan(startS('j-dear') + 700);
  });
});
