import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { fill, tasksBy } from '../../../../lib/stages/plan/fill.ts';
import { lagrangian, unconstrained } from '../../../../lib/stages/plan/lagrangian.ts';
import { assignmentOf, requestOf, selectionOf } from '../../../../lib/stages/plan/request.ts';
import { valueOf, violations } from '../../../../lib/stages/plan/strl/value.ts';
import { runs, seenMoreThan } from '../../../support/properties.ts';
import { smallProblem, type SmallGroup, type SmallProblem } from '../../../support/small-problem.ts';

const SLOTS = 2;
const PARTITIONS = ['a', 'b'] as const;
const amounts = fc.record({ a: fc.integer({ min: 0, max: 3 }), b: fc.integer({ min: 0, max: 2 }) });
const member = fc.record({ uses: amounts, atMost: fc.integer({ min: 1, max: 3 }) });
const choice = fc.record({
  netUsd: fc.integer({ min: 1, max: 20 }),
  slot: fc.nat(SLOTS - 1),
  slots: fc.integer({ min: 1, max: 3 }),
  members: fc.array(member, { minLength: 1, maxLength: 2 }),
});
const group: fc.Arbitrary<SmallGroup> = fc
  .record({
    count: fc.integer({ min: 1, max: 3 }),
    gang: fc.boolean(),
    choices: fc.array(choice, { minLength: 1, maxLength: 2 }),
  })
  // Only a gang may come from several members at once.
  .map(({ gang, choices, ...of }) => ({
    ...of,
    gang,
    choices: choices.map((c) => (gang ? c : { ...c, members: c.members.slice(0, 1) })),
  }));
const capacity = fc.record({
  a: fc.array(fc.nat(8), { minLength: SLOTS, maxLength: SLOTS }),
  b: fc.array(fc.nat(6), { minLength: SLOTS, maxLength: SLOTS }),
});
const kill = fc.record({
  costUsd: fc.integer({ min: 1, max: 8 }),
  gives: fc.record({ a: fc.integer({ min: 0, max: 2 }), b: fc.integer({ min: 0, max: 2 }) }),
  atMost: fc.integer({ min: 1, max: 2 }),
  slots: fc.integer({ min: 1, max: 2 }),
});
const small: fc.Arbitrary<SmallProblem & { readonly capacity: Record<'a' | 'b', readonly number[]> }> = fc.record({
  slots: fc.constant(SLOTS),
  capacity,
  groups: fc.array(group, { minLength: 1, maxLength: 3 }),
  kills: fc.array(kill, { maxLength: 1 }),
});

type Small = typeof small extends fc.Arbitrary<infer S> ? S : never;
type Free = Record<'a' | 'b', number[]>;

/** One more unit, or as many less, of what runs in slots from `slot` on; whether all rows bear it. */
function change(
  free: Free,
  uses: Partial<Record<string, number>>,
  [slot, end]: [number, number],
  units: number,
): boolean {
  let within = true;
  for (const p of PARTITIONS) {
    for (let t = slot; t < Math.min(end, SLOTS); t++) {
      const left = (free[p][t] ?? 0) - units * (uses[p] ?? 0);
      free[p][t] = left;
      if (left < 0 && (uses[p] ?? 0) > 0) within = false;
    }
  }
  return within;
}

/** Tasks per choice, started one by one in the order of choices. */
function oneByOne({ capacity: has, groups }: Small): number[] {
  const free: Free = { a: [...has.a], b: [...has.b] };
  return groups.flatMap(({ count, gang, choices }) => {
    let waiting = count;
    return choices.map(({ members, slot = 0, slots = 1 }) => {
      const taken: [(typeof members)[number], number][] = members.map((m) => {
        let n = 0;
        const wanted = Math.min(m.atMost, waiting);
        while (n < wanted) {
          if (change(free, m.uses, [slot, slot + slots], 1)) {
            n++;
            continue;
          }
          change(free, m.uses, [slot, slot + slots], -1);
          break;
        }
        waiting -= n;
        return [m, n];
      });
      const started = taken.reduce((sum, [, n]) => sum + n, 0);
      if (gang !== true || waiting === 0) return started;
      for (const [m, n] of taken) change(free, m.uses, [slot, slot + slots], -n);
      waiting += started;
      return 0;
    });
  });
}

