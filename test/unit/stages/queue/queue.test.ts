import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { certain } from '../../../../lib/domain/distribution.ts';
import type { Instance } from '../../../../lib/domain/instance.ts';
import type { Placement } from '../../../../lib/domain/plan.ts';
import type { InstanceView, PendingGroup, RunningTask } from '../../../../lib/domain/snapshot.ts';
import type { Queued, QueueInput } from '../../../../lib/policy/contracts.ts';
import { attemptId, groupId, instanceId, type GroupId } from '../../../../lib/kernel/ids.ts';
import { epochMs, raw, seconds } from '../../../../lib/kernel/units.ts';
import { eachItsPlace, shortTasksQueue } from '../../../../lib/stages/queue/queue.ts';
import { attempt } from '../../../support/builders.ts';
import {
  config,
  group,
  instance,
  NOW,
  pool,
  resources,
  stage,
  view,
  world,
  worth,
} from '../../../support/decision-world.ts';

/** Instances of 8 vCPUs take 95 s to start; tasks take 1 vCPU and 5 s, and the next one begins 5 s after one ends. */
const START_S = 95;
const spot = pool({ type: 'm5.2xlarge', vcpus: 8, gib: 64 });
const onDemand = pool({ type: 'm5.2xlarge', vcpus: 8, gib: 64, option: 'on-demand' });

interface Wanted {
  readonly id: string;
  readonly tasks: number;
  readonly runtimeS?: number;
  readonly vcpus?: number;
  /** Seconds to its last safe start; absent without a deadline. */
  readonly slackS?: number;
  readonly gang?: boolean;
  readonly onSpot?: boolean;
  readonly inPool?: QueueInput['leftovers'][number]['inPool'];
}

interface Scene {
  readonly wanted: readonly Wanted[];
  readonly instances?: readonly InstanceView[];
  readonly placements?: readonly Placement[];
  /** Of all that runs. */
  readonly leftS?: number;
  readonly preempted?: QueueInput['preempted'];
  /** Tasks that the vCPU limit keeps from starting, by group. */
  readonly behind?: Readonly<Record<string, number>>;
  readonly turnoverS?: number;
  readonly billing?: 'per-hour' | 'per-second';
}

function queued(scene: Scene, policy = shortTasksQueue): Queued {
  const { wanted, instances = [], placements = [], leftS = 3, preempted = new Set(), turnoverS = 5 } = scene;
  const { billing = 'per-second' } = scene;
  const behind = new Map(Object.entries(scene.behind ?? {}).map(([id, tasks]) => [groupId(id), tasks]));
  const of = new Map(wanted.map((w) => [w.id, w]));
  const wantedBy = ({ id }: PendingGroup): Wanted => of.get(id) as Wanted;
  const groups = wanted.map(({ id, tasks, vcpus = 1, gang = false }) =>
    group({ id, count: tasks, need: resources(vcpus, 1), stage: { gang } }),
  );
  const context = world({
    groups,
    instances,
    pools: [view(spot, 0.1), view(onDemand, 0.3)],
    runtime: (g) => certain(seconds(wantedBy(g).runtimeS ?? 5)),
    worth: (g) => worth(wantedBy(g).slackS ?? null),
  });
  const leftovers = groups.map((g) => {
    const { onSpot = true, runtimeS = 5, inPool = () => true } = wantedBy(g);
    const offer = {
      group: g.id,
      pool: (onSpot ? spot : onDemand).id,
      bid: 'uncapped' as const,
      startDelayS: seconds(START_S),
      expectedCostUsd: 0.1,
    } as QueueInput['leftovers'][number]['option']['offer'];
    const option = { group: g.id, offer, slot: 0, startMs: NOW, worthUsd: 1, costUsd: 0.1 };
    return { group: g, option, count: g.count, runtimeS: seconds(runtimeS), inPool };
  });
  const input = { ...context, offers: new Map(), leftOf: () => seconds(leftS), leftovers };
  return policy({
    ...input,
    placements,
    preempted,
    behind,
    unknownAs: () => null,
    config: config({ turnoverS, billing }),
  });
}

/** An instance on which so many tasks of 1 vCPU run. */
function held(id: string, tasks: number, over: Partial<Instance> = {}, on = spot): InstanceView {
  const there = instance(id, on, over);
  const attempts = Array.from({ length: tasks }, (_, index): RunningTask => {
    const of = attempt({
      id: attemptId(`${id}.${index}`),
      index,
      instance: instanceId(id),
      resources: resources(1, 1),
      startedMs: NOW,
    });
    return { attempt: of, stage: stage(), class: 'best-effort', deadlineMs: null, readS: seconds(0) } as RunningTask;
  });
  return { ...there, attempts, free: resources(8 - tasks, 64 - tasks) };
}

