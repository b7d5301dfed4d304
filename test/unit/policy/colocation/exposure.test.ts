import { describe, expect, it } from '@jest/globals';
import { NO_LOAD } from '../../../../lib/domain/load.ts';
import { exposureOf, movedAfter } from '../../../../lib/policy/colocation/exposure.ts';

const MOST = { diskRead: 100, diskWritten: 80, netReceived: 50, netSent: 50 };

describe('exposure to a neighbour', () => {
  it('is the part of what it takes most', () => {
    expect(exposureOf(0.25, { disk: 0, net: 0 }, MOST)).toBe(0.25);
    expect(exposureOf(0.25, { disk: 40, net: 0 }, MOST)).toBe(0.5);
    expect(exposureOf(0.25, { disk: 0, net: 50 }, MOST)).toBe(1);
  });

  it('is more on a machine that has less', () => {
    const small = { ...MOST, diskRead: 20, diskWritten: 20 };
    expect(exposureOf(0.1, { disk: 40, net: 0 }, small)).toBe(2);
  });

  it('counts what it asked for where the machine does not tell what it has', () => {
    const unknown = { diskRead: Infinity, diskWritten: Infinity, netReceived: 0, netSent: NaN };
    expect(exposureOf(0.25, { disk: 1e9, net: 1e9 }, unknown)).toBe(0.25);
  });
});

describe('what a program moves where nothing is in its way', () => {
  it('rises at once, and falls slowly: a program that is slowed down moves less', () => {
    const alone = movedAfter(undefined, { ...NO_LOAD, diskRead: 1000, netSent: 500, netReceived: 20 });
    expect(alone).toEqual({ disk: 1000, net: 500 });
    const slowed = movedAfter(alone, { ...NO_LOAD, diskRead: 100 });
    expect(slowed.disk).toBe(982);
    expect(movedAfter(slowed, { ...NO_LOAD, diskWritten: 2000 }).disk).toBe(2000);
  });
});