/** The best objective of all selections, one tried after another. */
function best({ capacity: has, groups, kills = [] }: Small): number {
  const free: Free = { a: [...has.a], b: [...has.b] };
  let most = 0;
  const within = (): boolean => PARTITIONS.every((p) => free[p].every((left) => left >= 0));
  const stop = (k: number, usd: number): void => {
    const of = kills[k];
    if (of === undefined) return start(0, 0, 0, { left: groups[0]?.count ?? 0, usd });
    for (let n = 0; n <= (of.atMost ?? 1); n++) {
      change(free, of.gives, [0, of.slots ?? SLOTS], -n);
      stop(k + 1, usd - n * of.costUsd);
      change(free, of.gives, [0, of.slots ?? SLOTS], n);
    }
  };
  const start = (g: number, c: number, m: number, { left, usd }: { left: number; usd: number }): void => {
    const of = groups[g];
    if (of === undefined) {
      if (usd > most && within()) most = usd;
      return;
    }
    const by = of.choices[c];
    if (by === undefined) return start(g + 1, 0, 0, { left: groups[g + 1]?.count ?? 0, usd });
    const from = by.members[m];
    if (from === undefined) {
      // A gang is whole by one choice: nothing of it, or nothing left of it.
      if (of.gang !== true || left === of.count) start(g, c + 1, 0, { left, usd });
      else if (left === 0) start(g + 1, 0, 0, { left: groups[g + 1]?.count ?? 0, usd });
      return;
    }
    const span: [number, number] = [by.slot ?? 0, (by.slot ?? 0) + (by.slots ?? 1)];
    for (let n = 0; n <= Math.min(left, from.atMost); n++) {
      change(free, from.uses, span, n);
      start(g, c, m + 1, { left: left - n, usd: usd + n * by.netUsd });
      change(free, from.uses, span, -n);
    }
  };
  stop(0, 0);
  return most;
}

describe('a fill', () => {
  it('starts one task after another in the order given, as long as one more fits', () => {
    let part = 0;
    fc.assert(
      fc.property(small, (of) => {
        const problem = smallProblem({ ...of, kills: [] });
        const order = problem.choices.map((_, i) => i);
        const selection = fill(problem, order, { preemptFor: 'all' });
        const expected = oneByOne(of);
        expect(order.map((i) => tasksBy(selection, i))).toEqual(expected);
        const worths = of.groups.flatMap((g) => g.choices.map((c) => c.netUsd));
        expect(selection.objectiveUsd).toBe(expected.reduce((sum, n, i) => sum + n * (worths[i] ?? 0), 0));
        const all = of.groups.reduce((sum, g) => sum + g.count, 0);
        const started = expected.reduce((a, b) => a + b, 0);
        if (started > 0 && started < all) part++;
      }),
      { seed: 20261124, numRuns: runs(500) },
    );
    expect(part).toBeGreaterThan(seenMoreThan(100));
  });

  it('is the best there is where each task takes one unit: the dearest start, the cheapest stop', () => {
    let stopped = 0;
    const usd = fc.integer({ min: 1, max: 30 });
    fc.assert(
      fc.property(fc.nat(4), fc.array(usd, { maxLength: 6 }), fc.array(usd, { maxLength: 5 }), (has, starts, costs) => {
        const dearest = starts.toSorted((a, b) => b - a);
        const problem = smallProblem({
          capacity: { a: has },
          groups: dearest.map((netUsd) => ({
            count: 1,
            choices: [{ netUsd, members: [{ uses: { a: 1 }, atMost: 1 }] }],
          })),
          kills: costs.map((costUsd) => ({ costUsd, gives: { a: 1 } })),
        });
        const cheapest = costs.toSorted((a, b) => a - b);
        let expected = 0;
        let stops = 0;
        for (const [n, netUsd] of dearest.entries()) {
          const cost = n < has ? 0 : (cheapest[n - has] ?? Infinity);
          if (netUsd <= cost) break;
          expected += netUsd - cost;
          if (n >= has) stops++;
        }
        const order = problem.choices.map((_, i) => i);
        const selection = fill(problem, order, { preemptFor: 'all' });
        expect(selection.objectiveUsd).toBe(expected);
        expect(selection.kills.reduce((a, b) => a + b, 0)).toBe(stops);
        if (stops > 0) stopped++;
      }),
      { seed: 20261124, numRuns: runs(500) },
    );
    expect(stopped).toBeGreaterThan(seenMoreThan(100));
  });
});

