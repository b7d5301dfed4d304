import { describe, expect, it } from '@jest/globals';
import { usdPerHour } from '../../../../lib/kernel/units.ts';
import type { Allotment } from '../../../../lib/domain/plan.ts';
import type { Pool, PoolView } from '../../../../lib/domain/pool.ts';
import { noUnits, unitsAt } from '../../../../lib/stages/plan/fill.ts';
import type { Problem } from '../../../../lib/stages/plan/problem.ts';
import { waitsOf } from '../../../../lib/stages/plan/waits.ts';
import { invariant } from '../../../../lib/kernel/errors.ts';
import { pool } from '../../../support/builders.ts';
import { ON_DEMAND, SPOT, at } from '../../../support/handmade-plan.ts';
import { smallProblem } from '../../../support/small-problem.ts';

/** One group of tasks of 1 vCPU. An option of it, and how many of them the plan starts so. */
interface Start {
  readonly netUsd: number;
  readonly costUsd?: number;
  readonly slot?: number;
  readonly pool?: Pool;
  readonly tasks?: number;
  readonly opens?: number;
}

interface Scene {
  readonly options: readonly Start[];
  readonly count?: number;
  readonly gang?: boolean;
  readonly overBudget?: string;
  readonly pools?: readonly PoolView[];
  /** vCPUs. */
  readonly free?: number;
  readonly limit?: number;
  readonly slotS?: number;
  /** Null: nothing is known of the group's offers. */
  readonly excluded?: readonly { readonly constraint: string; readonly pools: number }[] | null;
}

const view = (of: Pool, over: Partial<PoolView> = {}): PoolView => ({
  pool: of,
  quote: usdPerHour(0.08),
  open: true,
  closedReason: null,
  ...over,
});
const closed = (of: Pool, quota?: string): PoolView =>
  view(of, {
    open: false,
    closedReason: quota === undefined ? 'no capacity' : 'quota refused',
    backOff: { untilMs: at(100), refusals: 1, ...(quota === undefined ? {} : { quota }) },
  });
const bounded = (of: Pool, bound: number, used = 0): PoolView =>
  view(of, { quota: { usedMilliCpu: used * 1000, boundMilliCpu: bound * 1000 } });
/** Two vCPUs; the others have four. */
const SMALL = pool({ type: 'm5.large', zone: 'us-east-1a', cpus: 2 });
/** Without the memory for a task. */
const TINY = pool({ type: 'm5.nano', zone: 'us-east-1a', memoryMiB: 512 });
const OPEN = [view(SPOT), view(ON_DEMAND), view(SMALL)];

function waits(scene: Scene): Allotment['waits'] {
  const { options, count = 2, gang = false, overBudget = null, pools = OPEN, free = 10, limit = 16 } = scene;
  const problem = smallProblem({
    capacity: { a: 9 },
    slots: 4,
    groups: [
      {
        count,
        gang,
        choices: options.map(({ netUsd, costUsd = 0.02, slot = 0, pool: of = SPOT }) => ({
          netUsd,
          costUsd,
          slot,
          pool: of,
          members: [{ uses: { a: 1 }, atMost: 9 }],
        })),
      },
    ],
    config: { slotS: scene.slotS ?? 600 },
  });
  const entry = invariant(problem.groups[0], 'there is one group');
  const planned = entry.options.map((of, i) => {
    const { opens } = invariant(options[i], 'it was made of one');
    const offer = {
      ...of.option.offer,
      pool: of.pool.id,
      ...(opens === undefined ? {} : { opens: { atMs: at(60), p: opens } }),
    };
    return { ...of, option: { ...of.option, offer } };
  });
  const { excluded } = scene;
  const offers = new Map(
    excluded === undefined
      ? problem.input.offers
      : excluded === null
        ? []
        : [[entry.group.id, { offers: [], excluded, considered: [] }] as const],
  );
  const asked: Problem = {
    ...problem,
    input: { ...problem.input, offers, snapshot: { ...problem.input.snapshot, pools } },
    capacity: { ...problem.capacity, headroomMilliCpu: free * 1000, limitMilliCpu: limit * 1000 },
    groups: [{ ...entry, options: planned, overBudget }],
    choices: problem.choices.map((choice, i) => ({ ...choice, planned: invariant(planned[i], 'one each') })),
  };
  const units = noUnits(asked);
  options.forEach(({ tasks = 0 }, i) => (units[unitsAt(i, 0)] = tasks));
  return waitsOf(asked, { units, kills: new Float64Array(0), objectiveUsd: 0 });
}

