import { describe, expect, it } from '@jest/globals';
import { randomStream } from '../../../../lib/kernel/random.ts';
import { Preferences } from '../../../../lib/policy/colocation/preferences.ts';

const KEYS = ['a', 'b', 'c'];

describe('preferences of what to begin beside a running program', () => {
  it('are uniform at first', () => {
    const p = new Preferences({ step: 0.1, window: 100 });
    expect(p.chances('a', KEYS)).toEqual([1 / 3, 1 / 3, 1 / 3]);
  });

  it('change by eqs. (2) and (3), with the mean that includes the new measurement', () => {
    const p = new Preferences({ step: 0.1, window: 100 });
    p.learn('a', 'b', 4, KEYS);
    // The mean of one measurement is itself.
    expect(p.chances('a', KEYS)).toEqual([1 / 3, 1 / 3, 1 / 3]);
    p.learn('a', 'b', 8, KEYS);
    const gain = 0.1 * (8 - 6);
    expect(p.preference('a', 'b')).toBeCloseTo(gain * (1 - 1 / 3), 12);
    expect(p.preference('a', 'a')).toBeCloseTo(-gain / 3, 12);
    expect(p.preference('b', 'a')).toBe(0);
  });

  it('find the best neighbour among noisy ones, and find the next best where it changes', () => {
    const p = new Preferences({ step: 0.05, window: 100 });
    const draw = randomStream(1, 'bandit');
    const worth: Record<string, number> = { a: 4, b: 6, c: 5 };
    const play = (rounds: number): void => {
      for (let n = 0; n < rounds; n++) {
        let at = draw();
        const chosen = KEYS.find((_, i) => (at -= p.chances('a', KEYS)[i] ?? 0) < 0) ?? 'c';
        p.learn('a', chosen, (worth[chosen] ?? 0) + draw() - 0.5, KEYS);
      }
    };
    play(500);
    expect(p.chances('a', KEYS)[1]).toBeGreaterThan(0.8);
    worth['b'] = 2;
    play(2000);
    expect(p.chances('a', KEYS)[1]).toBeLessThan(0.2);
  });

  it('never make a choice impossible', () => {
    const p = new Preferences({ step: 5, window: 10 });
    for (let n = 0; n < 1000; n++) p.learn('a', n % 2 === 0 ? 'b' : 'c', n % 2 === 0 ? 50 : 1, KEYS);
    for (const chance of p.chances('a', KEYS)) expect(chance).toBeGreaterThan(0);
  });

  it('ignore what is no number, and forget what is no more', () => {
    const p = new Preferences({ step: 0.1, window: 100 });
    p.learn('a', 'b', NaN, KEYS);
    expect(p.count('a')).toBe(0);
    p.learn('a', 'b', 1, KEYS);
    p.learn('a', 'b', 3, KEYS);
    p.forget('b');
    expect(p.preference('a', 'b')).toBe(0);
    p.forget('a');
    expect(p.running).toEqual([]);
  });
});
