import { describe, expect, it } from '@jest/globals';
import { noUnits, tasksBy, unitsAt } from '../../../../lib/stages/plan/fill.ts';
import { affordable } from '../../../../lib/stages/plan/whole.ts';
import { smallProblem, type SmallGroup, type SmallProblem } from '../../../support/small-problem.ts';

/** Machines have 4,000 mCPU, tasks need 1,000. */
const buys = (count: number, netUsd: number, more: Partial<SmallGroup> = {}, slot = 0): SmallGroup => ({
  count,
  choices: [{ netUsd, slot, members: [{ name: 'new', uses: { quota: 1000 }, atMost: 99 }] }],
  ...more,
});
const inRoom = (netUsd: number): SmallGroup => ({
  count: 1,
  choices: [{ netUsd, members: [{ uses: { room: 1 }, atMost: 9 }] }],
});

function made(headroom: number, small: Omit<SmallProblem, 'capacity'>, tasks: number[], kills: number[]) {
  const problem = smallProblem({ ...small, capacity: { quota: headroom, room: 1 }, headroomMilliCpu: headroom });
  const units = noUnits(problem);
  tasks.forEach((count, index) => (units[unitsAt(index, 0)] = count));
  const selection = { units, kills: Float64Array.from(kills), objectiveUsd: 0 };
  const after = affordable(problem, selection);
  return { same: after === selection, tasks: tasks.map((_, i) => tasksBy(after, i)), kills: [...after.kills] };
}
const gives = (costUsd: number, quota: number) => ({ costUsd, gives: { quota } });

describe('purchases in whole machines', () => {
  it('stay where they fit exactly, and not where a thousandth of a vCPU is missing', () => {
    const small = { groups: [buys(4, 1)], kills: [gives(1, 1000)] };
    expect(made(3000, small, [4], [1])).toEqual({ same: true, tasks: [4], kills: [1] });
    expect(made(2999, small, [4], [1])).toEqual({ same: false, tasks: [2], kills: [0] });
  });

  it('do not matter in later slots, nor where nothing that runs is stopped', () => {
    const later = { slots: 2, groups: [buys(4, 1, {}, 1)], kills: [gives(1, 1000)] };
    expect(made(2999, later, [4], [1]).same).toBe(true);
    const idle = { groups: [buys(4, 1)], kills: [{ ...gives(1, 1000), attempts: [] }] };
    expect(made(2999, idle, [4], [1]).same).toBe(true);
  });

  it('take back the stop that is dearest per vCPU, until they fit', () => {
    // 9 tasks need 12,000 of 9,000; 8 tasks need 8,000 of the 8,000 that are left without the second stop.
    const small = { groups: [buys(9, 1)], kills: [gives(1, 2000), gives(0.8, 1000)] };
    expect(made(6000, small, [9], [1, 1])).toEqual({ same: false, tasks: [8], kills: [1, 0] });
  });

  it('leave the least worth waiting, gangs as a whole', () => {
    const kills = [gives(1, 1000)];
    expect(made(2000, { groups: [buys(2, 3), buys(1, 1)], kills }, [2, 1], [1]).tasks).toEqual([2, 0]);
    expect(made(2000, { groups: [buys(1, 1), buys(2, 3)], kills }, [1, 2], [1]).tasks).toEqual([0, 2]);
    expect(made(2000, { groups: [buys(3, 1, { gang: true })], kills }, [3], [1]).tasks).toEqual([0]);
    expect(made(2000, { groups: [buys(3, 1)], kills }, [3], [1]).tasks).toEqual([2]);
  });

  it('leave free room to what is worth most', () => {
    const small = { groups: [buys(3, 1), inRoom(2), inRoom(3)], kills: [gives(1, 1000)] };
    expect(made(2000, small, [3, 0, 0], [1])).toEqual({ same: false, tasks: [2, 0, 1], kills: [0] });
  });
});
