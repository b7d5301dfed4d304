import { describe, expect, it } from '@jest/globals';
import { certain } from '../../../../lib/domain/distribution.ts';
import type { Placement } from '../../../../lib/domain/plan.ts';
import type { InstanceView, PendingGroup, RunningTask } from '../../../../lib/domain/snapshot.ts';
import type { QueueInput } from '../../../../lib/policy/contracts.ts';
import { attemptId, groupId, instanceId, jobId } from '../../../../lib/kernel/ids.ts';
import { epochMs, raw, seconds } from '../../../../lib/kernel/units.ts';
import { FIRST_RUNS } from '../../../../lib/stages/queue/first-runs.ts';
import { shortTasksQueue } from '../../../../lib/stages/queue/queue.ts';
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

const START_S = 95;
const onDemand = pool({ type: 'm5.2xlarge', vcpus: 8, gib: 64, option: 'on-demand' });

interface Wanted {
  readonly id: string;
  readonly tasks: number;
  /** Class of what nothing is known of; null: something is known. */
  readonly as?: string | null;
  readonly slackS?: number;
  readonly gang?: boolean;
  readonly ranS?: number;
  readonly runtimeS?: number;
}

interface Scene {
  readonly wanted: readonly Wanted[];
  readonly instances?: readonly InstanceView[];
  /** Of the first group. */
  readonly placed?: readonly string[];
  readonly behind?: Readonly<Record<string, number>>;
}

function queued({ wanted, instances = [], placed = [], behind = {} }: Scene): {
  readonly places: Readonly<Record<string, number>>;
  readonly untold: Readonly<Record<string, number>>;
} {
  const of = new Map(wanted.map((w) => [w.id, w]));
  const wantedBy = ({ id }: Pick<PendingGroup, 'id'>): Wanted => of.get(id) as Wanted;
  const groups = wanted.map(({ id, tasks, gang = false, ranS }): PendingGroup => ({
    ...group({ id, count: tasks, need: resources(1, 1), stage: { gang } }),
    ...(ranS === undefined ? {} : { ranS: seconds(ranS) }),
  }));
  const context = world({
    groups,
    instances,
    pools: [view(onDemand, 0.3)],
    runtime: (g) => certain(seconds(wantedBy(g).runtimeS ?? 400)),
    worth: (g) => worth(wantedBy(g).slackS ?? null),
  });
  const leftovers = groups.map((g) => {
    const offer = {
      group: g.id,
      pool: onDemand.id,
      bid: 'uncapped',
      startDelayS: seconds(START_S),
      expectedCostUsd: 0.1,
    };
    const option = { group: g.id, offer, slot: 0, startMs: NOW, worthUsd: 1, costUsd: 0.1 };
    return { group: g, option, count: g.count, runtimeS: seconds(100), inPool: () => true };
  }) as unknown as QueueInput['leftovers'];
  const found = shortTasksQueue({
    ...context,
    offers: new Map(),
    snapshot: { ...context.snapshot, running: instances.flatMap((i) => i.attempts) },
    leftOf: () => seconds(400),
    leftovers,
    placements: placed.map((on, index): Placement => ({
      task: { job: jobId('j'), stage: 'main', index },
      group: groupId(wanted[0]?.id ?? ''),
      on: instanceId(on),
      reason: 'room',
    })),
    preempted: new Set(),
    behind: new Map(Object.entries(behind).map(([id, tasks]) => [groupId(id), tasks])),
    unknownAs: ({ job }) => {
      const id = wanted.find((w) => (groups.find((g) => g.id === w.id)?.job ?? '') === job);
      return id === undefined ? 'a' : id.as === undefined ? 'a' : id.as;
    },
    config: config({ turnoverS: 5 }),
  });
  return {
    places: Object.fromEntries(found.leftovers.map((l) => [l.group.id, l.count])),
    untold: Object.fromEntries(found.untold),
  };
}

/** An instance on which tasks of class `a` have run for so long. */
function running(id: string, ranS: readonly number[]): InstanceView {
  const attempts = ranS.map((s, index): RunningTask => {
    const of = attempt({
      id: attemptId(`${id}.${index}`),
      instance: instanceId(id),
      resources: resources(1, 1),
      startedMs: epochMs(raw(NOW) - s * 1000),
    });
    return {
      attempt: of,
      stage: stage(),
      class: 'best-effort',
      deadlineMs: null,
      readS: seconds(0),
      savedS: seconds(0),
    };
  });
  return { ...instance(id, onDemand), attempts };
}