describe('the Lagrangian bound', () => {
  const ITERATIONS = 200;

  it('is above the best of all selections, and its plan is one of them', () => {
    let contended = 0;
    fc.assert(
      fc.property(small, (of) => {
        const problem = smallProblem(of);
        const order = problem.choices.map((_, i) => i);
        const start = fill(problem, order, { preemptFor: 'all' });
        const most = best(of);
        const {
          bound,
          best: plan,
          iterations,
        } = lagrangian(problem, start, { iterations: ITERATIONS, relativeGap: 0 });
        expect(bound).toBeGreaterThanOrEqual(most - 1e-9);
        expect(plan.objectiveUsd).toBeLessThanOrEqual(most + 1e-9);
        expect(plan.objectiveUsd).toBeGreaterThanOrEqual(start.objectiveUsd);
        expect(iterations).toBeLessThanOrEqual(ITERATIONS);
        const ideal = unconstrained(problem);
        expect(ideal).toBeGreaterThanOrEqual(most - 1e-9);
        expect(ideal).toBe(best({ ...of, kills: [], capacity: { a: [99, 99], b: [99, 99] } }));
        if (ideal > most) contended++;
      }),
      { seed: 20261125, numRuns: runs(150) },
    );
    expect(contended).toBeGreaterThan(seenMoreThan(30));
  });

  it('closes in on the best where all is divisible and each task takes one unit', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.record({ netUsd: fc.integer({ min: 10, max: 90 }), count: fc.integer({ min: 1, max: 4 }) }), {
          minLength: 2,
          maxLength: 5,
        }),
        fc.integer({ min: 1, max: 90 }),
        (has, groups, costUsd) => {
          const of = {
            capacity: { a: [has, 9], b: [9, 9] },
            slots: SLOTS,
            kills: [{ costUsd, gives: { a: 1 }, atMost: 2 }],
          };
          const one = [{ uses: { a: 1 }, atMost: 9 }];
          const made = {
            ...of,
            groups: groups.map(({ netUsd, count }) => ({ count, choices: [{ netUsd, members: one }] })),
          };
          const problem = smallProblem(made);
          const nothing = fill(problem, [], { preemptFor: 'all' });
          const found = lagrangian(problem, nothing, { iterations: 300, relativeGap: 1e-9 });
          const most = best(made);
          expect(found.bound).toBeLessThanOrEqual(most * 1.02);
          expect(found.best.objectiveUsd).toBe(most);
        },
      ),
      { seed: 20261126, numRuns: runs(100) },
    );
  });
});

describe('the STRL request of a problem', () => {
  it('says of any selection what the problem says, and gives it back', () => {
    fc.assert(
      fc.property(small, (of) => {
        const problem = smallProblem(of);
        const order = problem.choices.map((_, i) => i).reverse();
        const selection = fill(problem, order, { preemptFor: 'all' });
        const { expression, supply } = requestOf(problem);
        const assignment = assignmentOf(problem, selection);
        expect(violations(expression, supply, assignment)).toEqual([]);
        expect(valueOf(expression, assignment)).toBeCloseTo(selection.objectiveUsd, 9);
        expect(selectionOf(problem, assignment)).toEqual(selection);
      }),
      { seed: 20261127, numRuns: runs(200) },
    );
  });
});