const places = ({ leftovers }: Queued): Record<string, number> =>
  Object.fromEntries(leftovers.map((l) => [l.group.id, l.count]));
const waits = ({ forSlotReuse }: Queued): Record<string, number> => Object.fromEntries(forSlotReuse);

describe('short tasks that found no room', () => {
  it('share places: one for as many as take turns while an instance would start', () => {
    // The first at once, then nine turns of 10 s within 95 s.
    const bought = queued({ wanted: [{ id: 'a', tasks: 200 }] });
    expect([places(bought), waits(bought)]).toEqual([{ a: 20 }, { a: 180 }]);
    expect(places(queued({ wanted: [{ id: 'a', tasks: 201 }] }))).toEqual({ a: 21 });
    expect(places(queued({ wanted: [{ id: 'a', tasks: 7 }] }))).toEqual({ a: 1 });
  });

  it('wait for the rest of a paid hour if they have no deadline', () => {
    // A reuse takes ten minutes. The first is done after 95 s + 600 s; four more end within the hour.
    const wanted = { id: 'a', tasks: 40, runtimeS: 595 };
    expect(places(queued({ wanted: [wanted], billing: 'per-hour' }))).toEqual({ a: 8 });
    expect(places(queued({ wanted: [wanted] }))).toEqual({ a: 40 });
    expect(places(queued({ wanted: [{ ...wanted, slackS: 36_000 }], billing: 'per-hour' }))).toEqual({ a: 40 });
    // Two of half an hour do not fit into one hour after the start.
    expect(places(queued({ wanted: [{ ...wanted, runtimeS: 1795 }], billing: 'per-hour' }))).toEqual({ a: 40 });
  });

  it('are bought for one by one by the baseline, and where a turn is longer than a start, and in a gang', () => {
    expect(places(queued({ wanted: [{ id: 'a', tasks: 200 }] }, eachItsPlace))).toEqual({ a: 200 });
    expect(places(queued({ wanted: [{ id: 'a', tasks: 200, runtimeS: 91 }] }))).toEqual({ a: 200 });
    expect(places(queued({ wanted: [{ id: 'a', tasks: 200, runtimeS: 90 }] }))).toEqual({ a: 100 });
    expect(places(queued({ wanted: [{ id: 'a', tasks: 200, gang: true }] }))).toEqual({ a: 200 });
  });

  it('wait for places that short tasks have, as long as they begin soon enough there', () => {
    // Each of 8 places has 200 s, less 3 s that it is taken and 5 s until the next one begins: 8 x 192 / 10 turns.
    const of = queued({ wanted: [{ id: 'a', tasks: 200 }], instances: [held('i-a', 8)] });
    expect([waits(of), places(of)]).toEqual([{ a: 195 }, { a: 5 }]);
    const few = queued({ wanted: [{ id: 'a', tasks: 150 }], instances: [held('i-a', 8)] });
    expect([waits(few), places(few)]).toEqual([{ a: 150 }, {}]);
  });

  it('do not count on places of long tasks, of instances that go away, of other purchase options, or that are too small', () => {
    const wanted = [{ id: 'a', tasks: 200 }];
    for (const scene of [
      { wanted, instances: [held('i-a', 8)], leftS: 96 },
      { wanted, instances: [held('i-a', 8)], preempted: new Set(held('i-a', 8).attempts.map((r) => r.attempt.id)) },
      { wanted, instances: [held('i-a', 8, { state: 'warned' })] },
      { wanted, instances: [held('i-a', 8, {}, onDemand)] },
      { wanted: [{ id: 'a', tasks: 200, inPool: () => false }], instances: [held('i-a', 8)] },
      { wanted: [{ id: 'a', tasks: 200, vcpus: 2 }], instances: [held('i-a', 8)] },
    ])
      expect(places(queued(scene))).toEqual({ a: 20 });
  });

  it('find the turn that they were promised in each cycle until the instances are up', () => {
    // 20 places were bought for 200 tasks; 20 of these are given to them, 180 wait.
    for (const slackS of [Infinity, 60]) {
      const reuses = slackS === Infinity ? 10 : 4;
      for (let s = 0; s < START_S; s += 5) {
        const readyMs = epochMs(raw(NOW) + (START_S - s) * 1000);
        const instances = ['i-a', 'i-b', 'i-c'].map((id) => held(id, 0, { state: 'starting', readyMs }));
        const placements = instances.flatMap(({ instance: { id } }) =>
          Array.from({ length: 8 }, (_, index): Placement => ({
            task: { job: 'a' as never, stage: 'main', index },
            group: groupId('a'),
            on: id,
            reason: 'room',
          })),
        );
        const left = (reuses - 1) * 24;
        const of = slackS === Infinity ? {} : { slackS: slackS - s };
        if (slackS - s <= 0) break;
        const next = queued({ wanted: [{ id: 'a', tasks: left, ...of }], instances, placements });
        expect([s, waits(next), places(next)]).toEqual([s, { a: left }, {}]);
      }
    }
  });

  it('wait for half of what their deadline leaves at most, and beyond the last safe moment for what comes in half a start', () => {
    expect(places(queued({ wanted: [{ id: 'a', tasks: 200, slackS: 1000 }] }))).toEqual({ a: 20 });
    expect(places(queued({ wanted: [{ id: 'a', tasks: 200, slackS: 40 }] }))).toEqual({ a: 67 });
    const late = queued({ wanted: [{ id: 'a', tasks: 200, slackS: 0 }], instances: [held('i-a', 8)] });
    // Each of 8 places until 47.5 s from now: (57.5 - 8) / 10 turns.
    expect([waits(late), places(late)]).toEqual([{ a: 39 }, { a: 161 }]);
  });

  it('are bought for as far as the vCPU limit allows where more are behind them than have turns', () => {
    const wanted = [{ id: 'a', tasks: 64 }];
    expect(places(queued({ wanted, behind: { a: 1936 } }))).toEqual({ a: 64 });
    expect(places(queued({ wanted, behind: { a: 436 } }))).toEqual({ a: 50 });
    const next = queued({ wanted, behind: { a: 436 }, instances: [held('i-a', 8)] });
    // 153 of the 500 have turns on the 8 places, 347 share what is bought.
    expect([waits(next), places(next)]).toEqual([{ a: 29 }, { a: 35 }]);
  });

  it('have a place or a turn where one of them would take no time', () => {
    const none = queued({ wanted: [{ id: 'a', tasks: 200, runtimeS: 0 }], turnoverS: 0 });
    expect([waits(none), places(none)]).toEqual([{ a: 197 }, { a: 3 }]);
    expect(places(queued({ wanted: [{ id: 'a', tasks: 2, runtimeS: 0, slackS: 0 }], turnoverS: 0 }))).toEqual({ a: 2 });
  });

  it('take the turns that are left over where others are bought for', () => {
    const of = queued({ wanted: ['a', 'b', 'c', 'd'].map((id) => ({ id, tasks: 2 })) });
    expect([places(of), waits(of)]).toEqual([{ a: 1 }, { a: 1, b: 2, c: 2, d: 2 }]);
    const apart = queued({
      wanted: ['a', 'b'].map((id) => ({
        id,
        tasks: 2,
        onSpot: id === 'a',
        inPool: (p) => (p === spot) === (id === 'a'),
      })),
    });
    expect(places(apart)).toEqual({ a: 1, b: 1 });
  });

  it('are all bought for or in turn, whatever the order of the input', () => {
    const wanted = fc.uniqueArray(
      fc.record({
        id: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
        tasks: fc.integer({ min: 1, max: 300 }),
        runtimeS: fc.integer({ min: 0, max: 120 }),
        vcpus: fc.constantFrom(1, 2),
        onSpot: fc.boolean(),
        gang: fc.boolean(),
      }),
      { minLength: 1, selector: (w) => w.id },
    );
    let forSlotReuse = 0;
    fc.assert(
      fc.property(wanted, fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 4 }), (all, running) => {
        const instances = running.map((n, i) => held(`i-${i}`, n, {}, i % 2 === 0 ? spot : onDemand));
        const of = queued({ wanted: all, instances });
        for (const { id, tasks } of all) {
          const bought = places(of)[id] ?? 0;
          const waiting = of.forSlotReuse.get(id as GroupId) ?? 0;
          forSlotReuse += waiting;
          expect(bought + waiting).toBe(tasks);
        }
        const turned = queued({ wanted: [...all].reverse(), instances: [...instances].reverse() });
        expect([waits(turned), places(turned)]).toEqual([waits(of), places(of)]);
      }),
    );
    expect(forSlotReuse).toBeGreaterThan(1000);
  });
});
