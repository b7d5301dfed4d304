import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { expectedUtility, remainingOf, type Chain, type Part } from '../../../../lib/policy/footprint/remaining.ts';
import { runs } from '../../../support/properties.ts';

/** P(R = r) by the paper's own words: over all subsets of allocations (eqs. 2.5, 2.7, 2.8). */
function enumerated(chains: readonly Chain[], lambdas: readonly number[]): Float64Array {
  const parts = chains.flatMap((chain, of) => {
    let before = 1;
    return chain.map((part, j) => {
      const raised = part.pLost > 0 ? Math.min(1, part.pLost + (lambdas[of] ?? 0)) : 0;
      before = Math.min(before, raised);
      return { ...part, beta: before, first: j === 0 };
    });
  });
  const all = parts.reduce((sum, part) => sum + part.units, 0);
  const p = new Float64Array(all + 1);
  for (let subset = 0; subset < 2 ** parts.length; subset++) {
    let probability = 1;
    let left = all;
    parts.forEach((part, k) => {
      const lost = Math.floor(subset / 2 ** k) % 2 === 1;
      const previousLost = part.first || Math.floor(subset / 2 ** (k - 1)) % 2 === 1;
      const previousBeta = part.first ? 1 : (parts[k - 1]?.beta ?? 0);
      const given = previousLost && previousBeta > 0 ? part.beta / previousBeta : 0;
      probability *= lost ? given : 1 - given;
      if (lost) left -= part.units;
    });
    p[left] = (p[left] ?? 0) + probability;
  }
  return p;
}

const part: fc.Arbitrary<Part> = fc.record({
  units: fc.nat(6),
  pLost: fc.oneof(fc.constantFrom(0, 1, 0.5), fc.double({ min: 0, max: 1, noNaN: true })),
});
const lambda = fc.double({ min: 0, max: 0.2, noNaN: true });

describe('what remains of a footprint', () => {
  it('is what the enumeration of all subsets says', () => {
    const chains = fc.array(fc.array(part, { maxLength: 4 }), { maxLength: 4 }).filter((of) => of.flat().length <= 11);
    fc.assert(
      fc.property(chains, fc.array(lambda, { minLength: 4, maxLength: 4 }), (of, lambdas) => {
        const exact = remainingOf(of, (i) => lambdas[i] ?? 0);
        const expected = enumerated(of, lambdas);
        expect(exact).toHaveLength(expected.length);
        for (const [r, p] of expected.entries()) expect(exact[r]).toBeCloseTo(p, 12);
      }),
      { numRuns: runs(300) },
    );
  });

  it('is a distribution, and more parts are worth no less', () => {
    const chains = fc.array(fc.array(part, { maxLength: 5 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(chains, part, fc.nat(5), fc.nat(60), (of, more, at, needed) => {
        const before = remainingOf(of);
        expect(before.reduce((sum, p) => sum + p, 0)).toBeCloseTo(1, 12);
        const share = (units: number): number => (needed === 0 ? 1 : Math.min(1, units / needed));
        // At the highest bid, where nothing else is lost because of it.
        const chain = at % of.length;
        const grown = of.map((c, i) => (i === chain ? [...c, more] : c));
        expect(expectedUtility(remainingOf(grown), share)).toBeGreaterThanOrEqual(
          expectedUtility(before, share) - 1e-12,
        );
      }),
      { numRuns: runs(300) },
    );
  });
});
