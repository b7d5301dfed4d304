import { describe, expect, it } from '@jest/globals';
import { Silence } from '../../../../lib/drivers/local/engine/silence.ts';

const LIMIT_S = 30;

/**
 * The second in which a thread is ended that gets `share` of a processor from `fromS` of its life on; null: not within
 * ten minutes.
 */
function endedAfter(share: number | null, fromS = 100): number | null {
  const silence = new Silence();
  for (let s = 1; s <= 600; s++) {
    if (share !== null) silence.used(fromS + share * s);
    if (silence.isTooLong(LIMIT_S)) return s;
  }
  return null;
}

describe('a thread that says nothing', () => {
  it('is ended at the limit where it loops on a processor of its own, waits, or nobody knows what it does', () => {
    expect(endedAfter(1)).toBe(LIMIT_S);
    expect(endedAfter(0)).toBe(LIMIT_S);
    expect(endedAfter(0.001)).toBe(LIMIT_S);
    expect(endedAfter(null)).toBe(LIMIT_S);
  });

  it('has as much processor time as elsewhere on a machine that has little of it, and is ended in the end', () => {
    expect(endedAfter(0.5)).toBeGreaterThan(LIMIT_S);
    expect(endedAfter(0.15)).toBeGreaterThan(4 * LIMIT_S);
    expect(endedAfter(0.03)).toBe(10 * LIMIT_S);
    for (const share of [0.05, 0.1, 0.2, 0.4]) {
      expect(share * (endedAfter(share) ?? 0)).toBeLessThan(LIMIT_S);
    }
  });

  it('begins anew when it says something', () => {
    const silence = new Silence();
    for (let s = 1; s < LIMIT_S; s++) {
      silence.used(s);
      expect(silence.isTooLong(LIMIT_S)).toBe(false);
    }
    silence.broken();
    silence.used(LIMIT_S);
    for (let s = 1; s < LIMIT_S; s++) expect(silence.isTooLong(LIMIT_S)).toBe(false);
    expect(silence.seconds).toBe(LIMIT_S - 1);
  });

  it('is judged by the clock where its processor time is told no more', () => {
    const silence = new Silence();
    for (let s = 1; s <= 20; s++) {
      silence.used(0.2 * s);
      expect(silence.isTooLong(LIMIT_S)).toBe(false);
    }
    const later = Array.from({ length: 10 }, () => silence.isTooLong(LIMIT_S));
    expect(later.indexOf(true)).toBe(9);
  });
});