/** The one reason of those that wait. */
function why(scene: Scene): Omit<Allotment['waits'][number], 'group' | 'count'> {
  const all = waits(scene);
  expect(all).toHaveLength(1);
  const { group: _group, count: _count, ...reason } = invariant(all[0], 'there is one');
  return reason;
}

const NOW = { netUsd: 1 };
const TAKEN = '6 of 16 vCPUs are taken';
const OTHERS = `${TAKEN}, and other work brings more for the room that is left`;

describe('what waits', () => {
  it('are the tasks that do not start now', () => {
    const counts = (...options: Start[]) => waits({ count: 5, options }).map((w) => [w.group, w.count]);
    expect(counts({ ...NOW, tasks: 2 })).toStrictEqual([['g0', 3]]);
    expect(counts({ ...NOW, tasks: 2 }, { ...NOW, tasks: 2 })).toStrictEqual([['g0', 1]]);
    expect(counts({ ...NOW, tasks: 2 }, { ...NOW, slot: 1, tasks: 3 })).toStrictEqual([['g0', 3]]);
    expect(counts({ ...NOW, tasks: 4.4 })).toStrictEqual([['g0', 1]]);
    expect(counts({ ...NOW, tasks: 4.6 })).toStrictEqual([]);
    expect(counts({ ...NOW, tasks: 5 })).toStrictEqual([]);
  });

  it('waits for its budget first of all', () => {
    expect(why({ options: [{ netUsd: -1 }], overBudget: 'it has no more' })).toStrictEqual({
      why: 'budget',
      detail: 'it has no more',
    });
  });
});

describe('a group without offers', () => {
  it('is told the constraints that exclude pools', () => {
    const excluded = [
      { constraint: 'zones', pools: 12 },
      { constraint: 'arch', pools: 1 },
    ];
    expect(why({ options: [], excluded })).toStrictEqual({
      why: 'constraint',
      detail: 'no pool is left to run it: zones excludes 12 pools, arch excludes 1 pool',
    });
  });

  it('lacks a price where nothing is excluded', () => {
    const expected = { why: 'capacity', detail: 'no pool that could run it quotes a price now' };
    expect(why({ options: [], excluded: [] })).toStrictEqual(expected);
    expect(why({ options: [], excluded: null })).toStrictEqual(expected);
  });

  it('lacks a pool where the market knows none of those offered', () => {
    expect(why({ options: [] })).toStrictEqual({
      why: 'capacity',
      detail: 'no pool that could run it is known to the market',
    });
  });
});

describe('a group whose starts bring nothing', () => {
  const dear = (of: Pool, worth: string, cost: string) => ({
    why: 'price',
    detail:
      `finishing a task is expected to be worth ${worth}, and the best offer (${of.id} at $0.080 per hour) ` +
      `would cost ${cost}`,
  });

  it('is told the best one now', () => {
    // Worth: net 0 and cost 3.
    expect(why({ options: [{ netUsd: 0, costUsd: 3 }] })).toStrictEqual(dear(SPOT, '$3.00', '$3.00'));
    expect(why({ options: [{ netUsd: -1, costUsd: 3 }] })).toStrictEqual(dear(SPOT, '$2.00', '$3.00'));
    const options = [
      { netUsd: -2, costUsd: 4, pool: SMALL },
      { netUsd: -1, costUsd: 3, pool: ON_DEMAND },
      { netUsd: -1, costUsd: 3 },
      { netUsd: -0.5, costUsd: 5, slot: 1 },
    ];
    // The first of two that are as good.
    expect(why({ options })).toStrictEqual(dear(ON_DEMAND, '$2.00', '$3.00'));
  });

  it('is told the best one later where there is none now', () => {
    expect(why({ options: [{ netUsd: -1, costUsd: 3, slot: 1 }] })).toStrictEqual(dear(SPOT, '$2.00', '$3.00'));
    expect(why({ options: [{ netUsd: 0, costUsd: 3, slot: 2 }] })).toStrictEqual(dear(SPOT, '$3.00', '$3.00'));
  });
});

