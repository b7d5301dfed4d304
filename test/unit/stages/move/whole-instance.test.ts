import { describe, expect, it } from '@jest/globals';
import { instanceId } from '../../../../lib/kernel/ids.ts';
import { raw, seconds } from '../../../../lib/kernel/units.ts';
import { DecisionMemory } from '../../../../lib/policy/memory.ts';
import { LEAVING } from '../../../../lib/policy/leaving.ts';
import { migrationTime } from '../../../../lib/policy/migration-time.ts';
import { movesToCheaper } from '../../../../lib/stages/move/cheaper-instance.ts';
import { clearing, clearingAndCheaper } from '../../../../lib/stages/move/clearing.ts';
import { byDotProduct, byRuntimeBin, repacked, type Room } from '../../../../lib/stages/move/repack.ts';
import { config, pool, resources, view } from '../../../support/decision-world.ts';
import { scene, told, type HeldFacts, type RunningFacts } from '../../../support/whole-moves.ts';

const large = pool({ type: 'm5.2xlarge', vcpus: 8, gib: 32, onDemand: 0.4 });
const small = pool({ type: 'm5.large', vcpus: 2, gib: 8, onDemand: 0.1 });
const pools = [view(large, 0.16), view(small, 0.04)];
const HOUR_S = 3600;

const on = (id: string, of: typeof large, ...tasks: readonly RunningFacts[]): HeldFacts => ({ id, pool: of, tasks });

describe('time of a move', () => {
  it('is the memory at 160 MB/s and the reading of the checkpoint', () => {
    // 10 GiB are 10,737,418,240 bytes: 67.1 s.
    expect(raw(migrationTime(resources(1, 10), config({ restoreS: 10 })))).toBeCloseTo(77.1, 1);
    expect(raw(migrationTime(resources(1, 0), config({ restoreS: 10 })))).toBe(10);
  });
});

describe('moves to a cheaper instance', () => {
  const held = (leftS: number) => [on('i-1', large, { name: 'a', leftS })];

  it('go once the saving exceeds the cost of the move', () => {
    // Staying costs 0.16 t. The move takes m = 1 GiB / 160 MB/s + 10 s = 16.7 s and s = 95 s: 0.16 x 111.7 +
    // 0.04 (t + 16.7) = 17.87 + 0.67 + 0.04 t. They are equal at t = 18.54 / 0.12 = 154.5 s.
    expect(told(movesToCheaper(scene(pools, held(150))))).toEqual([]);
    expect(told(movesToCheaper(scene(pools, held(160))))).toEqual([`a -> ${small.id}`]);
  });

  it('go for all work of an instance, by its longest task, where the target holds all', () => {
    const two = [on('i-1', large, { name: 'a', leftS: HOUR_S }, { name: 'b', leftS: 20 })];
    expect(told(movesToCheaper(scene(pools, two)))).toEqual([`a -> ${small.id}`, `b -> ${small.id}`]);
    const three = [on('i-1', large, ...['a', 'b', 'c'].map((name) => ({ name, leftS: HOUR_S })))];
    expect(movesToCheaper(scene(pools, three))).toEqual([]);
  });

  it('are finished where the target is up already: its start-up is no cost any more', () => {
    // From the example above without s: 0.12 t = 3.34, t = 27.8 s.
    const empty = (state: 'starting' | 'ready'): HeldFacts => ({ ...on('i-2', small), state });
    expect(told(movesToCheaper(scene(pools, [...held(30), empty('ready')], { afterS: 60 })))).toEqual([
      `a -> ${small.id}`,
    ]);
    expect(movesToCheaper(scene(pools, [...held(20), empty('ready')], { afterS: 60 }))).toEqual([]);
    // One empty instance serves one move: the other would have to buy.
    const two = [...held(100), on('i-3', large, { name: 'b', leftS: 100 }), empty('ready')];
    expect(told(movesToCheaper(scene(pools, two, { afterS: 60 })))).toEqual([`a -> ${small.id}`]);
  });

  it('keep new work off the instances that they leave, in the same decision', () => {
    const memory = new DecisionMemory();
    movesToCheaper(scene(pools, held(HOUR_S), { memory }));
    expect(memory.of(LEAVING).has(instanceId('i-1'))).toBe(true);
    movesToCheaper(scene([view(large, 0.04), view(small, 0.04)], held(HOUR_S), { memory }));
    expect(memory.of(LEAVING).has(instanceId('i-1'))).toBe(false);
  });

  it('do not go where nothing is cheaper, sells or is allowed', () => {
    expect(movesToCheaper(scene([view(large, 0.04), view(small, 0.04)], held(HOUR_S)))).toEqual([]);
    expect(movesToCheaper(scene([view(large, 0.16), view(small, null)], held(HOUR_S)))).toEqual([]);
    expect(movesToCheaper(scene([view(large, 0.16), view(small, 0.04, false)], held(HOUR_S)))).toEqual([]);
    expect(movesToCheaper(scene([], held(HOUR_S)))).toEqual([]);
    const bound = { name: 'a', leftS: HOUR_S, stage: { constraints: { instanceTypes: ['m5.2xlarge'] } } };
    expect(movesToCheaper(scene(pools, [on('i-1', large, bound)]))).toEqual([]);
  });

  it('leave gangs, work that cannot save, and what stops or is not up', () => {
    const task = { name: 'a', leftS: HOUR_S };
    const stays: HeldFacts[] = [
      on('i-1', large, { ...task, stage: { gang: true } }),
      on('i-2', large, { ...task, stage: { checkpoint: null } }),
      on('i-3', large, { ...task, state: 'stopping' }),
      { ...on('i-4', large, task), state: 'starting' },
    ];
    expect(movesToCheaper(scene(pools, stays))).toEqual([]);
  });

  it('count hours that are paid as paid', () => {
    // Half an hour is left, within the hour that is paid: to stay is free.
    const hourly = { config: { billing: 'per-hour' as const }, afterS: 60 };
    expect(movesToCheaper(scene(pools, held(HOUR_S / 2), hourly))).toEqual([]);
    expect(movesToCheaper(scene(pools, held(5 * HOUR_S), hourly))).toHaveLength(1);
  });
});

