import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Agenda } from '../../../lib/sim/agenda.ts';

const deed = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ does: fc.constant('put' as const), atMs: fc.oneof(fc.nat(5), fc.double({ noNaN: true })) }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('take' as const) }) },
);

describe('what is to happen', () => {
  it('comes by time, and at one time in the order in which it was put', () => {
    const seen = { ties: 0, taken: 0 };
    fc.assert(
      fc.property(fc.array(deed, { maxLength: 80, size: 'max' }), (deeds) => {
        const agenda = new Agenda<string>();
        // A list that is sorted anew whenever it is asked: Array.sort is stable.
        let list: { readonly atMs: number; readonly name: string }[] = [];
        deeds.forEach((d, i) => {
          if (d.does === 'put') {
            if (list.some((other) => other.atMs === d.atMs)) seen.ties++;
            agenda.put(d.atMs, `n${i}`);
            list.push({ atMs: d.atMs, name: `n${i}` });
            return;
          }
          list = list.sort((a, b) => (a.atMs < b.atMs ? -1 : a.atMs > b.atMs ? 1 : 0));
          expect(agenda.nextMs).toBe(list[0]?.atMs ?? null);
          const next = list.shift();
          if (next === undefined) return void expect(() => agenda.take()).toThrow(/empty/);
          expect(agenda.take()).toBe(next.name);
          seen.taken++;
        });
      }),
      { seed: 20261122, numRuns: 300 },
    );
    expect(Math.min(seen.ties, seen.taken)).toBeGreaterThan(500);
  });

  it('may be more than it began with room for', () => {
    const agenda = new Agenda<number>();
    for (let i = 0; i < 5000; i++) agenda.put((i * 7919) % 5000, (i * 7919) % 5000);
    for (let i = 0; i < 5000; i++) expect(agenda.take()).toBe(i);
    expect(agenda.nextMs).toBeNull();
  });
});
