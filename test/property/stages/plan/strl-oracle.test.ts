import { afterAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { highsSolver } from '../../../../lib/drivers/solver/highs-solver.ts';
import { compile } from '../../../../lib/stages/plan/milp/compile.ts';
import { interpret } from '../../../../lib/stages/plan/milp/interpret.ts';
import {
  barrier,
  max,
  min,
  scale,
  sum,
  type Expression,
  type Leaf,
} from '../../../../lib/stages/plan/strl/expression.ts';
import type { Supply } from '../../../../lib/stages/plan/strl/supply.ts';
import { valueOf, violations } from '../../../../lib/stages/plan/strl/value.ts';
import { runs } from '../../../support/properties.ts';

/** Enumerates every assignment of units to leaves and members: shares nothing with the compiler but the data types. */
function bruteForce(e: Expression, supply: Supply): number {
  const leaves: Leaf[] = [];
  const collect = (node: Expression): void => {
    if ('set' in node) leaves.push(node);
    else if ('factor' in node || 'threshold' in node) collect(node.of);
    else node.of.forEach(collect);
  };
  collect(e);
  const free = new Map<string, number>();
  for (const p of supply.partitions) {
    p.capacity.forEach((kinds, t) => kinds.forEach((c, kind) => free.set(`${p.id}/${t}/${kind}`, c)));
  }
  const renewable = new Map(supply.partitions.map((p) => [p.id, p.renewable]));
  const units: number[][] = leaves.map((leaf) => leaf.set.map(() => 0));
  const count = (i: number): number => (units[i] ?? []).reduce((a, b) => a + b, 0);

  const active = (node: Expression): boolean => {
    if ('set' in node) return count(leaves.indexOf(node)) > 0;
    return 'factor' in node || 'threshold' in node ? active(node.of) : node.of.some(active);
  };
  /** Value, or null where an exclusive choice is broken. */
  const value = (node: Expression): number | null => {
    if ('set' in node) {
      const worth = 'cost' in node ? -node.cost : node.value;
      return (worth * count(leaves.indexOf(node))) / node.k;
    }
    if ('factor' in node || 'threshold' in node) {
      const inner = value(node.of);
      if (inner === null) return null;
      return 'factor' in node ? node.factor * inner : inner >= node.threshold - 1e-9 ? node.threshold : 0;
    }
    const values = node.of.map(value);
    if (values.includes(null)) return null;
    const known = values as number[];
    if (node.kind === 'sum') return known.reduce((a, b) => a + b, 0);
    if (node.kind === 'min') return Math.min(...known);
    const chosen = node.of.flatMap((child, i) => (active(child) ? [known[i] ?? 0] : []));
    return chosen.length > 1 ? null : (chosen[0] ?? 0);
  };
  const feasible = (): boolean => {
    const used = new Map<string, number>();
    leaves.forEach((leaf, i) => {
      leaf.set.forEach((member, m) => {
        const n = units[i]?.[m] ?? 0;
        for (const draw of member.draws) {
          const once = renewable.get(draw.partition) === false;
          for (
            let t = once ? 0 : leaf.start;
            t < (once ? 1 : Math.min(leaf.start + leaf.duration, supply.slots));
            t++
          ) {
            draw.perUnit.forEach((amount, kind) => {
              const key = `${draw.partition}/${t}/${kind}`;
              used.set(key, (used.get(key) ?? 0) + ('cost' in leaf ? -n : n) * amount);
            });
          }
        }
      });
    });
    return [...used].every(([key, amount]) => amount <= (free.get(key) ?? 0) + 1e-9);
  };

  let best = 0;
  const fill = (i: number, m: number): void => {
    const leaf = leaves[i];
    if (leaf === undefined) {
      const found = feasible() ? value(e) : null;
      if (found !== null && found > best) best = found;
      return;
    }
    const member = leaf.set[m];
    if (member === undefined) {
      const whole = leaf.kind === 'nCk' || leaf.kind === 'killnCk';
      if (!whole || count(i) === 0 || count(i) === leaf.k) fill(i + 1, 0);
      return;
    }
    for (let n = 0; n <= member.atMost && count(i) <= leaf.k; n++) {
      (units[i] as number[])[m] = n;
      if (count(i) <= leaf.k) fill(i, m + 1);
    }
    (units[i] as number[])[m] = 0;
  };
  fill(0, 0);
  return best;
}

const SLOTS = 3;
const partitions = ['a', 'b', 'once'] as const;

const supplyArbitrary: fc.Arbitrary<Supply> = fc
  .array(fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 2, maxLength: 2 }), {
    minLength: 2 * SLOTS + 1,
    maxLength: 2 * SLOTS + 1,
  })
  .map((c) => ({
    slots: SLOTS,
    partitions: [
      { id: 'a', renewable: true, kinds: ['cpu', 'mem'], capacity: c.slice(0, SLOTS) },
      { id: 'b', renewable: true, kinds: ['cpu', 'mem'], capacity: c.slice(SLOTS, 2 * SLOTS) },
      { id: 'once', renewable: false, kinds: ['usd', 'tasks'], capacity: c.slice(2 * SLOTS) },
    ],
  }));