describe('clearing', () => {
  const clear = clearing(byRuntimeBin);
  /** Decisions a minute apart; the last one's moves. */
  const after = (cycles: number, held: readonly HeldFacts[], of: Parameters<typeof scene>[0] = pools): string[] => {
    const memory = new DecisionMemory();
    let moves: string[] = [];
    for (let n = 0; n <= cycles; n++) moves = told(clear(scene(of, held, { memory, afterS: 60 * n })));
    return moves;
  };
  const busy = on('i-2', small, { name: 'b', leftS: 2000 });

  it('begins once an instance was used to less than half for more than three cycles', () => {
    const held = [on('i-1', large, { name: 'a', vcpus: 1, leftS: 1900 }), busy];
    expect(after(2, held)).toEqual([]);
    expect(after(3, held)).toEqual(['a -> i-2']);
  });

  it('leaves an instance alone that is used to half in one dimension', () => {
    expect(after(5, [on('i-1', large, { name: 'a', vcpus: 4, leftS: 1900 }), busy])).toEqual([]);
    expect(after(5, [on('i-1', large, { name: 'a', gib: 16, leftS: 1900 }), busy])).toEqual([]);
  });

  it('begins to count anew where the instance was used more in between', () => {
    const memory = new DecisionMemory();
    const low = [on('i-1', large, { name: 'a', leftS: 1900 }), busy];
    const high = [on('i-1', large, { name: 'a', leftS: 1900 }, { name: 'c', vcpus: 4, leftS: 60 }), busy];
    for (const [n, held] of [low, low, high, low, low, low].entries())
      expect(clear(scene(pools, held, { memory, afterS: 60 * n }))).toEqual([]);
    expect(told(clear(scene(pools, low, { memory, afterS: 360 })))).toEqual(['a -> i-2']);
  });

  it('moves all or none: to running instances, else to a new one that is cheaper and holds all', () => {
    const two = on('i-1', large, { name: 'a', leftS: 1900 }, { name: 'c', leftS: 1900 });
    expect(after(3, [two, busy])).toEqual([`a -> ${small.id}`, `c -> ${small.id}`]);
    const three = on('i-1', large, ...['a', 'c', 'd'].map((name) => ({ name, leftS: 1900 })));
    expect(after(3, [three, busy])).toEqual([]);
    const mid = view(pool({ type: 'm5.xlarge', vcpus: 4, gib: 16, onDemand: 0.2 }), 0.08);
    expect(after(3, [three, busy], [...pools, mid])).toEqual(['a', 'c', 'd'].map((t) => `${t} -> ${mid.pool.id}`));
  });

  it('does not begin where the longest task ends before the move, or the start of a new instance', () => {
    // 1 GiB: 16.7 s to a running instance, 111.7 s to a new one.
    expect(after(3, [on('i-1', large, { name: 'a', leftS: 16 }), busy])).toEqual([]);
    expect(after(3, [on('i-1', large, { name: 'a', leftS: 18 }), busy])).toEqual(['a -> i-2']);
    const full = on('i-2', small, { name: 'b', vcpus: 2, leftS: 2000 });
    expect(after(3, [on('i-1', large, { name: 'a', leftS: 111 }), full])).toEqual([]);
    expect(after(3, [on('i-1', large, { name: 'a', leftS: 113 }), full])).toEqual([`a -> ${small.id}`]);
  });

  it('goes in decreasing cost per resource used, and leaves those that others have just moved to', () => {
    // 0.16 USD for half of a smallest instance's vCPUs (0.32), against 0.16 for three halves (0.107).
    const held = [
      on('i-1', large, { name: 'a', vcpus: 3, leftS: 1900 }),
      on('i-2', large, { name: 'b', vcpus: 1, leftS: 1900 }),
    ];
    expect(after(3, held)).toEqual(['b -> i-1']);
  });

  it('gives instances that work leaves no new work, until they are gone', () => {
    const memory = new DecisionMemory();
    const held = [on('i-1', large, { name: 'a', leftS: 1900 }), busy];
    for (let n = 0; n <= 3; n++) clear(scene(pools, held, { memory, afterS: 60 * n }));
    const leaving = memory.of(LEAVING);
    expect(leaving.has(instanceId('i-1'))).toBe(true);
    clear(scene(pools, [on('i-1', large), busy], { memory, afterS: 240 }));
    expect(leaving.has(instanceId('i-1'))).toBe(true);
    clear(scene(pools, [busy], { memory, afterS: 300 }));
    expect(leaving.has(instanceId('i-1'))).toBe(false);
  });

  it('may be added to moves to cheaper instances, which go first', () => {
    const memory = new DecisionMemory();
    const both = clearingAndCheaper(byDotProduct);
    const held = [on('i-1', large, { name: 'a', leftS: 1900 }), busy];
    expect(told(both(scene(pools, held, { memory })))).toEqual([`a -> ${small.id}`]);
  });
});

