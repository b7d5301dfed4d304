import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Kept } from '../../../scripts/aws-double/kept.ts';

it('keeps the newest, counts all, and says what came after any of them', () => {
  const runs = fc.record({ most: fc.integer({ min: 1, max: 40 }), all: fc.array(fc.integer()), from: fc.nat(120) });
  fc.assert(
    fc.property(runs, ({ most, all, from }) => {
      const kept = new Kept<number>(most);
      for (const value of all) kept.add(value);
      expect(kept.count).toBe(all.length);
      expect(kept.items.length).toBeLessThanOrEqual(Math.max(most, Math.floor(most * 1.1)));
      expect(kept.items.length).toBeGreaterThanOrEqual(Math.min(most, all.length));
      expect(kept.items).toEqual(all.slice(all.length - kept.items.length));
      const isKept = from >= all.length - kept.items.length;
      expect(kept.after(from)).toEqual(isKept ? all.slice(from) : [...kept.items]);
    }),
    { seed: 5, numRuns: 300 },
  );
});