describe('tasks of which no run is known', () => {
  it('are bought a few places, and the others wait for the first runs', () => {
    expect(queued({ wanted: [{ id: 'a', tasks: 150 }] })).toEqual({
      places: { a: FIRST_RUNS },
      untold: { a: 150 - FIRST_RUNS },
    });
  });

  it('count together over all jobs of their class, and apart from others', () => {
    const wanted = [
      ...Array.from({ length: 40 }, (_, i) => ({ id: `a${String(i).padStart(2, '0')}`, tasks: 1 })),
      { id: 'b', tasks: 40, as: 'b' },
      { id: 'c', tasks: 40, as: null },
    ];
    const { places, untold } = queued({ wanted });
    expect(Object.keys(places).filter((id) => id.startsWith('a'))).toHaveLength(FIRST_RUNS);
    expect(Object.keys(untold).filter((id) => id.startsWith('a'))).toHaveLength(40 - FIRST_RUNS);
    expect([places['b'], untold['b'], places['c'], untold['c']]).toEqual([FIRST_RUNS, 40 - FIRST_RUNS, 40, undefined]);
  });

  it('are bought for one by one where they are few, those that run counted', () => {
    const few = 2 * FIRST_RUNS;
    expect(queued({ wanted: [{ id: 'a', tasks: few }] }).places).toEqual({ a: few });
    const first = running(
      'i-a',
      Array.from({ length: FIRST_RUNS }, () => 10),
    );
    expect(queued({ wanted: [{ id: 'a', tasks: FIRST_RUNS }], instances: [first] }).places).toEqual({ a: FIRST_RUNS });
    expect(queued({ wanted: [{ id: 'a', tasks: FIRST_RUNS + 1 }], instances: [first] })).toEqual({
      places: {},
      untold: { a: FIRST_RUNS + 1 },
    });
    expect(queued({ wanted: [{ id: 'a', tasks: 10 }], behind: { a: 90 } })).toEqual({
      places: { a: FIRST_RUNS },
      untold: { a: 10 - FIRST_RUNS },
    });
  });

  it('wait on while the first have room on an instance that starts, and are bought for once one has run as long as a start takes', () => {
    const starting = { ...instance('i-a', onDemand, { state: 'starting' }), attempts: [] };
    const placed = Array.from({ length: FIRST_RUNS }, () => 'i-a');
    expect(queued({ wanted: [{ id: 'a', tasks: 142 }], instances: [starting], placed }).untold).toEqual({ a: 142 });
    const ran = (s: number) =>
      queued({ wanted: [{ id: 'a', tasks: 142 }], instances: [running('i-a', [s, 3, 3, 3, 3, 3, 3, 3])] });
    expect(ran(START_S - 1)).toEqual({ places: {}, untold: { a: 142 } });
    expect(ran(START_S)).toEqual({ places: { a: 142 }, untold: {} });
  });

  it('are bought for anew where the first were lost', () => {
    expect(queued({ wanted: [{ id: 'a', tasks: 150 }], instances: [running('i-a', [5, 5])] })).toEqual({
      places: { a: FIRST_RUNS - 2 },
      untold: { a: 150 - FIRST_RUNS + 2 },
    });
  });

  it('wait no more than half of the slack away', () => {
    // Two starts of an instance, 190 s, until the first runs have told.
    expect(queued({ wanted: [{ id: 'a', tasks: 150, slackS: 380 }] }).untold).toEqual({ a: 150 - FIRST_RUNS });
    expect(queued({ wanted: [{ id: 'a', tasks: 150, slackS: 379 }] }).untold).toEqual({});
    expect(queued({ wanted: [{ id: 'a', tasks: 150, slackS: -10 }] }).untold).toEqual({});
    // As time goes by, the first runs come nearer faster than half of the slack goes.
    for (let s = 0; s < START_S; s++) {
      const instances = [
        running(
          'i-a',
          Array.from({ length: FIRST_RUNS }, () => s),
        ),
      ];
      const of = queued({ wanted: [{ id: 'a', tasks: 142, slackS: 380 - START_S - s }], instances });
      expect([s, of.untold]).toEqual([s, { a: 142 }]);
    }
  });

  it('do not wait in a gang, after an earlier try, or where they are short whatever they do', () => {
    for (const over of [{ gang: true }, { ranS: 30 }]) {
      expect(queued({ wanted: [{ id: 'a', tasks: 150, ...over }] })).toEqual({ places: { a: 150 }, untold: {} });
    }
    expect(queued({ wanted: [{ id: 'a', tasks: 150, runtimeS: 5 }] })).toEqual({ places: { a: 15 }, untold: {} });
  });
});