type Draft = Omit<Leaf, 'id' | 'value' | 'cost'> & { readonly worth: number };
const leafArbitrary: fc.Arbitrary<Draft> = fc.record({
  kind: fc.constantFrom('nCk' as const, 'nCk' as const, 'lnCk' as const, 'killnCk' as const, 'killLnCk' as const),
  set: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom('m', 'n'),
      atMost: fc.integer({ min: 1, max: 2 }),
      draws: fc.uniqueArray(
        fc.record({
          partition: fc.constantFrom(...partitions),
          perUnit: fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 2 })),
        }),
        { minLength: 1, maxLength: 2, selector: (d) => d.partition },
      ),
    }),
    { minLength: 1, maxLength: 2, selector: (m) => m.name },
  ),
  k: fc.integer({ min: 1, max: 3 }),
  start: fc.integer({ min: 0, max: SLOTS - 1 }),
  duration: fc.integer({ min: 1, max: SLOTS }),
  worth: fc.integer({ min: 1, max: 20 }),
});

/** Up to five leaves under a random tree. */
const expressionArbitrary: fc.Arbitrary<Expression> = fc
  .record({
    leaves: fc.array(leafArbitrary, { minLength: 2, maxLength: 5 }),
    joins: fc.array(fc.tuple(fc.constantFrom('max', 'max', 'max', 'sum', 'sum', 'min', 'scale', 'barrier'), fc.nat()), {
      minLength: 1,
      maxLength: 3,
    }),
  })
  .map(({ leaves, joins }) => {
    let nodes: Expression[] = leaves.map(({ worth, ...draft }, i) =>
      draft.kind === 'nCk' || draft.kind === 'lnCk'
        ? { ...draft, kind: draft.kind, id: `l${i}`, value: worth }
        : { ...draft, kind: draft.kind, id: `l${i}`, cost: worth },
    );
    for (const [kind, pick] of joins) {
      const size = 2 + (pick % 2);
      if (kind === 'scale') nodes = [scale(1 + (pick % 3), nodes[0] as Expression), ...nodes.slice(1)];
      else if (kind === 'barrier') nodes = [barrier(1 + (pick % 9), nodes[0] as Expression), ...nodes.slice(1)];
      else {
        const join = { max, min, sum }[kind];
        nodes = [...nodes.slice(size), join(...nodes.slice(0, size))];
      }
    }
    return sum(...nodes);
  });

describe('compile and solve against every assignment there is', () => {
  const solver = highsSolver();
  afterAll(() => solver.close());

  it('finds the best value, and an assignment that has it and breaks nothing', async () => {
    let positive = 0;
    let tried = 0;
    await fc.assert(
      fc.asyncProperty(expressionArbitrary, supplyArbitrary, async (expression, supply) => {
        tried++;
        const compiled = compile(expression, supply, { name: 'oracle', integerThrough: Infinity });
        const outcome = await solver.solve(compiled.milp, { relativeGap: 0, maxNodes: null, maxSeconds: null }, null);
        if (outcome.status !== 'optimal') throw new Error(outcome.status);
        const best = bruteForce(expression, supply);
        if (best > 0) positive++;
        expect(outcome.objective).toBeCloseTo(best, 6);
        const assignment = interpret(compiled, outcome.values);
        expect(violations(expression, supply, assignment)).toEqual([]);
        expect(valueOf(expression, assignment)).toBeCloseTo(best, 6);
        // The assignment's own point is feasible and worth the same: what a warm start relies on.
        const point = compiled.point(assignment);
        const worth = point.reduce((total, x, j) => total + x * (compiled.milp.objective[j] ?? 0), 0);
        expect(worth).toBeCloseTo(best, 6);
        expectWithin(compiled.milp, point);
      }),
      { numRuns: runs(300), seed: 20260501 },
    );
    // Not vacuous: in most instances there is something to win.
    expect(positive / tried).toBeGreaterThan(0.5);
  }, 120_000);
});

function expectWithin(milp: ReturnType<typeof compile>['milp'], point: Float64Array): void {
  for (let row = 0; row < milp.rows; row++) {
    let activity = 0;
    for (let i = milp.rowStart[row] ?? 0; i < (milp.rowStart[row + 1] ?? 0); i++) {
      activity += (milp.coefficient[i] ?? 0) * (point[milp.columnIndex[i] ?? 0] ?? 0);
    }
    expect(activity).toBeLessThanOrEqual((milp.rowUpper[row] ?? 0) + 1e-6);
    expect(activity).toBeGreaterThanOrEqual((milp.rowLower[row] ?? 0) - 1e-6);
  }
}