describe('a group that is cheaper later', () => {
  const later = { netUsd: 0.5, costUsd: 2, slot: 1, pool: SPOT };
  const inText = (time: string) => `${SPOT.id} is expected to cost $2.00 a task in ${time}`;
  const against = `, against $3.00 on ${ON_DEMAND.id} now`;

  it('is told by how much, where a start now brings less than nothing', () => {
    for (const netUsd of [-1, 0]) {
      expect(why({ options: [{ netUsd, costUsd: 3, pool: ON_DEMAND }, later] })).toStrictEqual({
        why: 'cheaper-later',
        detail: inText('10 min') + against,
      });
    }
  });

  it('is told so where nothing starts now', () => {
    expect(why({ options: [later] })).toStrictEqual({ why: 'cheaper-later', detail: inText('10 min') });
  });

  it('is told so where the plan starts it later because that brings more', () => {
    const then = (netUsd: number) =>
      why({
        options: [
          { netUsd, costUsd: 3, pool: ON_DEMAND },
          { ...later, tasks: 2 },
        ],
      });
    expect(then(0.4)).toStrictEqual({ why: 'cheaper-later', detail: inText('10 min') + against });
    expect(then(0.5)).toStrictEqual({ why: 'capacity', detail: `${OTHERS}; expected to start in 10 min` });
    expect(then(0.6)).toStrictEqual({ why: 'capacity', detail: `${OTHERS}; expected to start in 10 min` });
  });

  it('is told the time in seconds below a minute and a half', () => {
    const of = (slotS: number, slot = 1) => why({ options: [{ ...later, slot }], slotS }).detail;
    expect(of(60)).toBe(inText('60 s'));
    expect(of(89)).toBe(inText('89 s'));
    expect(of(90)).toBe(inText('2 min'));
    expect(of(60, 3)).toBe(inText('3 min'));
  });
});

describe('a group that waits for spot in back-off', () => {
  const opens = { netUsd: 0.5, costUsd: 2, slot: 1, opens: 0.375 };
  const now = { netUsd: -1, costUsd: 3, pool: ON_DEMAND };
  const tried = `${SPOT.id} is tried again later (chance 38 %), so that a task is expected to cost $2.00`;
  const NONE = 'no spot pool that suits it gives capacity now';

  it('is told the chance, and the cost now if it has a place now', () => {
    const pools = [view(ON_DEMAND), closed(SPOT)];
    expect(why({ options: [opens], pools })).toStrictEqual({ why: 'cheaper-later', detail: `${NONE}; ${tried}` });
    expect(why({ options: [now, opens], pools })).toStrictEqual({
      why: 'cheaper-later',
      detail: `${NONE}; ${tried}, against $3.00 on ${ON_DEMAND.id} now`,
    });
  });

  it('is told the quota that refused that pool, and not that of another one', () => {
    const used = "the account's vCPU quota spot/standard is used up, as its last refusal says";
    expect(why({ options: [opens], pools: [view(ON_DEMAND), closed(SPOT, 'spot/standard')] })).toStrictEqual({
      why: 'cheaper-later',
      detail: `${used}; ${tried}`,
      quota: 'spot/standard',
    });
    const none = { why: 'cheaper-later', detail: `${NONE}; ${tried}` };
    const other = closed(ON_DEMAND, 'on-demand/standard');
    expect(why({ options: [opens], pools: [other, closed(SPOT)] })).toStrictEqual(none);
    expect(why({ options: [opens], pools: [other, view(SPOT)] })).toStrictEqual(none);
    expect(why({ options: [opens], pools: [other] })).toStrictEqual(none);
  });
});

