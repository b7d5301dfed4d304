import { describe, expect, it } from '@jest/globals';
import { NO_LOAD, plusLoad, soundLoad, timesLoad, type Load } from '../../../../lib/domain/load.ts';
import { goodness } from '../../../../lib/policy/colocation/goodness.ts';

const MOST = { diskRead: 100, diskWritten: 50, netReceived: 10, netSent: 10 };
const load = (of: Partial<Load>): Load => ({ ...NO_LOAD, ...of });

describe('goodness of a co-location', () => {
  it('is eq. (1) of the paper', () => {
    expect(goodness(NO_LOAD, MOST)).toBeCloseTo(Math.E, 12);
    expect(goodness(load({ cpu: 1 }), MOST)).toBeCloseTo(Math.exp(2), 12);
    const busy = load({ cpu: 0.5, ioWait: 0.2, diskRead: 50, diskWritten: 25, netSent: 3 });
    const expected = Math.exp(1 + 0.5 + (Math.tanh(0.5 + 0.5) + Math.tanh(0.3)) * Math.exp(-5 * 0.2));
    expect(goodness(busy, MOST)).toBeCloseTo(expected, 12);
  });

  it('falls with the time that work waits for the disk', () => {
    const at = (ioWait: number) => goodness(load({ cpu: 0.4, diskRead: 90, ioWait }), MOST) ?? NaN;
    expect(at(0)).toBeGreaterThan(at(0.1));
    expect(at(0.1)).toBeGreaterThan(at(0.9));
  });

  it('leaves out a device whose limit is not known, and loads that are no numbers', () => {
    const none = { diskRead: Infinity, diskWritten: Infinity, netReceived: 0, netSent: Infinity };
    expect(goodness(load({ diskRead: 1e9, netReceived: 1e9 }), none)).toBeCloseTo(Math.E, 12);
    expect(goodness(load({ cpu: NaN }), MOST)).toBeNull();
  });
});

describe('a measured load', () => {
  it('is within bounds, and nothing where counters went back or are missing', () => {
    expect(soundLoad({ cpu: 1.3, ioWait: 0.1, diskRead: -5, netSent: NaN })).toEqual(load({ cpu: 1, ioWait: 0.1 }));
    expect(soundLoad({ cpu: -0.1 })).toBeNull();
    expect(soundLoad({})).toBeNull();
  });

  it('adds up', () => {
    const a = load({ cpu: 0.2, netSent: 4 });
    expect(plusLoad(a, timesLoad(a, 2))).toEqual(timesLoad(a, 3));
  });
});
