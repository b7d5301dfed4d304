/** Prices of resources against the optimum of the same linear program, found by HiGHS. */
import { createRequire } from 'node:module';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { randomStream } from '../../../lib/kernel/random.ts';
import { KINDS } from '../../../lib/domain/resources.ts';
import { resourceParts, undominated, type MixedWork } from '../../../lib/policy/resource-parts.ts';
import { runs } from '../../support/properties.ts';

type Highs = () => Promise<{ solve(lp: string): { readonly Status: string; readonly ObjectiveValue: number } }>;
const highs = await (createRequire(import.meta.url)('highs') as Highs)();

interface Machine {
  readonly capacity: readonly [number, number];
  readonly usd: number;
}

const machine = fc.record({
  capacity: fc.tuple(fc.integer({ min: 2, max: 64 }), fc.integer({ min: 2, max: 64 })),
  usd: fc.integer({ min: 1, max: 100 }).map((cents) => cents / 100),
});
const kind = fc.record({
  need: fc.tuple(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 8 })),
  amount: fc.integer({ min: 1, max: 500 }),
  mask: fc.integer({ min: 1, max: 63 }),
});
type Kind = typeof kind extends fc.Arbitrary<infer T> ? T : never;

const workOf = (kinds: readonly Kind[], machines: readonly Machine[]): readonly MixedWork[] =>
  kinds.map(({ need, amount, mask }) => {
    const pools = machines.flatMap((_, p) => ((mask >> p) & 1 ? [p] : []));
    return { need: [...need, 0, 0], amount, pools, usd: pools.map((p) => machines[p]?.usd ?? 0) };
  });

const capacitiesOf = (machines: readonly Machine[]): Float64Array =>
  Float64Array.from(machines.flatMap(({ capacity }) => [...capacity, 0, 0]));

function optimum(work: readonly MixedWork[], machines: readonly Machine[]): number {
  const cover = work.map(({ pools, amount }, e) => ` c${e}: ${pools.map((p) => `y${e}_${p}`).join(' + ')} = ${amount}`);
  const rows = machines.flatMap(({ capacity }, p) =>
    capacity.flatMap((c, k) => {
      const terms = work.flatMap(({ need, pools }, e) => (pools.includes(p) ? [`${need[k]} y${e}_${p}`] : []));
      return terms.length === 0 ? [] : [` u${p}_${k}: ${terms.join(' + ')} - ${c} x${p} <= 0`];
    }),
  );
  const objective = machines.map(({ usd }, p) => `${usd} x${p}`).join(' + ');
  const solved = highs.solve(
    `Minimize\n obj: ${objective}\nSubject To\n${cover.join('\n')}\n${rows.join('\n')}\nEnd\n`,
  );
  expect(solved.Status).toBe('Optimal');
  return solved.ObjectiveValue;
}

describe('prices of resources', () => {
  it('bound the bill from below, and are near it', () => {
    let ratios = 0;
    let n = 0;
    fc.assert(
      fc.property(
        fc.array(kind, { minLength: 1, maxLength: 12 }),
        fc.array(machine, { minLength: 6, maxLength: 6 }),
        (kinds, machines) => {
          const work = workOf(kinds, machines);
          const { parts, usd } = resourceParts(work, capacitiesOf(machines));
          for (let p = 0; p < machines.length; p++) {
            const sum = parts.subarray(p * KINDS, (p + 1) * KINDS).reduce((a, b) => a + b, 0);
            expect(sum === 0 || Math.abs(sum - 1) < 1e-9).toBe(true);
          }
          const bound = work.reduce((sum, { amount }, e) => sum + amount * (usd[e] ?? NaN), 0);
          const least = optimum(work, machines);
          expect(bound).toBeLessThanOrEqual(least * (1 + 1e-6));
          ratios += bound / least;
          n++;
        },
      ),
      { seed: 41, numRuns: runs(200) },
    );
    expect(ratios / n).toBeGreaterThan(0.97);
  });

  it('let no pool in that another one beats, and lose no optimum by that', () => {
    fc.assert(
      fc.property(
        fc.array(kind, { minLength: 1, maxLength: 8 }),
        fc.array(machine, { minLength: 6, maxLength: 6 }),
        (kinds, machines) => {
          const all = workOf(
            kinds.map((k) => ({ ...k, mask: 63 })),
            machines,
          );
          const kept = undominated([0, 1, 2, 3, 4, 5], {
            capacities: capacitiesOf(machines),
            usdOf: (p) => machines[p]?.usd ?? NaN,
            kinds: [0, 1],
          });
          const few = all.map((of) => ({ ...of, pools: kept, usd: kept.map((p) => machines[p]?.usd ?? NaN) }));
          expect(optimum(few, machines)).toBeCloseTo(optimum(all, machines), 6);
        },
      ),
      { seed: 42, numRuns: runs(100) },
    );
  });
});

describe('prices of resources for more kinds of work than answer them', () => {
  it('bound the bill from below too, and are near it', () => {
    const draw = randomStream(7, 'many kinds');
    const whole = (most: number): number => 1 + Math.floor(draw() * most);
    const machines: readonly Machine[] = Array.from({ length: 6 }, () => ({
      capacity: [8 * whole(8), 8 * whole(8)],
      usd: whole(100) / 100,
    }));
    const kinds: readonly Kind[] = Array.from({ length: 1500 }, () => ({
      need: [whole(8), whole(8)],
      amount: whole(50),
      mask: whole(63),
    }));
    const work = workOf(kinds, machines);
    const { usd } = resourceParts(work, capacitiesOf(machines));
    const bound = work.reduce((sum, { amount }, e) => sum + amount * (usd[e] ?? 0), 0);
    const least = optimum(work, machines);
    expect(bound).toBeLessThanOrEqual(least * (1 + 1e-6));
    expect(bound).toBeGreaterThan(0.95 * least);
  });
});