describe('a group without room', () => {
  it('is told what is taken, and whether the smallest machine would fit', () => {
    const detail = (free: number, ...pools: Pool[]) =>
      why({ options: pools.map((of) => ({ ...NOW, pool: of })), free, limit: 8 }).detail;
    const other = 'other work brings more for the room that is left';
    expect(detail(3, SPOT, SMALL)).toBe(`5 of 8 vCPUs are taken, and ${other}`);
    expect(detail(2, SMALL, SPOT)).toBe(`6 of 8 vCPUs are taken, and ${other}`);
    expect(detail(1.5, SPOT, SMALL, ON_DEMAND)).toBe(
      '6.5 of 8 vCPUs are taken, and the smallest instance it may use has 2 vCPUs',
    );
    expect(detail(2, SPOT)).toBe('6 of 8 vCPUs are taken, and the smallest instance it may use has 4 vCPUs');
  });

  it('is told when most of it starts', () => {
    const detail = (...later: Start[]) => why({ count: 9, options: [{ ...NOW, tasks: 4 }, ...later] }).detail;
    const at = (slot: number, tasks: number) => ({ netUsd: 0.5, slot, tasks });
    expect(detail()).toBe(OTHERS);
    expect(detail(at(1, 1), at(2, 2))).toBe(`${OTHERS}; expected to start in 20 min`);
    expect(detail(at(1, 2), at(2, 1))).toBe(`${OTHERS}; expected to start in 10 min`);
    expect(detail(at(3, 0.6))).toBe(`${OTHERS}; expected to start in 30 min`);
    expect(detail(at(1, 0.5))).toBe(OTHERS);
    expect(detail(at(1, 0))).toBe(OTHERS);
  });
});

describe('a group whose pools are closed', () => {
  const of = (...pools: Pool[]): Start[] => pools.map((p) => ({ ...NOW, pool: p }));
  const bought = (count: string, named: string) => `none of the ${count} that suit it can be bought now (${named})`;

  it('is told one of them, and why', () => {
    expect(why({ options: of(SPOT), pools: [closed(SPOT), view(ON_DEMAND)] })).toStrictEqual({
      why: 'capacity',
      detail: bought('1 pool', `${SPOT.id}: no capacity`),
    });
    expect(why({ options: of(SPOT, SMALL), pools: [closed(SMALL), closed(SPOT)] })).toStrictEqual({
      why: 'capacity',
      detail: bought('2 pools', `${SMALL.id}: no capacity`),
    });
    expect(why({ options: of(SPOT), pools: [view(SPOT, { quote: null })] })).toStrictEqual({
      why: 'capacity',
      detail: bought('1 pool', `${SPOT.id}: no price is quoted`),
    });
  });

  it('is told the one that a quota closed, which a person can raise', () => {
    expect(
      why({ options: of(SPOT, ON_DEMAND), pools: [closed(SPOT), closed(ON_DEMAND, 'on-demand/standard')] }),
    ).toStrictEqual({
      why: 'capacity',
      detail: bought('2 pools', `${ON_DEMAND.id}: quota refused`),
      quota: 'on-demand/standard',
    });
  });

  it('lacks room only, where one of them is open', () => {
    const room = { why: 'capacity', detail: OTHERS };
    expect(why({ options: of(SPOT, ON_DEMAND), pools: [closed(SPOT), view(ON_DEMAND)] })).toStrictEqual(room);
    expect(why({ options: of(SPOT, ON_DEMAND), pools: [view(SPOT), closed(ON_DEMAND)] })).toStrictEqual(room);
    expect(why({ options: of(SPOT), pools: [] })).toStrictEqual(room);
  });

  it('does not count those of later slots', () => {
    const later = { netUsd: 0.5, slot: 1, pool: ON_DEMAND };
    expect(why({ options: [...of(SPOT), later], pools: [closed(SPOT), view(ON_DEMAND)] }).detail).toBe(
      bought('1 pool', `${SPOT.id}: no capacity`),
    );
    expect(why({ options: [...of(SPOT), later], pools: [view(SPOT), closed(ON_DEMAND)] }).detail).toBe(OTHERS);
  });

  it('is told when it starts', () => {
    const later = { netUsd: 0.5, slot: 2, pool: ON_DEMAND, tasks: 2 };
    expect(why({ options: [...of(SPOT), later], pools: [closed(SPOT), view(ON_DEMAND)] }).detail).toBe(
      `${bought('1 pool', `${SPOT.id}: no capacity`)}; expected to start in 20 min`,
    );
  });
});

