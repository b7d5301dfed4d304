import { describe, expect, it } from '@jest/globals';
import { expectedStartsS, type Queued, type RoomForecast } from '../../../lib/cycle/explain/expected-start.ts';
import { groupId } from '../../../lib/kernel/ids.ts';

const queued = (name: string, over: Partial<Queued> = {}): Queued => ({
  group: groupId(name),
  tasks: 1,
  milliCpu: 1000,
  runtimeS: 100,
  gang: false,
  ...over,
});
const startsOf = (of: Partial<RoomForecast>): Record<string, number> =>
  Object.fromEntries(expectedStartsS({ freeMilliCpu: 0, ends: [], queue: [], ...of }));
/** One task of so many vCPUs each, ending then. */
const ends = (...of: readonly (readonly [inS: number, cpus: number])[]) =>
  of.map(([inS, cpus]) => ({ inS, milliCpu: cpus * 1000 }));

describe('when waiting groups are expected to start', () => {
  it('is when enough has ended, not when anything has', () => {
    // 1 vCPU after 10 s, 2 after 20 s, 4 after 30 s.
    const after = ends([20, 1], [10, 1], [30, 2]);
    expect(startsOf({ ends: after, queue: [queued('one')] })).toEqual({ one: 10 });
    expect(startsOf({ ends: after, queue: [queued('two', { milliCpu: 2000 })] })).toEqual({ two: 20 });
    expect(startsOf({ ends: after, queue: [queued('three', { milliCpu: 3000 })] })).toEqual({ three: 30 });
  });

  it('counts what is free already, and is never before the first end', () => {
    const queue = [queued('a', { milliCpu: 2000 })];
    expect(startsOf({ freeMilliCpu: 1000, ends: ends([50, 1], [60, 1]), queue })).toEqual({ a: 50 });
    expect(startsOf({ freeMilliCpu: 9000, ends: ends([50, 1]), queue })).toEqual({ a: 50 });
  });

  it('lets those ahead take room first', () => {
    const after = ends([10, 1], [20, 1], [30, 1]);
    const ahead = queued('ahead', { tasks: 2, runtimeS: 1000 });
    expect(startsOf({ ends: after, queue: [ahead, queued('behind')] })).toEqual({ ahead: 10, behind: 30 });
    expect(startsOf({ ends: after, queue: [queued('behind'), ahead] })).toEqual({ behind: 10, ahead: 20 });
  });

  it('counts on the room that those ahead give back', () => {
    // One place for a task: `ahead` takes it from 10 to 110 and from 110 to 210.
    const queue = [queued('ahead', { tasks: 2 }), queued('behind')];
    expect(startsOf({ ends: ends([10, 1]), queue })).toEqual({ ahead: 10, behind: 210 });
  });

  it('of a gang is when all of it fits', () => {
    const after = ends([10, 1], [20, 1], [30, 1]);
    const gang = queued('gang', { tasks: 3, gang: true });
    expect(startsOf({ ends: after, queue: [gang] })).toEqual({ gang: 30 });
    expect(startsOf({ ends: after, queue: [{ ...gang, gang: false }] })).toEqual({ gang: 10 });
    // All three end at 130.
    expect(startsOf({ ends: after, queue: [gang, queued('behind')] })).toEqual({ gang: 30, behind: 130 });
  });

  it('is not known when nothing runs, or what runs leaves too little', () => {
    expect(startsOf({ freeMilliCpu: 5000, queue: [queued('a')] })).toEqual({});
    const large = queued('large', { milliCpu: 4000 });
    expect(startsOf({ ends: ends([10, 1], [20, 2]), queue: [queued('small'), large] })).toEqual({ small: 10 });
  });

  it('needs no room for tasks that need none', () => {
    expect(startsOf({ ends: ends([10, 1]), queue: [queued('none', { milliCpu: 0, tasks: 1000 })] })).toEqual({
      none: 10,
    });
  });

  it('is given up for what lies too far ahead', () => {
    // A million rounds of one task each before the second group's turn.
    const queue = [queued('endless', { tasks: 1_000_000 }), queued('behind')];
    expect(startsOf({ ends: ends([10, 1]), queue })).toEqual({ endless: 10 });
  });
});
