import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { groupOf, NO_GROUPS, regrouped, type Profile } from '../../../../lib/policy/colocation/grouping.ts';

const CENTRES: readonly Profile[] = [
  [1, 0, 0, 0, 0.5],
  [0, 1, 0, 0.5, 0.5],
  [0, 0, 1, 0.5, 0.5],
  [0.5, 0.5, 0, 0.2, 0.5],
  [0.1, 0.1, 0.1, 0, 0],
  [0.5, 0, 0.5, 0, 1],
  [0.9, 0.9, 0, 0.9, 1],
  [0.2, 0, 0, 0, 1],
];

/** So many programs around each centre. */
const around = (each: number, centres = CENTRES): Profile[] => {
  const draw = randomStream(7, 'profiles');
  return centres.flatMap((centre) =>
    Array.from({ length: each }, () => centre.map((x) => Math.max(0, Math.min(1, x + 0.06 * (draw() - 0.5))))),
  );
};

describe('groups of programs', () => {
  it('are the programs themselves while they are few', () => {
    const { groups } = regrouped(around(1, CENTRES.slice(0, 4)), NO_GROUPS);
    expect(groups).toHaveLength(4);
    expect(regrouped([], NO_GROUPS)).toBe(NO_GROUPS);
    // A program in a thousand variants that use the machine alike is one.
    expect(
      regrouped(
        Array.from({ length: 1000 }, () => CENTRES[0] as Profile),
        NO_GROUPS,
      ).groups,
    ).toHaveLength(1);
  });

  it('are found again among many', () => {
    const profiles = around(12);
    const { groups } = regrouped(profiles, NO_GROUPS);
    expect(groups).toHaveLength(CENTRES.length);
    const of = profiles.map((p) => groupOf(p, { groups, next: 1 }));
    for (let c = 0; c < CENTRES.length; c++) expect(new Set(of.slice(12 * c, 12 * (c + 1))).size).toBe(1);
  });

  it('keep their ids when they are made anew, and give new ones to new groups', () => {
    const before = regrouped(around(12, CENTRES.slice(0, 6)), NO_GROUPS);
    let after = before;
    // One step at a time: the number of groups changes by one.
    for (let n = 0; n < 3; n++) after = regrouped(around(12), after);
    for (const centre of CENTRES.slice(0, 6)) expect(groupOf(centre, after)).toBe(groupOf(centre, before));
    const ids = after.groups.map((g) => g.id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(after.groups).toHaveLength(CENTRES.length);
  });

  it('do not depend on the order of the programs', () => {
    const profiles = around(9);
    expect(regrouped(profiles.toReversed(), NO_GROUPS)).toEqual(regrouped(profiles, NO_GROUPS));
  });
});