describe('a gang without room', () => {
  const gang = (count: number, pools: readonly PoolView[], ...of: Pool[]) =>
    why({ gang: true, count, pools, options: of.map((p) => ({ ...NOW, pool: p })) });
  const needs = (count: number) => `its ${count} tasks start together and need ${count} vCPUs at once; `;
  const lacksRoom = (count: number) => ({ why: 'gang', detail: needs(count) + TAKEN });
  const refused = (count: number, quota: string, bound: number, used: number) => ({
    why: 'gang',
    quota,
    detail:
      `${needs(count)}the account's vCPU quota ${quota} refused ${bound} at once and has ${used} in use: ask AWS ` +
      'for a higher one, or make the gang smaller; it is tried again within the hour',
  });

  it('is told how much it needs, and what is taken', () => {
    expect(gang(6, OPEN, SPOT)).toStrictEqual(lacksRoom(6));
  });

  it('is told the quota that does not bear it at once', () => {
    // Below 12 vCPUs: two machines of four.
    expect(gang(8, [bounded(SPOT, 12)], SPOT)).toStrictEqual(lacksRoom(8));
    expect(gang(9, [bounded(SPOT, 12)], SPOT)).toStrictEqual(refused(9, 'spot/standard', 12, 0));
    expect(gang(8, [bounded(SPOT, 12, 3)], SPOT)).toStrictEqual(lacksRoom(8));
    expect(gang(8, [bounded(SPOT, 12, 4)], SPOT)).toStrictEqual(refused(8, 'spot/standard', 12, 4));
  });

  it('is told of no quota where another pool of its own bears it', () => {
    const pools = [bounded(SPOT, 4), view(ON_DEMAND)];
    expect(gang(6, pools, SPOT, ON_DEMAND)).toStrictEqual(lacksRoom(6));
    expect(gang(6, pools, SPOT)).toStrictEqual(refused(6, 'spot/standard', 4, 0));
  });

  it('is told the quota that bears most', () => {
    const more = refused(20, 'on-demand/standard', 12, 0);
    expect(gang(20, [bounded(SPOT, 8), bounded(ON_DEMAND, 12)], SPOT, ON_DEMAND)).toStrictEqual(more);
    expect(gang(20, [bounded(ON_DEMAND, 12), bounded(SPOT, 8)], SPOT, ON_DEMAND)).toStrictEqual(more);
  });

  it('is told of the quota of another pool where its machines hold no task', () => {
    const other = refused(6, 'spot/standard', 4, 0);
    expect(gang(6, [view(TINY), bounded(SPOT, 4)], SPOT, TINY)).toStrictEqual(other);
    expect(gang(6, [bounded(SPOT, 4), view(TINY)], SPOT, TINY)).toStrictEqual(other);
    expect(gang(6, [view(TINY)], TINY)).toStrictEqual(lacksRoom(6));
  });

  it('is told of no quota where none of its pools is there any more', () => {
    expect(gang(6, [], SPOT)).toStrictEqual(lacksRoom(6));
    expect(gang(6, [bounded(ON_DEMAND, 4)], SPOT)).toStrictEqual(lacksRoom(6));
  });
});
