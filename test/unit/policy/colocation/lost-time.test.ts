import { describe, expect, it } from '@jest/globals';
import { longerTogether, lostS, slowedNow, type Sharer } from '../../../../lib/policy/colocation/lost-time.ts';
import type { NeighbourBelief } from '../../../../lib/policy/colocation/neighbour-belief.ts';
import { pool } from '../../../support/decision-world.ts';

/** Twice as long beside each task of another reader. */
const belief = {
  slowdown: (_: string, beside: readonly { readonly template: string; readonly tasks?: number }[]) => ({
    factor: 2 ** beside.reduce((n, { template, tasks = 1 }) => (template === 'reader' ? n + tasks : n), 0),
    sd: 0,
  }),
} as unknown as NeighbourBelief;
const on = { belief, type: pool({}).type };
const sharer = (over: Partial<Sharer> = {}): Sharer => ({
  template: 'reader',
  part: 0.25,
  tasks: 1,
  leftS: 100,
  isSlowed: true,
  ...over,
});

describe('time that tasks lose by sharing an instance', () => {
  it('is that of those who come and of those who are there, each by its part', () => {
    const longer = longerTogether([sharer()], [sharer({ part: 0.5 })], on);
    expect(longer.map(({ byS }) => byS)).toEqual([100, 100]);
    expect(lostS(longer)).toBe(75);
    expect(lostS(longerTogether([sharer({ tasks: 2 })], [sharer()], on))).toBe(2 * 0.25 * 100 + 0.25 * 300);
  });

  it('is lost by those who are there only while they are together', () => {
    const [there, coming] = longerTogether([sharer({ leftS: 1000 })], [sharer({ leftS: 10 })], on);
    expect([there?.byS, coming?.byS]).toEqual([10, 10]);
  });

  it('is no time of programs that nobody slows down', () => {
    const quiet = sharer({ template: 'quiet', isSlowed: false });
    expect(longerTogether([quiet], [sharer()], on)).toEqual([]);
    expect(longerTogether([sharer()], [quiet], on)).toEqual([]);
  });

  it('is gained by leaving worse neighbours', () => {
    const [leaving] = slowedNow([sharer({ tasks: 3 })], on);
    expect(leaving?.now).toBe(4);
    expect(lostS(longerTogether([], [{ ...sharer(), now: leaving?.now ?? 1 }], on))).toBe(-0.25 * 75);
  });
});