describe('room for the tasks of an instance', () => {
  const room = (id: string, leftS: number, vcpus: number): Room => ({
    on: instanceId(id),
    pool: large,
    free: { ...large.type.capacity, ...resources(vcpus, 8), disk: large.type.capacity.disk },
    leftS,
  });
  const place = (leftS: number, rooms: readonly Room[], repack = byRuntimeBin): string[] | null => {
    const [task] = scene(pools, [on('i-0', large, { name: 'a', leftS })]).snapshot.running;
    if (task === undefined) throw new Error('a task runs');
    const found = repacked([task], rooms, { leftOf: () => seconds(leftS), repack });
    return found === null ? null : found.map((f) => f.room.on as string);
  };

  it('is on the instance of the same bin that ends closest, then in greater bins, then in lesser ones', () => {
    // Bins [64, 128), [128, 256) and [256, 512).
    expect(place(200, [room('i-1', 130, 4), room('i-2', 250, 4), room('i-3', 300, 8)])).toEqual(['i-2']);
    expect(place(200, [room('i-1', 100, 8), room('i-2', 600, 8), room('i-3', 300, 2), room('i-4', 310, 4)])).toEqual([
      'i-4',
    ]);
    expect(place(200, [room('i-1', 20, 8), room('i-2', 100, 2), room('i-3', 110, 4)])).toEqual(['i-3']);
    expect(place(200, [])).toBeNull();
  });

  it('is where the dot product is the largest', () => {
    expect(place(200, [room('i-1', 130, 4), room('i-2', 250, 6)], byDotProduct)).toEqual(['i-2']);
  });
});
